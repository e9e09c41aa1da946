/** Where a server stores its pushed events until hosts have answered; processes with one store share them. */
import type { Clock } from '../../../core/clock.ts'
import { digest, digestText } from '../../../core/digest.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { add, put, remove, type Store } from '../../../stores/store.ts'
import type { OutgoingPush } from './server.ts'

const prefix = 'live/outbox/event/'
const counter = 'live/outbox/count'
const hints = 'live/outbox/hint/'

/** An event as it is stored. */
export interface StoredEvent {
  readonly key: string
  readonly event: OutgoingPush
  /** When it was stored, in milliseconds, and its order within one millisecond. */
  readonly at: number
  readonly order: number
}

interface EventStoreOptions {
  readonly store: Store
  readonly clock: Clock
  readonly most: number
}

/** Stores events until hosts have answered. */
export class EventStore {
  readonly #options: EventStoreOptions
  readonly #self = crypto.randomUUID()
  readonly #seen = new Map<string, number>()
  #order = 0

  constructor(options: EventStoreOptions) {
    this.#options = options
  }

  /** Stores an event. The same event again is ignored; a different one with the same id is refused. */
  async put(event: OutgoingPush): Promise<{ readonly entry: StoredEvent; readonly added: boolean }> {
    const { store, clock, most } = this.#options
    const key = prefix + (await digestText(event.eventId))
    const entry = { key, event, at: clock.now(), order: this.#order++ }
    const value = JSON.stringify({ event, at: entry.at, order: entry.order })
    const ops = [put(key, value, { ifAbsent: true }), add(counter, 1, { max: most }), put(hints + this.#self, `${entry.order}`)]
    const done = await store.commit(ops)
    if (done.ok) return { entry, added: true }
    if (done.index === 1) throw full(most)
    const there = await store.get(key)
    const stored = there === undefined ? undefined : read(key, there.value)
    // Removed in this moment, so it has been answered.
    if (stored === undefined) return { entry, added: false }
    if ((await digest(stored.event)) !== (await digest({ ...event, timestamp: stored.event.timestamp }))) throw taken(event)
    return { entry: stored, added: false }
  }

  /** Removes answered events. */
  async drop(entries: readonly StoredEvent[]): Promise<void> {
    const { store } = this.#options
    for (const { key } of entries) {
      const there = await store.get(key)
      // Conditional on the version: several processes may try, and only one may decrement the counter.
      if (there !== undefined) await store.commit([remove(key, there.version), add(counter, -1, { min: 0 })])
    }
  }

  /** All stored events, oldest first. */
  async all(): Promise<readonly StoredEvent[]> {
    const found: StoredEvent[] = []
    for (let after = ''; ; ) {
      const page = await this.#options.store.scan(prefix, after === '' ? {} : { after })
      for (const { key, value } of page) {
        const entry = read(key, value)
        if (entry !== undefined) found.push(entry)
      }
      const last = page.at(-1)
      if (last === undefined || page.length < 1000) break
      after = last.key
    }
    return found.sort((one, other) => one.at - other.at || one.order - other.order)
  }

  /** Yields whenever another process may have stored an event. */
  async *elsewhere(signal: AbortSignal): AsyncGenerator<void, void, void> {
    const { store } = this.#options
    for await (const _ of store.watch([hints], signal)) {
      const others = (await store.scan(hints)).filter(({ key, version }) => {
        const news = key !== hints + this.#self && this.#seen.get(key) !== version
        this.#seen.set(key, version)
        return news
      })
      if (others.length > 0) yield
    }
  }
}

function read(key: string, value: string): StoredEvent | undefined {
  try {
    const { event, at, order } = JSON.parse(value)
    return typeof event?.eventId === 'string' ? { key, event, at, order } : undefined
  } catch {
    return undefined
  }
}

function full(most: number): Problem {
  return problem('QUOTA_EXHAUSTED', `${most} events already wait for a host (the limit, live.outbox)`, {
    suggestion: 'Connect a host that enables the feature set, raise live.outbox, or push fewer events',
    actor: 'operator',
  })
}

function taken({ eventId }: OutgoingPush): Problem {
  return problem('EVENT_CONFLICT', `A different event already waits under the id "${eventId}"`, {
    suggestion: 'Give each event its own eventId. Reuse an eventId only to repeat the same event',
  })
}
