/**
 * A client that is told to sign in: from the refusal through the metadata to a token, what the token is then used for, and what a
 * client must not fall for on the way.
 */
import { createHash } from 'node:crypto'
import { eras, since } from '../../define.ts'
import { type CheckResult, type Expectation, should } from '../../expectations.ts'
import { type ClientJudging, type ClientNeed, clientTable } from '../define.ts'
import { type LoggedMessage, messageOf, type Observation } from '../log.ts'
import { call, plainSteps } from '../play.ts'
import { type AuthorityRequest, askedFor, guardedPlay, type SignIn, signInOf } from './authority.ts'

const pages = (about: SignIn) => askedFor(about, /\/authorize$/)
const tokenRequests = (about: SignIn) => askedFor(about, /\/token$/)
const grants = (about: SignIn, grant: string) => tokenRequests(about).find(({ body }) => body['grant_type'] === grant)
const toolCalls = (about: SignIn) => about.requests.filter(({ asks }) => asks === 'tools/call')
const scopesOf = (request: AuthorityRequest | undefined) => (request?.query['scope'] ?? '').split(' ')

/** Needs that the client does anything about the refusal. */
const signsIn: ClientNeed = seen => {
  const { authority, requests } = signInOf(seen)
  const looked = requests.some(({ path }) => path.includes('oauth-protected-resource') || path.startsWith('/about/'))
  const acts = looked || authority.requests.length > 0
  return acts ? undefined : 'the client does not sign in: it ended when it was refused with 401'
}

/** Needs that it came as far as the page on which a user would sign in. */
const goesToPage: ClientNeed = seen =>
  signsIn(seen) ?? (pages(signInOf(seen)).length > 0 ? undefined : 'the client did not ask for an authorization code')

/** Needs that it has read the metadata of the authorization server. */
const readsAuthority: ClientNeed = seen =>
  askedFor(signInOf(seen), /\.well-known/).length > 0
    ? undefined
    : (signsIn(seen) ?? 'the client did not read the metadata of the authorization server')

/** What is seen of the sign-in is right; where it is not, the report shows what the authorization server was asked last. */
function signIn(check: (about: SignIn) => CheckResult): Expectation<Observation, ClientJudging> {
  return (seen, { show }) => {
    const about = signInOf(seen)
    show(about.authority.requests.slice(-8).map(evidence))
    return check(about)
  }
}

function evidence({ at, method, path, query, text }: AuthorityRequest): LoggedMessage {
  const address = Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query)}`
  return messageOf(`${method} ${address}${text === '' ? '' : ` ${text}`}`, { at, from: 'client', line: 0 })
}

/** No token may have been asked for. */
function left(although: string) {
  const text = `The client continued and requested a token, although ${although}`
  return { [text]: signIn(about => tokenRequests(about).length === 0) }
}

const asksForToken = (says: string) => ({ [says]: signIn(about => tokenRequests(about).length > 0) })
const goesOn = {
  'The client got a token and did not use it': signIn(about => toolCalls(about).some(({ token }) => token !== undefined)),
}

/** Servers are resource servers, with metadata that say who gives tokens for them, from 2025-06-18 on. */
const guarded = since('2025-06-18').filter(revision => revision !== 'draft-2026-v1')
const plain = guardedPlay('auth/metadata-default', { challenge: { scope: 'mcp:use' } })
const row = clientTable('client/auth/', { play: plain, revisions: guarded, carriers: ['http'] })
const atPage = { needs: [goesToPage] }

function isResource({ resource }: SignIn, value: unknown): boolean {
  return String(value ?? '').replace(/\/$/, '') === resource
}

/** In this order, each at least once. */
function inOrder(visited: readonly string[], places: readonly string[]): CheckResult {
  const firsts = places.map(place => visited.indexOf(place))
  const missed = places.find((_, at) => firsts[at] === -1)
  if (missed !== undefined) return `Metadata were not requested at ${missed} (visited: ${visited.join(', ') || 'nothing'})`
  const sorted = firsts.every((first, at) => at === 0 || first > (firsts[at - 1] ?? -1))
  return sorted || `The order must be ${places.join(', ')}; it was ${visited.join(', ')}`
}

const signingIn = [
  row(
    'signs-in MCP basic/authorization#authorization-server-discovery RFC 9728 §5',
    'A refusal with 401 leads through the metadata to a token, which the client then uses',
  ).by({ needs: [signsIn] }, { ...asksForToken('The client found the authorization server and requested no token'), ...goesOn }),
  row(
    'pkce MCP basic/authorization#authorization-code-protection RFC 7636 §4',
    'The code is requested and redeemed with PKCE (S256)',
  ).by(atPage, {
    'The proof': signIn(about => {
      const { code_challenge: challenge = '', code_challenge_method: method } = pages(about)[0]?.query ?? {}
      const redeemed = grants(about, 'authorization_code')
      const verifier = String(redeemed?.body['code_verifier'] ?? '')
      if (method !== 'S256') return `code_challenge_method must be S256; it is ${method ?? 'absent'}`
      if (!/^[\w-]{43}$/.test(challenge)) return `code_challenge is not a SHA-256 digest in base64url: "${challenge}"`
      if (redeemed === undefined) return 'The client did not redeem its code'
      if (!/^[\w.~-]{43,128}$/.test(verifier)) return `code_verifier must be 43 to 128 unreserved characters, not "${verifier}"`
      const fits = createHash('sha256').update(verifier).digest('base64url') === challenge
      return fits || 'code_verifier does not fit code_challenge'
    }),
  }),
  row(
    'resource MCP basic/authorization#resource-parameter-implementation RFC 8707 §2',
    'Both requests name this server as the resource',
  ).by(atPage, {
    'The authorization request': signIn(about => {
      const odd = pages(about).find(({ query }) => !isResource(about, query['resource']))
      return odd === undefined || `The authorization request has resource ${odd.query['resource'] ?? '(none)'}`
    }),
    'The token request': signIn(about => {
      const odd = tokenRequests(about).find(({ body }) => !isResource(about, body['resource']))
      return odd === undefined || `The token request has resource ${String(odd.body['resource'] ?? '(none)')}`
    }),
  }),
  row('state MCP basic/authorization#open-redirection RFC 6749 §10.12', 'The authorization request has a state').by(atPage, {
    'An authorization request should have a state': should(
      signIn(about => pages(about).every(({ query }) => (query['state'] ?? '') !== '')),
    ),
  }),
  row(
    'redirect-uri MCP basic/authorization#communication-security RFC 6749 §4.1.3',
    'redirect_uri is https or on this machine, registered, and the same in both requests',
  ).by(atPage, {
    redirect_uri: signIn(about => {
      const uri = pages(about)[0]?.query['redirect_uri'] ?? ''
      const at = URL.canParse(uri) ? new URL(uri) : undefined
      const here = at !== undefined && /^(127\.0\.0\.1|localhost|\[::1\])$/.test(at.hostname)
      if (at === undefined || (!here && at.protocol === 'http:'))
        return `redirect_uri must be https or on this machine, not "${uri}"`
      const lists = askedFor(about, /\/register$/).map(({ body }) => body['redirect_uris'])
      if (!lists.every(list => Array.isArray(list) && list.includes(uri)))
        return `redirect_uri "${uri}" is not among those registered`
      const again = grants(about, 'authorization_code')?.body['redirect_uri'] ?? uri
      return again === uri || 'The token request has another redirect_uri than the authorization request'
    }),
  }),
  row(
    'every-request MCP basic/authorization#token-requirements RFC 6750 §2.1',
    'The token is in the header of every request, and never in an address',
  ).by(atPage, {
    'The requests': signIn(({ requests }) => {
      const began = requests.findIndex(({ token }) => token !== undefined)
      if (began < 0) return 'No request had a token in its header'
      const bare = requests.slice(began).find(({ path, token }) => path.startsWith('/mcp') && token === undefined)
      return bare === undefined || `${bare.method} ${bare.path} ${bare.asks} came without the token`
    }),
    'The addresses': signIn(({ requests }) => {
      const open = requests.find(({ path }) => /token-\d|access_token/.test(path))
      return open === undefined || `A URL contains a token: ${open.path}`
    }),
  }),
  row('scope MCP basic/authorization#scope-selection-strategy', 'The scope that the challenge names is requested').by(
    { ...atPage, revisions: eras },
    {
      'The scope': should(
        signIn(about => {
          const [page] = pages(about)
          const asked = page?.query['scope'] ?? 'none'
          return scopesOf(page).includes('mcp:use') || `The challenge names the scope mcp:use; the client requested ${asked}`
        }),
      ),
    },
  ),
  row(
    'named-metadata MCP basic/authorization#authorization-server-location RFC 9728 §5.1',
    'The metadata are read at the address in the challenge',
  ).by(
    { play: guardedPlay('auth/named-metadata', { metadataAt: '/about/this-server.json' }), needs: [signsIn] },
    {
      'The challenge names resource_metadata, and the client looked elsewhere': signIn(({ requests }) =>
        requests.some(({ path }) => path.startsWith('/about/')),
      ),
      ...asksForToken('The client read the metadata and requested no token'),
    },
  ),
  row(
    'discovery-order MCP basic/authorization#authorization-server-metadata-discovery RFC 9728 §3.1 RFC 8414 §3.1',
    'Without a named address, metadata are requested at each well-known address, in the order of the specification',
  ).by(
    {
      play: guardedPlay('auth/metadata-order', {
        challenge: { resource_metadata: false },
        metadataAt: '/.well-known/oauth-protected-resource',
        authority: { tenant: '/tenant', metadataAt: '/tenant/.well-known/openid-configuration' },
      }),
      revisions: eras,
      needs: [signsIn],
    },
    {
      'The metadata of the resource': signIn(({ requests }) => {
        const visited = requests.map(({ path }) => path).filter(path => path.startsWith('/.well-known/'))
        return inOrder(visited, ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource'])
      }),
      'The metadata of the authority': signIn(about => {
        const visited = askedFor(about, /\.well-known/).map(({ path }) => path)
        const first = ['/.well-known/oauth-authorization-server/tenant', '/.well-known/openid-configuration/tenant']
        return inOrder(visited, [...first, '/tenant/.well-known/openid-configuration'])
      }),
      ...asksForToken('The client found the metadata and requested no token'),
    },
  ),
  row(
    'client-credentials MCP basic/authorization RFC 6749 §4.4 RFC 8707 §2',
    'A client that acts for itself gets a token with its own credentials',
  ).by(
    {
      play: guardedPlay('auth/client-credentials-basic', {
        signIn: { way: 'client-credentials', clientId: 'kit-client', clientSecret: 'kit-secret' },
      }),
      needs: [
        signsIn,
        seen =>
          grants(signInOf(seen), 'client_credentials') === undefined
            ? 'the client does not request tokens with its own credentials'
            : undefined,
      ],
    },
    {
      'The token request does not prove who the client is': signIn(about => {
        const { headers = {}, body = {} } = grants(about, 'client_credentials') ?? {}
        const basic = `Basic ${Buffer.from('kit-client:kit-secret').toString('base64')}`
        return (
          headers['authorization'] === basic || (body['client_id'] === 'kit-client' && body['client_secret'] === 'kit-secret')
        )
      }),
      'A URL contains the secret': signIn(about => grants(about, 'client_credentials')?.query['client_secret'] === undefined),
      'The resource': signIn(about => {
        const resource = grants(about, 'client_credentials')?.body['resource']
        return isResource(about, resource) || `The token request has resource ${String(resource ?? '(none)')}`
      }),
      ...goesOn,
    },
  ),
]

// ── what a client must not fall for, and what it does when its token is refused later ───────────────────────────────

const elsewhere = 'https://elsewhere.example'
const otherResource = guardedPlay('auth/resource-mismatch', { metadata: { resource: `${elsewhere}/mcp` } })
const otherIssuer = guardedPlay('auth/metadata-issuer-mismatch', { authority: { metadata: { issuer: elsewhere } } })
const noPkce = guardedPlay('auth/no-pkce', { authority: { metadata: { code_challenge_methods_supported: undefined } } })
const wrongState = guardedPlay('auth/wrong-state', { authority: { sendsBack: { state: 'of-somebody-else' } } })
const promisesIss = { authorization_response_iss_parameter_supported: true }
const wrongIss = guardedPlay('auth/iss-wrong-issuer', {
  authority: { metadata: promisesIss, sendsBack: { iss: elsewhere } },
})
const missingIss = guardedPlay('auth/iss-supported-missing', { authority: { metadata: promisesIss } })

/** The first token is good for one call. */
const expired = guardedPlay('auth/token-expired', {
  steps: [...plainSteps, call('again')],
  refuse: ({ asks, token }, about) =>
    token === 'token-1' && asks === 'tools/call' && toolCalls(about).filter(one => one.token === token).length > 1
      ? { status: 401, challenge: { error: 'invalid_token' } }
      : undefined,
})

/** Calls want a scope that the first challenge does not name. */
const stepUp = guardedPlay('auth/scope-step-up', {
  challenge: { scope: 'mcp:use' },
  refuse: ({ asks, token = '' }, { authority }) =>
    asks === 'tools/call' && authority.scopeOf(token)?.split(' ').includes('mcp:call') !== true
      ? { status: 403, challenge: { error: 'insufficient_scope', scope: 'mcp:use mcp:call' } }
      : undefined,
})

/** Calls are sent on to another origin: that of the authorization server, which writes down what it is sent. */
const redirected = guardedPlay('auth/redirected', {
  refuse: ({ asks }, { authority }) =>
    asks === 'tools/call' ? { status: 307, location: `${authority.origin}/elsewhere` } : undefined,
})

const mistrusting = [
  row(
    'resource-mismatch MCP basic/authorization#authorization-server-location RFC 9728 §3.3',
    'Metadata of another resource are not used',
  ).by([otherResource, signsIn], left('the metadata are about https://elsewhere.example/mcp, not about this server')),
  row(
    'issuer-mismatch MCP basic/authorization#authorization-server-metadata-discovery RFC 8414 §3.3',
    'Metadata of another authorization server are not used',
  ).by([otherIssuer, readsAuthority], left('issuer in the metadata is not the one that they were requested for')),
  row(
    'no-pkce MCP basic/authorization#authorization-code-protection',
    'An authorization server that does not announce PKCE is refused',
  ).by({ play: noPkce, revisions: eras, needs: [readsAuthority] }, left('code_challenge_methods_supported is absent')),
  row('wrong-state MCP basic/authorization#open-redirection RFC 6749 §10.12', 'A code with another state is discarded').by(
    [wrongState, goesToPage],
    {
      'A code with another state should be discarded': should(signIn(about => tokenRequests(about).length === 0)),
    },
  ),
  row('wrong-iss MCP 2026-07-28 basic/authorization RFC 9207 §2.4', 'A code from another issuer is discarded').by(
    { play: wrongIss, revisions: ['2026-07-28'], needs: [goesToPage] },
    left('iss in the answer is https://elsewhere.example'),
  ),
  row(
    'missing-iss MCP 2026-07-28 basic/authorization RFC 9207 §2.4',
    'A code without iss is discarded if the metadata promise one',
  ).by(
    { play: missingIss, revisions: ['2026-07-28'], needs: [goesToPage] },
    left('the metadata promise iss and the answer has none'),
  ),
  row(
    'other-origin MCP basic/authorization#access-token-privilege-restriction RFC 6750 §5.3',
    'The token is sent only to this server, also if a request is redirected',
  ).by([redirected, goesToPage], {
    'The token': signIn(({ authority }) => {
      const leaked = authority.requests.find(({ headers, text, query }) =>
        /token-\d/.test(`${headers['authorization'] ?? ''} ${text} ${JSON.stringify(query)}`),
      )
      return leaked === undefined || `The token was sent to ${authority.origin}: ${leaked.method} ${leaked.path}`
    }),
  }),
  row(
    'expired MCP basic/authorization#error-handling RFC 6750 §3.1 RFC 6749 §6',
    'A token that is refused with 401 is renewed, and the request is repeated',
  ).by(
    {
      play: expired,
      needs: [goesToPage, seen => (toolCalls(signInOf(seen)).length > 1 ? undefined : 'the client made no second call')],
    },
    {
      'The call that was refused with invalid_token was not repeated with another token': signIn(about =>
        toolCalls(about).some(({ token }) => token !== undefined && token !== 'token-1'),
      ),
      'The refused token': signIn(about => {
        const { length } = toolCalls(about).filter(({ token }) => token === 'token-1')
        return length <= 3 || `The refused token was sent ${length - 1} more times`
      }),
      'The client had a refresh token but asked the user again': should(signIn(about => pages(about).length <= 1)),
    },
  ),
  row(
    'step-up MCP basic/authorization#step-up-authorization-flow RFC 6750 §3.1',
    'After a refusal because of a missing scope the client requests that scope, a limited number of times',
  ).by({ play: stepUp, revisions: eras, needs: [goesToPage] }, (seen, { expect, warn }) => {
    const about = signInOf(seen)
    const trail = about.authority.requests.slice(-8).map(evidence)
    const [, ...later] = pages(about)
    expect(later.length <= 4, `The client asked its user ${later.length} more times`, trail)
    if (later.length === 0) return warn('After insufficient_scope the client should request the missing scope')
    const asked = later.some(page => scopesOf(page).includes('mcp:call'))
    expect(asked, `The challenge wants the scope mcp:call; the client requested ${later[0]?.query['scope'] ?? 'none'}`, trail)
    const made = toolCalls(about).some(({ token }) => token === `token-${later.length + 1}`)
    expect(made, 'The call was not repeated with the new token', trail)
  }),
]

/** Clients that sign in by OAuth where nobody has to look at a page. */
export const authScenarios = [...signingIn, ...mistrusting]
