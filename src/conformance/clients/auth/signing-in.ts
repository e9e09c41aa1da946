/** A client that is told to sign in: from the refusal through the metadata to a token, and what the token is then used for. */
import { createHash } from 'node:crypto'
import type { RevisionId } from '../../../revisions/index.ts'
import { type ClientScenario, scenario, type Verdict } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import type { Said } from '../stage/book.ts'
import type { Asked } from './authority.ts'
import { asksFor, bearerIn, guardedPlay, type SignIn, signInOf } from './guarded-play.ts'

/** Those in which a server is a resource server, with metadata that say who gives tokens for it. */
export const GUARDED: readonly RevisionId[] = ['2025-06-18', '2025-11-25', '2026-07-28']
/** Those that know OpenID discovery, step-up and the refusal of authorities without PKCE. */
export const LATER: readonly RevisionId[] = ['2025-11-25', '2026-07-28']

const plain = guardedPlay('auth/metadata-default', { challenge: { scope: 'mcp:use' } })
const elsewhere = guardedPlay('auth/named-metadata', { metadataAt: '/about/this-server.json' })
const ordered = guardedPlay('auth/metadata-order', {
  challenge: { resource_metadata: false },
  metadataAt: '/.well-known/oauth-protected-resource',
  authority: { tenant: '/tenant', metadataAt: '/tenant/.well-known/openid-configuration' },
})
const credentials = guardedPlay('auth/client-credentials-basic', {
  signIn: { way: 'client-credentials', clientId: 'kit-client', clientSecret: 'kit-secret' },
})

/** Needs that the client does anything about the refusal. */
export function signsIn(seen: Seen): string | undefined {
  const { authority, knocks } = signInOf(seen)
  const looked = knocks.some(({ path }) => path.includes('oauth-protected-resource') || path.startsWith('/about/'))
  return looked || authority.asked.length > 0 ? undefined : 'the client does not sign in: it left when it was refused with 401'
}

/** Needs that it came as far as the page on which a user would sign in. */
export function goesToPage(seen: Seen): string | undefined {
  return signsIn(seen) ?? (pages(signInOf(seen)).length > 0 ? undefined : 'the client did not ask for an authorization code')
}

export function pages(about: SignIn): readonly Asked[] {
  return asksFor(about, /\/authorize$/)
}

export function tokenRequests(about: SignIn): readonly Asked[] {
  return asksFor(about, /\/token$/)
}

/** What was asked, as a report shows it. */
function evidence(asked: readonly (Asked | undefined)[]): readonly Said[] {
  return asked
    .filter(one => one !== undefined)
    .map(({ at, method, path, query, text }) => {
      const address = Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query)}`
      return { at, from: 'client', line: 0, text: `${method} ${address}${text === '' ? '' : ` ${text}`}` }
    })
}

/** A check of what was seen of the sign-in; where it fails the report shows what the authorization server was asked. */
export function judged(
  check: (about: SignIn, verdict: Pick<Verdict, 'warn'> & { expect(right: boolean, says: string): void }) => void,
): ClientScenario['check'] {
  return (seen, { expect, warn }) => {
    const about = signInOf(seen)
    const trail = evidence(about.authority.asked.slice(-8))
    check(about, { warn, expect: (right, says) => expect(right, says, trail) })
  }
}

export const signingIn: readonly ClientScenario[] = [
  scenario(
    'client/auth/signs-in',
    'A refusal with 401 leads through the metadata to a token, and the run goes on with it',
    plain,
    {
      proves: ['MCP basic/authorization#authorization-server-discovery', 'RFC 9728 §5'],
      revisions: GUARDED,
      carriers: ['http'],
      needs: signsIn,
      check: judged((about, { expect }) => {
        expect(tokenRequests(about).length > 0, 'The client found who gives tokens, and asked for none')
        const calls = about.knocks.filter(({ asks, headers }) => asks === 'tools/call' && bearerIn(headers) !== undefined)
        expect(calls.length > 0, 'The client got a token and did not go on with it')
      }),
    },
  ),
  scenario('client/auth/pkce', 'The code is asked for and redeemed under PKCE with S256', plain, {
    proves: ['MCP basic/authorization#authorization-code-protection', 'RFC 7636 §4'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { expect }) => {
      const [page] = pages(about)
      const { code_challenge: challenge = '', code_challenge_method: method } = page?.query ?? {}
      expect(method === 'S256', `code_challenge_method must be S256, and is ${method ?? 'absent'}`)
      expect(/^[\w-]{43}$/.test(challenge), `code_challenge is no SHA-256 in base64url: "${challenge}"`)
      const redeemed = tokenRequests(about).find(({ body }) => body['grant_type'] === 'authorization_code')
      expect(redeemed !== undefined, 'The client did not redeem its code')
      const verifier = String(redeemed?.body['code_verifier'] ?? '')
      expect(/^[\w.~-]{43,128}$/.test(verifier), `code_verifier must be 43 to 128 unreserved characters, not "${verifier}"`)
      expect(createHash('sha256').update(verifier).digest('base64url') === challenge, 'code_verifier does not fit code_challenge')
    }),
  }),
  scenario('client/auth/resource', 'The token is asked for this server: resource is its identifier, in both requests', plain, {
    proves: ['MCP basic/authorization#resource-parameter-implementation', 'RFC 8707 §2'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { expect }) => {
      const named = (value: unknown): boolean => String(value ?? '').replace(/\/$/, '') === about.resource
      for (const page of pages(about))
        expect(named(page.query['resource']), `The authorization request has resource ${page.query['resource'] ?? '(none)'}`)
      for (const { body } of tokenRequests(about))
        expect(named(body['resource']), `The token request has resource ${String(body['resource'] ?? '(none)')}`)
    }),
  }),
  scenario('client/auth/state', 'The authorization request has a state', plain, {
    proves: ['MCP basic/authorization#open-redirection', 'RFC 6749 §10.12'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { warn }) => {
      if (pages(about).some(({ query }) => (query['state'] ?? '') === '')) warn('An authorization request should have a state')
    }),
  }),
  scenario(
    'client/auth/redirect-uri',
    'The way back is https or on this machine, registered, and the same in both requests',
    plain,
    {
      proves: ['MCP basic/authorization#communication-security', 'RFC 6749 §4.1.3'],
      revisions: GUARDED,
      carriers: ['http'],
      needs: goesToPage,
      check: judged((about, { expect }) => {
        const [page] = pages(about)
        const uri = page?.query['redirect_uri'] ?? ''
        const at = URL.canParse(uri) ? new URL(uri) : undefined
        const here = at !== undefined && /^(127\.0\.0\.1|localhost|\[::1\])$/.test(at.hostname)
        expect(
          at !== undefined && (here || at.protocol !== 'http:'),
          `redirect_uri must be https or on this machine, not "${uri}"`,
        )
        for (const { body } of asksFor(about, /\/register$/)) {
          const registered = body['redirect_uris']
          expect(Array.isArray(registered) && registered.includes(uri), `redirect_uri "${uri}" is not among those registered`)
        }
        const redeemed = tokenRequests(about).find(({ body }) => body['grant_type'] === 'authorization_code')
        const again = redeemed?.body['redirect_uri']
        expect(again === undefined || again === uri, 'The token request has another redirect_uri than the authorization request')
      }),
    },
  ),
  scenario('client/auth/every-request', 'The token is in the header of every request, and never in an address', plain, {
    proves: ['MCP basic/authorization#token-requirements', 'RFC 6750 §2.1'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: goesToPage,
    check: judged(({ knocks }, { expect }) => {
      const began = knocks.findIndex(({ headers }) => bearerIn(headers) !== undefined)
      expect(began >= 0, 'No request had a token in its header')
      for (const { method, path, headers, asks } of knocks.slice(began).filter(knock => knock.path.startsWith('/mcp')))
        expect(bearerIn(headers) !== undefined, `${method} ${path} ${asks} came without the token`)
      const open = knocks.find(({ path }) => /token-\d|access_token/.test(path))
      expect(open === undefined, `A token stands in an address: ${open?.path}`)
    }),
  }),
  scenario('client/auth/scope', 'The scope that the challenge names is asked for', plain, {
    proves: ['MCP basic/authorization#scope-selection-strategy'],
    revisions: LATER,
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { warn }) => {
      const [page] = pages(about)
      if (!(page?.query['scope'] ?? '').split(' ').includes('mcp:use'))
        warn(`The challenge names the scope mcp:use; asked was for ${page?.query['scope'] ?? 'none'}`)
    }),
  }),
  scenario('client/auth/named-metadata', 'The metadata are read where the challenge says', elsewhere, {
    proves: ['MCP basic/authorization#authorization-server-location', 'RFC 9728 §5.1'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: signsIn,
    check: judged((about, { expect }) => {
      expect(
        about.knocks.some(({ path }) => path.startsWith('/about/')),
        'The challenge names resource_metadata, and the client looked elsewhere',
      )
      expect(tokenRequests(about).length > 0, 'The client read the metadata and asked for no token')
    }),
  }),
  scenario(
    'client/auth/discovery-order',
    'Without a named address metadata are looked for at each place, in the order of the specification',
    ordered,
    {
      proves: ['MCP basic/authorization#authorization-server-metadata-discovery', 'RFC 9728 §3.1', 'RFC 8414 §3.1'],
      revisions: LATER,
      carriers: ['http'],
      needs: signsIn,
      check: judged((about, { expect }) => {
        const resource = about.knocks.map(({ path }) => path).filter(path => path.startsWith('/.well-known/'))
        inOrder(resource, ['/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource'], expect)
        const authority = asksFor(about, /\.well-known/).map(({ path }) => path)
        inOrder(
          authority,
          [
            '/.well-known/oauth-authorization-server/tenant',
            '/.well-known/openid-configuration/tenant',
            '/tenant/.well-known/openid-configuration',
          ],
          expect,
        )
        expect(tokenRequests(about).length > 0, 'The client found the metadata and asked for no token')
      }),
    },
  ),
  scenario('client/auth/client-credentials', 'A client that acts for itself gets a token by its own credentials', credentials, {
    proves: ['MCP basic/authorization', 'RFC 6749 §4.4', 'RFC 8707 §2'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: seen =>
      signsIn(seen) ??
      (tokenRequests(signInOf(seen)).some(({ body }) => body['grant_type'] === 'client_credentials')
        ? undefined
        : 'the client does not ask for tokens by its own credentials'),
    check: judged((about, { expect }) => {
      const asked = tokenRequests(about).find(({ body }) => body['grant_type'] === 'client_credentials')
      const basic = `Basic ${Buffer.from('kit-client:kit-secret').toString('base64')}`
      const posted = asked?.body['client_id'] === 'kit-client' && asked.body['client_secret'] === 'kit-secret'
      expect(asked?.headers['authorization'] === basic || posted, 'The token request does not prove who the client is')
      expect(asked?.query['client_secret'] === undefined, 'The secret stands in an address')
      expect(
        String(asked?.body['resource'] ?? '').replace(/\/$/, '') === about.resource,
        `The token request has resource ${String(asked?.body['resource'] ?? '(none)')}`,
      )
      expect(
        about.knocks.some(({ headers, asks }) => asks === 'tools/call' && bearerIn(headers) !== undefined),
        'The client got a token and did not go on with it',
      )
    }),
  }),
]

function inOrder(visited: readonly string[], places: readonly string[], expect: (right: boolean, says: string) => void): void {
  const firsts = places.map(place => visited.indexOf(place))
  const missed = places.find((_, at) => firsts[at] === -1)
  expect(missed === undefined, `Metadata were not looked for at ${missed} (visited: ${visited.join(', ') || 'nothing'})`)
  const sorted = firsts.every((first, at) => at === 0 || first > (firsts[at - 1] ?? -1))
  expect(sorted, `The order must be ${places.join(', ')}; it was ${visited.join(', ')}`)
}
