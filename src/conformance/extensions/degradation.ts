/** Graceful degradation: who knows nothing of extensions is served as if there were none. */
import { NS } from '../../core/namespace.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Advertised, Bench, Frame, Json, Scenario } from '../scenario.ts'
import { extensionId, foundTool, isPlain, saidOf } from '../tools.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'
import { canonical } from './manifest.ts'
import { eras, listOf } from './scenario-of.ts'

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

function declaredOf(peer: Advertised): readonly string[] {
  const places = [peer.capabilities['extensions'], peer.capabilities['experimental']]
  return places.flatMap(place =>
    isRecord(place) ? Object.keys(place).filter(id => id.startsWith(`${NS}/`) && id !== extensionId('live')) : [],
  )
}

/** What a model sees of an answer. */
function shown({ result, error }: Answer): string {
  if (!isRecord(result)) return canonical({ code: error?.code })
  const { _meta, content, ...rest } = result
  return canonical({ ...rest, content: listOf(content).map(({ _meta: _, ...block }) => block) })
}

function metaOf(frame: Frame | undefined): string {
  const value = isRecord(frame?.value) ? frame.value : {}
  const holder = isRecord(value['result']) ? value['result'] : isRecord(value['params']) ? value['params'] : {}
  const blocks = listOf(holder['content']).map(block => block['_meta'])
  const error = isRecord(value['error']) ? value['error']['data'] : undefined
  return JSON.stringify([holder['_meta'], blocks, error] satisfies unknown[])
}

export const degradation: readonly Scenario[] = [
  {
    id: 'ext/plain-client',
    proves: ['C4', 'E12-2'],
    role: 'server',
    title: 'A plain client is served unchanged: the same lists, the same results, and nothing of extensions in them',
    revisions: eras,
    needs: peer => (declaredOf(peer).length === 0 ? 'The server declares no extension' : undefined),
    run: async bench => {
      const plain = await bench.open()
      const knowing = await bench.open({ extensions: Object.fromEntries(declaredOf(bench.peer).map(id => [id, {}])) })
      await sameLists(bench, plain, knowing)
      for (const tool of bench.peer.tools.filter(one => isPlain(one) && bench.peer.mayCall(String(one['name']))).slice(0, most)) {
        const params = { name: tool['name'], arguments: foundTool(tool)?.args }
        if (params.arguments === undefined) continue
        const first = await plain.request('tools/call', params)
        const second = await plain.request('tools/call', params)
        unmarked(bench, [first.frame, ...first.during])
        // What differs from call to call cannot be compared.
        if (shown(first) !== shown(second)) continue
        const other = await knowing.request('tools/call', params)
        bench.expect(
          shown(first) === shown(other),
          `${String(tool['name'])} answers a plain client otherwise than one that knows extensions`,
          [first.frame, other.frame],
        )
      }
    },
  },
  {
    id: 'ext/plain-client-writes',
    proves: ['C4', 'E12-2'],
    role: 'server',
    title:
      'What extensions add to a result, to progress or to a failure, a plain client does not get; their methods are not there for it',
    revisions: eras,
    writes: true,
    needs: peer => (declaredOf(peer).length === 0 ? 'The server declares no extension' : undefined),
    run: async bench => {
      const plain = await bench.open()
      for (const tool of special(bench.peer)) {
        const found = foundTool(tool)
        if (found === undefined) continue
        const answer = await plain.request(
          'tools/call',
          { name: found.name, arguments: found.args },
          { meta: { progressToken: found.name } },
        )
        bench.expect(answer.result !== undefined || answer.error !== undefined, `${found.name} was not answered`, [answer.frame])
        unmarked(bench, [answer.frame, ...answer.during])
      }
      for (const [method, extension] of methods) {
        if (bench.peer.extension(extensionId(extension)) === undefined) continue
        const answer = await plain.request(
          method,
          { transaction_id: 'plain', tool: 'plain', events: [], capability_needed: 'plain' },
          { headers: { 'mcp-name': 'plain' } },
        )
        bench.expect(isAbsent(answer), `${method} of a plain client is not refused as absent`, [answer.frame])
      }
    },
  },
]

/** Not found, or found missing what the client would have to declare. */
function isAbsent({ error }: Answer): boolean {
  return (
    error?.code === -32601 || error?.code === -32021 || (isRecord(error?.data) && isRecord(error.data['requiredCapabilities']))
  )
}

async function sameLists(bench: Bench, plain: RawPeer, knowing: RawPeer): Promise<void> {
  for (const method of ['tools/list', 'resources/list', 'prompts/list']) {
    if (!bench.peer.has(method.split('/')[0] ?? '')) continue
    // Another user of the server may change what it offers between the two.
    for (let round = 0; ; round++) {
      const [one, other] = [await plain.request(method), await knowing.request(method)]
      if (listed(one) === listed(other)) break
      bench.expect(round < 3, `${method} differs for a plain client`, [one.frame, other.frame])
    }
  }
}

function listed({ result }: Answer): string {
  const { _meta, nextCursor, ...rest }: Json = isRecord(result) ? result : {}
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

function unmarked(bench: Bench, frames: readonly (Frame | undefined)[]): void {
  for (const frame of frames)
    bench.expect(!metaOf(frame).includes(mark), 'A plain client gets something of an extension', [frame])
}
