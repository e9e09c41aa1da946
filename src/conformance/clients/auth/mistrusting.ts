/** What a client must not fall for while it signs in, and what it does when its token is refused later. */

import { RUN } from '../play.ts'
import { type ClientScenario, scenario } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import { bearerIn, challengeOf, guardedPlay, type SignIn, signInOf } from './guarded-play.ts'
import { GUARDED, goesToPage, judged, LATER, pages, signsIn, tokenRequests } from './signing-in.ts'

const again = [...RUN, { do: 'call', tool: 'test-tool', arguments: {}, as: 'again' }] as const

const otherResource = guardedPlay('auth/resource-mismatch', {
  metadata: () => ({ resource: 'https://elsewhere.example/mcp' }),
})
const otherIssuer = guardedPlay('auth/metadata-issuer-mismatch', {
  authority: { metadata: () => ({ issuer: 'https://elsewhere.example' }) },
})
const noPkce = guardedPlay('auth/no-pkce', { authority: { metadata: () => ({ code_challenge_methods_supported: undefined }) } })
const wrongState = guardedPlay('auth/wrong-state', { authority: { sendsBack: () => ({ state: 'of-somebody-else' }) } })
const wrongIss = guardedPlay('auth/iss-wrong-issuer', {
  authority: {
    metadata: () => ({ authorization_response_iss_parameter_supported: true }),
    sendsBack: () => ({ iss: 'https://elsewhere.example' }),
  },
})
const missingIss = guardedPlay('auth/iss-supported-missing', {
  authority: { metadata: () => ({ authorization_response_iss_parameter_supported: true }) },
})

/** The first token is good for one call. */
const expired = guardedPlay('auth/token-expired', {
  steps: again,
  refuse: ({ asks }, token, { knocks, resource }) => {
    const calls = knocks.filter(knock => knock.asks === 'tools/call' && bearerIn(knock.headers) === 'token-1')
    if (token !== 'token-1' || asks !== 'tools/call' || calls.length < 2) return undefined
    return { status: 401, challenge: challengeOf({ origin: new URL(resource).origin }, { error: 'invalid_token' }) }
  },
})

/** Calls want a scope that the first challenge does not name. */
const stepUp = guardedPlay('auth/scope-step-up', {
  challenge: { scope: 'mcp:use' },
  refuse: ({ asks }, token, { authority, resource }) => {
    if (
      asks !== 'tools/call' ||
      authority
        .scopeOf(token ?? '')
        ?.split(' ')
        .includes('mcp:call') === true
    )
      return undefined
    const told = { error: 'insufficient_scope', scope: 'mcp:use mcp:call' }
    return { status: 403, challenge: challengeOf({ origin: new URL(resource).origin }, told) }
  },
})

/** Calls are sent on to another origin: that of the authorization server, which writes down what it is sent. */
const redirected = guardedPlay('auth/redirected', {
  refuse: ({ asks }, _, { authority }) =>
    asks === 'tools/call' ? { status: 307, location: `${authority.origin}/elsewhere` } : undefined,
})

/** No token may have been asked for. */
function left(about: SignIn, expect: (right: boolean, says: string) => void, although: string): void {
  const asked = tokenRequests(about)
  expect(asked.length === 0, `The client went on and asked for a token, although ${although}`)
}

/** Needs that it has read the metadata of the authorization server. */
const readsAuthority = (seen: Seen): string | undefined =>
  signInOf(seen).authority.asked.some(({ path }) => path.includes('.well-known'))
    ? undefined
    : (signsIn(seen) ?? 'the client did not read the metadata of the authorization server')

export const mistrusting: readonly ClientScenario[] = [
  scenario('client/auth/resource-mismatch', 'Metadata of another resource are not used', otherResource, {
    proves: ['MCP basic/authorization#authorization-server-location', 'RFC 9728 §3.3'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: signsIn,
    check: judged((about, { expect }) =>
      left(about, expect, 'the metadata are about https://elsewhere.example/mcp, not about this server'),
    ),
  }),
  scenario('client/auth/issuer-mismatch', 'Metadata of another authorization server are not used', otherIssuer, {
    proves: ['MCP basic/authorization#authorization-server-metadata-discovery', 'RFC 8414 §3.3'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: readsAuthority,
    check: judged((about, { expect }) => left(about, expect, 'issuer in the metadata is not the one that they were fetched for')),
  }),
  scenario('client/auth/no-pkce', 'An authorization server that does not say that it knows PKCE is refused', noPkce, {
    proves: ['MCP basic/authorization#authorization-code-protection'],
    revisions: LATER,
    carriers: ['http'],
    needs: readsAuthority,
    check: judged((about, { expect }) => left(about, expect, 'code_challenge_methods_supported is absent')),
  }),
  scenario('client/auth/wrong-state', 'A code that comes back with another state is thrown away', wrongState, {
    proves: ['MCP basic/authorization#open-redirection', 'RFC 6749 §10.12'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { warn }) => {
      if (tokenRequests(about).length > 0) warn('A code that came back with another state should be thrown away')
    }),
  }),
  scenario('client/auth/wrong-iss', 'A code that comes back from another issuer is thrown away', wrongIss, {
    proves: ['MCP 2026-07-28 basic/authorization', 'RFC 9207 §2.4'],
    revisions: ['2026-07-28'],
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { expect }) => left(about, expect, 'iss in the answer is https://elsewhere.example')),
  }),
  scenario('client/auth/missing-iss', 'A code without iss is thrown away where the metadata promise one', missingIss, {
    proves: ['MCP 2026-07-28 basic/authorization', 'RFC 9207 §2.4'],
    revisions: ['2026-07-28'],
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { expect }) => left(about, expect, 'the metadata promise iss and the answer has none')),
  }),
  scenario('client/auth/other-origin', 'The token goes to this server alone, also where a request is redirected', redirected, {
    proves: ['MCP basic/authorization#access-token-privilege-restriction', 'RFC 6750 §5.3'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: goesToPage,
    check: judged(({ authority }, { expect }) => {
      const leaked = authority.asked.find(({ headers, text, query }) =>
        /token-\d/.test(`${headers['authorization'] ?? ''} ${text} ${JSON.stringify(query)}`),
      )
      expect(leaked === undefined, `The token was sent to ${authority.origin}: ${leaked?.method} ${leaked?.path}`)
    }),
  }),
  scenario('client/auth/expired', 'A token that is refused with 401 is renewed, and the request is made again', expired, {
    proves: ['MCP basic/authorization#error-handling', 'RFC 6750 §3.1', 'RFC 6749 §6'],
    revisions: GUARDED,
    carriers: ['http'],
    needs: seen =>
      goesToPage(seen) ??
      (signInOf(seen).knocks.filter(({ asks }) => asks === 'tools/call').length > 1
        ? undefined
        : 'the client made no second call'),
    check: judged((about, { expect, warn }) => {
      const renewed = about.knocks.some(
        ({ asks, headers }) => asks === 'tools/call' && !['token-1', undefined].includes(bearerIn(headers)),
      )
      expect(renewed, 'The call that was refused with invalid_token was not made again with another token')
      const repeated = about.knocks.filter(({ asks, headers }) => asks === 'tools/call' && bearerIn(headers) === 'token-1')
      expect(repeated.length <= 3, `The refused token was sent ${repeated.length - 1} times more`)
      if (pages(about).length > 1) warn('It had a refresh token and asked the user again')
    }),
  }),
  scenario('client/auth/step-up', 'A refusal for want of a scope is met by asking for that scope, and not for ever', stepUp, {
    proves: ['MCP basic/authorization#step-up-authorization-flow', 'RFC 6750 §3.1'],
    revisions: LATER,
    carriers: ['http'],
    needs: goesToPage,
    check: judged((about, { expect, warn }) => {
      const [, ...later] = pages(about)
      expect(later.length <= 4, `The client asked its user ${later.length} times more`)
      if (later.length === 0) return warn('A refusal with insufficient_scope should be met by asking for more')
      const asked = later.some(({ query }) => (query['scope'] ?? '').split(' ').includes('mcp:call'))
      expect(asked, `The challenge wants the scope mcp:call; asked was for ${later[0]?.query['scope'] ?? 'none'}`)
      const made = about.knocks.some(
        ({ asks, headers }) => asks === 'tools/call' && bearerIn(headers) === `token-${later.length + 1}`,
      )
      expect(made, 'The call was not made again with the better token')
    }),
  }),
]
