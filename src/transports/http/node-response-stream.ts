/**
 * Writes bodies to node:http responses: event streams, downloads, and the check that disconnects clients which do not read. An
 * event stream that ends within its first turn of the event loop is sent in one write with a Content-Length, like a JSON
 * answer.
 */

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Download } from './document.ts'
import { byteLength } from './event.ts'
import type { ResponseStream, ResponseStreamOwner, StreamAccount } from './event-writer.ts'

/** Characters held back before the headers are sent. */
const mostHeld = 64 * 1024

/** An event stream on a node:http response. */
export class NodeResponseStream implements ResponseStream {
  owner: ResponseStreamOwner | undefined = undefined
  readonly tenant: StreamAccount | undefined
  silence = 0
  blocked = false
  readonly #res: ServerResponse
  readonly #stallMs: number
  /** The headers, until they are sent. */
  #head: string[] | undefined
  /** Text held back until then. */
  #held = ''
  #unwatch: (() => void) | undefined = undefined

  constructor(res: ServerResponse, headers: string[], stallMs: number, tenant: StreamAccount | undefined) {
    this.#res = res
    this.#head = headers
    this.#stallMs = stallMs
    this.tenant = tenant
    setImmediate(commit, this)
  }

  write(text: string): boolean {
    if (this.#res.writableEnded) return true
    this.silence = 0
    if (this.#head === undefined) this.blocked = !this.#res.write(text)
    else {
      this.#held += text
      if (this.#held.length > mostHeld) this.commit()
    }
    return !this.blocked
  }

  end(text = ''): void {
    if (this.#res.writableEnded) return
    if (this.#head !== undefined) {
      const body = this.#held + text
      this.#res.writeHead(200, [...this.#head, 'content-length', `${byteLength(body)}`])
      this.#head = undefined
      this.#held = ''
      this.#res.end(body)
      this.owner?.gone()
    } else this.#res.end(text)
    if (this.#res.writableLength > 0) this.watch(true)
  }

  cut(): void {
    this.#res.destroy()
    // Before the headers are sent nothing listens for 'close' yet; `commit` reports it.
    if (this.#head !== undefined) this.commit()
  }

  watch(on: boolean): void {
    if (on === (this.#unwatch !== undefined)) return
    this.#unwatch?.()
    this.#unwatch = on ? cutWhenStalled(this.#res, this.#stallMs) : undefined
  }

  /** Sends the headers and the held text. From here on each write is sent by itself. */
  commit(): void {
    const head = this.#head
    if (head === undefined) return
    this.#head = undefined
    if (this.#res.destroyed) {
      this.owner?.gone()
      return
    }
    this.#listen()
    this.#res.writeHead(200, head)
    if (this.#held === '') this.#res.flushHeaders()
    else this.blocked = !this.#res.write(this.#held)
    this.#held = ''
  }

  /** Subscribes to the events of the response. */
  #listen(): void {
    this.#res.on('drain', () => {
      this.blocked = false
      this.owner?.drained()
    })
    this.#res.once('close', () => this.owner?.gone())
    // 'close' reports the failure; an 'error' event without a listener would end the process.
    this.#res.on('error', () => this.#res.destroy())
  }
}

/** A function instead of a closure per stream: streams are created for many requests. */
function commit(output: NodeResponseStream): void {
  output.commit()
}

// Sends a download no faster than it is read. It reuses a few buffers for content of any length.

const chunkBytes = 65_536

/** Sends a download as the body of a response, and reports when it is over. */
export async function sendDownload(res: ServerResponse, download: Download, stallMs: number): Promise<void> {
  const { status, headers, body, over } = download
  try {
    if (res.headersSent || res.destroyed) return void (await body?.cancel().catch(() => undefined))
    res.writeHead(status, headers)
    if (body === undefined) return void res.end()
    await send(res, body, stallMs)
  } finally {
    over?.()
  }
}

/** Reads the next chunk while the previous one is being sent. */
async function send(res: ServerResponse, body: ReadableStream<Uint8Array>, stallMs: number): Promise<void> {
  const stop = cutWhenStalled(res, stallMs)
  const next = chunksOf(body)
  // The client may disconnect while the source has nothing to send.
  const gone = (): void => void next.cancel()
  res.once('close', gone)
  try {
    let writing: Promise<Uint8Array | undefined> | undefined
    for (let free: Uint8Array | undefined; ; ) {
      const chunk = await next.read(free)
      free = await writing
      if (chunk === undefined) break
      writing = sent(res, done => res.write(chunk, done)).then(() => chunk)
      // The error is thrown where the result is awaited.
      writing.catch(() => undefined)
    }
    await sent(res, done => res.end(done))
  } catch {
    // The client is gone or the source failed. Closing the connection shows the client that the content is incomplete.
    res.destroy()
    await next.cancel()
  } finally {
    res.off('close', gone)
    stop()
  }
}

/** The source of a download. */
interface Chunks {
  /** The next chunk, undefined at the end. `free` is a buffer that may be reused. */
  read(free: Uint8Array | undefined): Promise<Uint8Array | undefined>
  cancel(): Promise<void>
}

function chunksOf(body: ReadableStream<Uint8Array>): Chunks {
  const cancel = (reader: { cancel(): Promise<void> }) => () => reader.cancel().catch(() => undefined)
  const own = byobReader(body)
  if (own === undefined) {
    const reader = body.getReader()
    return { read: async () => (await reader.read()).value, cancel: cancel(reader) }
  }
  return {
    read: async free => {
      const buffer = free?.buffer instanceof ArrayBuffer ? free.buffer : new ArrayBuffer(chunkBytes)
      const { done, value } = await own.read(new Uint8Array(buffer))
      return done ? undefined : value
    },
    cancel: cancel(own),
  }
}

/** A reader that fills our buffers; undefined if the stream does not support that. */
function byobReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: 'byob' })
  } catch {
    return undefined
  }
}

/** Resolves when the kernel has the data, so that its buffer can be reused. */
function sent(res: ServerResponse, write: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error('The reader has disconnected'))
    if (res.destroyed) return gone()
    res.once('close', gone)
    write(error => {
      res.off('close', gone)
      if (error) reject(error)
      else resolve()
    })
  })
}

// Disconnects clients that do not read. The socket timeout of Node restarts with every byte that the client sends, so a client
// could hold an answer for ever; here only bytes that it takes count.

/** Checks per `stallMs`. */
const looks = 4

/** Destroys the response if the client takes nothing for `stallMs`. Returns a function that cancels the check. */
export function cutWhenStalled(res: ServerResponse, stallMs: number): () => void {
  let before = takenBy(res.socket)
  let idle = 0
  const timer = setInterval(() => {
    const taken = takenBy(res.socket)
    idle = taken === before ? idle + 1 : 0
    before = taken
    if (idle >= looks) res.destroy()
  }, stallMs / looks)
  timer.unref()
  const stop = (): void => clearInterval(timer)
  res.once('close', stop)
  return stop
}

/**
 * A value that changes whenever the kernel accepts data: completed writes and, where Node shows it, the rest of the current
 * one.
 */
function takenBy(socket: Socket | null): string {
  if (socket === null) return ''
  const handle: unknown = '_handle' in socket ? socket._handle : undefined
  const left = typeof handle === 'object' && handle !== null && 'writeQueueSize' in handle ? handle.writeQueueSize : ''
  return `${socket.bytesWritten - socket.writableLength} ${left}`
}
