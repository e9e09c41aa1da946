/** Sends a content on node:http, as fast as it is taken and no faster. Few buffers serve the longest content, so that it leaves no garbage. */
import type { ServerResponse } from 'node:http'
import type { Download } from './download.ts'
import { cutWhenStalled } from './stall.ts'

const chunkBytes = 65_536

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
