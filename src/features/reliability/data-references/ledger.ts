/**
 * The ledger of data references: which exist, and which content is still needed. Content is deleted when its last reference ends. Equal
 * bytes are stored once, so deletion announces itself first, and additions check for that.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import { leftOf, quotaExhausted } from '../../../core/occupancy.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Blobs } from '../../../stores/blobs.ts'
import { add, check, type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'

/** The record of a reference. */
export interface StoredContent {
  readonly id: string
  readonly digest: string
  readonly size: number
  readonly mime: string
  readonly name: string
  readonly owner: string
  /** The account whose share it uses. */
  readonly account: string
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** The grant that it ends with. */
  readonly grant?: string
  /** The owner of that grant. */
  readonly by?: string
}

interface LedgerParts {
  readonly store: Store
  readonly blobs: Blobs
  readonly clock: Clock
  readonly trace: Trace
  /** Total limits: number of references, and bytes. */
  readonly most: number
  readonly bytes: number
  /** Further periodic cleanup; returns whether anything remains. */
  readonly beside?: () => Promise<boolean>
}

/** Makes content visible, after the ledger entry is written; so a crash leaves no content without an entry. */
type Publish = () => Promise<void>

// How often expired references are removed; how long a deletion may take; how often and how long an addition waits for one.
const sweepMs = 60_000
const dropMs = 30_000
const waits = 50
const waitMs = 100
const count = 'reference-count'
const bytes = 'reference-bytes'
const due = 'reference-due/'

/** Records which content is kept for whom, and until when. */
export class Ledger {
  readonly #parts: LedgerParts
  #timer: (() => void) | undefined = undefined
  #closed = false

  constructor(parts: LedgerParts) {
    this.#parts = parts
    // Cleans up what an earlier process has left.
    this.look(0)
  }

  /** The reference; undefined if it is unknown or expired. */
  async find(id: string): Promise<StoredContent | undefined> {
    const entry = await this.#parts.store.get(contentKey(id))
    if (entry === undefined) return undefined
    const stored: unknown = JSON.parse(entry.value)
    return isRecord(stored) && Number(stored['expires']) > this.#parts.clock.now()
      ? (stored as unknown as StoredContent)
      : undefined
  }

  /** Records a reference, and publishes its content. */
  async add(stored: StoredContent, publish: Publish): Promise<void> {
    const ttl = Math.max(1, stored.expires - this.#parts.clock.now())
    // A step of a transaction may have been rolled back while it ran.
    const own = [check(undoneKey(stored.id), undefined), put(contentKey(stored.id), JSON.stringify(stored), { ttl })]
    await this.#hold(stored, own, publish)
  }

  /** Keeps content without a reference for some time; returns the function that releases it. */
  async hold(digest: string, size: number, account: string, ms: number, publish: Publish): Promise<() => Promise<void>> {
    const held: HeldContent = { digest, size, account, id: crypto.randomUUID(), expires: this.#parts.clock.now() + ms }
    await this.#hold(held, [], publish)
    return () => this.#release(dueKey(held.expires, held.id), held.id, noteOf(held))
  }

  /** Bytes that the account may still store; throws if there are none. */
  async left(account: string): Promise<number> {
    const { store, most, bytes: mostBytes } = this.#parts
    const names = [count, `${count}/${account}`, bytes, `${bytes}/${account}`]
    const [all = 0, mine = 0, allBytes = 0, myBytes = 0] = await Promise.all(
      names.map(async name => numberOf(await store.get(name))),
    )
    const left = leftOf(mostBytes, allBytes, myBytes)
    if (leftOf(most, all, mine) > 0 && left > 0) return left
    throw this.full(`you hold ${mine} with ${myBytes} bytes`, await this.#soonest(account))
  }

  /** The problem for an exhausted quota. */
  full(detail: string, waitMs?: number): Problem {
    return quotaExhausted(
      `the stored references (${detail})`,
      waitMs,
      'Wait until some of your references have expired. The operator can raise references.most and references.totalBytes',
    )
  }

  /** Store operations that revoke a reference, or prevent its creation. */
  undoing(id: string, ttl: number): readonly Op[] {
    return [put(undoneKey(id), '', { ttl }), remove(contentKey(id))]
  }

  /** Schedules a cleanup. */
  look(ms = sweepMs): void {
    if (this.#closed || this.#timer !== undefined) return
    this.#timer = this.#parts.clock.setTimeout(
      () => {
        this.#timer = undefined
        this.#sweep().then(
          left => left && this.look(),
          error => {
            this.#parts.trace('references-not-swept', error)
            this.look()
          },
        )
      },
      ms,
      true,
    )
  }

  /** Deletes content that has no reference. */
  async drop(digest: string): Promise<void> {
    const { store, blobs } = this.#parts
    if (!(await store.commit([put(dropKey(digest), '', { ifAbsent: true, ttl: dropMs })])).ok) return
    try {
      if ((await store.scan(ofPrefix(digest), { limit: 1 })).length === 0) await blobs.delete(digest)
    } finally {
      await store.commit([remove(dropKey(digest))])
    }
  }

  close(): void {
    this.#closed = true
    this.#timer?.()
  }

  async #hold(held: HeldContent, own: readonly Op[], publish: Publish): Promise<void> {
    const { store, most } = this.#parts
    const { digest, id, size, expires } = held
    if (size > (await this.left(held.account))) throw this.full(`this one needs ${size} bytes`, await this.#soonest(held.account))
    const ops = [
      ...own,
      put(ofPrefix(digest) + id, ''),
      put(dueKey(expires, id), noteOf(held)),
      ...counting(held, 1, { max: most }),
    ]
    if (!(await store.commit(ops)).ok)
      throw problem(
        'SERVER_UNAVAILABLE',
        `The reference could not be stored: there are already ${most} references (the limit, references.most), or its transaction has ended`,
        {
          suggestion: 'Retry after some references have expired',
        },
      )
    this.look()
    await publish()
    await this.#undropped(digest)
  }

  /** If a deletion is in progress, waits for it, and checks that the content still exists. */
  async #undropped(digest: string): Promise<void> {
    const { store, blobs, clock } = this.#parts
    if ((await store.get(dropKey(digest))) === undefined) return
    for (let tries = 0; tries < waits && (await store.get(dropKey(digest))) !== undefined; tries++)
      await new Promise<void>(resolve => void clock.setTimeout(resolve, waitMs))
    const found = await blobs.get(digest, { end: 0 })
    await found?.stream.cancel()
    if (found === undefined)
      throw problem('SERVER_UNAVAILABLE', 'The same content is just being removed', { suggestion: 'Retry' })
  }

  /** Removes expired entries; returns whether anything remains. */
  async #sweep(): Promise<boolean> {
    const { store, clock, beside } = this.#parts
    const more = await beside?.().catch(error => {
      this.#parts.trace('references-not-swept', error)
      return true
    })
    for (;;) {
      const over = await store.scan(due, { before: `${due}${padded(clock.now())}`, limit: 100 })
      for (const { key, value } of over) await this.#release(key, key.slice(key.lastIndexOf('/') + 1), value)
      if (over.length < 100) return more === true || (await store.scan(due, { limit: 1 })).length > 0
    }
  }

  /** When the next reference of the account expires, if that is soon. */
  async #soonest(account: string): Promise<number | undefined> {
    const { store, clock } = this.#parts
    const first = (await store.scan(due)).find(({ value }) => value.endsWith(` ${account}`))
    return first === undefined ? undefined : Number(first.key.slice(due.length).split('/', 1)[0]) - clock.now()
  }

  async #release(key: string, id: string, note: string): Promise<void> {
    const { store } = this.#parts
    const entry = await store.get(key)
    if (entry === undefined) return
    const [digest = '', size = '0', account] = note.split(' ')
    const ops = [
      remove(key, entry.version),
      remove(ofPrefix(digest) + id),
      remove(contentKey(id)),
      ...(account === undefined ? [add(count, -1)] : counting({ size: Number(size), account }, -1)),
    ]
    // Another process may be doing the same.
    if (!(await store.commit(ops)).ok) return
    if (account !== undefined) await this.#forget(account)
    await this.drop(digest)
  }

  /** Removes counters that are zero, so that they do not stay forever. */
  async #forget(account: string): Promise<void> {
    const { store } = this.#parts
    for (const name of [`${count}/${account}`, `${bytes}/${account}`]) {
      const entry = await store.get(name)
      if (entry?.value === '0') await store.commit([remove(name, entry.version)])
    }
  }
}

/** Content that is needed until a point in time. */
type HeldContent = Pick<StoredContent, 'id' | 'digest' | 'size' | 'account' | 'expires'>

/** What is stored with the entry, to decrement the counters later. */
function noteOf({ digest, size, account }: HeldContent): string {
  return `${digest} ${size} ${account}`
}

/** Updates the counters in total and of the account. */
function counting(
  { size, account }: Pick<HeldContent, 'size' | 'account'>,
  by: 1 | -1,
  bound?: { readonly max: number },
): readonly Op[] {
  return [add(count, by, bound), add(`${count}/${account}`, by), add(bytes, by * size), add(`${bytes}/${account}`, by * size)]
}

function numberOf(entry: Entry | undefined): number {
  return Math.max(0, Number(entry?.value ?? 0))
}

const padded = (ms: number): string => String(Math.ceil(ms)).padStart(16, '0')
const contentKey = (id: string): string => `reference/${id}`
const undoneKey = (id: string): string => `reference-undone/${id}`
const dropKey = (digest: string): string => `reference-drop/${digest}`
const ofPrefix = (digest: string): string => `reference-of/${digest}/`
const dueKey = (expires: number, id: string): string => `${due}${padded(expires)}/${id}`
