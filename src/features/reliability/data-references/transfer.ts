/** Fetches the content of a reference as a stream that resumes after broken connections. The reader verifies the digest. */
import { type Clock, pauseFor } from '../../../core/clock.ts'
import { type Outbound, OutboundError } from '../../../core/outbound.ts'
import { Problem, problem } from '../../../core/problem.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Fetchable } from './messages.ts'

interface TransferParts {
  /** Fetch with streamed bodies. */
  readonly reach: Outbound
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes received so far, and the total. */
  readonly progress?: ((bytes: number, total: number) => void) | undefined
  /** The offset to start at. Default 0. */
  readonly start?: number | undefined
  /** The ETag under which the data before `start` was fetched. */
  readonly etag?: string | undefined
  /** Called with the current ETag. */
  readonly saw?: ((etag: string) => void) | undefined
}

const longestWaitMs = 10_000
/** Limit of consecutive attempts without progress. */
const tries = 5

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** Opens the stream. It never yields more than the announced size, and ends only when complete. Nothing is buffered. */
export function transfer(reference: Fetchable, parts: TransferParts): ReadableStream<Uint8Array> {
  const cancelled = new AbortController()
  const signal = parts.signal === undefined ? cancelled.signal : AbortSignal.any([parts.signal, cancelled.signal])
  let at = parts.start ?? 0
  let reader: Reader | undefined
  let etag = parts.etag
  let failed = 0
  const opened = async (): Promise<Reader> => {
    const found = await open(reference, at, etag, parts.reach, signal)
    if (found.etag !== undefined) parts.saw?.(found.etag)
    etag = found.etag ?? etag
    return found.reader
  }
  const next = async (): Promise<Uint8Array | undefined> => {
    while (at < reference.size) {
      try {
        reader ??= await opened()
        const { done, value } = await reader.read()
        if (!done) return value
        throw new OutboundError('failed', 'The content ended before its announced size')
      } catch (error) {
        reader = undefined
        signal.throwIfAborted()
        // Reset as soon as data arrives.
        failed++
        if (isFinal(error) || failed >= tries) throw told(error)
        await pauseFor(parts.clock, Math.max(100 * 2 ** failed, askedWait(error)), signal)
      }
    }
    // One more read detects content that is longer than announced.
    const more = reader === undefined ? undefined : await reader.read().catch(() => undefined)
    if (more?.value !== undefined && more.value.length > 0) throw tooMuch(reference)
    return undefined
  }
  const leave = async (): Promise<void> => {
    cancelled.abort()
    await reader?.cancel().catch(() => undefined)
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = await next()
          if (chunk === undefined) return controller.close()
          if (at + chunk.length > reference.size) throw tooMuch(reference)
          at += chunk.length
          failed = 0
          parts.progress?.(at, reference.size)
          controller.enqueue(chunk)
        } catch (error) {
          // A failing stream is not cancelled by its reader, so the connection must be closed here.
          await leave()
          throw error
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
}

async function open(reference: Fetchable, at: number, before: string | undefined, reach: Outbound, signal: AbortSignal) {
  const { uri, size } = reference
  const whole = before === undefined ? {} : { 'if-range': before }
  const headers = at === 0 ? {} : { range: `bytes=${at}-`, ...whole }
  const answer = await reach(uri, { headers, redirect: 'error', signal })
  const { status, body } = answer
  // A strong ETag, by which parts can be matched.
  const etag = strong(answer.headers.get('etag'))
  const resumed = status === 206 && answer.headers.get('content-range') === `bytes ${at}-${size - 1}/${size}`
  if (body === null || !(resumed || status === 200)) {
    await body?.cancel().catch(() => undefined)
    throw refusedWith(status, answer.headers.get('retry-after'))
  }
  if (at > 0 && before !== undefined && etag !== undefined && etag !== before) {
    await body.cancel().catch(() => undefined)
    throw changed()
  }
  const reader = body.getReader()
  // A server without range support starts over; skip what was already read.
  return { reader: resumed ? reader : skipped(reader, at), etag }
}

// Weak ETags do not guarantee identical bytes.
function strong(etag: string | null): string | undefined {
  return etag !== null && /^"[\x21\x23-\x7e]{0,200}"$/.test(etag) ? etag : undefined
}

function skipped(reader: Reader, count: number): Reader {
  if (count === 0) return reader
  let left = count
  const rest = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        const pass = Math.min(left, value.length)
        left -= pass
        if (pass < value.length) return controller.enqueue(value.subarray(pass))
      }
    },
    cancel: reason => reader.cancel(reason),
  })
  return rest.getReader()
}

/** Whether a retry makes no sense. */
function isFinal(error: unknown): boolean {
  if (error instanceof Problem) return !error.retryable
  return error instanceof OutboundError && error.kind === 'refused'
}

/** How long the server asks to wait. */
function askedWait(error: unknown): number {
  return error instanceof Problem ? Math.min(error.retryAfter ?? 0, longestWaitMs) : 0
}

function refusedWith(status: number, after: string | null): Error {
  if (status === 403 || status === 404 || status === 410)
    return problem('RESOURCE_NOT_FOUND', 'The data reference is not valid or has expired', {
      suggestion: 'Ask the server that created it for a new one',
    })
  const transient = status === 429 || status >= 500
  return problem('SERVER_UNAVAILABLE', `The download of the data reference failed with HTTP status ${status}`, {
    category: transient ? 'transient' : 'permanent',
    ...(transient && after !== null && /^\d{1,6}$/.test(after) ? { retryAfter: Number(after) * 1_000 } : {}),
  })
}

function told(error: unknown): unknown {
  if (!(error instanceof OutboundError)) return error
  if (error.kind === 'refused') return problem('PERMISSION_DENIED', clip(error.message, 300), { actor: 'operator', cause: error })
  return problem('SERVER_UNAVAILABLE', clip(error.message, 300), { cause: error })
}

function changed(): Error {
  return problem('CHECKSUM_MISMATCH', 'The content has changed since its first part was downloaded', {
    suggestion: 'Request a new reference',
  })
}

function tooMuch({ size }: Fetchable): Error {
  return problem(
    'CHECKSUM_MISMATCH',
    `The download has more than the announced ${size} bytes, so it is not the announced content`,
    {
      suggestion: 'Request a new reference',
    },
  )
}
