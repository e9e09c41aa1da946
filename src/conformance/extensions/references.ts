/** E9: contents that go from server to server, by signed addresses. */
import { createHash } from 'node:crypto'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, Scenario } from '../scenario.ts'
import { bringing, extensionId, type FoundTool, isPlain, saidOf, toolThat } from '../tools.ts'
import { httpCall } from '../wire/http-call.ts'
import { listOf, newKey, type Stage, scenariosOf } from './scenario-of.ts'
import type { Called, Talk } from './talk.ts'

const scenario = scenariosOf('data-references')

const giving = bringing('reference')
const importing = toolThat('takes over references (import_from_ref)', tool => tool['name'] === 'import_from_ref' && isPlain(tool))
const undone = toolThat(
  'gives a reference and names a compensation',
  tool => isRecord(saidOf(tool, 'transactions')['compensation']) && giving.find({ tools: [tool] } as never) !== undefined,
)

interface Given {
  readonly called: Called
  readonly block: Json
  readonly reference: Json
  readonly url: string
}

async function given(
  talk: Talk,
  tool: FoundTool,
  stage: Pick<Stage<never>, 'made' | 'object' | 'text' | 'leave'>,
  saying?: Json,
): Promise<Given> {
  const called = await talk.call(tool.name, tool.args, saying)
  stage.made(called, 'A call that gives a reference')
  const block = listOf(called.result['content']).find(
    one => isRecord(one['_meta']) && one['_meta'][extensionId('data-references')] !== undefined,
  )
  const found = stage.object(block, 'No block of the result has a data reference', called.frames)
  const reference = stage.object(
    (found['_meta'] as Json)[extensionId('data-references')],
    'The data reference is no object',
    called.frames,
  )
  if (reference['access_url'] === undefined) return stage.leave('The server is not reachable for contents here')
  return { called, block: found, reference, url: stage.text(reference['access_url'], 'access_url is no text', called.frames) }
}

const get = (url: string, method = 'GET', headers: Record<string, string> = {}) =>
  httpCall({ url: new URL(url), method, headers })

async function imported(
  talk: Talk,
  tool: FoundTool,
  reference: Json,
  saying?: Json,
): Promise<{ called: Called; status: unknown; code: unknown }> {
  const called = await talk.call(tool.name, { reference }, saying)
  const said = isRecord(called.result['structuredContent']) ? called.result['structuredContent'] : {}
  const error = isRecord(said['error']) ? said['error'] : called.problem
  return { called, status: said['status'], code: error['code'] }
}

export const references: readonly Scenario[] = [
  scenario({
    id: 'E9-1',
    title: 'A content by reference is not in the result, and what a model is shown has no address that lets in',
    tools: { giving },
    run: async stage => {
      const { called, block, reference, url } = await given(stage.talk, stage.tools.giving, stage)
      const { body } = await get(url)
      const { _meta, ...shown } = block
      stage.expect(
        block['type'] === 'resource_link' && !JSON.stringify(shown).includes(new URL(url).search),
        'The block is no resource_link, or shows the signed address',
        called.frames,
      )
      stage.expect(
        body.length > 0 && !JSON.stringify(called.result).includes(body.slice(0, 64)),
        'The content itself is in the result',
        called.frames,
      )
      const { checksum } = reference
      const sums = Array.isArray(checksum) ? listOf(checksum) : isRecord(checksum) ? [checksum] : []
      const sha = createHash('sha256').update(body).digest('hex')
      stage.expect(
        sums.some(sum => sum['algorithm'] === 'sha256' && sum['value'] === sha),
        'The checksum is not the sha256 of the content',
        called.frames,
      )
      stage.expect(
        reference['size_bytes'] === Buffer.byteLength(body) &&
          typeof reference['ref_id'] === 'string' &&
          typeof reference['mime_type'] === 'string',
        'size_bytes is wrong, or ref_id or mime_type is missing',
        called.frames,
      )
    },
  }),
  scenario({
    id: 'E9-2',
    title: 'An address is good for its method and as it is; all else is 403',
    tools: { giving },
    run: async stage => {
      const { url } = await given(stage.talk, stage.tools.giving, stage)
      const other = await given(stage.talk, stage.tools.giving, stage)
      stage.expect((await get(url)).status === 200, 'The address does not give the content')
      const end = url.at(-2)
      const wrong: [string, string][] = [
        [url, 'DELETE'],
        [url, 'POST'],
        [`${url.slice(0, -2)}${end === 'A' ? 'B' : 'A'}${url.at(-1)}`, 'GET'],
        [url.replace(/\?.*/, ''), 'GET'],
        [`${other.url.replace(/\?.*/, '')}${new URL(url).search}`, 'GET'],
      ]
      for (const [address, method] of wrong) {
        const { status } = await get(address, method)
        stage.expect(status === 403, `${method} of an address that was changed gives ${status}, not 403`)
      }
    },
  }),
  scenario({
    id: 'E9-3',
    title: 'Parts of a content are given by Range',
    tools: { giving },
    run: async stage => {
      const { url } = await given(stage.talk, stage.tools.giving, stage)
      const whole = await get(url)
      const part = await get(url, 'GET', { range: 'bytes=2-5' })
      stage.expect(
        part.status === 206 && part.body === whole.body.slice(2, 6),
        'Range: bytes=2-5 does not give those bytes with 206',
      )
    },
  }),
  ...imports(),
]

function imports(): readonly Scenario[] {
  return [
    scenario({
      id: 'E9-4',
      title: 'What is not what was announced is not imported',
      tools: { giving, importing },
      run: async stage => {
        const { talk, tools, leave } = stage
        const { reference } = await given(talk, tools.giving, stage)
        const right = await imported(talk, tools.importing, reference)
        if (right.code === 'PERMISSION_DENIED') return leave('The server does not take over its own contents')
        stage.expect(right.status === 'imported', 'A content as announced was not imported', right.called.frames)
        const wrong = await imported(talk, tools.importing, {
          ...reference,
          checksum: { algorithm: 'sha256', value: '0'.repeat(64) },
        })
        stage.expect(
          wrong.status === 'failed' && wrong.code === 'CHECKSUM_MISMATCH',
          'Another checksum is not failed with CHECKSUM_MISMATCH',
          wrong.called.frames,
        )
        const short = await imported(talk, tools.importing, { ...reference, size_bytes: 3 })
        stage.expect(short.status === 'failed', 'Another size was imported', short.called.frames)
        const weak = await imported(talk, tools.importing, {
          ...reference,
          checksum: { algorithm: 'md5', value: '0'.repeat(32) },
        })
        stage.expect(weak.status !== 'imported', 'md5 alone was good enough', weak.called.frames)
      },
    }),
    scenario({
      id: 'E9-5',
      title: 'Contents are fetched only from where that was allowed, and never from private addresses',
      tools: { importing },
      run: async stage => {
        for (const url of [
          'https://10.0.0.1/x',
          'http://192.168.0.1/x',
          'https://169.254.169.254/latest',
          'file:///etc/hostname',
          'https://elsewhere.invalid/x',
        ]) {
          const reference = {
            ref_id: 'r',
            origin_server: 'elsewhere',
            mime_type: 'text/plain',
            size_bytes: 1,
            access_url: url,
            checksum: { algorithm: 'sha256', value: '0'.repeat(64) },
          }
          const { status, called, code } = await imported(stage.talk, stage.tools.importing, reference)
          stage.expect(
            status !== 'imported' && status !== 'pending' && (called.isError || called.code !== undefined),
            `${url} was taken`,
            called.frames,
          )
          stage.expect(
            code === 'PERMISSION_DENIED' || code === 'INVALID_INPUT',
            `${url} was not refused by rule (got ${String(code)})`,
            called.frames,
          )
        }
      },
    }),
    scenario({
      id: 'E9-6',
      also: ['X3'],
      title: 'When the step that gave it is taken back, a reference is dead',
      wants: ['transactions'],
      tools: { undone },
      run: async stage => {
        const { talk, tools, made, expect } = stage
        const id = newKey()
        made(await talk.ask('transaction/begin', { transaction_id: id }), 'transaction/begin')
        const { url } = await given(talk, tools.undone, stage, { transactions: { transaction_id: id } })
        expect((await get(url)).status === 200, 'The address does not give the content')
        made(await talk.ask('transaction/rollback', { transaction_id: id }), 'transaction/rollback')
        const { status } = await get(url)
        expect(status === 403, `The address of what was taken back gives ${status}, not 403`)
      },
    }),
    scenario({
      id: 'E9-7',
      title: 'What is announced to be larger than the server takes is refused',
      tools: { giving, importing },
      run: async stage => {
        const { reference } = await given(stage.talk, stage.tools.giving, stage)
        const huge = await imported(stage.talk, stage.tools.importing, { ...reference, size_bytes: 2 ** 50 })
        if (huge.code === 'PERMISSION_DENIED') return stage.leave('The server does not take over its own contents')
        stage.expect(
          huge.code === 'PAYLOAD_TOO_LARGE',
          'A content of a pebibyte is not refused by PAYLOAD_TOO_LARGE',
          huge.called.frames,
        )
      },
    }),
    scenario({
      id: 'E9-8',
      title: 'An import under a key is made once',
      wants: ['idempotency'],
      tools: { giving, importing },
      run: async stage => {
        const { talk, tools, leave } = stage
        const { reference } = await given(talk, tools.giving, stage)
        const saying = { idempotency: { idempotency_key: newKey() } }
        const first = await imported(talk, tools.importing, reference, saying)
        if (first.code === 'PERMISSION_DENIED') return leave('The server does not take over its own contents')
        const again = await imported(talk, tools.importing, reference, saying)
        stage.expect(
          first.status === 'imported' && again.status === 'imported' && again.called.member('idempotency')['was_replay'] === true,
          'A repeated import is no replay',
          again.called.frames,
        )
      },
    }),
  ]
}
