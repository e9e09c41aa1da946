/** For tests of HTTP clients: a real server that writes down what it is asked, and a connection that writes down what it hears. */
import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Clock, realClock } from '../../src/core/clock.ts'
import { type Connection, ConnectionError, type FrameFault } from '../../src/jsonrpc/connection.ts'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
  readonly socket: Socket
  /** What the request asks to be answered by, where it is one. */
  readonly id: unknown
}

export interface TestServer {
  readonly origin: string
  readonly url: string
  readonly seen: Seen[]
  /** How many sockets were ever opened. */
  sockets: number
  /** Resolves when that many requests have come. */
  saw(count: number): Promise<void>
  close(): Promise<void>
}

type Handler = (request: Seen, response: http.ServerResponse) => void

const cleanups: (() => Promise<void>)[] = []

/** For `afterEach`: ends what the test began, last things first. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
}

export function afterTest(cleanup: () => Promise<void> | void): void {
  cleanups.push(async () => cleanup())
}

export async function serve(
  handler: Handler,
  make: (listener: http.RequestListener) => http.Server = http.createServer,
): Promise<TestServer> {
  const waiting: { count: number; done: () => void }[] = []
  const server = make((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const { method = '', url = '', headers, socket } = request
      const seen: Seen = { method, path: url, headers, body, socket, id: body === '' ? undefined : JSON.parse(body).id }
      self.seen.push(seen)
      for (const { count, done } of waiting) if (self.seen.length >= count) done()
      handler(seen, response)
    })
  })
  server.on('connection', () => self.sockets++)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const origin = `${'setSecureContext' in server ? 'https' : 'http'}://127.0.0.1:${port}`
  const self: TestServer = {
    origin,
    url: `${origin}/mcp`,
    seen: [],
    sockets: 0,
    saw: count => (self.seen.length >= count ? Promise.resolve() : new Promise(done => waiting.push({ count, done }))),
    close: () =>
      new Promise(done => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
  afterTest(() => self.close())
  return self
}

export interface Heard {
  readonly frames: { text: string; status: number | undefined }[]
  readonly faults: FrameFault[]
  readonly closes: (Error | undefined)[]
  /** Resolves when that many frames have come. */
  got(count: number): Promise<void>
}

/** Starts a connection, which is closed after the test. */
export async function hear(connection: Connection): Promise<Heard> {
  const waiting: { count: number; done: () => void }[] = []
  const heard: Heard = {
    frames: [],
    faults: [],
    closes: [],
    got: count => (heard.frames.length >= count ? Promise.resolve() : new Promise(done => waiting.push({ count, done }))),
  }
  afterTest(() => connection.close())
  await connection.start({
    frame(text, status) {
      heard.frames.push({ text, status })
      for (const { count, done } of waiting) if (heard.frames.length >= count) done()
    },
    fault: fault => heard.faults.push(fault),
    closed: reason => heard.closes.push(reason),
  })
  return heard
}

/** A clock that writes down the waits of less than five seconds and does not make them. */
export function hastyClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = []
  return {
    waits,
    now: realClock.now,
    setTimeout(fn, ms, background) {
      if (background || ms >= 5_000) return realClock.setTimeout(fn, ms, background)
      waits.push(ms)
      return realClock.setTimeout(fn, 0)
    },
  }
}

export function json(
  response: http.ServerResponse,
  status: number,
  value: unknown,
  headers: http.OutgoingHttpHeaders = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof value === 'string' ? value : JSON.stringify(value))
}

export function events(response: http.ServerResponse, headers: http.OutgoingHttpHeaders = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  response.flushHeaders()
}

export function result(id: unknown, value: unknown = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result: value })
}

export function request(id: number | string, method = 'tools/call'): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method })
}

export const notice = '{"jsonrpc":"2.0","method":"notifications/initialized"}'

/** The ConnectionError that a send ended in; anything else fails the test. */
export async function failure(sent: void | Promise<void>): Promise<ConnectionError> {
  try {
    await sent
  } catch (thrown) {
    if (thrown instanceof ConnectionError) return thrown
    throw thrown
  }
  throw new Error('The message was delivered, but should not have been')
}
