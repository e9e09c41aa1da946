/**
 * Importing content from another server: it is fetched and verified completely before it can be used, and an interrupted import
 * continues where it stopped.
 */
import { type ArtifactFacts, contentDigest, contentMismatch } from '../../../core/artifact.ts'
import { Shares } from '../../../core/occupancy.ts'
import type { Outbound } from '../../../core/outbound.ts'
import { Problem, problem } from '../../../core/problem.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import type { Blob, BlobDraft, BlobRange, Blobs } from '../../../stores/blobs.ts'
import { type Entry, put, remove, StoreError } from '../../../stores/store.ts'
import type { Ledger } from './ledger.ts'
import { type Fetchable, readReference } from './messages.ts'
import type { ReferencesParts } from './runtime.ts'
import { reachOf } from './sources.ts'
import { transfer } from './transfer.ts'

/** Options of an import. */
export interface ImportOptions {
  /** The largest content. Default: `maxBytes` of the references. */
  readonly maxBytes?: number
  /** Called with the fetched and the total bytes. */
  readonly progress?: (bytes: number, total: number) => void
  /** Cancels the import. */
  readonly signal?: AbortSignal
}

/** Imported content that matches its announced size and digest. Released when disposed of, or after an hour. */
export interface Imported extends ArtifactFacts, AsyncDisposable {
  /** Opens it as a stream, any number of times. */
  open(range?: BlobRange): Promise<ReadableStream<Uint8Array>>
  /** Releases the content. */
  release(): Promise<void>
}

interface ImporterParts extends ReferencesParts {
  readonly ledger: Ledger
}

/** How long imported content is held for its user. */
const holdMs = 3_600_000

/** Fetches content from other servers, and keeps it while it is used. */
export class Importer {
  readonly #parts: ImporterParts
  readonly #attempts: Attempts

  constructor(parts: ImporterParts) {
    this.#parts = parts
    this.#attempts = new Attempts(parts)
  }

  /** Removes what expired imports have left; returns whether others remain. */
  sweep(): Promise<boolean> {
    return this.#attempts.sweep()
  }

  /** Imports a reference. Data that an earlier attempt of the same caller fetched is reused, even after a restart. */
  async take(owner: string, account: string, given: unknown, options: ImportOptions): Promise<Imported> {
    const { ledger, settings } = this.#parts
    const { maxBytes = settings.maxBytes, progress } = options
    const reference = readReference(given)
    const url = this.#allowed(reference)
    if (reference.size > maxBytes) throw tooLarge(reference.size, maxBytes)
    const reach = await reachOf(url, settings.allow)
    const begin = (): Promise<ImportAttempt> => this.#attempts.begin(owner, account, url.origin, reference)
    let attempt = await begin()
    if (attempt.whole) progress?.(reference.size, reference.size)
    else if (!(await this.#fetched(attempt, reference, reach, options))) {
      // After a resumed download that does not match, either part may be wrong, so try once from the start.
      const resumed = attempt.start > 0
      attempt = resumed ? await begin() : attempt
      if (!resumed || !(await this.#fetched(attempt, reference, reach, options))) throw contentMismatch(reference)
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

  /** False if the content does not match; it is then discarded. */
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
        progress,
      })
      const { digest, size } = await attempt.append(stream, reference.size)
      if (digest === reference.digest && size === reference.size) return true
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'CHECKSUM_MISMATCH')) {
        await attempt.leave()
        throw error instanceof StoreError && error.kind === 'full' ? noCapacity(reference.size, error) : error
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
        if (found === undefined) throw problem('RESOURCE_NOT_FOUND', 'The imported content has already been released')
        return found.stream
      },
    }
  }

  // Only origins that the operator has listed.
  #allowed({ uri }: Fetchable): URL {
    const url = new URL(uri)
    const { from = [] } = this.#parts.settings
    if (from.some(each => URL.canParse(each) && new URL(each).origin === url.origin && url.origin !== 'null')) return url
    throw problem(
      'PERMISSION_DENIED',
      `This server does not import from ${clip(url.origin === 'null' ? url.protocol : url.origin)}`,
      {
        suggestion: 'The operator of this server can add the origin to references.from',
        actor: 'operator',
      },
    )
  }
}

function tooLarge(size: number, most: number): Error {
  return problem('PAYLOAD_TOO_LARGE', `The content has ${size} bytes. The limit is ${most} bytes`, {
    suggestion: 'Request a smaller part. The operator can raise references.maxBytes or set a folder in references.blobs',
  })
}

function noCapacity(size: number, cause: StoreError): Error {
  return problem('PAYLOAD_TOO_LARGE', `The ${size} bytes of the content could not be stored. ${clip(cause.message)}`, {
    suggestion: 'The operator can set a folder in references.blobs, or provide more space',
    actor: 'operator',
    cause,
  })
}

/** The stored state of an interrupted import. */
interface Half {
  /** The draft, and how much of it is certainly stored. */
  readonly id: string
  readonly size: number
  /** The account whose share of kept drafts it uses. */
  readonly account?: string
  readonly etag?: string
  /** The content was complete and verified. */
  readonly whole?: true
  /** The draft that this one continued. */
  readonly before?: string
  /** Kept until then, in milliseconds since the epoch. */
  readonly until: number
}

type ImportAttempt = Awaited<ReturnType<Attempts['begin']>>

/** How long an interrupted import is kept. */
const keepMs = 3_600_000
/** Limits of kept drafts: number and bytes. */
const most = 64
const mostBytes = 4 * 1024 ** 3
const prefix = 'reference-half/'

/** Imports that were interrupted and can continue. */
class Attempts {
  readonly #parts: ImporterParts
  /** Drafts that are being written in this process. */
  readonly #live = new Set<string>()

  constructor(parts: ImporterParts) {
    this.#parts = parts
  }

  /**
   * Starts or continues an import. Only data that the same caller fetched from the same origin is reused: unverified data of others
   * proves nothing.
   */
  async begin(owner: string, account: string, origin: string, { digest, size }: Fetchable) {
    const { opened: store, blobs, ledger } = this.#parts
    if (blobs.drafts === undefined) return this.#attempt(await newDraft(blobs, ledger))
    const name = await contentDigest(new TextEncoder().encode(JSON.stringify([owner, origin, digest, size])))
    const key = `${prefix}${name.slice('sha256:'.length)}`
    const entry = await store.get(key)
    const half = entry === undefined ? undefined : readHalf(entry)
    if (half !== undefined && this.#live.has(half.id)) return this.#attempt(await blobs.drafts.begin())
    const whole = half?.whole === true && (await this.#has(digest))
    const draft = await blobs.drafts.begin(half)
    if (half?.before !== undefined) await blobs.drafts.discard(half.before)
    const record = halfRecord(this.#parts, key, entry, half, draft, account)
    const stored = (entry !== undefined || (await this.#fits(account, 1))) && (await record.write(draft.size, whole))
    return this.#attempt(draft, stored ? record : undefined, half, whole, account)
  }

  /** Removes expired records; returns whether others remain. */
  async sweep(): Promise<boolean> {
    const { opened: store, blobs, clock } = this.#parts
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

  #attempt(draft: BlobDraft, record?: HalfRecord, half?: Half, whole = false, account = '') {
    const { blobs } = this.#parts
    /** Removes everything. */
    const discard = async (): Promise<void> => {
      this.#live.delete(draft.id)
      await draft.discard()
      await record?.remove()
      if (record?.before !== undefined) await blobs.drafts?.discard(record.before)
    }
    this.#live.add(draft.id)
    return {
      /** How much was there when it started. */
      start: draft.size,
      /** The content's ETag at that time. */
      etag: draft.size === 0 ? undefined : half?.etag,
      /** The content is already here. */
      whole,
      /** Adds fetched data; returns digest and size. */
      append: (stream: ReadableStream<Uint8Array>, bytes: number): Promise<Blob> =>
        draft.append(stream, { bytes, owned: true, ...(record && { onStored: record.keep }) }),
      /** Stores the ETag that the exporter sent. */
      saw: (etag: string): void => record?.saw(etag),
      /** Makes the content available in the blob store. */
      publish: async (): Promise<void> => {
        this.#live.delete(draft.id)
        if (!whole) await draft.publish()
        // Kept until it was used, so that it need not be fetched again after a crash.
        await record?.write(0, true)
      },
      /** Interrupted: keeps the data for the next attempt, within the limits. */
      leave: async (): Promise<void> => {
        this.#live.delete(draft.id)
        if (record?.isCurrent() !== true || !(await this.#fits(account, 0))) await discard()
      },
      discard,
      /** Published and used; removes the record. */
      end: discard,
    }
  }

  async #has(digest: string): Promise<boolean> {
    const found = await this.#parts.blobs.get(digest, { end: 0 })
    await found?.stream.cancel()
    return found !== undefined
  }

  /** Whether the account may keep more drafts, by number and bytes. */
  async #fits(account: string, records: number): Promise<boolean> {
    const shares = new Shares({ records: most, length: mostBytes })
    for (const half of (await this.#parts.opened.scan(prefix)).map(readHalf)) shares.add(half.account ?? '', 1, half.size)
    return shares.fits(account, { records, length: 0 }) && shares.left(account).length > 0
  }
}

type HalfRecord = ReturnType<typeof halfRecord>

/** The stored record of one attempt, until another one takes over. */
function halfRecord(
  { opened: store, clock, ledger, trace }: ImporterParts,
  key: string,
  entry: Entry | undefined,
  half: Half | undefined,
  draft: BlobDraft,
  account: string,
) {
  const before = half?.id
  let version = entry?.version
  let etag = draft.size === 0 ? undefined : half?.etag
  let stored = true
  /** Writes the record; false if another attempt has taken over. */
  const write = async (size: number, whole = false): Promise<boolean> => {
    if (!stored) return false
    const optional = given({ etag, whole: whole || undefined, before })
    const record: Half = { id: draft.id, size, account, ...optional, until: clock.now() + keepMs }
    const condition = version === undefined ? { ifAbsent: true } : { ifVersion: version }
    const done = await store.commit([put(key, JSON.stringify(record), condition)])
    version = done.ok ? done.results[0]?.version : undefined
    stored = done.ok
    ledger.look()
    return done.ok
  }
  return {
    /** The draft that this one continued. */
    before,
    write,
    /** Whether the next attempt will find the record. */
    isCurrent: (): boolean => stored,
    saw: (found: string): void => {
      etag = found
    },
    /** Stores the progress; if that fails, the import continues without it. */
    keep: async (size: number): Promise<void> => {
      await write(size).catch(error => trace('import-not-kept', error))
    },
    remove: async (): Promise<void> => {
      if (!stored || version === undefined) return
      stored = false
      await store.commit([remove(key, version)])
    },
  }
}

function readHalf({ value }: Entry): Half {
  const found: unknown = JSON.parse(value)
  return isRecord(found) ? (found as unknown as Half) : { id: '', size: 0, until: 0 }
}

// Drafts for blob stores that can append, and for those that accept only complete content.

/**
 * Creates a draft. Without support for drafts, the content becomes visible as soon as it is complete, and discarding it checks that
 * nobody else needs it.
 */
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
