/** Wires without a handshake: what every request must say of itself, and how a server introduces itself. */
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasErrorData, hasResult, hasStatus, isServed, type PeerAnswer } from '../calls.ts'
import { stateless, table } from '../define.ts'
import { type Expectations, listIn, objectIn } from '../expectations.ts'
import type { Bench, Json, RevisionId, Scenario } from '../scenario.ts'
import { type ScenarioContext, send } from '../steps.ts'
import { keys, kitInfo, wireVersion } from '../wire/envelope.ts'

const row = table('base/discovery/', { proves: ['MCP 2026-07-28 basic#_meta'], revisions: stateless })

/** Discovering may be how a client finds out which version to speak, so that it is not held against a server there. */
function ordinaryMethod({ peer, leave }: Bench): string {
  const found = ['tools', 'resources', 'prompts'].find(name => peer.has(name))
  return found === undefined ? leave('the server lists nothing') : `${found}/list`
}

/** What a request must say of itself, but for some of it. */
function metaOf(revision: RevisionId, without?: string, more: Json = {}): Json {
  const whole = { [keys.version]: wireVersion(revision), [keys.info]: kitInfo, [keys.capabilities]: {}, ...more }
  return Object.fromEntries(Object.entries(whole).filter(([key]) => key !== without))
}

/** Discovers with exactly this `_meta`. */
const discoverWith = (meta: (revision: RevisionId) => Json) =>
  send('server/discover', ({ revision }) => ({ _meta: meta(revision) }), { envelope: false })

/** The request is refused, over HTTP by status 400. */
function isRefusal(what: string, ...codes: readonly number[]): Expectations<PeerAnswer, ScenarioContext> {
  return {
    [`${what} must be refused with error ${codes.join(' or ')}`]: hasCode(...codes),
    [`${what} must be refused with HTTP status 400`]: hasStatus(400),
  }
}

const removed = ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']
const asked = '1999-01-01'

/** What every stateless request says of itself, and what `server/discover` says of the server. */
export const discoveryScenarios: readonly Scenario[] = [
  row('result MCP 2026-07-28 server/discover', 'server/discover names the versions and the capabilities').by(
    { open: { fresh: true } },
    async x => {
      const hello = x.peer.hello ?? {}
      const frames = x.peer.frames.slice(0, 2)
      const isSpoken = listIn(hello, 'supportedVersions').includes(wireVersion(x.revision))
      x.expect(isSpoken, 'supportedVersions must hold the version that is spoken', frames)
      x.expect(isRecord(hello.capabilities), 'capabilities must be an object', frames)
      const isDraft = x.revision === 'draft-2026-v1'
      if (isDraft) x.expect(isRecord(hello.serverInfo), 'serverInfo must be in the result', frames)
      else if (!isRecord(objectIn(hello, '_meta')[keys.serverInfo])) x.warn(`_meta should hold ${keys.serverInfo}`)
    },
  ),
  row(
    'unknown-version MCP 2026-07-28 basic/versioning',
    'a version that the server does not speak is refused, and the refusal names those it does',
  ).by(async x => {
    const params = { _meta: metaOf(x.revision, undefined, { [keys.version]: asked }) }
    const headers = { 'mcp-protocol-version': asked }
    // Between the draft and the release the number changed more than once.
    const codes = x.revision === 'draft-2026-v1' ? [-32602, -32022, -32004] : [-32022]
    const offered = listIn(x.peer.hello, 'supportedVersions')
    const supported = ({ answer }: PeerAnswer): readonly unknown[] => listIn(answer.error, 'data', 'supported')
    x.hold(await x.ask(ordinaryMethod(x.bench), params, { envelope: false, headers }), {
      ...isRefusal('an unknown version', ...codes),
      'data.supported must list versions': it => supported(it).length > 0,
      'data.requested must repeat the version asked for': hasErrorData({ requested: asked }),
      'data.supported must be among supportedVersions': it =>
        offered.length === 0 || supported(it).every(version => offered.includes(version)),
    })
  }),
  row('without-capabilities', `a request without ${keys.capabilities} is refused`).by([
    discoverWith(on => metaOf(on, keys.capabilities)).expect(isRefusal(`a request without ${keys.capabilities}`, -32602)),
  ]),
  // Without a version a pipe cannot know that a stateless request is meant.
  row('without-version', `a request without ${keys.version} is refused`).by({ carriers: ['http'] }, [
    discoverWith(on => metaOf(on, keys.version)).expect(isRefusal(`a request without ${keys.version}`, -32602)),
  ]),
  row('without-meta', 'a request without _meta is refused').by({ carriers: ['http'] }, [
    send('server/discover', {}, { envelope: false }).expect(isRefusal('a request without _meta', -32602)),
  ]),
  row('without-client-info', 'clientInfo may be left out').by({ revisions: ['2026-07-28'] }, [
    discoverWith(on => metaOf(on, keys.info)).expect({ 'a request without clientInfo must be served': isServed }),
  ]),
  row('draft-client-info SEP-2575 draft', 'the draft requires clientInfo').by({ revisions: ['draft-2026-v1'] }, [
    discoverWith(on => metaOf(on, keys.info)).expect(isRefusal('a request without clientInfo', -32602)),
  ]),
  row('bad-client-capabilities', 'clientCapabilities that are not an object are refused').by([
    discoverWith(on => metaOf(on, undefined, { [keys.capabilities]: 'all of them' })).expect(
      isRefusal('clientCapabilities that are not an object', -32602),
    ),
  ]),
  ...removed.map(method =>
    row(`removed-${method.replace('/', '-')} MCP 2026-07-28 changelog`, `${method} does not exist on a stateless revision`).by([
      send(method, { uri: 'test://none', level: 'info' }).expect({
        [`${method} must be refused with error -32601`]: hasCode(-32601),
        'the HTTP status must be 404': hasStatus(404),
      }),
    ]),
  ),
  row('result-type MCP 2026-07-28 basic#results', 'every result has a resultType').by(async x => {
    const lists = ['tools', 'resources', 'prompts'].filter(name => x.bench.peer.has(name)).map(name => `${name}/list`)
    for (const method of ['server/discover', ...lists])
      x.hold(await x.ask(method), {
        [`the resultType of ${method} must be "complete"`]: hasResult({ resultType: 'complete' }),
      })
  }),
  row('nothing-remembered', 'capabilities of one request do not apply to the next').by([
    send('server/discover', {}, { meta: { [keys.capabilities]: { sampling: {} } } }),
    discoverWith(on => metaOf(on, keys.capabilities)).expect(
      isRefusal('a request without clientCapabilities after one that had them', -32602),
    ),
  ]),
]
