/** For tests of the server side: a door whose parts the test writes, a real server around it, and raw sockets to it. */
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach } from 'vitest'
import type { Acceptor } from '../../src/jsonrpc/connection.ts'
import { type ListenerOptions, listenHttp } from '../../src/transports/http/listen.ts'
import type { Listening } from '../../src/transports/http/listening.ts'

const cleanups: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Done after the test, last registered first. */
export function afterTest(cleanup: () => Promise<void> | void): void {
  cleanups.push(cleanup)
}

/** Answers a posted body with itself, opens every stream, ends every session; the given parts replace these. */
export function scriptedDoor(parts: Partial<Acceptor> = {}): Acceptor {
  return {
    deliver: (text, _caller, reply) => reply.send(text, { final: true }),
    listen: () => undefined,
    leave: (_caller, reply) => reply.end({ status: 204 }),
    accept: () => undefined,
    ...parts,
  }
}

export async function serve(parts: Partial<Acceptor> = {}, options: ListenerOptions = {}): Promise<Listening> {
  const listening = await listenHttp(scriptedDoor(parts), { closeMs: 0, ...options })
  afterTest(() => listening.close())
  return listening
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export interface Question {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export const jsonHeaders = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** One whole exchange on a connection of its own. */
export function ask(
  port: number,
  { method = 'POST', path = '/mcp', headers = jsonHeaders, body }: Question = {},
): Promise<Answer> {
  return new Promise((done, fail) => {
    const sent = request({ port, host: '127.0.0.1', method, path, headers, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', part => {
        text += part
      })
      response.on('end', () => done({ status: response.statusCode ?? 0, headers: response.headers, text }))
      response.on('error', fail)
    })
    sent.on('error', fail)
    sent.end(body)
  })
}

export interface RawSocket {
  readonly socket: Socket
  /** All that came so far. */
  readonly text: string
  write(text: string | Uint8Array): void
  /** Resolves with all that came so far once it contains this. */
  until(part: string | RegExp): Promise<string>
  /** Resolves when the other end has closed or reset the connection. */
  readonly closed: Promise<void>
}

/** A socket that says exactly what it is told. */
export function rawSocket(port: number): Promise<RawSocket> {
  return new Promise((done, fail) => {
    const socket = connect(port, '127.0.0.1')
    afterTest(() => {
      socket.destroy()
    })
    let text = ''
    const waiting = new Set<() => void>()
    const closed = new Promise<void>(resolve => {
      socket.on('close', () => resolve())
    })
    socket.setEncoding('utf8')
    socket.on('data', part => {
      text += part
      for (const look of waiting) look()
    })
    socket.on('error', fail)
    socket.on('connect', () =>
      done({
        socket,
        closed,
        get text() {
          return text
        },
        write: part => void socket.write(part),
        until,
      }),
    )

    function until(part: string | RegExp): Promise<string> {
      const found = () => (typeof part === 'string' ? text.includes(part) : part.test(text))
      return new Promise((resolve, reject) => {
        const look = () => {
          if (!found()) return
          waiting.delete(look)
          resolve(text)
        }
        waiting.add(look)
        look()
        void closed.then(() => reject(new Error(`closed before ${part} came; got: ${text.slice(0, 500)}`)))
      })
    }
  })
}

/** The bytes of a POST with this body. */
export function postText(body: string, extra = ''): string {
  const head = 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'
  return `${head}${extra}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

export const getStream = 'GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n'

/** Something that a test waits for, from the hands of a callback. */
export interface Signal<T> {
  readonly came: Promise<T>
  give(value: T): void
}

export function signal<T = void>(): Signal<T> {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { came: promise, give: resolve }
}
