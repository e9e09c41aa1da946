/** Where events wait until a host has answered: on the server's store, bounded in number and age, each once. */
import type { Clock } from '../../../core/clock.ts'
import { digest, digestText } from '../../../core/digest.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { add, put, remove, type Store } from '../../../stores/store.ts'
import type { OutgoingPush } from './server.ts'

const prefix = 'live/outbox/event/'
const counter = 'live/outbox/count'
const hints = 'live/outbox/hint/'

export interface StoredEvent {
  readonly key: string
  readonly event: OutgoingPush
  /** Milliseconds since the epoch, and what tells those of one millisecond apart. */
  readonly at: number
  readonly order: number
}

interface EventStoreOptions {
  readonly store: Store
  readonly clock: Clock
  readonly most: number
}

export class EventStore {
  readonly #options: EventStoreOptions
  readonly #self = crypto.randomUUID()
  readonly #seen = new Map<string, number>()
  #order = 0

  constructor(options: EventStoreOptions) {
    this.#options = options
  }

  /** Resolves when it is as lasting as the store. The same event is put down once; another one under its id is refused. */
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
    const kept = there === undefined ? undefined : read(key, there.value)
    // Answered in this very moment: it has arrived, as far as anybody can tell.
    if (kept === undefined) return { entry, added: false }
    if ((await digest(kept.event)) !== (await digest({ ...event, timestamp: kept.event.timestamp }))) throw taken(event)
    return { entry: kept, added: false }
  }

  async drop(entries: readonly StoredEvent[]): Promise<void> {
    const { store } = this.#options
    for (const { key } of entries) {
      const there = await store.get(key)
      // Whoever deletes it counts it: several processes may have heard an answer.
      if (there !== undefined) await store.commit([remove(key, there.version), add(counter, -1, { min: 0 })])
    }
  }

  /** All that wait, oldest first. */
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

  /** Settles each time when another process may have put something down, until the signal. */
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
  return problem('QUOTA_EXHAUSTED', `${most} events wait for a host, which is the limit (live.outbox)`, {
    suggestion: 'Connect a host that enables the set, raise live.outbox, or push less',
    actor: 'operator',
  })
}

function taken({ eventId }: OutgoingPush): Problem {
  return problem('EVENT_CONFLICT', `Another event waits under the id "${eventId}"`, {
    suggestion: 'Give each occurrence an eventId of its own; repeat one only for the same content',
  })
}
