/**
 * A feed: what happened, in order, each at a cursor from which anybody can read on. It holds the newest so many, for so long;
 * who was away longer is told that something is missing, never left to think that nothing was. How occurrences are delivered
 * is a matter of whoever reads.
 */

import { isRecord } from '../../jsonrpc/message.ts'
import { append, type LogEntry, type LogPosition, type Op, put, type Store, trim } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'
import { problem } from '../problem.ts'

/** Options of a feed. */
export interface FeedOptions {
  readonly store: Store
  readonly clock: Clock
  /** Ids of occurrences. */
  readonly id: () => string
  /** Which feed; that of an owner begins with their key. */
  readonly name: string
  /** Occurrences that are kept, roughly; at least 1. Default 10,000. */
  readonly keep?: number
  /** How long. Default one day. */
  readonly keepMs?: number
  /** JSON text of one. Default 256 KiB. */
  readonly bytes?: number
}

interface Happening {
  /** Default: one that nobody has. */
  readonly id?: string
  readonly name: string
  /** JSON. */
  readonly data?: unknown
  readonly origin?: string
}

type Filter = (occurrence: Occurrence) => boolean

interface PageOptions {
  /** Occurrences looked at, at most. Default 100. */
  readonly limit?: number
  readonly filter?: Filter
}

/** A part of a feed, and the cursor after which the next one begins. */
export interface FeedPage {
  /** In order. */
  readonly occurrences: readonly Occurrence[]
  /** Read on after this; it has passed what the filter left out. */
  readonly cursor: LogPosition
  /** Between the cursor that was given and this page something is missing. */
  readonly truncated: boolean
  /** There is more to read at once. */
  readonly more: boolean
}

/** An ordered source of occurrences on a log of the store, read by cursor. */
export class Feed {
  readonly log: string
  readonly store: Store
  readonly clock: Clock
  readonly #options: Required<FeedOptions>
  /** A position that was there once. */
  #known: LogPosition = 0
  #written = 0
  #tidyAt: number
  #era: Promise<string> | undefined = undefined

  constructor(options: FeedOptions) {
    this.log = `feed/${options.name}`
    this.store = options.store
    this.clock = options.clock
    this.#options = { keep: 10_000, keepMs: 86_400_000, bytes: 256 * 1024, ...options }
    this.#tidyAt = this.clock.now() + this.#options.keepMs / 10
  }

  /** `also` is written with it. Undefined where that did not hold: then it did not happen. */
  async publish(happening: Happening, also: readonly Op[] = []): Promise<Occurrence | undefined> {
    const occurrence = this.#occurrence(happening)
    const outcome = await this.store.commit([append(this.log, this.#text(occurrence)), ...also])
    if (!outcome.ok) return undefined
    const cursor = outcome.results[0]?.position ?? 0
    this.#known = cursor
    this.#written++
    if (this.#isUntidy()) await this.tidy()
    return { ...occurrence, cursor }
  }

  /** The step that publishes, for a commit of what happened. Who only ever writes so calls `tidy` now and then. */
  publishing(happening: Happening): Op {
    this.#written++
    return append(this.log, this.#text(this.#occurrence(happening)))
  }

  /** What follows a cursor. Undefined: from the oldest that is kept. */
  async read(after: LogPosition | undefined, options: PageOptions = {}): Promise<FeedPage> {
    if (this.#isUntidy()) await this.tidy()
    const limit = Math.min(options.limit ?? 100, 998)
    const found = await this.#after(after, limit)
    const since = this.clock.now() - this.#options.keepMs
    const all = found.entries.slice(0, limit).map(readOccurrence)
    const fresh = all.filter(({ at }) => at > since)
    return {
      occurrences: options.filter === undefined ? fresh : fresh.filter(options.filter),
      cursor: all.at(-1)?.cursor ?? found.cursor,
      truncated: found.truncated || (after !== undefined && fresh.length < all.length),
      more: found.entries.length > limit,
    }
  }

  /** Pages as they come, until the signal ends it. Pages without anything in them are left out. */
  follow(after: LogPosition | undefined, signal: AbortSignal, options?: PageOptions): AsyncGenerator<FeedPage, void> {
    return follow(this, after, signal, options)
  }

  /** The cursor behind all that has happened up to now. */
  async end(): Promise<LogPosition> {
    this.#known = await lastPosition(this.store, this.log, this.#known)
    return this.#known
  }

  /** What tells this feed from one of the same name that was lost: as lasting as its store. */
  era(): Promise<string> {
    this.#era ??= this.#findEra().catch(error => {
      this.#era = undefined
      throw error
    })
    return this.#era
  }

  async #findEra(): Promise<string> {
    const key = `feed-era/${this.#options.name}`
    const outcome = await this.store.commit([put(key, this.#options.id().replaceAll('-', '').slice(0, 12), { ifAbsent: true })])
    const entry = await this.store.get(key)
    if (entry !== undefined) return entry.value
    throw new Error(`The era of feed ${this.log} ${outcome.ok ? 'was written and' : 'was there, and'} is gone`)
  }

  /** Forgets what is too old or too much. The last one stays, so that positions can still be told apart. */
  async tidy(): Promise<void> {
    const { keep, keepMs } = this.#options
    this.#written = 0
    this.#tidyAt = this.clock.now() + keepMs / 10
    const end = await this.end()
    if (end === 0) return
    const before = Math.max(end - keep + 1, await this.#firstFresh(this.clock.now() - keepMs))
    await this.store.commit([trim(this.log, Math.min(before, end))])
  }

  /** The first position that is not too old; beyond the end where all are. */
  async #firstFresh(since: number): Promise<LogPosition> {
    for (let after = 0; ; ) {
      const page = (await this.store.read(this.log, { after })).map(readOccurrence)
      const fresh = page.find(({ at }) => at > since)
      if (fresh !== undefined) return fresh.cursor
      const last = page.at(-1)
      if (last === undefined) return after + 1
      after = last.cursor
    }
  }

  async #after(
    after: LogPosition | undefined,
    limit: number,
  ): Promise<{ readonly entries: readonly LogEntry[]; readonly cursor: LogPosition; readonly truncated: boolean }> {
    const from = after ?? 0
    // One more than asked for at either side: that at the cursor tells whether it is still there, the last whether there is more.
    const entries = await this.store.read(this.log, { after: Math.max(0, from - 1), limit: limit + 2 })
    const first = entries[0]?.position
    // A cursor from a feed that is no longer: whatever there is now is new to its holder.
    if (first === undefined && from > 0)
      return { entries: await this.store.read(this.log, { limit: limit + 1 }), cursor: 0, truncated: true }
    const truncated = after !== undefined && first !== undefined && first > after + 1
    return { entries: first === after ? entries.slice(1) : entries, cursor: from, truncated }
  }

  #occurrence({ id, name, data, origin }: Happening): Omit<Occurrence, 'cursor'> {
    const more = { ...(data !== undefined && { data }), ...(origin !== undefined && { origin }) }
    return { id: id ?? this.#options.id(), name, at: this.clock.now(), ...more }
  }

  #text(occurrence: Omit<Occurrence, 'cursor'>): string {
    const text = writeOccurrence(occurrence)
    const { bytes } = this.#options
    if (text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes) return text
    throw problem('PAYLOAD_TOO_LARGE', `The event payload is larger than ${bytes} bytes (the limit)`, {
      suggestion: 'Publish an address where the content can be read',
      actor: 'operator',
    })
  }

  #isUntidy(): boolean {
    return this.#written >= Math.max(1, this.#options.keep / 10) || this.clock.now() >= this.#tidyAt
  }
}

// Reading a feed as it grows. The store's hints only make it quick: without any it looks again by itself.

const lookEveryMs = 1_000

async function* follow(
  feed: Feed,
  after: LogPosition | undefined,
  signal: AbortSignal,
  options?: PageOptions,
): AsyncGenerator<FeedPage, void> {
  const ending = new AbortController()
  const hints = feed.store.watch([feed.log], AbortSignal.any([signal, ending.signal]))[Symbol.asyncIterator]()
  try {
    // Asked for before each reading, so that what comes while it is read is a hint for the next.
    let hint = hints.next()
    for (let cursor = after; !signal.aborted; ) {
      const page = await feed.read(cursor, options)
      cursor = page.cursor
      if (page.occurrences.length > 0 || page.truncated) yield page
      if (page.more) continue
      const found = await soon(feed.clock, hint)
      if (found?.done === true) return
      if (found !== undefined) hint = hints.next()
    }
  } finally {
    ending.abort()
  }
}

/** What was waited for, or undefined when it is time to look anyway. */
async function soon<T>(clock: Clock, awaited: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const cancel = clock.setTimeout(() => resolve(undefined), lookEveryMs, true)
  try {
    return await Promise.race([awaited, promise])
  } finally {
    cancel()
  }
}

// An entry of a feed, the cursor that names its position, and how the last position of a log is found.

/** One event in a feed. */
export interface Occurrence {
  /** The unique id, by which readers recognise repetitions. */
  readonly id: string
  /** The kind of event. */
  readonly name: string
  /** When it happened, in milliseconds since the epoch. */
  readonly at: number
  /** Further facts. */
  readonly data?: unknown
  /** The server that reported it. */
  readonly origin?: string
  /** Its position; reading continues after it. */
  readonly cursor: LogPosition
}

function writeOccurrence(occurrence: Omit<Occurrence, 'cursor'>): string {
  return JSON.stringify(occurrence)
}

const lengths = new WeakMap<Occurrence, number>()

/** Of the text that it was read from: what it takes to hold it, roughly. */
export function lengthOf(occurrence: Occurrence): number {
  return lengths.get(occurrence) ?? 0
}

function readOccurrence({ value, position }: LogEntry): Occurrence {
  const found: unknown = JSON.parse(value)
  if (isRecord(found) && typeof found.id === 'string' && typeof found.name === 'string' && typeof found.at === 'number') {
    const occurrence = { ...(found as unknown as Omit<Occurrence, 'cursor'>), cursor: position }
    lengths.set(occurrence, value.length)
    return occurrence
  }
  throw new Error('A stored event does not have the expected form. Another program may have written it')
}

// The cursor of a feed as others carry it: its position, and which feed it is a position in. A feed that was lost and begun anew
// counts from 1 again, and a bare number of the old one would pass for a place in the new one. Permits nothing.

const form = /^([A-Za-z0-9_-]{1,40})\.(0|[1-9a-z][0-9a-z]{0,10})$/

/** A position in a log as text that a client can hold; `era` tells logs apart that were begun anew. */
export function cursorText(era: string, position: LogPosition): string {
  return `${era}.${position.toString(36)}`
}

/** The position. 'lost': of another feed, so that whatever there is now is new to its holder. Undefined: no cursor at all. */
export function readCursor(era: string, text: string): LogPosition | 'lost' | undefined {
  const [, found, digits = ''] = form.exec(text) ?? []
  const position = Number.parseInt(digits, 36)
  if (found === undefined || !Number.isSafeInteger(position)) return undefined
  return found === era ? position : 'lost'
}

// The last position of a log, which a store does not tell: found by doubling steps and then halving them.

/** `known` is a position that was there once, to begin from. 0: the log is empty. */
export async function lastPosition(store: Store, log: string, known: LogPosition): Promise<LogPosition> {
  const from = async (position: LogPosition): Promise<LogPosition | undefined> =>
    (await store.read(log, { after: position - 1, limit: 1 }))[0]?.position
  let last = (known > 0 ? await from(known) : undefined) ?? (await from(1)) ?? 0
  if (last === 0) return 0
  let step = 1
  for (let found = await from(last + step); found !== undefined; found = await from(last + step)) {
    last = found
    step *= 2
  }
  for (step /= 2; step >= 1; step /= 2) last = (await from(last + step)) ?? last
  return last
}
