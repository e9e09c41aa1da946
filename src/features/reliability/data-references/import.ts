/** Taking over a content from another server: all of it is here and was checked before anything of it can be used. */
import { type ArtifactFacts, announcedOtherwise } from '../../../core/artifact.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Outbound } from '../../../core/outbound.ts'
import { Problem, problem } from '../../../core/problem.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { BlobRange, Blobs } from '../../../stores/blobs.ts'
import { StoreError } from '../../../stores/store.ts'
import type { Attempts, ImportAttempt } from './attempts.ts'
import type { Ledger } from './ledger.ts'
import { type Fetchable, readReference } from './messages.ts'
import { transfer } from './transfer.ts'

export interface ImportOptions {
  /** The most that is taken. Default: `maxBytes` of the references. */
  readonly maxBytes?: number
  /** Told how much has come, and of how much. */
  readonly progress?: (bytes: number, total: number) => void
  /** Ends the import. */
  readonly signal?: AbortSignal
}

/** A content that was taken over, and is what was announced. Let go when disposed of, or after an hour. */
export interface Imported extends ArtifactFacts, AsyncDisposable {
  /** As a stream, as often as one likes. */
  open(range?: BlobRange): Promise<ReadableStream<Uint8Array>>
  /** Lets the content go. */
  release(): Promise<void>
}

interface ImporterParts {
  readonly blobs: Blobs
  readonly ledger: Ledger
  readonly attempts: Attempts
  readonly clock: Clock
  readonly maxBytes: number
  readonly from?: readonly string[]
  readonly reach: (origin: URL) => Promise<Outbound>
}

const holdMs = 3_600_000

export class Importer {
  readonly #parts: ImporterParts

  constructor(parts: ImporterParts) {
    this.#parts = parts
  }

  /** What an earlier attempt of the same caller has brought is not fetched again, also when its process has ended. */
  async take(owner: string, account: string, given: unknown, options: ImportOptions): Promise<Imported> {
    const { ledger, attempts, maxBytes: most } = this.#parts
    const { maxBytes = most, progress } = options
    const reference = readReference(given)
    const url = this.#allowed(reference)
    if (reference.size > maxBytes) throw tooLarge(reference.size, maxBytes)
    const reach = await this.#parts.reach(url)
    const begin = (): Promise<ImportAttempt> => attempts.begin(owner, account, url.origin, reference)
    let attempt = await begin()
    if (attempt.whole) progress?.(reference.size, reference.size)
    else if (!(await this.#fetched(attempt, reference, reach, options))) {
      // Either half may be at fault where there were two.
      const resumed = attempt.start > 0
      attempt = resumed ? await begin() : attempt
      if (!resumed || !(await this.#fetched(attempt, reference, reach, options))) throw announcedOtherwise(reference)
    }
    const used = attempt
    try {
      const release = await ledger.hold(reference.digest, reference.size, account, holdMs, () => used.publish())
      return this.#imported(reference, () => release().finally(() => used.end()))
    } catch (error) {
      await used.discard()
      throw error
    }
  }

  /** False where it is another content, of which nothing is left then. */
  async #fetched(attempt: ImportAttempt, reference: Fetchable, reach: Outbound, options: ImportOptions): Promise<boolean> {
    const { progress, signal } = options
    try {
      if (attempt.start > 0) progress?.(attempt.start, reference.size)
      const stream = transfer(reference, {
        reach,
        clock: this.#parts.clock,
        signal,
        start: attempt.start,
        etag: attempt.etag,
        saw: attempt.saw,
        progress: progress && (bytes => progress(bytes, reference.size)),
      })
      const { digest, size } = await attempt.append(stream, reference.size)
      if (digest === reference.digest && size === reference.size) return true
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'CHECKSUM_MISMATCH')) {
        await attempt.leave()
        throw error instanceof StoreError && error.kind === 'full' ? noRoom(reference.size, error) : error
      }
    }
    await attempt.discard()
    return false
  }

  #imported({ mime, size, digest }: Fetchable, release: () => Promise<void>): Imported {
    return {
      mime,
      size,
      digest,
      release,
      [Symbol.asyncDispose]: release,
      open: async range => {
        const found = await this.#parts.blobs.get(digest, range)
        if (found === undefined) throw problem('RESOURCE_NOT_FOUND', 'The imported content was let go already')
        return found.stream
      },
    }
  }

  #allowed({ uri }: Fetchable): URL {
    const url = new URL(uri)
    const { from = [] } = this.#parts
    if (from.some(each => URL.canParse(each) && new URL(each).origin === url.origin && url.origin !== 'null')) return url
    throw problem('PERMISSION_DENIED', `Nothing is imported from ${clip(url.origin === 'null' ? url.protocol : url.origin)}`, {
      suggestion: 'The operator of this server can name its origin in references.from',
      actor: 'operator',
    })
  }
}

function tooLarge(size: number, most: number): Error {
  return problem('PAYLOAD_TOO_LARGE', `The content has ${size} bytes; at most ${most} are taken here`, {
    suggestion: 'Ask for a smaller part, or let the operator raise references.maxBytes or give a folder for references.blobs',
  })
}

function noRoom(size: number, cause: StoreError): Error {
  return problem('PAYLOAD_TOO_LARGE', `There is no room for the ${size} bytes of the content. ${clip(cause.message)}`, {
    suggestion: 'Let the operator give a folder for references.blobs, or more room',
    actor: 'operator',
    cause,
  })
}
