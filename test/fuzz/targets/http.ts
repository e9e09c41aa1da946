/** The fetch face of a server: whatever the head and the body of a request, a response of ours comes, and what it holds can be read. */
import { isRecord } from '../../../src/jsonrpc/message.ts'
import type { RevisionId } from '../../../src/revisions/index.ts'
import { SseParser } from '../../../src/transports/sse/parse.ts'
import { headersFor } from '../../spec/http.ts'
import { everyRevision } from '../../spec/wire.ts'
import { isOurs } from '../answers.ts'
import { corpusOf } from '../corpus.ts'
import { bentText, strangeWords, value } from '../json.ts'
import { mutated } from '../mutate.ts'
import type { Source } from '../source.ts'
import { createSubject, type Subject } from '../subject.ts'
import { demand, outlasted, target, turn } from '../target.ts'

interface Input {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

const sendable = strangeWords.filter(word => /^[\x20-\x7e]*$/.test(word))
const statuses = new Set([200, 202, 204, 400, 403, 404, 405, 406, 413, 415, 503])
const names = [
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'mcp-session-id',
  'accept',
  'content-type',
  'last-event-id',
  'host',
  'origin',
  'mcp-param-region',
  'content-length',
  'traceparent',
]
const values = [
  ...sendable,
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
  'tools/call',
  'greet',
  'application/json',
  'text/event-stream',
  '*/*;q=0',
  'localhost',
  'http://localhost',
  'https://evil.example',
  '0',
  '99999999999',
]
let subject: Subject | undefined

export const http = target<Input>({
  name: 'http',
  make: source => {
    const revision = source.pick(everyRevision)
    const method = source.pick(['POST', 'POST', 'POST', 'POST', 'GET', 'DELETE', 'OPTIONS', 'PUT', 'PATCH', 'HEAD'])
    const frame = mutated(source, source.pick(corpusOf(revision).said), source.int(3))
    const text = JSON.stringify(frame)
    return {
      method,
      path: source.once(10) ? `/${source.pick(['', 'sse', 'messages', '.well-known/x', '%00', 'mcp/', 'mcp?x=1'])}` : '/mcp',
      headers: headersOf(source, revision, frame),
      body:
        method === 'GET' || method === 'HEAD'
          ? undefined
          : source.once(8)
            ? bentText(source, text)
            : source.once(20)
              ? JSON.stringify(value(source))
              : text,
    }
  },
  check: async ({ method, path, headers, body }) => {
    subject ??= createSubject({ limits: { rates: false, sessions: 50 } })
    const { server, clock } = subject
    const request = new Request(`http://localhost${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
    const response = await outlasted(server.fetch(request), clock)
    demand(statuses.has(response.status), () => `status ${response.status} to ${method} ${path}`)
    if (response.body === null) return
    const type = response.headers.get('content-type') ?? ''
    if (type.startsWith('text/event-stream')) await readEvents(response.body, clock)
    else if (type.startsWith('application/json')) checkFrames(JSON.parse(await response.text()))
    else await response.body.cancel()
    clock.advance(1_000)
  },
  close: async () => subject?.server.close(),
})

function headersOf(source: Source, revision: RevisionId, frame: unknown): Record<string, string> {
  const method =
    isRecord(frame) && typeof frame['method'] === 'string' && /^[\x21-\x7e]+$/.test(frame['method']) ? frame['method'] : 'x'
  const params = isRecord(frame) && isRecord(frame['params']) ? frame['params'] : {}
  const named = params['name'] ?? params['uri']
  const name = typeof named === 'string' ? { 'mcp-name': `=?base64?${Buffer.from(named).toString('base64')}?=` } : {}
  const headers: Record<string, string> = { ...headersFor(revision, method, {}), ...name }
  for (let bends = source.int(3); bends > 0; bends--) headers[source.pick(names)] = source.pick(values)
  for (let gone = source.once(6) ? 1 : 0; gone > 0; gone--) delete headers[source.pick(names)]
  return headers
}

/** Until the stream ends, or nothing more can come: nobody answers here what the server asks. */
async function readEvents(body: ReadableStream<Uint8Array>, clock: Subject['clock']): Promise<void> {
  const reader = body.getReader()
  const parser = new SseParser({ eventBytes: 1_000_000 }, data => {
    if (data !== '') checkFrames(JSON.parse(data))
  })
  let over = false
  const all = (async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) parser.push(part.value)
  })().finally(() => {
    over = true
  })
  for (let waited = 0; waited < 12 && !over; waited++) {
    await turn()
    if (waited > 3) clock.advance(700_000)
  }
  if (!over) await reader.cancel()
  await all
}

function checkFrames(heard: unknown): void {
  for (const frame of Array.isArray(heard) ? heard : [heard]) {
    demand(isRecord(frame) && frame['jsonrpc'] === '2.0', () => `no message: ${JSON.stringify(frame)}`)
    const error = frame['error']
    if (error !== undefined) demand(isRecord(error) && !isOurs(error), () => `an error that is ours: ${JSON.stringify(frame)}`)
  }
}
