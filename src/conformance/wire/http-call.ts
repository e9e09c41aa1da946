/** One HTTP exchange, as plain as it gets: only the headers that are given, the answer read whole or event by event. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request as plainRequest, type Server } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Failed } from '../scenario.ts'
import type { HttpCall, HttpReply, StreamEvent } from './raw-peer.ts'

const maxBody = 32 * 1024 * 1024

/** Keeps sockets for the calls of one peer. */
interface Sockets {
  readonly plain: Agent
  readonly secure: SecureAgent
  close(): void
}

/** Sockets that are kept open between calls. */
export function openSockets(): Sockets {
  const plain = new Agent({ keepAlive: true })
  const secure = new SecureAgent({ keepAlive: true })
  return {
    plain,
    secure,
    close() {
      plain.destroy()
      secure.destroy()
    },
  }
}

/** Headers without those that are undefined: so one is left out. */
export function present(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/** Lets a server of the kit's own listen on this machine; it is closed with all its connections. */
export async function listenHere(server: Server, port = 0): Promise<{ readonly origin: string; close(): Promise<void> }> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

/** Rejects when nothing was answered at all: with `Failed` where somebody was there. */
export function httpCall(call: HttpCall, sockets?: Sockets): Promise<HttpReply> {
  const limit = AbortSignal.timeout(call.ms ?? 10_000)
  const signal = call.signal === undefined ? limit : AbortSignal.any([limit, call.signal])
  const secure = call.url.protocol === 'https:'
  const agent = secure ? sockets?.secure : sockets?.plain
  const headers = { ...call.headers }
  if (call.body !== undefined) headers['content-length'] = String(Buffer.byteLength(call.body))
  return new Promise((resolve, reject) => {
    const open = secure ? secureRequest : plainRequest
    // The signal stays with the exchange: given to the request it would go on to the socket, which others use after it.
    const request = open(call.url, { method: call.method, headers, ...(agent === undefined ? {} : { agent }) })
    const drop = (): void => void request.destroy()
    // Destroyed without the reason: a socket that is just given back has nobody left who hears of it.
    const stop = (): void => {
      reject(limit.aborted ? late(call) : new Error('The kit closed the exchange'))
      drop()
    }
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    request.on('close', () => signal.removeEventListener('abort', stop))
    request.on('error', error => reject(lost(call, error)))
    request.once('response', response => resolve(readReply(call, response, drop)))
    request.end(call.body)
  })
}

function late(call: HttpCall): Error {
  return new Failed(`${call.method} ${call.url.pathname} was not answered within ${call.ms ?? 10_000} ms`)
}

/** A peer that took the request, and hung up or answered with what is no HTTP, is wrong. */
function lost(call: HttpCall, error: Error): Error {
  const code = 'code' in error ? String(error.code) : ''
  if (code !== 'ECONNRESET' && code !== 'EPIPE' && !code.startsWith('HPE_')) return error
  const how = code.startsWith('HPE_') ? `answered with an invalid HTTP response (${error.message})` : 'cut off without an answer'
  return new Failed(`${call.method} ${call.url.pathname} was ${how}`)
}

async function readReply(call: HttpCall, response: IncomingMessage, drop: () => void): Promise<HttpReply> {
  const status = response.statusCode ?? 0
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers)) headers[name] = String(value)
  call.onHead?.(status, headers)
  const isStream = (headers['content-type'] ?? '').startsWith('text/event-stream')
  const events: StreamEvent[] = []
  const parts: Buffer[] = []
  let size = 0
  let whole = true
  const reader = new EventReader(event => {
    events.push(event)
    call.onEvent?.(event)
    if (call.until?.(event) !== true) return
    whole = false
    drop()
  })
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.length
      if (size > maxBody) throw new Error(`The answer is longer than ${maxBody} bytes`)
      if (isStream) reader.push(part)
      else parts.push(part)
    }
  } catch {
    whole = false
  }
  return { status, headers, body: Buffer.concat(parts).toString('utf8'), events, whole }
}

// ── Reads a stream of server-sent events and keeps what scenarios look at: ids, types, the wait that is asked for.

/** Takes bytes, and gives events as soon as they are whole. */
export class EventReader {
  readonly #onEvent: (event: StreamEvent) => void
  readonly #decoder = new TextDecoder()
  #rest = ''
  #fields: { type: string; data: string[]; id?: string; retry?: number } = { type: '', data: [] }

  constructor(onEvent: (event: StreamEvent) => void) {
    this.#onEvent = onEvent
  }

  push(bytes: Uint8Array): void {
    this.#rest += this.#decoder.decode(bytes, { stream: true })
    // A CR at the very end may be half of a line end: it waits for what follows.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#line(line)
  }

  #line(line: string): void {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'data') this.#fields.data.push(value)
    else if (name === 'event') this.#fields.type = value
    else if (name === 'id') this.#fields.id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.#fields.retry = Number(value)
  }

  #dispatch(): void {
    const { type, data, ...rest } = this.#fields
    this.#fields = { type: '', data: [] }
    if (data.length === 0 && rest.id === undefined && rest.retry === undefined) return
    this.#onEvent({ type: type === 'message' ? '' : type, data: data.join('\n'), ...rest })
  }
}
