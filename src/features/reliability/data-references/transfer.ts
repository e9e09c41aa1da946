/** Fetching what a reference stands for, as a stream that goes on where a connection broke. Its digest is for the reader to check. */
import type { Clock } from '../../../core/clock.ts'
import { type Outbound, OutboundError } from '../../../core/outbound.ts'
import { Problem, problem } from '../../../core/problem.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Fetchable } from './messages.ts'

export interface TransferParts {
  /** Gives answers whose bodies come as they are read. */
  readonly reach: Outbound
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** Told how much has come. */
  readonly progress?: ((bytes: number) => void) | undefined
  /** Begins there. Default 0. */
  readonly start?: number | undefined
  /** Attempts in a row that bring nothing. Default 5. */
  readonly tries?: number
}

type Reader = ReadableStreamDefaultReader<Uint8Array>

/** Never gives more than was announced, and ends only with all of it. Nothing is held beyond what is being read. */
export function transfer(reference: Fetchable, parts: TransferParts): ReadableStream<Uint8Array> {
  const { tries = 5, progress } = parts
  const cancelled = new AbortController()
  const signal = parts.signal === undefined ? cancelled.signal : AbortSignal.any([parts.signal, cancelled.signal])
  let at = parts.start ?? 0
  let reader: Reader | undefined
  let failed = 0
  const next = async (): Promise<Uint8Array | undefined> => {
    while (at < reference.size) {
      try {
        reader ??= await open(reference, at, parts.reach, signal)
        const { done, value } = await reader.read()
        if (!done) return value
        throw new OutboundError('failed', 'The content ended too early')
      } catch (error) {
        reader = undefined
        signal.throwIfAborted()
        failed++
        if (isFinal(error) || failed >= tries) throw told(error)
        await pause(parts.clock, 100 * 2 ** failed, signal)
      }
    }
    // One more read tells whether there is more than there should be.
    const more = reader === undefined ? undefined : await reader.read().catch(() => undefined)
    if (more?.value !== undefined && more.value.length > 0) throw tooMuch(reference)
    return undefined
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = await next()
      if (chunk === undefined) return controller.close()
      if (at + chunk.length > reference.size) throw tooMuch(reference)
      at += chunk.length
      failed = 0
      progress?.(at)
      controller.enqueue(chunk)
    },
    async cancel() {
      cancelled.abort()
      await reader?.cancel().catch(() => undefined)
    },
  })
}

async function open({ uri, size }: Fetchable, at: number, reach: Outbound, signal: AbortSignal): Promise<Reader> {
  const headers = at === 0 ? {} : { range: `bytes=${at}-` }
  const answer = await reach(uri, { headers, redirect: 'error', signal })
  const { status, body } = answer
  const resumed = status === 206 && answer.headers.get('content-range') === `bytes ${at}-${size - 1}/${size}`
  if (body !== null && (resumed || status === 200)) {
    const reader = body.getReader()
    // Who knows no ranges begins anew; what was read already is passed over.
    return resumed ? reader : skipped(reader, at)
  }
  await body?.cancel().catch(() => undefined)
  throw refusedWith(status)
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

/** Whether trying again is of no use. */
function isFinal(error: unknown): boolean {
  if (error instanceof Problem) return !error.retryable
  return error instanceof OutboundError && error.kind === 'refused'
}

function refusedWith(status: number): Error {
  if (status === 403 || status === 404 || status === 410)
    return problem('RESOURCE_NOT_FOUND', 'The data reference is not valid, or no longer', {
      suggestion: 'Ask the server that made it for a new one',
    })
  const transient = status === 429 || status >= 500
  return problem('SERVER_UNAVAILABLE', `The data reference was answered with the status ${status}`, {
    category: transient ? 'transient' : 'permanent',
  })
}

function told(error: unknown): unknown {
  if (!(error instanceof OutboundError)) return error
  if (error.kind === 'refused') return problem('PERMISSION_DENIED', clip(error.message, 300), { actor: 'operator', cause: error })
  return problem('SERVER_UNAVAILABLE', clip(error.message, 300), { cause: error })
}

function tooMuch({ size }: Fetchable): Error {
  return problem('CHECKSUM_MISMATCH', `More than the announced ${size} bytes came, so that it is another content`, {
    suggestion: 'Ask for a new reference',
  })
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      cancel()
      reject(signal.reason)
    }
    const cancel = clock.setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}
