/** An authorization server that others have written (oidc-provider), and a user who signs in and agrees to everything. */
import { generateKeyPairSync } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'
import type { Browser } from 'vivarium/client'
import { listen } from './world.ts'

export interface RunningProvider {
  readonly issuer: string
  readonly provider: Provider
  /** Requests that reached it, as method and path. */
  readonly seen: string[]
}

export async function startProvider(
  resource: () => string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<RunningProvider> {
  const seen: string[] = []
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown = () => undefined
  const issuer = await listen((request, response) => {
    seen.push(`${request.method} ${(request.url ?? '').split('?')[0]}`)
    return handle(request, response)
  })
  const provider = new Provider(issuer, {
    jwks: { keys: [generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })] },
    cookies: { keys: ['not a secret'] },
    scopes: ['openid', 'offline_access'],
    pkce: { required: () => true },
    interactions: { url: (_context: unknown, { uid }: { readonly uid: string }) => `/sign-in/${uid}` },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 600, Interaction: 60, RefreshToken: 600, Session: 600, IdToken: 60 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, indicator: string) => {
          if (indicator !== resource()) throw new Error(`unknown resource ${indicator}`)
          return { scope: 'tools', audience: indicator, accessTokenFormat: 'opaque' }
        },
      },
    },
    ...more,
  })
  const own = provider.callback()
  handle = (request, response) =>
    request.url?.startsWith('/sign-in/') ? agree(provider, request, response) : own(request, response)
  return { issuer, provider, seen }
}

async function agree(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') return provider.interactionFinished(request, response, { login: { accountId: 'ada' } })
  const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: params['client_id'] ?? '' })
  grant.addOIDCScope('openid offline_access')
  grant.addResourceScope(params['resource'] ?? '', 'tools')
  await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

/** Follows redirects with cookies until the way back to the client. */
export function cookieBrowser(redirectUri: string): Browser {
  const cookies = new Map<string, string>()
  return {
    redirectUri,
    async authorize(start, { signal }) {
      let url = start
      for (let hops = 0; hops < 10 && !url.href.startsWith(redirectUri); hops++) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
        const response = await fetch(url, { redirect: 'manual', signal, headers: { cookie } })
        for (const line of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
          cookies.set(name, value)
        }
        const location = response.headers.get('location')
        if (location === null) throw new Error(`HTTP ${response.status}: ${(await response.text()).slice(0, 300)}`)
        url = new URL(location, url)
      }
      return url
    },
  }
}
