/** The body of an outbound answer as a stream, limited in size and in pauses, for both ways of sending a request. */
import { OutboundError } from '../../core/outbound.ts'
import { type Destination, displayUrl } from './destination.ts'
import type { Hop } from './send.ts'

type Chunk = Uint8Array<ArrayBuffer>

/** How chunks are read from the network, and how that is given up. */
interface Source {
  /** The next chunk; undefined at the end. */
  read(): Promise<Chunk | undefined>
  stop(): void
  /** The error for a read that failed. */
  failure(to: Destination, cause: unknown): OutboundError
}

/** Makes the stream. It reads from the network only when its reader does. Without `idleMs` a pause may last. */
export function boundedBody({ to, maxBytes, signal, idleMs }: Hop, { read, stop, failure }: Source): ReadableStream<Chunk> {
  let size = 0
  const next = async (): Promise<Chunk | undefined> => {
    const late = Promise.withResolvers<never>()
    const pause = `${displayUrl(to.url)} sent nothing for more than ${idleMs} ms; the request was cancelled`
    const timer = idleMs && setTimeout(() => late.reject(new OutboundError('limit', pause)), idleMs)
    try {
      return await Promise.race([read(), late.promise])
    } catch (error) {
      stop()
      if (signal.aborted) throw signal.reason
      throw error instanceof OutboundError ? error : failure(to, error)
    } finally {
      clearTimeout(timer)
    }
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const value = await next()
        if (value === undefined) return controller.close()
        size += value.byteLength
        if (size > maxBytes) {
          stop()
          throw answerTooLarge(to, maxBytes)
        }
        controller.enqueue(value)
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  )
}

/** The error for an answer beyond the limit. */
export function answerTooLarge(to: Destination, maxBytes: number): OutboundError {
  return new OutboundError('limit', `The response of ${displayUrl(to.url)} is larger than ${maxBytes} bytes (the limit)`)
}
