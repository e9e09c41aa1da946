/** E9: contents that go from server to server, by signed addresses. */
import { createHash } from 'node:crypto'
import { isRecord } from '../../jsonrpc/message.ts'
import { isMade, isRefusedBy, isReplay, type PeerAnswer } from '../calls.ts'
import { extensionTable } from '../define.ts'
import { type Expectations, firstFault, fitsPattern, is, listIn, objectIn, objectsIn, orSkip } from '../expectations.ts'
import { brings, extensionId, isPlain, saidOf } from '../said.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, keyed, type ScenarioContext, step, type TableStep } from '../steps.ts'
import { bringing, type Finder, toolThat } from '../tools.ts'
import { httpCall } from '../wire/http-call.ts'
import { beginning, ending, within } from './idempotency.ts'

const row = extensionTable('data-references')

const referenceTool = bringing('reference')
const importing = toolThat('imports references (import_from_ref)', tool => tool.name === 'import_from_ref' && isPlain(tool))
const undone = toolThat(
  'returns a reference and names a compensation',
  tool => isRecord(saidOf(tool, 'transactions').compensation) && referenceTool.find({ tools: [tool] } as never) !== undefined,
)

interface ReferenceCall {
  readonly called: PeerAnswer
  readonly block: Json
  readonly reference: Json
  readonly url: string
}

/** Calls for a reference. */
async function given(x: ScenarioContext, tool: Finder = referenceTool, say: Json = {}): Promise<ReferenceCall> {
  const called = await x.call(tool, { say })
  x.made(called, 'A call that returns a reference')
  const key = extensionId('data-references')
  const found = objectsIn(called.result, 'content').find(one => objectIn(one, '_meta')[key] !== undefined)
  const block = x.object(found, 'No block of the result has a data reference')
  const reference = x.object(objectIn(block, '_meta')[key], 'The data reference is not an object')
  if (reference.access_url === undefined) return x.leave('The contents of the server cannot be reached from here')
  return { called, block, reference, url: x.text(reference.access_url, 'access_url is not a string') }
}

const get = (url: string, method = 'GET', headers: Record<string, string> = {}) =>
  httpCall({ url: new URL(url), method, headers })

interface ImportAnswer {
  readonly called: PeerAnswer
  readonly status: unknown
  readonly code: unknown
}

async function imported(x: ScenarioContext, reference: Json, say: Json = {}): Promise<ImportAnswer> {
  const called = await x.call(importing, { args: { reference }, say })
  const { status, error } = objectIn(called.result, 'structuredContent')
  return { called, status, code: (isRecord(error) ? error : called.problem).code }
}

/** Takes over what the server has given itself, but for a change, and holds expectations against that. */
function takingOver(change: Json, expected: Expectations<ImportAnswer, ScenarioContext>): TableStep {
  return step(
    async x => {
      const { reference } = await given(x)
      return imported(x, { ...reference, ...change })
    },
    referenceTool,
    importing,
  ).expect(expected)
}

const itsOwn: Expectations<ImportAnswer, ScenarioContext> = {
  'The server does not import its own contents': orSkip(({ code }) => code !== 'PERMISSION_DENIED'),
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
  return step(x => imported(x, facts), importing).expect({
    [`${access_url} was accepted`]: ({ status, called }) =>
      status !== 'imported' && status !== 'pending' && (called.isError || called.code !== undefined),
    [`${access_url} was not refused by rule`]: ({ code }, _, says) =>
      code === 'PERMISSION_DENIED' || code === 'INVALID_INPUT' || `${says} (got ${String(code)})`,
  })
}

/** E9: data that are given by reference. */
export const references: readonly Scenario[] = [
  row('E9-1', 'Content by reference is not in the result, and what a model sees contains no signed address').by(
    referenceTool,
    async x => {
      const { called, block, reference, url } = await given(x)
      const { body } = await get(url)
      const { _meta, ...shown } = block
      const hidden = block.type === 'resource_link' && !JSON.stringify(shown).includes(new URL(url).search)
      x.expect(hidden, 'The block is not a resource_link, or shows the signed address')
      const away = body.length > 0 && !JSON.stringify(called.result).includes(body.slice(0, 64))
      x.expect(away, 'The content itself is in the result')
      const sums = objectsIn(isRecord(reference.checksum) ? [reference.checksum] : reference.checksum)
      const sum = { algorithm: 'sha256', value: createHash('sha256').update(body).digest('hex') }
      x.expect(
        sums.some(one => fitsPattern(sum, one)),
        'The checksum is not the sha256 of the content',
      )
      const facts = { size_bytes: Buffer.byteLength(body), ref_id: is.string, mime_type: is.string }
      x.expect(fitsPattern(facts, reference), 'size_bytes is wrong, or ref_id or mime_type is missing')
    },
  ),
  row('E9-2', 'An address is valid for its method and unchanged; anything else is 403').by(referenceTool, async x => {
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
  row('E9-3', 'Range requests return parts of the content').by(referenceTool, async x => {
    const { url } = await given(x)
    const whole = await get(url)
    const part = await get(url, 'GET', { range: 'bytes=2-5' })
    const right = part.status === 206 && part.body === whole.body.slice(2, 6)
    x.expect(right, 'Range: bytes=2-5 does not give those bytes with 206', [])
  }),
  row('E9-4', 'Content that differs from its announcement is not imported').by([
    takingOver({}, { ...itsOwn, 'Content as announced was not imported': ({ status }) => status === 'imported' }),
    takingOver(
      { checksum: { algorithm: 'sha256', value: '0'.repeat(64) } },
      {
        'Another checksum does not fail with CHECKSUM_MISMATCH': ({ status, code }) =>
          status === 'failed' && code === 'CHECKSUM_MISMATCH',
      },
    ),
    takingOver({ size_bytes: 3 }, { 'Another size was imported': ({ status }) => status === 'failed' }),
    takingOver(
      { checksum: { algorithm: 'md5', value: '0'.repeat(32) } },
      { 'md5 alone was accepted': ({ status }) => status !== 'imported' },
    ),
  ]),
  row('E9-5', 'Contents are fetched only from allowed addresses, and never from private ones').by(elsewhere.map(foreign)),
  row('E9-6 X3', 'A reference is invalid after its step was rolled back').by(['transactions', undone], async x => {
    await beginning().run(x)
    const { url } = await given(x, undone, within(x).say)
    x.expect((await get(url)).status === 200, 'The address does not give the content', [])
    await ending('rollback').expect({ 'transaction/rollback': isMade }).run(x)
    const { status } = await get(url)
    x.expect(status === 403, `The address of rolled back content returns ${status}, not 403`, [])
  }),
  row('E9-7', 'Content that is announced as larger than the limit of the server is refused').by([
    takingOver(
      { size_bytes: 2 ** 50 },
      {
        ...itsOwn,
        'Content of one pebibyte is not refused with PAYLOAD_TOO_LARGE': ({ code }) => code === 'PAYLOAD_TOO_LARGE',
      },
    ),
  ]),
  row('E9-8', 'An import under an idempotency key runs once').by(['idempotency', referenceTool, importing], async x => {
    const { reference } = await given(x)
    const { say = {} } = keyed(x)
    const first = await imported(x, reference, say)
    if (first.code === 'PERMISSION_DENIED') return x.leave('The server does not import its own contents')
    const again = await imported(x, reference, say)
    const replayed = again.called.member('idempotency').was_replay === true
    x.expect(first.status === 'imported' && again.status === 'imported' && replayed, 'A repeated import is not a replay')
  }),
]

// ── E10: media that are looked at before they are taken.

const mediaRow = extensionTable('media')

/** A picture of one pixel, and a page that says that it is one. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const html = 'PCFkb2N0eXBlIGh0bWw+PHNjcmlwdD48L3NjcmlwdD4='

const takesPictures = (tool: Json): boolean => {
  const types = saidOf(tool, 'media').input_types
  const named = Array.isArray(types) && types.some(type => type === 'image/*' || type === 'image/png')
  return isPlain(tool) && named && slotOf(tool) !== undefined
}
const mostOf = (tool: Json) => Number(saidOf(tool, 'media').max_input_size_bytes)
const pictures = toolThat('accepts images', tool => takesPictures(tool) && !brings(tool, 'media:unannounced'))
const strict = toolThat('accepts images and is strict', tool => takesPictures(tool) && saidOf(tool, 'media').strict === true)
const sized = toolThat('accepts images of at most 64 KiB', tool => takesPictures(tool) && mostOf(tool) <= 65_536)
const unannounced = bringing('media:unannounced')

/** The argument that is an object with `mimeType` and `data`. */
function slotOf(tool: Json): string | undefined {
  const properties = objectIn(tool, 'inputSchema', 'properties')
  return Object.keys(properties).find(name => {
    const inner = objectIn(properties[name], 'properties')
    return inner.mimeType !== undefined && inner.data !== undefined
  })
}

/** Calls a tool with a picture, or what is said to be one. */
const sending = (finder: Finder, mimeType: string, data: string | ((tool: Json) => string)) =>
  callTool(finder, ({ tool }: ScenarioContext) => {
    const { args, listed } = tool(finder)
    const bytes = typeof data === 'string' ? data : data(listed)
    return { args: { ...args, [String(slotOf(listed))]: { mimeType, data: bytes } } }
  })
// No base64 at all, so that whoever decodes it first fails in another way.
const tooLarge = (tool: Json) => '!'.repeat(Math.ceil(((mostOf(tool) + 64) * 4) / 3))

/** E10: media of tools. */
export const media: readonly Scenario[] = [
  mediaRow('E10-1', 'Media larger than the limit of the tool are refused by their length').by([
    sending(sized, 'image/png', tooLarge).expect({ 'An image that is too large': isRefusedBy('PAYLOAD_TOO_LARGE') }),
  ]),
  mediaRow('E10-3', 'A strict tool refuses a type that it does not announce').by([
    sending(strict, 'application/pdf', 'JVBERi0xLjQK').expect({ 'A type that is not announced': isRefusedBy('INVALID_INPUT') }),
  ]),
  mediaRow('E10-4', 'HTML that is declared as an image is refused').by([
    sending(pictures, 'image/png', html).expect({ 'A type that the first bytes contradict': isRefusedBy('INVALID_INPUT') }),
  ]),
  mediaRow('E10-5', 'Types match without regard to case and parameters, and wildcards match').by(
    ['image/png', 'IMAGE/PNG', 'image/png; charset=binary'].map(type =>
      sending(pictures, type, png).expect({ [`An image of the type ${type}`]: isMade }),
    ),
  ),
  mediaRow('E10-6', 'A result of an unannounced type is returned with a warning').by([
    sending(unannounced, 'image/png', png).expect({
      'A call whose result is of another type': isMade,
      'The result was not returned': ({ result }) => objectsIn(result, 'content').length > 0,
      'The result has no warning about the unannounced type': it => objectsIn(it.member('media'), 'warnings').length > 0,
    }),
  ]),
]

// ── E7: where a result comes from.

const sourceRow = extensionTable('provenance')

const many = bringing('provenance:many')
const large = bringing('provenance:large')
const confidences = ['exact', 'derived', 'estimated', 'uncertain']

/** The records of a result, in their order. */
function records(called: PeerAnswer): readonly Json[] {
  const said = called.said('provenance')
  return objectsIn(isRecord(said) ? [said] : said)
}

function faultOfSource({ source, location, retrieved_at: retrieved, confidence }: Json): string | undefined {
  if (!is.word(source)) return 'source is missing'
  if (!is.optional(isRecord)(location)) return 'location is not an object'
  if (!is.optional(is.time)(retrieved)) return 'retrieved_at is not a time'
  return is.optional(is.oneOf(...confidences))(confidence) ? undefined : `confidence is not one of ${confidences.join(', ')}`
}

const stampOf = (called: PeerAnswer): Json =>
  objectIn(
    records(called).findLast(record => isRecord(record.stamp)),
    'stamp',
  )
const timesOf = (called: PeerAnswer) => JSON.stringify(records(called).map(record => record.retrieved_at ?? null))

/** E7: sources of results. */
export const provenance: readonly Scenario[] = [
  sourceRow('E7-1 E7-2', 'Sources fit their schema, on the result and on single blocks, in order').by([
    callTool(many).expect({
      'A call that names its sources': isMade,
      'The result is wrapped: it has no content': ({ result }) => listIn(result, 'content').length > 0,
      'Several sources are not a list': it => records(it).length >= 2,
      'A source does not fit its schema': it => {
        const blocks = objectsIn(it.result, 'content').map(block => objectIn(block, '_meta')[extensionId('provenance')])
        const all = [...records(it), ...blocks.filter(isRecord)]
        return firstFault(
          all,
          record => faultOfSource(record) !== undefined && `A source does not fit its schema: ${faultOfSource(record)}`,
        )
      },
    }),
  ]),
  sourceRow('E7-3', 'A repeated call keeps the time at which its sources were read').by('idempotency', [
    callTool(many, keyed),
    callTool(many, keyed).expect({
      'The repetition is not a replay': isReplay,
      'A replay has another retrieved_at': (it, { was }) =>
        timesOf(was(0)) === timesOf(it) && records(was(0)).some(record => is.time(record.retrieved_at)),
    }),
  ]),
  sourceRow('E7-4', 'The runtime adds which tool of which server made a result, in which operation').by([
    callTool(many),
    callTool(many).expect({
      'The stamp does not name server, tool and operation': (it, { was, bench, tool }) =>
        [was(0), it].every(called =>
          fitsPattern({ server: bench.peer.name, tool: tool(many).name, operation_id: is.string }, stampOf(called)),
        ),
      'Two calls have the same operation_id': (it, { was }) => stampOf(was(0)).operation_id !== stampOf(it).operation_id,
    }),
  ]),
  sourceRow('E7-7', 'Sources take at most 16 KiB of a result; what is left out is counted').by([
    callTool(large).expect({
      'The sources of a result take more than 16 KiB': it =>
        it.said('provenance') !== undefined && Buffer.byteLength(JSON.stringify(it.said('provenance'))) <= 16 * 1024,
      'The result does not say that sources were left out': ({ result }) =>
        /dropped|omitted|left_out|truncated/.test(JSON.stringify(result._meta)),
    }),
  ]),
]
