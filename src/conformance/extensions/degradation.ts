/** Graceful degradation: who knows nothing of extensions is served as if there were none. */
import { NS } from '../../engine/method.ts'
import { eras, type Need, table } from '../define.ts'
import { objectIn, objectsIn } from '../expectations.ts'
import type { Advertised, Frame, Json, Scenario } from '../scenario.ts'
import type { Scene } from '../steps.ts'
import { extensionId, foundTool, isPlain, saidOf } from '../tools.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'
import { canonical } from './manifest.ts'

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

const declares: Need = peer => (declaredOf(peer).length === 0 ? 'The server declares no extension' : undefined)
const row = table('ext/', { proves: ['C4', 'E12-2'], revisions: eras, needs: [declares] })

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

export const degradation: readonly Scenario[] = [
  row(
    'plain-client',
    'A plain client is served unchanged: the same lists, the same results, and nothing of extensions in them',
    async x => {
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
        const says = `${String(tool.name)} answers a plain client otherwise than one that knows extensions`
        x.expect(shown(first) === shown(other), says, [first.frame, other.frame])
      }
    },
  ),
  row(
    'plain-client-writes',
    'What extensions add to a result, to progress or to a failure, a plain client does not get; their methods are not there for it',
    { writes: true },
    async x => {
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
    },
  ),
]

/** Not found, or found missing what the client would have to declare. */
function isUnknown({ error }: Answer): boolean {
  return error?.code === -32601 || error?.code === -32021 || 'requiredCapabilities' in objectIn(error?.data)
}

async function sameLists(x: Scene, plain: RawPeer, knowing: RawPeer): Promise<void> {
  for (const method of ['tools/list', 'resources/list', 'prompts/list']) {
    if (!x.bench.peer.has(method.split('/')[0] ?? '')) continue
    // Another user of the server may change what it offers between the two.
    for (let round = 0; ; round++) {
      const [one, other] = [await plain.request(method), await knowing.request(method)]
      if (listed(one) === listed(other)) break
      x.expect(round < 3, `${method} differs for a plain client`, [one.frame, other.frame])
    }
  }
}

function listed({ result }: Answer): string {
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

function unmarked(x: Scene, frames: readonly (Frame | undefined)[]): void {
  for (const frame of frames) x.expect(!metaOf(frame).includes(mark), 'A plain client gets something of an extension', [frame])
}
