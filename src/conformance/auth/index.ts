/** Scenarios for a server that guards itself with OAuth, as a resource server (RFC 6750, RFC 9728; 2025-06-18 and later). */
import { isRecord } from '../../jsonrpc/message.ts'
import { type RowOptions, table } from '../define.ts'
import { is, listIn, objectIn, parsedJson } from '../expectations.ts'
import type { Bench, Json, RevisionId, Scenario } from '../scenario.ts'
import { ScenarioContext } from '../steps.ts'
import { isStateless, keys, kitInfo, wireVersion } from '../wire/envelope.ts'
import type { HttpReply } from '../wire/raw-peer.ts'
import type { TokenFlaw } from './issuer.ts'

/** One request to the guarded server, with whatever credentials. */
interface GuardedRequest {
  readonly token?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
  /** Default: what opens a conversation at this revision. */
  readonly message?: Json
}

/** A scene at the door of a guarded server. */
interface GuardScenarioContext extends ScenarioContext {
  /** Sends one request, and gives the head of what comes back. */
  sendGuarded(how?: GuardedRequest): Promise<HttpReply>
  /** Makes a token; there is nothing to judge where nobody said how. */
  token(flaw?: TokenFlaw): Promise<string>
  /** What is refused proves nothing where everything is: a good token must pass. */
  mustPass(): Promise<void>
}

/** What a row is given beside the rest: whether it needs tokens of the kit's own making, be it with scopes. */
interface GuardGiven extends RowOptions {
  readonly tokens?: 'any' | 'scoped'
}

const noTokens = 'the kit cannot create tokens for the server (option auth, or --issuer)'

/** Opens no conversation, and leaves servers alone that let everybody in. */
async function approach(bench: Bench, { tokens }: GuardGiven): Promise<GuardScenarioContext> {
  const { auth, leave, expect, revision } = bench
  if (tokens !== undefined && auth === undefined) leave(noTokens)
  if (tokens === 'scoped' && auth?.scoped !== true) leave('the server requires no scopes')
  const peer = await bench.open({ hello: false, listen: false })
  const sendGuarded: GuardScenarioContext['sendGuarded'] = ({
    token,
    method = 'POST',
    headers = {},
    query,
    message = opening(revision),
  } = {}) => {
    const url = new URL(peer.http.url)
    if (query !== undefined) url.search = query
    const standard = Object.entries(peer.http.headers(message)).map(([name, value]) => [name.toLowerCase(), value] as const)
    const { authorization: _, ...own } = Object.fromEntries(standard)
    return peer.http.call({
      method,
      url,
      headers: { ...own, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
      ...(method === 'POST' ? { body: JSON.stringify(message) } : {}),
      until: () => true,
    })
  }
  const token: GuardScenarioContext['token'] = async flaw => (auth ?? leave(noTokens)).token(flaw)
  const mustPass = async (): Promise<void> => {
    const { status } = await sendGuarded({ token: await token() })
    expect(status < 400, `A valid token was answered with HTTP ${status}`)
  }
  if ((await sendGuarded()).status < 400) leave('the server requires no token')
  return Object.assign(new ScenarioContext(bench, peer), { sendGuarded, token, mustPass })
}

/** The message that begins a conversation. */
function opening(revision: RevisionId): Json {
  const protocolVersion = wireVersion(revision)
  const [method, params] = isStateless(revision)
    ? ['server/discover', { _meta: { [keys.version]: protocolVersion, [keys.capabilities]: {}, [keys.info]: kitInfo } }]
    : ['initialize', { protocolVersion, capabilities: {}, clientInfo: kitInfo }]
  return { jsonrpc: '2.0', id: 1, method, params }
}

/** The challenge of a refusal (RFC 9110 §11.6.1): its scheme, and its parameters by their lower-case names. */
interface Challenge {
  readonly scheme: string
  readonly parameters: ReadonlyMap<string, string>
}

/** Undefined where the refusal has none. */
function challengeIn({ headers }: Pick<HttpReply, 'headers'>): Challenge | undefined {
  const [, scheme, rest = ''] = /^\s*([\w-]+)\s*(.*)$/s.exec(headers['www-authenticate'] ?? '') ?? []
  if (scheme === undefined) return undefined
  const parameters = [...rest.matchAll(/([\w-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s,]+))/g)].map(
    ([, name = '', quoted, bare]) => [name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare ?? ''] as const,
  )
  return { scheme: scheme.toLowerCase(), parameters: new Map(parameters) }
}

/** Where metadata of a resource are, by its address (RFC 9728 §3.1): at its path, and at the root. */
function metadataPlaces(resource: URL): readonly URL[] {
  const root = new URL('/.well-known/oauth-protected-resource', resource)
  return resource.pathname === '/' ? [root] : [new URL(`${root.pathname}${resource.pathname}`, resource), root]
}

/** The first of these addresses that gives anything. */
async function firstFound({ peer }: GuardScenarioContext, places: readonly URL[]): Promise<HttpReply | undefined> {
  for (const url of places) {
    const reply = await peer.http.call({ method: 'GET', url, headers: { accept: 'application/json' } })
    if (reply.status === 200) return reply
  }
  return undefined
}

const row = table<GuardScenarioContext, GuardGiven>(
  'auth/',
  { revisions: ['2025-06-18', '2025-11-25', '2026-07-28'], carriers: ['http'] },
  approach,
)
const withTokens = { tokens: 'any' } as const

/** A token with a flaw that must be refused with 401. */
function refused(id: string, title: string, flaw: TokenFlaw): Scenario {
  return row(`${id} MCP basic/authorization#token-handling RFC 9068 §4`, title).by(withTokens, async x => {
    await x.mustPass()
    const reply = await x.sendGuarded({ token: await x.token(flaw) })
    x.expect(reply.status === 401, `The token was answered with HTTP ${reply.status}; it must be 401`)
    x.expect(challengeIn(reply)?.scheme === 'bearer', 'A refusal has WWW-Authenticate: Bearer')
  })
}

/** The refusal has this status. */
function expectStatus({ expect }: ScenarioContext, { status }: HttpReply, wanted: number): void {
  expect(status === wanted, `The status is ${status}; it must be ${wanted}`)
}

/** What a server that wants tokens is judged by; one that lets everybody in is skipped. */
export const authScenarios: readonly Scenario[] = [
  row(
    'challenge MCP basic/authorization#error-handling RFC 9728 §5.1',
    'Without a token a request is answered 401 with a challenge that names the metadata',
  ).by(async x => {
    const reply = await x.sendGuarded()
    expectStatus(x, reply, 401)
    const challenge = challengeIn(reply)
    x.expect(challenge?.scheme === 'bearer', 'WWW-Authenticate must begin with Bearer')
    const named = challenge?.parameters.get('resource_metadata')
    if (named === undefined && x.revision !== '2025-06-18') return x.warn('The challenge does not name resource_metadata')
    x.expect(named !== undefined && URL.canParse(named), 'resource_metadata must be the address of the metadata')
  }),
  row(
    'metadata MCP basic/authorization#token-handling RFC 9728 §3.2',
    'The metadata name the resource and its authorization servers, and need no token',
  ).by(async x => {
    const { url } = x.peer.http
    const named = challengeIn(await x.sendGuarded())?.parameters.get('resource_metadata')
    const places = named !== undefined && URL.canParse(named) ? [new URL(named)] : metadataPlaces(url)
    const reply = await firstFound(x, places)
    if (reply === undefined) return x.fail(`There are no metadata at ${places.map(String).join(' or ')}`)
    const metadata = parsedJson(reply.body)
    x.expect(isRecord(metadata), 'The metadata must be a JSON object')
    const { resource, authorization_servers: servers } = objectIn(metadata)
    const isThis = is.string(resource) && covers(resource, url)
    x.expect(isThis, `resource is ${JSON.stringify(resource)}; it must be the address of this server`)
    const isNamed = listIn(servers).length > 0 && listIn(servers).every(one => URL.canParse(String(one)))
    x.expect(isNamed, 'authorization_servers must name at least one')
  }),
  row('metadata-place RFC 9728 §3.1', 'The metadata are at the well-known address').by(async x => {
    const found = await firstFound(x, metadataPlaces(x.peer.http.url))
    if (found === undefined) x.warn('Clients that do not read challenges do not find the metadata')
  }),
  row('garbage RFC 6750 §3.1', 'An invalid token is refused as invalid_token, and not repeated').by(async x => {
    const reply = await x.sendGuarded({ token: 'no-token-but-CANARY' })
    expectStatus(x, reply, 401)
    const error = challengeIn(reply)?.parameters.get('error')
    x.expect(error === undefined || error === 'invalid_token', `error is "${error}"; it must be invalid_token`)
    x.expect(!JSON.stringify([reply.body, reply.headers]).includes('CANARY'), 'The refusal repeats the token')
  }),
  row('scheme RFC 6750 §2.1', 'Credentials of another kind are refused').by(async x => {
    const { status } = await x.sendGuarded({ headers: { authorization: 'Basic dXNlcjpwYXNz' } })
    x.expect(status === 401 || status === 400, `Basic credentials were answered with HTTP ${status}`)
  }),
  row('streams MCP basic/authorization#token-handling', 'Streams and the deletion of sessions require a token too').by(
    async x => {
      for (const method of ['GET', 'DELETE']) {
        const { status } = await x.sendGuarded({ method })
        x.expect(status >= 400, `${method} without a token was answered with HTTP ${status}`)
      }
    },
  ),
  row('query MCP basic/authorization#token-handling RFC 6750 §2.3', 'A token in the query string is not accepted').by(
    withTokens,
    async x => {
      await x.mustPass()
      const { status } = await x.sendGuarded({ query: `access_token=${await x.token()}` })
      x.expect(status === 401 || status === 400, `A token in the query was answered with HTTP ${status}`)
    },
  ),
  row('accepts MCP basic/authorization#token-handling', 'A token of the named issuer, for this server, is accepted').by(
    withTokens,
    ({ mustPass }) => mustPass(),
  ),
  refused('audience', 'A token for another server is refused', { audience: 'https://elsewhere.example/mcp' }),
  refused('no-audience', 'A token without an audience is refused', { audience: null }),
  refused('issuer', 'A token of another issuer is refused', { issuer: 'https://issuer.example' }),
  refused('expired', 'A token that has expired is refused', { expiresInSeconds: -3_600 }),
  refused('not-before', 'A token that is not valid yet is refused', { notBeforeSeconds: 3_600, expiresInSeconds: 7_200 }),
  refused('unsigned', 'A token without a signature is refused', { signature: 'none' }),
  refused('algorithm', 'A token signed with the public key as a secret is refused', { signature: 'HS256' }),
  refused('other-key', 'A token signed with another key is refused', { signature: 'other' }),
  row(
    'scope MCP basic/authorization#error-handling RFC 6750 §3.1',
    'A token without the scope is answered 403, with the missing scope',
  ).by({ tokens: 'scoped' }, async x => {
    await x.mustPass()
    const reply = await x.sendGuarded({ token: await x.token({ scope: '' }) })
    expectStatus(x, reply, 403)
    const parameters = challengeIn(reply)?.parameters
    x.expect(parameters?.get('error') === 'insufficient_scope', 'The challenge must say error="insufficient_scope"')
    if (parameters?.get('scope') === undefined) x.warn('The challenge should name the scope')
  }),
  row(
    'each-request MCP basic/authorization#token-handling',
    'A session id is not a credential: each request needs the token of the session owner',
  ).by(withTokens, async x => {
    if (x.modern) x.leave('this revision has no sessions')
    const opened = await x.sendGuarded({ token: await x.token() })
    const session = opened.headers['mcp-session-id'] ?? x.leave('the server has no sessions')
    const headers = { 'mcp-session-id': session, 'mcp-protocol-version': x.revision }
    const message = { jsonrpc: '2.0', id: 2, method: 'ping' }
    const { status } = await x.sendGuarded({ headers, message })
    x.expect(status === 401, `A request of the session without a token was answered with HTTP ${status}`)
    const other = await x.sendGuarded({ headers, message, token: await x.token({ subject: 'somebody-else' }) })
    x.expect(
      other.status >= 400,
      `A request of the session with the token of another principal was answered with HTTP ${other.status}`,
    )
  }),
]

/** Metadata may be for the origin, or for the very address. */
function covers(resource: string, url: URL): boolean {
  if (!URL.canParse(resource)) return false
  const named = new URL(resource)
  return named.origin === url.origin && url.pathname.startsWith(named.pathname.replace(/\/$/, ''))
}
