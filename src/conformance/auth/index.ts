/** Scenarios for a server that guards itself with OAuth, as a resource server (RFC 6750, RFC 9728; 2025-06-18 and later). */
import { isRecord } from '../../jsonrpc/message.ts'
import { scenario } from '../define.ts'
import type { Bench, RevisionId, Scenario } from '../scenario.ts'
import type { AuthTrial, TokenFlaw } from './issuer.ts'
import { challengeIn, door, type Knock, metadataPlaces } from './knocking.ts'

const GUARDED: readonly RevisionId[] = ['2025-06-18', '2025-11-25', '2026-07-28']

/** Open servers have nothing to guard. */
async function guarded(bench: Bench): Promise<Awaited<ReturnType<typeof door>>> {
  const { leave } = bench
  const at = await door(bench)
  const { status } = await at.knock()
  if (status < 400) leave('it lets everybody in')
  return at
}

interface Shape {
  readonly title: string
  readonly proves: readonly string[]
  readonly run: Scenario['run']
}

function guard(id: string, { title, proves, run }: Shape): Scenario {
  return scenario(`auth/${id}`, { title, proves, revisions: GUARDED, carriers: ['http'], run })
}

/** A token that must be refused with 401. */
function refused(id: string, title: string, flaw: TokenFlaw): Scenario {
  return guard(id, {
    title,
    proves: ['MCP basic/authorization#token-handling', 'RFC 9068 §4'],
    run: async bench => {
      const trial = trialOf(bench)
      const { knock } = await guarded(bench)
      await mustPass(bench, trial, knock)
      const { status, headers } = await knock({ token: await trial.token(flaw) })
      bench.expect(status === 401, `Such a token was answered with HTTP ${status}, and must be with 401`)
      bench.expect(challengeIn({ headers })?.scheme === 'bearer', 'A refusal says WWW-Authenticate: Bearer')
    },
  })
}

function trialOf({ auth, leave }: Bench): AuthTrial {
  return auth ?? leave('the kit was given no way to make tokens for it (option auth)')
}

/** What is refused proves nothing where everything is. */
async function mustPass(bench: Bench, trial: AuthTrial, knock: (how?: Knock) => Promise<{ status: number }>): Promise<void> {
  const { status } = await knock({ token: await trial.token() })
  bench.expect(status < 400, `A good token was answered with HTTP ${status}`)
}

export const authScenarios: readonly Scenario[] = [
  guard('challenge', {
    title: 'Without a token a request is answered 401 with a challenge that names the metadata',
    proves: ['MCP basic/authorization#error-handling', 'RFC 9728 §5.1'],
    run: async bench => {
      const { knock } = await guarded(bench)
      const reply = await knock()
      bench.expect(reply.status === 401, `The status is ${reply.status} and must be 401`)
      const challenge = challengeIn(reply)
      bench.expect(challenge?.scheme === 'bearer', 'WWW-Authenticate must begin with Bearer')
      const named = challenge?.parameters.get('resource_metadata')
      if (named === undefined && bench.revision !== '2025-06-18')
        return bench.warn('The challenge does not name resource_metadata')
      bench.expect(named !== undefined && URL.canParse(named), 'resource_metadata must be the address of the metadata')
    },
  }),
  guard('metadata', {
    title: 'The metadata name the resource and who gives tokens for it, and need no token',
    proves: ['MCP basic/authorization#token-handling', 'RFC 9728 §3.2'],
    run: async bench => {
      const { peer, knock } = await guarded(bench)
      const named = challengeIn(await knock())?.parameters.get('resource_metadata')
      const places = named !== undefined && URL.canParse(named) ? [new URL(named)] : metadataPlaces(peer.http.url)
      for (const url of places) {
        const { status, body } = await peer.http.call({ method: 'GET', url, headers: { accept: 'application/json' } })
        if (status !== 200) continue
        const metadata: unknown = parsed(body)
        bench.expect(isRecord(metadata), 'The metadata must be a JSON object')
        const { resource, authorization_servers: servers } = isRecord(metadata) ? metadata : {}
        bench.expect(
          typeof resource === 'string' && covers(resource, peer.http.url),
          `resource is ${JSON.stringify(resource)} and must be this server`,
        )
        bench.expect(
          Array.isArray(servers) && servers.length > 0 && servers.every(one => URL.canParse(String(one))),
          'authorization_servers must name at least one',
        )
        return
      }
      bench.fail(`There are no metadata at ${places.map(String).join(' or ')}`)
    },
  }),
  guard('metadata-place', {
    title: 'The metadata are where clients look for them without a challenge',
    proves: ['RFC 9728 §3.1'],
    run: async bench => {
      const { peer } = await guarded(bench)
      for (const url of metadataPlaces(peer.http.url)) {
        const { status } = await peer.http.call({ method: 'GET', url, headers: { accept: 'application/json' } })
        if (status === 200) return
      }
      bench.warn('Clients that do not read challenges do not find the metadata')
    },
  }),
  guard('garbage', {
    title: 'A token that is none is refused as invalid_token, and not repeated',
    proves: ['RFC 6750 §3.1'],
    run: async bench => {
      const { knock } = await guarded(bench)
      const token = 'no-token-but-CANARY'
      const reply = await knock({ token })
      bench.expect(reply.status === 401, `The status is ${reply.status} and must be 401`)
      const error = challengeIn(reply)?.parameters.get('error')
      bench.expect(error === undefined || error === 'invalid_token', `error is "${error}" and must be invalid_token`)
      bench.expect(!JSON.stringify([reply.body, reply.headers]).includes('CANARY'), 'The refusal repeats the token')
    },
  }),
  guard('scheme', {
    title: 'Credentials of another kind are refused',
    proves: ['RFC 6750 §2.1'],
    run: async bench => {
      const { knock } = await guarded(bench)
      const { status } = await knock({ headers: { authorization: 'Basic dXNlcjpwYXNz' } })
      bench.expect(status === 401 || status === 400, `Basic credentials were answered with HTTP ${status}`)
    },
  }),
  guard('streams', {
    title: 'Streams and the end of sessions are guarded too',
    proves: ['MCP basic/authorization#token-handling'],
    run: async bench => {
      const { knock } = await guarded(bench)
      for (const method of ['GET', 'DELETE']) {
        const { status } = await knock({ method })
        bench.expect(status >= 400, `${method} without a token was answered with HTTP ${status}`)
      }
    },
  }),
  guard('query', {
    title: 'A token in the address is no token',
    proves: ['MCP basic/authorization#token-handling', 'RFC 6750 §2.3'],
    run: async bench => {
      const trial = trialOf(bench)
      const { knock } = await guarded(bench)
      await mustPass(bench, trial, knock)
      const { status } = await knock({ query: `access_token=${await trial.token()}` })
      bench.expect(status === 401 || status === 400, `A token in the query was answered with HTTP ${status}`)
    },
  }),
  guard('accepts', {
    title: 'A token of the named issuer, for this server, is taken',
    proves: ['MCP basic/authorization#token-handling'],
    run: async bench => {
      const trial = trialOf(bench)
      const { knock } = await guarded(bench)
      await mustPass(bench, trial, knock)
    },
  }),
  refused('audience', 'A token for another server is refused', { audience: 'https://elsewhere.example/mcp' }),
  refused('no-audience', 'A token for nobody in particular is refused', { audience: null }),
  refused('issuer', 'A token of another issuer is refused', { issuer: 'https://issuer.example' }),
  refused('expired', 'A token that has expired is refused', { expiresInSeconds: -3_600 }),
  refused('not-before', 'A token that is not good yet is refused', { notBeforeSeconds: 3_600, expiresInSeconds: 7_200 }),
  refused('unsigned', 'A token without a signature is refused', { signature: 'none' }),
  refused('algorithm', 'A token signed with the public key as a secret is refused', { signature: 'HS256' }),
  refused('other-key', 'A token signed by somebody else is refused', { signature: 'other' }),
  guard('scope', {
    title: 'A token without the scope is answered 403, with what is missing',
    proves: ['MCP basic/authorization#error-handling', 'RFC 6750 §3.1'],
    run: async bench => {
      const { leave } = bench
      const trial = trialOf(bench)
      if (trial.scoped !== true) leave('it wants no scopes')
      const { knock } = await guarded(bench)
      await mustPass(bench, trial, knock)
      const reply = await knock({ token: await trial.token({ scope: '' }) })
      bench.expect(reply.status === 403, `The status is ${reply.status} and must be 403`)
      const parameters = challengeIn(reply)?.parameters
      bench.expect(parameters?.get('error') === 'insufficient_scope', 'The challenge must say error="insufficient_scope"')
      if (parameters?.get('scope') === undefined) bench.warn('The challenge should name the scope')
    },
  }),
  guard('each-request', {
    title: 'A session is no credential: each of its requests needs the token of whoever opened it',
    proves: ['MCP basic/authorization#token-handling'],
    run: async bench => {
      const trial = trialOf(bench)
      const { leave } = bench
      const { knock } = await guarded(bench)
      if (bench.revision === '2026-07-28') leave('this wire has no sessions')
      const opened = await knock({ token: await trial.token() })
      const session = opened.headers['mcp-session-id']
      if (session === undefined) return leave('it keeps no sessions')
      const headers = { 'mcp-session-id': session, 'mcp-protocol-version': bench.revision }
      const message = { jsonrpc: '2.0', id: 2, method: 'ping' }
      const { status } = await knock({ headers, message })
      bench.expect(status === 401, `Without a token the session was answered with HTTP ${status}`)
      const other = await knock({ headers, message, token: await trial.token({ subject: 'somebody-else' }) })
      bench.expect(other.status >= 400, `Somebody else’s token in this session was answered with HTTP ${other.status}`)
    },
  }),
]

/** Metadata may be for the origin, or for the very address. */
function covers(resource: string, url: URL): boolean {
  if (!URL.canParse(resource)) return false
  const named = new URL(resource)
  return named.origin === url.origin && url.pathname.startsWith(named.pathname.replace(/\/$/, ''))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
