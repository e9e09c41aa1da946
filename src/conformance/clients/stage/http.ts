/** The stage over HTTP: one endpoint with sessions and without, and the old pair of endpoints. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Book, Http } from './book.ts'
import type { StageResponse } from './response.ts'
import type { Way } from './script.ts'

export interface HttpStage {
  readonly book: Book
  /** The old pair: answers come on the stream of the GET. */
  readonly pair: boolean
  /** Whether a GET is given a stream of its own. */
  readonly listens: boolean
  /** Every answer comes as a stream. */
  readonly streams: boolean
  /** Looks at each request first; true: it has answered itself. */
  readonly before: ((http: Http, response: StageResponse, body: string) => boolean) | undefined
  /** Where the old pair says that messages go. */
  readonly endpoint: string | undefined
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  take(text: string, way: Way, http: Http): void
  /** The script itself went wrong. */
  fault(error: unknown): void
}

export interface Listening {
  readonly port: number
  /** Says something unasked; false: nobody listens. */
  unasked(text: string): boolean
  /** Ends the stream for what is said unasked. */
  hangUp(): void
  /** Resolves when no request is half read and no answer is under way: what the client lets go of is seen. */
  quiet(ms: number): Promise<void>
  close(): Promise<void>
}

const MOST_BYTES = 64 * 1024 * 1024

export async function listen(stage: HttpStage): Promise<Listening> {
  const { book } = stage
  const streams: { response: ServerResponse; line: number }[] = []
  let reading = 0
  let open = 0
  const server = createServer((request, response) => {
    const line = book.newLine()
    response.on('error', () => {})
    open++
    response.on('close', () => {
      open--
      book.stir()
      const at = streams.findIndex(stream => stream.response === response)
      if (at >= 0) streams.splice(at, 1)
      if (!response.writableFinished) book.left(line)
    })
    reading++
    bodyOf(request)
      .then(body => {
        reading--
        book.stir()
        answer(stage, request, response, body, line, streams)
      })
      .catch((error: unknown) => {
        stage.fault(error)
        response.destroy()
      })
  })
  if (stage.upgrade !== undefined) server.on('upgrade', stage.upgrade)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    port,
    unasked: text => {
      const stream = streams.at(-1)
      if (stream === undefined) return false
      book.told(text, stream.line)
      return stream.response.write(`event: message\ndata: ${text}\n\n`) || true
    },
    hangUp: () => void streams.at(-1)?.response.end(),
    quiet: async ms => void (await book.until(() => (reading === 0 && open === 0 ? true : undefined), ms)),
    close: () => closed(server),
  }
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size <= MOST_BYTES) chunks.push(chunk)
    }
  } catch {
    return ''
  }
  return Buffer.concat(chunks).toString()
}

function factsOf({ method = '', url = '/', headers }: IncomingMessage): Http {
  const flat = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
  return { method, path: url, headers: Object.fromEntries(flat) }
}

type Streams = { response: ServerResponse; line: number }[]

function answer(
  stage: HttpStage,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
  line: number,
  streams: Streams,
): void {
  const { book, pair } = stage
  const http = factsOf(request)
  if (http.method !== 'POST') book.visit(http, line)
  if (stage.before?.(http, response, body) === true) {
    if (http.method === 'POST') book.heard(body, line, http)
    return
  }
  if (http.method === 'GET') return opened(stage, response, line, streams, http)
  if (http.method === 'DELETE') return void response.writeHead(pair ? 405 : 200).end()
  if (http.method !== 'POST') return void response.writeHead(405).end()
  if (!pair) return stage.take(body, ownWay(stage, response, line), http)
  if (!http.path.startsWith('/messages')) {
    book.visit(http, line)
    return void response.writeHead(405).end()
  }
  response.writeHead(202).end()
  stage.take(body, pairWay(book, streams, line), http)
}

function opened(stage: HttpStage, response: ServerResponse, line: number, streams: Streams, { path }: Http): void {
  if (!stage.listens || !path.startsWith('/mcp')) return void response.writeHead(path.startsWith('/mcp') ? 405 : 404).end()
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  response.write(stage.pair ? `event: endpoint\ndata: ${stage.endpoint ?? `/messages?line=${line}`}\n\n` : ': open\n\n')
  streams.push({ response, line })
}

function pairWay(book: Book, streams: Streams, line: number): Way {
  const send = (text: string): void => {
    const stream = streams.at(-1)
    book.told(text, stream?.line ?? line)
    stream?.response.write(`event: message\ndata: ${text}\n\n`)
  }
  return {
    line,
    write: send,
    finish: text => {
      if (text !== undefined) send(text)
    },
    cut: () => streams.at(-1)?.response.destroy(),
  }
}

function ownWay({ book, streams: always }: HttpStage, response: ServerResponse, line: number): Way {
  const opened = (headers: Readonly<Record<string, string>> = {}): void => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  }
  return {
    line,
    write: text => {
      opened()
      book.told(text, line)
      response.write(`event: message\ndata: ${text}\n\n`)
    },
    stream: text => {
      opened()
      response.write(text)
    },
    finish: (text, { status = 200, headers = {} } = {}) => {
      if (text !== undefined) book.told(text, line)
      if (response.headersSent) return void response.end(text === undefined ? '' : `event: message\ndata: ${text}\n\n`)
      if (text === undefined) return void response.writeHead(202).end()
      if (always && status === 200) {
        opened(headers)
        return void response.end(`event: message\ndata: ${text}\n\n`)
      }
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
    },
    cut: () => response.destroy(),
  }
}
