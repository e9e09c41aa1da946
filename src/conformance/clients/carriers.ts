/**
 * The scripted server on each carrier: lines that carry messages both ways (a pipe of a child, a WebSocket, memory), and HTTP, with
 * one endpoint or the old pair.
 */
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import type { Carrier, Connection } from '../../jsonrpc/connection.ts'
import { memoryPair } from '../../transports/memory.ts'
import { webSocketUpgrade } from '../../transports/websocket/server.ts'
import type { RevisionId } from '../scenario.ts'
import { isStateless } from '../wire/envelope.ts'
import { listenHere } from '../wire/http-call.ts'
import { promised } from '../wire/raw-peer.ts'
import type { HttpHead, MessageLog } from './log.ts'
import type { Play } from './play.ts'
import type { ReplyChannel } from './script.ts'
import type { ClientTarget, Listener, ScriptedServer } from './server.ts'

interface ListenOptions {
  readonly log: MessageLog
  readonly play: Play
  readonly revision: RevisionId
  readonly carrier: Carrier
  server(): ScriptedServer
  take(text: string, reply: ReplyChannel, http?: HttpHead): void
  /** The script itself went wrong. */
  fault(error: unknown): void
}

/** The play on its carrier. */
export async function openListener(options: ListenOptions): Promise<Listener> {
  const { carrier } = options
  if (carrier === 'http' || carrier === 'sse') {
    const http = await openHttp(options)
    return { ...http, target: `${http.origin}/mcp` }
  }
  const lines = new Lines(options)
  const upgrade = carrier === 'websocket' ? await webSocketUpgrade(connection => attach(connection, lines)) : undefined
  // Addresses that nobody may visit are at an HTTP server of their own, which a WebSocket shares.
  const http = await openHttp({ ...options, trap: true, ...(upgrade === undefined ? {} : { upgrade }) })
  const { target, close } =
    upgrade !== undefined
      ? { target: http.origin.replace('http:', 'ws:'), close: undefined }
      : carrier === 'stdio'
        ? await openPipe(lines)
        : { target: memoryTarget(lines), close: undefined }
  return {
    target,
    origin: http.origin,
    unasked: text => lines.unasked(text),
    quiet: ms => lines.quiet(ms),
    close: async () => {
      lines.close()
      await Promise.all([close?.(), http.close()])
    },
  }
}

/** Lines, newest last; the newest is where things are said unasked. */
class Lines {
  readonly #open: { readonly line: number; write(text: string): void; end(): void }[] = []
  readonly #options: Pick<ListenOptions, 'log' | 'take'>

  constructor(options: Pick<ListenOptions, 'log' | 'take'>) {
    this.#options = options
  }

  /** Messages of a new line are given to what is returned. */
  add(write: (text: string) => void, end: () => void): { received(text: string): void; ended(): void } {
    const { log, take } = this.#options
    const line = log.newLine()
    const entry = {
      line,
      end,
      write: (text: string): void => {
        log.sent(text, line)
        write(text)
      },
    }
    this.#open.push(entry)
    const finish = (text?: string): void => {
      if (text !== undefined) entry.write(text)
    }
    return {
      received: text => take(text, { line, write: entry.write, finish, cut: end }),
      ended: () => {
        const at = this.#open.indexOf(entry)
        if (at < 0) return
        this.#open.splice(at, 1)
        log.left(line)
      },
    }
  }

  unasked(text: string): boolean {
    const newest = this.#open.at(-1)
    newest?.write(text)
    return newest !== undefined
  }

  /** Resolves when the client has let go of all lines. */
  async quiet(ms: number): Promise<void> {
    await this.#options.log.until(() => (this.#open.length === 0 ? true : undefined), ms)
  }

  close(): void {
    for (const { end } of [...this.#open]) end()
  }
}

/** A process that is nothing but a pipe to this one. */
const RELAY =
  "const s=require('net').connect(+process.argv[1],'127.0.0.1');process.stdin.pipe(s);s.pipe(process.stdout);s.on('close',()=>process.exit(0)).on('error',()=>process.exit(1))"

async function openPipe(lines: Lines): Promise<{ readonly target: ClientTarget; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server = createNetServer(socket => {
    sockets.add(socket)
    const line = lines.add(
      text => void socket.write(`${text}\n`),
      () => void socket.end(),
    )
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      line.ended()
    })
    createInterface({ input: socket })
      .on('line', text => line.received(text))
      // It repeats the errors of its socket, which are heard there.
      .on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    target: { command: process.execPath, args: ['-e', RELAY, String(port)] },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function memoryTarget(lines: Lines): Connection {
  const [near, far] = memoryPair()
  attach(far, lines)
  return near
}

/** What a connection brings is a line. */
function attach(connection: Connection, lines: Lines): void {
  const line = lines.add(
    text => void promised(() => connection.send(text)).catch(() => {}),
    () => void promised(() => connection.close()).catch(() => {}),
  )
  const sink = { frame: (text: string) => line.received(text), fault: () => {}, closed: () => line.ended() }
  promised(() => connection.start(sink)).catch(() => line.ended())
}

// ── HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface HttpOptions extends ListenOptions {
  /** Serves nothing: it only writes down who comes. */
  readonly trap?: boolean
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

type Streams = { readonly response: ServerResponse; readonly line: number }[]
type HttpListener = Omit<Listener, 'target'>

const streamHead = { 'content-type': 'text/event-stream' }

function eventOf(text: string): string {
  return `event: message\ndata: ${text}\n\n`
}

async function openHttp(options: HttpOptions): Promise<HttpListener> {
  const { log, trap = false } = options
  const streams: Streams = []
  let busy = 0
  const answer = trap ? trapped(log) : answerer(options)
  const server = createHttpServer((request, response) => {
    const line = log.newLine()
    response.on('error', () => {})
    // Until its answer is over, and until it is read.
    busy += 2
    response.on('close', () => {
      busy--
      const at = streams.findIndex(stream => stream.response === response)
      if (at >= 0) streams.splice(at, 1)
      if (response.writableFinished) log.wake()
      else log.left(line)
    })
    bodyOf(request)
      .then(body => {
        busy--
        log.wake()
        if (request.method !== 'POST') log.visited(headOf(request), line)
        answer(request, response, body, line, streams)
      })
      .catch((error: unknown) => {
        options.fault(error)
        response.destroy()
      })
  })
  if (options.upgrade !== undefined) server.on('upgrade', options.upgrade)
  return {
    ...(await listenHere(server)),
    unasked: text => {
      const stream = streams.at(-1)
      if (stream === undefined) return false
      log.sent(text, stream.line)
      stream.response.write(eventOf(text))
      return true
    },
    // No request is half read and no answer is under way: what the client lets go of is seen.
    quiet: async ms => void (await log.until(() => (busy === 0 ? true : undefined), ms)),
  }
}

const MOST_BYTES = 64 * 1024 * 1024

/** What a client breaks off is empty. */
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

/** The head of a request as plays and logs have it. */
export function headOf({ method = '', url = '/', headers }: IncomingMessage): HttpHead {
  const flat = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
  return { method, path: url, headers: Object.fromEntries(flat) }
}

type Answer = (request: IncomingMessage, response: ServerResponse, body: string, line: number, streams: Streams) => void

function trapped(log: MessageLog): Answer {
  return (request, response, body, line) => {
    if (request.method === 'POST') log.received(body, line, headOf(request))
    response.writeHead(404).end()
  }
}

function answerer(options: HttpOptions): Answer {
  const { log, play, carrier, revision, server, take } = options
  const pair = carrier === 'sse'
  const listens = play.inputClosed !== true && (pair || !isStateless(revision))
  let before: ReturnType<NonNullable<Play['http']>> | undefined
  return (request, response, body, line, streams) => {
    const http = headOf(request)
    before ??= play.http?.(server())
    if (before?.(http, response, body) === true) {
      if (http.method === 'POST') log.received(body, line, http)
      return
    }
    const atEndpoint = http.path.startsWith('/mcp')
    if (http.method === 'GET') {
      if (!listens || !atEndpoint) return void response.writeHead(atEndpoint ? 405 : 404).end()
      response.writeHead(200, { ...streamHead, 'cache-control': 'no-store' })
      const endpoint = play.endpoint?.(server()) ?? `/messages?line=${line}`
      response.write(pair ? `event: endpoint\ndata: ${endpoint}\n\n` : ': open\n\n')
      return void streams.push({ response, line })
    }
    if (http.method === 'DELETE') return void response.writeHead(pair ? 405 : 200).end()
    if (http.method !== 'POST') return void response.writeHead(405).end()
    if (!pair) return take(body, ownReply(log, play.streams === true, response, line), http)
    if (!http.path.startsWith('/messages')) {
      log.visited(http, line)
      return void response.writeHead(405).end()
    }
    response.writeHead(202).end()
    take(body, pairReply(log, streams, line), http)
  }
}

/** The old pair: answers come on the stream of the GET. */
function pairReply(log: MessageLog, streams: Streams, line: number): ReplyChannel {
  const write = (text: string): void => {
    const stream = streams.at(-1)
    log.sent(text, stream?.line ?? line)
    stream?.response.write(eventOf(text))
  }
  const finish = (text?: string): void => {
    if (text !== undefined) write(text)
  }
  return { line, write, finish, cut: () => streams.at(-1)?.response.destroy() }
}

function ownReply(log: MessageLog, streams: boolean, response: ServerResponse, line: number): ReplyChannel {
  const opened = (headers: Readonly<Record<string, string>> = {}): void => {
    if (!response.headersSent) response.writeHead(200, { ...streamHead, ...headers })
  }
  return {
    line,
    write: text => {
      opened()
      log.sent(text, line)
      response.write(eventOf(text))
    },
    stream: text => {
      opened()
      response.write(text)
    },
    finish: (text, { status = 200, headers = {} } = {}) => {
      if (text !== undefined) log.sent(text, line)
      if (response.headersSent) return void response.end(text === undefined ? '' : eventOf(text))
      if (text === undefined) return void response.writeHead(202).end()
      if (streams && status === 200) {
        opened(headers)
        return void response.end(eventOf(text))
      }
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
    },
    cut: () => response.destroy(),
  }
}
