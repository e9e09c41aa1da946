/** E1, E13: all that a server offers in one document, under the digest of its contents; and other servers that it recommends. */
import { createHash } from 'node:crypto'
import { NS } from '../../engine/method.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasResult, isMade, openRequester, type PeerAnswer } from '../calls.ts'
import { eras, extensionTable, table } from '../define.ts'
import { type Expectation, firstFault, is, listIn, objectIn, objectsIn } from '../expectations.ts'
import { peerHas } from '../needs.ts'
import { extensionId, isPlain, saidOf } from '../said.ts'
import type { Advertised, Frame, Json, Scenario } from '../scenario.ts'
import { type ScenarioContext, send, step, type TableStep } from '../steps.ts'
import { bringing, foundTool } from '../tools.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'

const row = extensionTable('manifest')
const recommending = extensionTable('recommendations')

const uri = 'manifest:///service'
const changing = bringing('change:tools')
const reading = { writes: false } as const
const again = { writes: false, tries: 3 } as const

/** The words of the manifest's schema, and the extensions that they stand for. */
const tokens: Readonly<Record<string, string>> = {
  streaming: 'streaming',
  idempotency: 'idempotency',
  transactions: 'transactions',
  session_state: 'state',
  intent_hints: 'intent',
  provenance: 'provenance',
  human_in_the_loop: 'confirmation',
  data_references: 'data-references',
  subscribe_notify: 'events',
  server_recommendations: 'recommendations',
  structured_errors: 'problem',
  multimodal_signatures: 'media',
}

/** RFC 8785, for JSON as it came. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isRecord(value)) return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map(key => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${members.join(',')}}`
}

/** The revision that a manifest must have: the digest of all but its counters. */
export function digestOf(manifest: Json): string {
  const { rate_limits: limits, ...rest } = manifest
  const steady = isRecord(limits)
    ? Object.fromEntries(Object.entries(limits).filter(([name]) => name !== 'remaining' && name !== 'resets_at'))
    : limits
  const told = !isRecord(steady) || Object.keys(steady).length === 0 ? rest : { ...rest, rate_limits: steady }
  return `sha256:${createHash('sha256').update(canonical(told)).digest('base64url')}`
}

const manifestIn = ({ result }: PeerAnswer): Json => objectIn(result, 'manifest')

/** Gets the manifest, and holds more against it. */
function get(more: Readonly<Record<string, Expectation<PeerAnswer, ScenarioContext>>> = {}): TableStep {
  return send('manifest/get').expect({
    'manifest/get': isMade,
    'manifest/get returns no manifest': hasResult({ manifest: isRecord }),
    ...more,
  })
}

/** What is wrong with it by its schema; undefined where nothing is. */
function faultOf(manifest: Json): string | undefined {
  const { name, mcp_spec_version: spec, version } = objectIn(manifest, 'server')
  if (manifest.manifest_version !== '0.1.0') return 'manifest_version is not 0.1.0'
  if (!is.string(name) || !is.string(spec)) return 'server has no name or mcp_spec_version'
  if (!is.string(version) || !/^\d+\.\d+\.\d+/.test(version)) return 'server.version is not a version'
  if (!Array.isArray(manifest.tools)) return 'tools is not a list'
  for (const tool of objectsIn(manifest.tools)) {
    if (!is.string(tool.name) || !is.string(tool.description) || !isRecord(tool.input_schema))
      return `the tool ${String(tool.name)} lacks name, description or input_schema`
    if (!/^[a-z][a-z0-9_]*$/.test(tool.name) && tool.nonconforming_name !== true)
      return `the name ${tool.name} is outside the pattern and not marked`
    if (tool.inputSchema !== undefined) return `the tool ${tool.name} has inputSchema instead of input_schema`
  }
  const words = is.optional(list => Array.isArray(list) && list.every(is.string))
  return words(manifest.supported_extensions) ? undefined : 'supported_extensions is not a list of strings'
}

async function listed({ ask }: ScenarioContext): Promise<readonly Json[]> {
  const tools: Json[] = []
  let cursor: unknown
  for (let page = 0; page < 100; page++) {
    const { result } = await ask('tools/list', cursor === undefined ? {} : { cursor })
    tools.push(...objectsIn(result, 'tools'))
    cursor = result.nextCursor
    if (typeof cursor !== 'string') break
  }
  return tools
}

const sameRevision: Expectation<PeerAnswer, ScenarioContext> = (it, { was }) => it.result.revision === was(0).result.revision

/** E1: the manifest of a server. */
export const manifest: readonly Scenario[] = [
  row('E1-1', 'The manifest fits its schema').by(reading, [
    get({
      'The manifest does not fit its schema': it => {
        const fault = faultOf(manifestIn(it))
        return fault === undefined || `The manifest does not fit its schema: ${fault}`
      },
    }),
  ]),
  row('E1-2', 'The manifest has the listed tools, with the same schemas').by(again, [
    get(),
    step(listed).expect({
      'The manifest names other tools than tools/list': (tools, { was }) => {
        const shown = objectsIn(manifestIn(was(0)).tools)
        return canonical(shown.map(tool => tool.name).sort()) === canonical(tools.map(tool => tool.name).sort())
      },
      'input_schema is not inputSchema': (tools, { was }) => {
        const shown = new Map(objectsIn(manifestIn(was(0)).tools).map(tool => [tool.name, tool]))
        return firstFault(
          tools,
          tool =>
            canonical(shown.get(tool.name)?.input_schema) !== canonical(tool.inputSchema) &&
            `input_schema of ${String(tool.name)} is not its inputSchema`,
        )
      },
    }),
  ]),
  row('E1-3', 'The revision is the digest of the manifest, and the handshake names it').by(again, [
    get({
      'revision is not the digest': it => {
        const [named, digest] = [it.result.revision, digestOf(manifestIn(it))]
        return named === digest || `revision is ${String(named)}, the digest is ${digest}`
      },
    }),
    send('manifest/get').expect({ 'The revision changes from one request to the next': sameRevision }),
    step(({ bench }) => bench.peer.extension(extensionId('manifest'))).expect({
      'The settings of the extension have no manifest_version 0.1.0': settings => settings?.manifest_version === '0.1.0',
    }),
  ]),
  row('E1-3r E1-3', 'Another connection (over stdio: a restarted server) has the same revision, and its handshake names it').by(
    again,
    [
      get(),
      step(async ({ bench }) => {
        const other = await openRequester(bench, { fresh: true })
        return { ...(await other.ask('manifest/get')), hello: other.peer.hello }
      }).expect({
        'Nothing has changed, but another connection gets another revision': sameRevision,
        'The handshake names another revision': ({ result: { revision }, hello }) => {
          const named = objectIn(hello, 'capabilities', 'extensions', extensionId('manifest')).revision
          if (named === undefined || named === revision) return true
          return `The handshake names the revision ${String(named)}, and the manifest is ${String(revision)}`
        },
      }),
    ],
  ),
  row('E1-4', 'A client that has this revision already gets not_modified without the document').by(again, [
    get(),
    send('manifest/get', x => ({ if_revision: x.was(0).result.revision })).expect({
      'if_revision with the same revision does not give not_modified: true alone': (it, x, says) =>
        it.result.not_modified === true && it.result.manifest === undefined && sameRevision(it, x, says),
    }),
    send('manifest/get', { if_revision: 'sha256:other' }).expect({
      'if_revision with another revision does not give the manifest': hasResult({ manifest: isRecord }),
    }),
  ]),
  row('E1-5', 'A burst of changes is announced once, and the manifest has another revision').by(
    { tries: 3, carriers: ['memory', 'stdio', 'websocket', 'http'], needs: [changing] },
    async x => {
      const { peer } = x
      const before = await x.ask('manifest/get')
      const notices = ['notifications/tools/list_changed', 'notifications/resources/updated']
      if (x.modern) {
        peer.begin('subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: [uri] } })
        await peer.next('notifications/subscriptions/acknowledged')
      } else await x.ask('resources/subscribe', { uri })
      x.made(await x.call(changing), 'The call that changes the tools')
      for (const notice of notices) await peer.next(notice)
      await peer.settled()
      await peer.hears('nothing', 200)
      for (const notice of notices) {
        const times = peer.heard(notice).filter(frame => notice !== notices[1] || frame.text.includes(uri)).length
        x.expect(times === 1, `${notice} came ${times} times for one burst`, peer.heard(notice))
      }
      const after = await x.ask('manifest/get')
      x.expect(after.result.revision !== before.result.revision, 'The tools changed and the revision did not')
    },
  ),
  row('E1-7', 'The manifest names the extensions that the handshake declares').by(reading, [
    get({
      'supported_extensions are not those that are declared': (it, { bench }) =>
        firstFault(Object.entries(tokens), ([token, name]) => {
          const declared = bench.peer.extension(extensionId(name)) !== undefined
          const says = `${token} is ${declared ? 'not ' : ''}in supported_extensions, and ${extensionId(name)} is ${declared ? '' : 'not '}declared`
          return listIn(manifestIn(it), 'supported_extensions').includes(token) !== declared && says
        }),
    }),
  ]),
  row('E1-8', 'A manifest with counters of its caller is private').by(reading, [
    get({
      'manifest/get does not say for how long and for whom it may be cached': hasResult({
        cacheScope: is.oneOf('public', 'private'),
        ttlMs: is.number,
      }),
      'A manifest with counters is not private': (it, { warn }) => {
        if (objectIn(manifestIn(it), 'rate_limits').remaining !== undefined) return it.result.cacheScope === 'private'
        warn('This manifest has no counters')
        return true
      },
    }),
  ]),
]

const levels = ['high', 'medium', 'low']

/** E13: other servers that it recommends. */
export const recommendations: readonly Scenario[] = [
  recommending('E13-1', 'Recommendations are sorted, best first, each server once').by(
    { writes: false, needs: ['manifest'] },
    async x => {
      const own = objectsIn((await x.ask('manifest/get')).result, 'manifest', 'recommendations')
      const capability = own.map(one => one.capability).find(is.string)
      if (capability === undefined) return x.leave('The manifest names no capability that others have')
      const { result } = await x.ask('servers/recommend', { capability_needed: capability })
      x.expect(result.capability_needed === capability, 'The answer does not name what was asked for')
      const list = objectsIn(result, 'recommendations')
      x.expect(list.length > 0, 'A server that the manifest recommends is missing')
      const names = list.map(one => one.server_name)
      x.expect(new Set(names).size === names.length && names.every(is.string), 'A server is recommended twice')
      const ranks = list.map(one => levels.indexOf(String(one.match_confidence)))
      const sorted = ranks.every((rank, at) => rank >= 0 && rank >= (ranks[at - 1] ?? 0))
      x.expect(sorted, 'The recommendations are not sorted by match_confidence')
      const one = await x.ask('servers/recommend', { capability_needed: capability, limit: 1 })
      x.expect(objectsIn(one.result, 'recommendations').length === 1, 'limit: 1 does not give one')
    },
  ),
  recommending('E13-5', 'Nothing to recommend is an empty list, not a failure').by(reading, [
    send('servers/recommend', x => ({ capability_needed: x.key() })).expect({
      'servers/recommend for what nobody has': isMade,
      'There is no empty list': hasResult({ recommendations: [] }),
    }),
  ]),
]

// ── Graceful degradation: who knows nothing of extensions is served as if there were none.

const mark = `"${NS}/`
const most = 12

/** Methods of extensions, which a plain client would never send. */
const methods = new Map([
  ['manifest/get', 'manifest'],
  ['permissions/check', 'permissions'],
  ['transaction/begin', 'transactions'],
  ['event/subscribe', 'events'],
  ['servers/recommend', 'recommendations'],
])

function declaredOf({ capabilities }: Advertised): readonly string[] {
  const places = [capabilities.extensions, capabilities.experimental]
  return places.flatMap(place => Object.keys(objectIn(place)).filter(id => id.startsWith(`${NS}/`) && id !== extensionId('live')))
}

const declares = peerHas(peer => declaredOf(peer).length > 0, 'The server declares no extension')
const plainRow = table('ext/', { proves: ['C4', 'E12-2'], revisions: eras, needs: [declares] })

/** What a model sees of an answer. */
function shown({ result, error }: Answer): string {
  if (result === undefined) return canonical({ code: error?.code })
  const { _meta, content, ...rest } = objectIn(result)
  return canonical({ ...rest, content: objectsIn(content).map(({ _meta: _, ...block }) => block) })
}

function metaOf(frame: Frame | undefined): string {
  const { result, params, error } = objectIn(frame?.value)
  const holder = objectIn(result ?? params)
  const blocks = objectsIn(holder, 'content').map(block => block._meta)
  return JSON.stringify([holder._meta, blocks, objectIn(error).data])
}

/** C4: what clients get that know no extensions. */
export const degradation: readonly Scenario[] = [
  plainRow(
    'plain-client',
    'A plain client is served unchanged: the same lists, the same results, and nothing of extensions in them',
  ).by(async x => {
    const plain = x.peer
    const all = x.bench.peer
    const knowing = await x.bench.open({ extensions: Object.fromEntries(declaredOf(all).map(id => [id, {}])) })
    await sameLists(x, plain, knowing)
    for (const tool of all.tools.filter(one => isPlain(one) && all.mayCall(String(one.name))).slice(0, most)) {
      const params = { name: tool.name, arguments: foundTool(tool)?.args }
      if (params.arguments === undefined) continue
      const first = await plain.request('tools/call', params)
      const second = await plain.request('tools/call', params)
      unmarked(x, [first.frame, ...first.during])
      // What differs from call to call cannot be compared.
      if (shown(first) !== shown(second)) continue
      const other = await knowing.request('tools/call', params)
      const says = `${String(tool.name)} answers a plain client differently from one that knows extensions`
      x.expect(shown(first) === shown(other), says, [first.frame, other.frame])
    }
  }),
  plainRow(
    'plain-client-writes',
    'A plain client gets nothing that extensions add to results, progress or failures, and cannot call their methods',
  ).by({ writes: true }, async x => {
    for (const tool of special(x.bench.peer)) {
      const found = foundTool(tool)
      if (found === undefined) continue
      const { answer } = await x.call(found, { meta: { progressToken: found.name } })
      const answered = answer.result !== undefined || answer.error !== undefined
      x.expect(answered, `${found.name} was not answered`, [answer.frame])
      unmarked(x, [answer.frame, ...answer.during])
    }
    for (const [method, extension] of methods) {
      if (x.bench.peer.extension(extensionId(extension)) === undefined) continue
      const params = { transaction_id: 'plain', tool: 'plain', events: [], capability_needed: 'plain' }
      const { answer } = await x.ask(method, params, { headers: { 'mcp-name': 'plain' } })
      x.expect(isUnknown(answer), `${method} of a plain client is not refused as absent`, [answer.frame])
    }
  }),
]

/** Not found, or found missing what the client would have to declare. */
function isUnknown({ error }: Answer): boolean {
  return error?.code === -32601 || error?.code === -32021 || 'requiredCapabilities' in objectIn(error?.data)
}

async function sameLists(x: ScenarioContext, plain: RawPeer, knowing: RawPeer): Promise<void> {
  for (const method of ['tools/list', 'resources/list', 'prompts/list']) {
    if (!x.bench.peer.has(method.split('/')[0] ?? '')) continue
    // Another user of the server may change what it offers between the two.
    for (let round = 0; ; round++) {
      const [one, other] = [await plain.request(method), await knowing.request(method)]
      if (shownList(one) === shownList(other)) break
      x.expect(round < 3, `${method} differs for a plain client`, [one.frame, other.frame])
    }
  }
}

function shownList({ result }: Answer): string {
  const { _meta, nextCursor, ...rest } = objectIn(result)
  return canonical(rest)
}

/** Tools of which an extension says something, so that calling them would show it. */
function special(peer: Advertised): readonly Json[] {
  const extensions = ['operational', 'streaming', 'transactions', 'media', 'conformance']
  const free = (tool: Json): boolean => isPlain(tool) && !JSON.stringify(saidOf(tool, 'conformance')).includes('limit:')
  return peer.tools
    .filter(tool => free(tool) && extensions.some(name => Object.keys(saidOf(tool, name)).length > 0))
    .slice(0, 3 * most)
}

function unmarked(x: ScenarioContext, frames: readonly (Frame | undefined)[]): void {
  for (const frame of frames) x.expect(!metaOf(frame).includes(mark), 'A plain client gets data of an extension', [frame])
}
