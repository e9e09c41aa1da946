/** Sends a content on node:http, as fast as it is taken and no faster. */
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import type { Download } from './download.ts'
import { cutWhenStalled } from './stall.ts'

export async function sendDownload(res: ServerResponse, { status, headers, body }: Download, stallMs: number): Promise<void> {
  if (res.headersSent || res.destroyed) return void (await body?.cancel().catch(() => undefined))
  res.writeHead(status, headers)
  if (body === undefined) return void res.end()
  const stop = cutWhenStalled(res, stallMs)
  try {
    await pipeline(Readable.fromWeb(body as NodeStream<Uint8Array>), res)
  } catch {
    // Who reads has gone, or the content broke off: a connection that is cut tells that it is not whole.
    res.destroy()
  } finally {
    stop()
  }
}
