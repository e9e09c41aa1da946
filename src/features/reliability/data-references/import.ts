/** Taking over a content from another server: all of it is here and was checked before anything of it can be used. */
import { type ArtifactFacts, announcedOtherwise, contentDigest } from '../../../core/artifact.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import { Shares } from '../../../core/occupancy.ts'
import type { Outbound } from '../../../core/outbound.ts'
import { Problem, problem } from '../../../core/problem.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Blob, BlobDraft, BlobRange, Blobs } from '../../../stores/blobs.ts'
import { type Entry, put, remove, type Store, StoreError } from '../../../stores/store.ts'
import type { Ledger } from './ledger.ts'
import { type Fetchable, readReference } from './messages.ts'
import { transfer } from './transfer.ts'

/** What an import may be given. */
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

/** Fetches contents from elsewhere and keeps them. */
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

interface AttemptsParts {
  readonly store: Store
  readonly blobs: Blobs
  readonly clock: Clock
  readonly trace: Trace
  readonly ledger: () => Ledger
}

/** What is written down of one. */
interface Half {
  /** The draft, and how much of it is surely there. */
  readonly id: string
  readonly size: number
  /** Whose share of those that are kept it takes. */
  readonly account?: string
  readonly etag?: string
  /** All of it was here, and was checked. */
  readonly whole?: true
  /** The draft that this one began with. */
  readonly before?: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

interface ImportAttempt {
  /** How much there was at its beginning. */
  readonly start: number
  /** What the exporter called the content then. */
  readonly etag: string | undefined
  /** The content is here already. */
  readonly whole: boolean
  append(stream: ReadableStream<Uint8Array>, bytes: number): Promise<Blob>
  /** What the exporter calls the content. */
  saw(etag: string): void
  publish(): Promise<void>
  /** It broke off: what there is is left to the next one, if that was promised. */
  leave(): Promise<void>
  /** Nothing of it is needed any more. */
  discard(): Promise<void>
  /** It was published, and used. */
  end(): Promise<void>
}

const keepMs = 3_600_000
/** More than so many, or so much, at once is not kept when it breaks off. */
const most = 64
const mostBytes = 4 * 1024 ** 3
const prefix = 'reference-half/'

/** Imports that broke off and can be continued. */
export class Attempts {
  readonly #parts: AttemptsParts
  /** Drafts that are being added to here. */
  readonly #live = new Set<string>()

  constructor(parts: AttemptsParts) {
    this.#parts = parts
  }

  /** Only what the same caller has fetched from the same place: what others sent under this digest says nothing before its end. */
  async begin(owner: string, account: string, origin: string, { digest, size }: Fetchable): Promise<ImportAttempt> {
    const { store, blobs, ledger } = this.#parts
    if (blobs.drafts === undefined) return this.#attempt(await newDraft(blobs, ledger()))
    const name = await contentDigest(new TextEncoder().encode(JSON.stringify([owner, origin, digest, size])))
    const key = `${prefix}${name.slice('sha256:'.length)}`
    const entry = await store.get(key)
    const half = entry === undefined ? undefined : readHalf(entry)
    if (half !== undefined && this.#live.has(half.id)) return this.#attempt(await blobs.drafts.begin())
    const whole = half?.whole === true && (await this.#has(digest))
    const draft = await blobs.drafts.begin(half)
    if (half?.before !== undefined) await blobs.drafts.discard(half.before)
    const record = new HalfRecord(this.#parts, key, entry, half, draft, account)
    const kept = (entry !== undefined || (await this.#fits(account, 1))) && (await record.write(draft.size, whole))
    return this.#attempt(draft, kept ? record : undefined, half, whole, account)
  }

  /** Removes those that are over; gives whether there are others. */
  async sweep(): Promise<boolean> {
    const { store, blobs, clock } = this.#parts
    const all = await store.scan(prefix)
    let over = 0
    for (const entry of all) {
      const { id, before, until } = readHalf(entry)
      if (until > clock.now() || this.#live.has(id)) continue
      over++
      if (!(await store.commit([remove(entry.key, entry.version)])).ok) continue
      for (const each of [id, before]) if (each !== undefined) await blobs.drafts?.discard(each)
    }
    return over < all.length
  }

  #attempt(draft: BlobDraft, record?: HalfRecord, half?: Half, whole = false, account = ''): ImportAttempt {
    const { blobs } = this.#parts
    const discard = async (): Promise<void> => {
      this.#live.delete(draft.id)
      await draft.discard()
      await record?.remove()
      if (record?.before !== undefined) await blobs.drafts?.discard(record.before)
    }
    this.#live.add(draft.id)
    return {
      start: draft.size,
      etag: draft.size === 0 ? undefined : half?.etag,
      whole,
      append: (stream, bytes) => draft.append(stream, { bytes, owned: true, ...(record && { kept: size => record.keep(size) }) }),
      saw: etag => record?.saw(etag),
      publish: async () => {
        this.#live.delete(draft.id)
        if (!whole) await draft.publish()
        // Until it was used: should the process end before, it need not be fetched again.
        await record?.write(0, true)
      },
      leave: async () => {
        this.#live.delete(draft.id)
        if (record?.kept !== true || !(await this.#fits(account, 0))) await discard()
      },
      discard,
      end: discard,
    }
  }

  async #has(digest: string): Promise<boolean> {
    const found = await this.#parts.blobs.get(digest, { end: 0 })
    await found?.stream.cancel()
    return found !== undefined
  }

  /** Whether so many more of an account may be kept, by their number and by what they take. */
  async #fits(account: string, records: number): Promise<boolean> {
    const shares = new Shares({ records: most, length: mostBytes })
    for (const half of (await this.#parts.store.scan(prefix)).map(readHalf)) shares.add(half.account ?? '', 1, half.size)
    return shares.fits(account, { records, length: 0 }) && shares.left(account).length > 0
  }
}

/** The record of one attempt, for as long as no other has taken over. */
class HalfRecord {
  readonly before: string | undefined
  readonly #parts: AttemptsParts
  readonly #key: string
  readonly #id: string
  readonly #account: string
  #version: number | undefined
  #etag: string | undefined
  #kept = true

  constructor(
    parts: AttemptsParts,
    key: string,
    entry: Entry | undefined,
    half: Half | undefined,
    draft: BlobDraft,
    account: string,
  ) {
    this.#account = account
    this.#parts = parts
    this.#key = key
    this.#version = entry?.version
    this.#id = draft.id
    this.#etag = draft.size === 0 ? undefined : half?.etag
    this.before = half?.id
  }

  /** Whether the next attempt will find it. */
  get kept(): boolean {
    return this.#kept
  }

  saw(etag: string): void {
    this.#etag = etag
  }

  /** An import goes on without its record, where that cannot be written. */
  async keep(size: number): Promise<void> {
    await this.write(size).catch(error => this.#parts.trace('import-not-kept', error))
  }

  /** False where another has taken over. */
  async write(size: number, whole = false): Promise<boolean> {
    if (!this.#kept) return false
    const { store, clock, ledger } = this.#parts
    const half: Half = {
      id: this.#id,
      size,
      account: this.#account,
      ...(this.#etag === undefined ? {} : { etag: this.#etag }),
      ...(whole ? { whole } : {}),
      ...(this.before === undefined ? {} : { before: this.before }),
      until: clock.now() + keepMs,
    }
    const condition = this.#version === undefined ? { ifAbsent: true } : { ifVersion: this.#version }
    const done = await store.commit([put(this.#key, JSON.stringify(half), condition)])
    this.#version = done.ok ? done.results[0]?.version : undefined
    this.#kept = done.ok
    ledger().look()
    return done.ok
  }

  async remove(): Promise<void> {
    if (!this.#kept || this.#version === undefined) return
    this.#kept = false
    await this.#parts.store.commit([remove(this.#key, this.#version)])
  }
}

function readHalf({ value }: Entry): Half {
  const found: unknown = JSON.parse(value)
  return isRecord(found) ? (found as unknown as Half) : { id: '', size: 0, until: 0 }
}

// Contents on their way into blobs, also into such as take them only whole.

/** Where it cannot be otherwise, it is found as soon as it is whole; then what discards it looks whether somebody else needs it. */
export async function newDraft(blobs: Blobs, ledger: Pick<Ledger, 'drop'>): Promise<BlobDraft> {
  if (blobs.drafts !== undefined) return blobs.drafts.begin()
  let whole: string | undefined
  return {
    id: '',
    size: 0,
    append: async (stream, options) => {
      const blob = await blobs.put(stream, options)
      whole = blob.digest
      return blob
    },
    publish: async () => undefined,
    discard: async () => {
      if (whole !== undefined) await ledger.drop(whole)
    },
  }
}
