/** Answers over HTTP/1.1: what is cut out does not depend on the pieces, nothing but a ConnectionError comes of it, and no length is said twice. */
import { ConnectionError } from '../../../src/jsonrpc/connection.ts'
import { HttpResponseParser } from '../../../src/transports/http/client-parser.ts'
import { cuts, stream } from '../bytes.ts'
import { demand, demandSame, target } from '../target.ts'

const own = [
  'HTTP/1.1 200 OK\r\n',
  'HTTP/1.0 200 OK\r\n',
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 204 No Content\r\n',
  'content-length: 5\r\n',
  'content-length: 7\r\n',
  'content-length: 5, 5\r\n',
  'transfer-encoding: chunked\r\n',
  'content-type: application/json\r\n',
  ' folded\r\n',
  'connection: close\r\n',
  '\r\n',
  '\n',
  '\r\n\r\n',
  '5\r\nhello\r\n',
  '3;x=y\r\nabc\r\n',
  '0\r\n\r\n',
  'hello',
].map(text => Buffer.from(text))

interface Input {
  readonly bytes: Buffer
  readonly chunks: readonly Buffer[]
  readonly closes: boolean
}

/** All that a reader can observe, its body as one. */
function read(chunks: readonly Buffer[], closes: boolean): unknown[] {
  const seen: unknown[] = []
  let body = ''
  let twice = false
  const cutter = new HttpResponseParser({
    head: ({ status, headers, framing }) => {
      twice = headers.get('content-length') !== undefined && headers.get('transfer-encoding') !== undefined
      seen.push(status, framing)
    },
    data: bytes => {
      body += bytes.toString('latin1')
    },
    end: () => seen.push('end'),
  })
  try {
    for (const chunk of chunks) cutter.push(chunk)
    if (closes) cutter.close()
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    seen.push(error.kind)
  }
  demand(!twice, () => 'a length was said in two ways, and taken')
  return [...seen, body]
}

export const answers = target<Input>({
  name: 'answers',
  make: source => {
    const bytes = stream(source, own)
    return { bytes, chunks: cuts(source, bytes), closes: source.pick([true, false]) }
  },
  check: ({ bytes, chunks, closes }) => {
    demandSame(read(chunks, closes), read([bytes], closes), 'the same bytes cut otherwise')
  },
})
