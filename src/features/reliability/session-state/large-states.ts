/**
 * States that are too large for a token, and lie on the store: counted by account, so that nobody fills it for others. A state guards
 * nothing, so here the oldest of the same account gives way; whoever comes back for it is told that it is too old, and starts again.
 */
import type { Clock } from '../../../core/clock.ts'
import { quotaExhausted, Shares } from '../../../core/share.ts'
import { type Entry, type Op, put, remove, type Store } from '../../../stores/store.ts'

/** Shorter ones do not count where a caller can have many of them; */
const manyLength = 4 * 1024
/** nor do these, where there is one for each user. */
export const oneLength = 64 * 1024

const prefix = 'session-state/large/'
const mostRecords = 10_000
const mostLength = 64 * 1024 * 1024

/** As it is kept beside a state: where that lies, and what it takes. */
interface Note {
  readonly key: string
  readonly length: number
}

interface Noted extends Note {
  readonly entry: Entry
  readonly account: string
}

export class LargeStates {
  readonly #store: Store
  readonly #clock: Clock
  readonly #limit: number

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#limit = Math.min(mostLength, Math.floor((store.capacity ?? Number.POSITIVE_INFINITY) / 8))
  }

  /** The steps that go with writing a state of that length there; none for one that does not count. Lets older ones of the account go. */
  async admitting(account: string, key: string, length: number, ttl: number, uncounted = manyLength): Promise<readonly Op[]> {
    if (length <= uncounted) return []
    const all = await this.#all()
    const shares = new Shares({ records: mostRecords, length: this.#limit })
    const others = all.filter(note => note.key !== key)
    for (const note of others) shares.add(note.account, 1, note.length)
    const mine = others.filter(note => note.account === account).sort((a, b) => a.entry.version - b.entry.version)
    while (!shares.fits(account, { records: 1, length })) {
      const oldest = mine.shift()
      if (oldest === undefined)
        throw quotaExhausted(
          'states kept by the server',
          undefined,
          'Keep large contents elsewhere and their address in the state',
        )
      await this.#store.commit([remove(oldest.key), remove(oldest.entry.key)])
      shares.add(account, -1, -oldest.length)
    }
    const before = all.find(note => note.key === key)
    const note: Note = { key, length }
    const place = before?.entry.key ?? `${prefix}${account}/${String(this.#clock.now()).padStart(15, '0')}-${crypto.randomUUID()}`
    return [put(place, JSON.stringify(note), { ttl })]
  }

  async #all(): Promise<readonly Noted[]> {
    const found: Noted[] = []
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan(prefix, after === undefined ? {} : { after })
      for (const entry of page) {
        const note: Note = JSON.parse(entry.value)
        found.push({ ...note, entry, account: entry.key.slice(prefix.length).split('/', 1)[0] ?? '' })
      }
      after = page.at(-1)?.key
      if (after === undefined) return found
    }
  }
}
