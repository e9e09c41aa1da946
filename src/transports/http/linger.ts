/**
 * Refusing a body that is still on its way. Closing at once would reset the connection and might take the refusal
 * with it, so the answer is written whole, the sender is listened to a little longer, then held up until it has had time
 * to read, and then the line is closed.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Bodies up to here are read to their end and the connection is used again. */
const shortBody = 64 * 1024
const lingerBytes = 1024 * 1024
const lingerMs = 1_000

/** True if more than a short body may still come. */
export function mustLinger(req: IncomingMessage): boolean {
  if (req.complete || req.httpVersionMajor !== 1) return false
  const length = req.headers['content-length']
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : Number(length) > shortBody
}

export function lingerReply(req: IncomingMessage, res: ServerResponse, status: number, headers: string[], body: string): void {
  res.writeHead(status, [...headers, 'connection', 'close'])
  res.write(body)
  let left = lingerBytes
  const close = () => {
    clearTimeout(timer)
    if (!res.writableEnded) res.end()
  }
  const timer = setTimeout(close, lingerMs)
  timer.unref()
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length
    // Closing now would reset a line on which the sender, busy sending, has not read its answer yet.
    if (left < 0) req.pause()
  })
  req.once('end', close)
  res.once('close', close)
}
