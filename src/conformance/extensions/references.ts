/** E9: contents that go from server to server, by signed addresses. */
import { createHash } from 'node:crypto'
import { isRecord } from '../../jsonrpc/message.ts'
import { isMade, type PeerAnswer } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectations, fitsPattern, isString, objectIn, objectsIn, orSkip } from '../expectations.ts'
import type { Json, Scenario } from '../scenario.ts'
import { keyed, type Scene, step, type TableStep } from '../steps.ts'
import { bringing, extensionId, type Finder, isPlain, saidOf, toolThat } from '../tools.ts'
import { httpCall } from '../wire/http-call.ts'
import { beginning, ending, within } from './transactions.ts'

const row = extensionTable('data-references')

const giving = bringing('reference')
const importing = toolThat('takes over references (import_from_ref)', tool => tool.name === 'import_from_ref' && isPlain(tool))
const undone = toolThat(
  'gives a reference and names a compensation',
  tool => isRecord(saidOf(tool, 'transactions').compensation) && giving.find({ tools: [tool] } as never) !== undefined,
)

interface Given {
  readonly called: PeerAnswer
  readonly block: Json
  readonly reference: Json
  readonly url: string
}

/** Calls for a reference. */
async function given(x: Scene, tool: Finder = giving, say: Json = {}): Promise<Given> {
  const called = await x.call(tool, { say })
  x.made(called, 'A call that gives a reference')
  const key = extensionId('data-references')
  const found = objectsIn(called.result, 'content').find(one => objectIn(one, '_meta')[key] !== undefined)
  const block = x.object(found, 'No block of the result has a data reference')
  const reference = x.object(objectIn(block, '_meta')[key], 'The data reference is no object')
  if (reference.access_url === undefined) return x.leave('The server is not reachable for contents here')
  return { called, block, reference, url: x.text(reference.access_url, 'access_url is no text') }
}

const get = (url: string, method = 'GET', headers: Record<string, string> = {}) =>
  httpCall({ url: new URL(url), method, headers })

interface Imported {
  readonly called: PeerAnswer
  readonly status: unknown
  readonly code: unknown
}

async function imported(x: Scene, reference: Json, say: Json = {}): Promise<Imported> {
  const called = await x.call(importing, { args: { reference }, say })
  const { status, error } = objectIn(called.result, 'structuredContent')
  return { called, status, code: (isRecord(error) ? error : called.problem).code }
}

/** Takes over what the server has given itself, but for a change, and holds expectations against that. */
function takingOver(change: Json, expected: Expectations<Imported, Scene>): TableStep {
  return step(
    async x => {
      const { reference } = await given(x)
      return imported(x, { ...reference, ...change })
    },
    [giving, importing],
  ).expect(expected)
}

const itsOwn: Expectations<Imported, Scene> = {
  'The server does not take over its own contents': orSkip(({ code }) => code !== 'PERMISSION_DENIED'),
}

const elsewhere = [
  'https://10.0.0.1/x',
  'http://192.168.0.1/x',
  'https://169.254.169.254/latest',
  'file:///etc/hostname',
  'https://elsewhere.invalid/x',
]

/** What is fetched from elsewhere, said to be one byte long. */
function foreign(access_url: string): TableStep {
  const checksum = { algorithm: 'sha256', value: '0'.repeat(64) }
  const facts = { ref_id: 'r', origin_server: 'elsewhere', mime_type: 'text/plain', size_bytes: 1, access_url, checksum }
  return step(x => imported(x, facts), [importing]).expect({
    [`${access_url} was taken`]: ({ status, called }) =>
      status !== 'imported' && status !== 'pending' && (called.isError || called.code !== undefined),
    [`${access_url} was not refused by rule`]: ({ code }, _, says) =>
      code === 'PERMISSION_DENIED' || code === 'INVALID_INPUT' || `${says} (got ${String(code)})`,
  })
}

export const references: readonly Scenario[] = [
  row(
    'E9-1',
    'A content by reference is not in the result, and what a model is shown has no address that lets in',
    { tools: [giving] },
    async x => {
      const { called, block, reference, url } = await given(x)
      const { body } = await get(url)
      const { _meta, ...shown } = block
      const hidden = block.type === 'resource_link' && !JSON.stringify(shown).includes(new URL(url).search)
      x.expect(hidden, 'The block is no resource_link, or shows the signed address')
      const away = body.length > 0 && !JSON.stringify(called.result).includes(body.slice(0, 64))
      x.expect(away, 'The content itself is in the result')
      const sums = objectsIn(isRecord(reference.checksum) ? [reference.checksum] : reference.checksum)
      const sum = { algorithm: 'sha256', value: createHash('sha256').update(body).digest('hex') }
      x.expect(
        sums.some(one => fitsPattern(sum, one)),
        'The checksum is not the sha256 of the content',
      )
      const facts = { size_bytes: Buffer.byteLength(body), ref_id: isString, mime_type: isString }
      x.expect(fitsPattern(facts, reference), 'size_bytes is wrong, or ref_id or mime_type is missing')
    },
  ),
  row('E9-2', 'An address is good for its method and as it is; all else is 403', { tools: [giving] }, async x => {
    const { url } = await given(x)
    const other = await given(x)
    x.expect((await get(url)).status === 200, 'The address does not give the content', [])
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
      x.expect(status === 403, `${method} of an address that was changed gives ${status}, not 403`, [])
    }
  }),
  row('E9-3', 'Parts of a content are given by Range', { tools: [giving] }, async x => {
    const { url } = await given(x)
    const whole = await get(url)
    const part = await get(url, 'GET', { range: 'bytes=2-5' })
    const right = part.status === 206 && part.body === whole.body.slice(2, 6)
    x.expect(right, 'Range: bytes=2-5 does not give those bytes with 206', [])
  }),
  row('E9-4', 'What is not what was announced is not imported', [
    takingOver({}, { ...itsOwn, 'A content as announced was not imported': ({ status }) => status === 'imported' }),
    takingOver(
      { checksum: { algorithm: 'sha256', value: '0'.repeat(64) } },
      {
        'Another checksum is not failed with CHECKSUM_MISMATCH': ({ status, code }) =>
          status === 'failed' && code === 'CHECKSUM_MISMATCH',
      },
    ),
    takingOver({ size_bytes: 3 }, { 'Another size was imported': ({ status }) => status === 'failed' }),
    takingOver(
      { checksum: { algorithm: 'md5', value: '0'.repeat(32) } },
      { 'md5 alone was good enough': ({ status }) => status !== 'imported' },
    ),
  ]),
  row('E9-5', 'Contents are fetched only from where that was allowed, and never from private addresses', elsewhere.map(foreign)),
  row(
    'E9-6 X3',
    'When the step that gave it is taken back, a reference is dead',
    { wants: ['transactions'], tools: [undone] },
    async x => {
      await beginning().run(x)
      const { url } = await given(x, undone, within(x).say)
      x.expect((await get(url)).status === 200, 'The address does not give the content', [])
      await ending('rollback').expect({ 'transaction/rollback': isMade }).run(x)
      const { status } = await get(url)
      x.expect(status === 403, `The address of what was taken back gives ${status}, not 403`, [])
    },
  ),
  row('E9-7', 'What is announced to be larger than the server takes is refused', [
    takingOver(
      { size_bytes: 2 ** 50 },
      {
        ...itsOwn,
        'A content of a pebibyte is not refused by PAYLOAD_TOO_LARGE': ({ code }) => code === 'PAYLOAD_TOO_LARGE',
      },
    ),
  ]),
  row('E9-8', 'An import under a key is made once', { wants: ['idempotency'], tools: [giving, importing] }, async x => {
    const { reference } = await given(x)
    const { say = {} } = keyed(x)
    const first = await imported(x, reference, say)
    if (first.code === 'PERMISSION_DENIED') return x.leave('The server does not take over its own contents')
    const again = await imported(x, reference, say)
    const replayed = again.called.member('idempotency').was_replay === true
    x.expect(first.status === 'imported' && again.status === 'imported' && replayed, 'A repeated import is no replay')
  }),
]
