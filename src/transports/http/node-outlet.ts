/**
 * An event stream on a node:http response. What is said in the first turn of the event loop is held back to its end:
 * a stream that is over by then goes out as one write with a length, like a JSON answer.
 */

import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Download } from './document.ts'
import { byteLength } from './event.ts'
import type { OutletOwner, StreamOutlet, Tenant } from './reader.ts'

/** Characters held back before the headers go out. */
const mostHeld = 64 * 1024

/** Writes an event stream to a node:http response. */
export class NodeOutlet implements StreamOutlet {
  owner: OutletOwner | undefined = undefined
  readonly tenant: Tenant | undefined
  silence = 0
  blocked = false
  readonly #res: ServerResponse
  readonly #stallMs: number
  /** The headers, until they are sent. */
  #head: string[] | undefined
  #held = ''
  #unwatch: (() => void) | undefined = undefined

  constructor(res: ServerResponse, headers: string[], stallMs: number, tenant: Tenant | undefined) {
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
    // Before the headers are out nothing listens to the response yet.
    if (this.#head !== undefined) this.commit()
  }

  watch(on: boolean): void {
    if (on === (this.#unwatch !== undefined)) return
    this.#unwatch?.()
    this.#unwatch = on ? cutWhenStalled(this.#res, this.#stallMs) : undefined
  }

  /** Sends the headers and what was held back. From here on each write goes out by itself. */
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

  #listen(): void {
    this.#res.on('drain', () => {
      this.blocked = false
      this.owner?.drained()
    })
    this.#res.once('close', () => this.owner?.gone())
    // The socket's own failure is told by 'close'; without a listener it would end the process.
    this.#res.on('error', () => this.#res.destroy())
  }
}

function commit(outlet: NodeOutlet): void {
  outlet.commit()
}

// Sends a content on node:http, as fast as it is taken and no faster. Few buffers serve the longest content, so that it leaves no garbage.

const chunkBytes = 65_536

/** Sends a content as the body of a node:http response. */
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

async function send(res: ServerResponse, body: ReadableStream<Uint8Array>, stallMs: number): Promise<void> {
  const stop = cutWhenStalled(res, stallMs)
  const next = chunksOf(body)
  // Whoever waits for a content that does not come may leave, too.
  const gone = (): void => void next.cancel()
  res.once('close', gone)
  try {
    let writing: Promise<Uint8Array | undefined> | undefined
    for (let free: Uint8Array | undefined; ; ) {
      const chunk = await next.read(free)
      free = await writing
      if (chunk === undefined) break
      writing = sent(res, done => res.write(chunk, done)).then(() => chunk)
      // Told when it is waited for.
      writing.catch(() => undefined)
    }
    await sent(res, done => res.end(done))
  } catch {
    // Who reads has gone, or the content broke off: a connection that is cut tells that it is not whole.
    res.destroy()
    await next.cancel()
  } finally {
    res.off('close', gone)
    stop()
  }
}

interface Chunks {
  /** Undefined at the end. What is free is used for what is read. */
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

/** Undefined where the stream brings buffers of its own. */
function byobReader(body: ReadableStream<Uint8Array>): ReadableStreamBYOBReader | undefined {
  try {
    return body.getReader({ mode: 'byob' })
  } catch {
    return undefined
  }
}

/** Resolves when the kernel has it, so that its memory can be used again. */
function sent(res: ServerResponse, write: (done: (error?: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error('The reader has gone'))
    if (res.destroyed) return gone()
    res.once('close', gone)
    write(error => {
      res.off('close', gone)
      if (error) reject(error)
      else resolve()
    })
  })
}

// Cuts readers that do not read. Node's own socket timeout starts anew with every byte that the other end sends, so that
// it could hold an answer for ever by talking on: here only what is taken counts.

/** How often a reader is looked at in the time that it has. */
const looks = 4

/** Destroys the response when nothing of it was taken for `stallMs`. Gives what calls it off. */
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

/** Changes whenever the kernel takes something: whole writes, and what is left of the one under way where Node shows it. */
function takenBy(socket: Socket | null): string {
  if (socket === null) return ''
  const handle: unknown = '_handle' in socket ? socket._handle : undefined
  const left = typeof handle === 'object' && handle !== null && 'writeQueueSize' in handle ? handle.writeQueueSize : ''
  return `${socket.bytesWritten - socket.writableLength} ${left}`
}
