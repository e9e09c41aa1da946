/** A real authorization server (oidc-provider) on loopback: JWT access tokens for whatever resource is asked for. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

export interface RealIssuer {
  readonly url: string
  /** A token of the client `robot` for a resource, by its own credentials. */
  token(resource: string, scope: string): Promise<string>
  close(): Promise<void>
}

/** `format`: what its access tokens are. `claims`: what its opaque tokens say beyond the usual, when it is asked. */
export async function realIssuer(format: 'jwt' | 'opaque' = 'jwt', claims?: object): Promise<RealIssuer> {
  const http = createServer((req, res) => provider.callback()(req, res))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', () => resolve()))
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const provider = new Provider(url, {
    clients: [
      {
        client_id: 'robot',
        client_secret: 'robot-secret',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      { client_id: 'tickets', client_secret: 'tickets-secret', grant_types: [], redirect_uris: [], response_types: [] },
    ],
    extraTokenClaims: () => claims,
    scopes: ['tickets:read', 'tickets:write'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_ctx: unknown, resource: string) => ({
          scope: 'tickets:read tickets:write',
          audience: resource,
          accessTokenFormat: format,
          accessTokenTTL: 300,
          ...(format === 'jwt' ? { jwt: { sign: { alg: 'RS256' } } } : {}),
        }),
      },
    },
  })
  return {
    url,
    token: async (resource, scope) => {
      const answer = await fetch(`${url}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('robot:robot-secret')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
      })
      const { access_token: token } = (await answer.json()) as { access_token?: string }
      if (token === undefined) throw new Error(`The authorization server gave no token (${answer.status})`)
      return token
    },
    close: () =>
      new Promise(resolve => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
}
