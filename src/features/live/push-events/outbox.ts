/**
 * The outbox: delivers events to every host that has their set enabled, in order per origin, and retries until answered. Stable ids
 * make repetition harmless (§9.4). Events of disabled sets stay in the store.
 */
import type { Clock } from '../../../core/clock.ts'
import { digest, digestText } from '../../../core/digest.ts'
import type { Trace } from '../../../core/log.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { add, put, remove, type Store } from '../../../stores/store.ts'
import type { LiveHost } from '../hosts/messages.ts'
import type { PushAnswer } from './messages.ts'
import { attempt, type OutgoingPush, type Pushed } from './server.ts'

/** What an outbox needs. */
interface OutboxOptions {
  readonly eventStore: EventStore
  readonly clock: Clock
  readonly trace: Trace
  readonly hosts: () => Iterable<LiveHost>
  /** Whether the set still exists. */
  readonly offered: (featureSet: string) => boolean
  /** Whether a host knows the channel of a message; before that the message is held back. */
  readonly isKnown?: ((host: LiveHost, channelId: string) => boolean) | undefined
  /** How long an event is kept for a host. */
  readonly keepMs: number
  /** How long one attempt may take. */
  readonly timeoutMs: number
  /** Called when the list of pending events has changed. */
  readonly changed: () => void
  /** A number from 0 to 1, for jitter. */
  readonly random?: () => number
}

/** Limit of attempts in flight per host. */
const window = 32
// Backoff of retries: from the first delay to the longest.
const firstMs = 1_000
const longestMs = 60_000

class Waiting {
  readonly entry: StoredEvent
  /** Events of one lane stay in order. */
  readonly lane: string
  // Hosts with an attempt in flight, and the verdicts so far.
  readonly flying = new Set<LiveHost>()
  readonly done = new Map<LiveHost, PushAnswer>()
  readonly answered: Promise<PushAnswer>
  tries = 0
  notBefore = 0
  over = false
  settle: (answer: PushAnswer) => void = () => {}
  fail: (error: unknown) => void = () => {}

  constructor(entry: StoredEvent) {
    this.entry = entry
    const { origin, featureSet, channel } = entry.event
    this.lane = channel === undefined ? JSON.stringify(origin ?? featureSet) : `channel ${channel.channelId}`
    this.answered = new Promise((resolve, reject) => {
      this.settle = resolve
      this.fail = reject
    })
    // Authors rarely await this promise; without a handler a rejection would be reported as unhandled.
    this.answered.catch(() => undefined)
  }
}

/** Delivers events to hosts, with retries. */
export class Outbox {
  readonly #options: OutboxOptions
  readonly #waiting = new Map<string, Waiting>()
  readonly #stop = new AbortController()
  #timer: (() => void) | undefined = undefined
  #pumping = false
  #dropping: Promise<void> = Promise.resolve()

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  /** Loads pending events from the store, including those of other processes. */
  async open(): Promise<void> {
    await this.#load()
    void this.#follow()
  }

  /** Stores an event and starts its delivery. */
  async push(event: OutgoingPush): Promise<Pushed> {
    const { entry, added } = await this.#options.eventStore.put(event)
    const waiting = this.#waiting.get(entry.key) ?? new Waiting(entry)
    const { eventId, timestamp } = entry.event
    if (added || this.#waiting.has(entry.key)) this.#waiting.set(entry.key, waiting)
    else waiting.settle({ accepted: true })
    this.#options.changed()
    this.pump()
    return { eventId, timestamp, answered: waiting.answered }
  }

  /** Pending events, oldest first. */
  get pending(): readonly OutgoingPush[] {
    return [...this.#waiting.values()].filter(({ over }) => !over).map(({ entry }) => entry.event)
  }

  /** Retries at once: a host has connected, or has changed its selection. */
  retryNow(): void {
    for (const waiting of this.#waiting.values()) waiting.notBefore = Math.min(waiting.notBefore, this.#options.clock.now())
    this.pump()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#timer?.()
    await this.#dropping
  }

  /** Schedules one pass for everything that happens in this turn of the event loop. */
  pump(): void {
    if (this.#pumping) return
    this.#pumping = true
    queueMicrotask(() => {
      this.#pumping = false
      if (!this.#stop.signal.aborted) this.#pump()
    })
  }

  #pump(): void {
    const { clock, hosts } = this.#options
    this.#timer?.()
    this.#timer = undefined
    this.#expire()
    // One timestamp for the whole pass; otherwise an event that becomes due in between would be neither sent nor scheduled.
    const now = clock.now()
    for (const host of hosts()) if (host.reachable) this.#serve(host, now)
    let next = Number.POSITIVE_INFINITY
    for (const { notBefore } of this.#waiting.values()) if (notBefore > now && notBefore < next) next = notBefore
    if (next < Number.POSITIVE_INFINITY) this.#timer = clock.setTimeout(() => this.pump(), next - now, true)
  }

  #serve(host: LiveHost, now: number): void {
    const busy = new Set<string>()
    let flying = 0
    for (const waiting of this.#waiting.values()) {
      if (flying >= window) return
      if (waiting.flying.has(host)) flying++
      const idle = !waiting.flying.has(host) && !busy.has(waiting.lane) && waiting.notBefore <= now
      if (idle && this.#wants(host, waiting)) {
        flying++
        void this.#send(host, waiting)
      }
      // Later events of the same lane wait behind one that is unanswered.
      if (this.#wants(host, waiting)) busy.add(waiting.lane)
    }
  }

  // Whether this event is to be sent to this host.
  #wants(host: LiveHost, { entry: { event }, done, over }: Waiting): boolean {
    if (over || done.has(host) || host.gone || !this.#options.offered(event.featureSet)) return false
    if (event.channel !== undefined && this.#options.isKnown?.(host, event.channel.channelId) !== true) return false
    return host.selected.enabled(event.featureSet) && (event.to === undefined || event.to === host.principal)
  }

  async #send(host: LiveHost, waiting: Waiting): Promise<void> {
    const { clock, trace, timeoutMs, random = Math.random } = this.#options
    waiting.flying.add(host)
    const outcome = await attempt(host, waiting.entry.event, timeoutMs)
    waiting.flying.delete(host)
    if (outcome.is === 'answered') {
      waiting.done.set(host, outcome.answer)
      this.#conclude(waiting)
      // Disabled at the host: wait until its selection changes, at most a minute.
    } else if (outcome.is === 'off') {
      trace('push-refused', {
        featureSet: waiting.entry.event.featureSet,
        hint: 'The host has not enabled this feature set. The event is sent again later',
      })
      waiting.notBefore = clock.now() + longestMs
    } else {
      const wait = outcome.afterMs ?? Math.min(longestMs, firstMs * 2 ** waiting.tries++) * (0.75 + random() / 2)
      waiting.notBefore = clock.now() + wait
      if (outcome.error !== undefined) trace('push-retried', { eventId: waiting.entry.event.eventId, error: outcome.error })
    }
    this.pump()
  }

  /** Finishes an event when a host has answered and no connected host still has to. */
  #conclude(waiting: Waiting): void {
    const open = [...this.#options.hosts()].some(host => this.#wants(host, waiting))
    if (waiting.over || open || waiting.flying.size > 0) return
    const answers = [...waiting.done.values()]
    const answer = answers.find(({ accepted }) => accepted) ?? answers[0]
    if (answer === undefined) return
    if (!answer.accepted) this.#options.trace('push-refused', { eventId: waiting.entry.event.eventId, reason: answer.reason })
    this.#finish(waiting)
    waiting.settle(answer)
  }

  // Removes the event from the store.
  #finish(waiting: Waiting): void {
    waiting.over = true
    this.#dropping = Promise.all([this.#dropping, this.#options.eventStore.drop([waiting.entry])]).then(
      () => void this.#waiting.delete(waiting.entry.key),
      error => this.#options.trace('outbox-not-written', error),
    )
    this.#options.changed()
  }

  // Events are ordered by age, so the loop stops at the first young one.
  #expire(): void {
    const oldest = this.#options.clock.now() - this.#options.keepMs
    for (const waiting of this.#waiting.values()) {
      if (waiting.entry.at > oldest) return
      if (waiting.over || waiting.flying.size > 0) continue
      this.#finish(waiting)
      const error = expired(waiting.entry.event)
      this.#options.trace('push-expired', { eventId: waiting.entry.event.eventId, error })
      waiting.fail(error)
    }
  }

  // Merges stored events with those in memory.
  async #load(): Promise<void> {
    const before = [...this.#waiting]
    const found = await this.#options.eventStore.all()
    const there = new Set(found.map(({ key }) => key))
    for (const entry of found) if (!this.#waiting.has(entry.key)) this.#waiting.set(entry.key, new Waiting(entry))
    for (const [key, waiting] of before) {
      // Another process has delivered it.
      if (there.has(key) || waiting.over || waiting.flying.size > 0) continue
      this.#waiting.delete(key)
      waiting.settle({ accepted: true })
    }
    this.#options.changed()
    this.pump()
  }

  // Reloads when another process has added events.
  async #follow(): Promise<void> {
    try {
      for await (const _ of this.#options.eventStore.elsewhere(this.#stop.signal)) await this.#load()
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.trace('outbox-not-followed', error)
    }
  }
}

function expired({ eventId }: OutgoingPush): Problem {
  return problem('PUSH_EXPIRED', `No host accepted the event "${eventId}" in time`, {
    suggestion: 'Connect a host that enables the feature set, or raise live.keep',
  })
}

const prefix = 'live/outbox/event/'
const counter = 'live/outbox/count'
const hints = 'live/outbox/hint/'

interface StoredEvent {
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
