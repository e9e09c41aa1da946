/** How the client signs in where the official conformance suite asks it to: no browser and no user, the suite plays both. */
import { type Authorization, type Browser, clientCredentials, enterprise, oauth, workloadIdentity } from 'vivarium/client'
import type { SignInWay } from 'vivarium/conformance'

type Context = Readonly<Record<string, unknown>>

/** The suite answers at once with the way back, which nobody has to listen for. */
export const browser: Browser = {
  redirectUri: 'http://127.0.0.1:7421/callback',
  async authorize(url, { signal }) {
    const response = await fetch(url, { redirect: 'manual', signal })
    const location = response.headers.get('location')
    if (location === null) throw new Error(`The authorization server answered HTTP ${response.status} without a redirect`)
    return new URL(location, url)
  },
}

const clientMetadataUrl = 'https://conformance-test.local/client-metadata.json'

const ways = new Map<string, (text: (key: string) => string) => Authorization>([
  ['auth/pre-registration', text => oauth({ browser, clientId: text('client_id'), clientSecret: text('client_secret') })],
  ['auth/dpop', () => oauth({ browser, dpop: true })],
  ['auth/dpop-nonce', () => oauth({ browser, dpop: true })],
  [
    'auth/client-credentials-basic',
    text => clientCredentials({ clientId: text('client_id'), clientSecret: text('client_secret') }),
  ],
  [
    'auth/client-credentials-jwt',
    text => clientCredentials({ clientId: text('client_id'), privateKey: text('private_key_pem') }),
  ],
  ['auth/wif-jwt-bearer', text => workloadIdentity({ clientId: text('client_id'), assertion: () => text('valid_jwt') })],
  [
    'auth/enterprise-managed-authorization',
    text =>
      enterprise({
        clientId: text('client_id'),
        clientSecret: text('client_secret'),
        identityProvider: {
          tokenEndpoint: text('idp_token_endpoint'),
          clientId: text('idp_client_id'),
          subjectToken: () => text('idp_id_token'),
        },
      }),
  ],
])

/** As a play of `vivarium test --client` asks for it. */
export function signInBy(wish: SignInWay): Authorization {
  if (wish.way === 'code') return oauth({ browser })
  return clientCredentials({ clientId: wish.clientId, clientSecret: wish.clientSecret })
}

/** Undefined for scenarios that need nobody to sign in. */
export function signInFor(scenario: string, context: Context): Authorization | undefined {
  if (!scenario.startsWith('auth/')) return undefined
  const way = ways.get(scenario)
  if (way === undefined) return oauth({ browser, clientMetadataUrl })
  return way(key => {
    const value = context[key]
    if (typeof value !== 'string') throw new Error(`MCP_CONFORMANCE_CONTEXT has no ${key}`)
    return value
  })
}
