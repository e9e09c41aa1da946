/**
 * The outbox: delivers events to every host that has their set enabled, in order per origin, and retries until answered. Stable ids
 * make repetition harmless (§9.4). Events of disabled sets stay in the store. Once a host has accepted an event, only the hosts of that
 * moment still get it; of those, one that is away is waited for in memory alone, as it may never come back.
 */
import type { Clock } from '../../../core/clock.ts'
import type { Trace } from '../../../core/log.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import type { LiveHost } from '../hosts/messages.ts'
import type { EventStore, StoredEvent } from './event-store.ts'
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
/** Limit of answered events that are kept for hosts that are away. */
const mostRetained = 100
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
  /** Set once there is a verdict: the hosts that still get the event. Others that come later do not. */
  owed: readonly LiveHost[] | undefined = undefined
  /** Whether the event is being removed from the store, or has been. */
  removal: 'none' | 'running' | 'done' = 'none'
  /** Nobody gets it any more. */
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
  /** Hosts have come or left, so events may be concluded. */
  #changed = false
  /** After a failure of the store, when events are removed again. */
  #removesFrom = 0
  #removal: (() => void) | undefined = undefined

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
    // Where the store has it anew, what is in memory under its key is an answered one.
    const known = added ? undefined : this.#waiting.get(entry.key)
    const waiting = known ?? new Waiting(entry)
    const { eventId, timestamp } = entry.event
    if (added) this.#waiting.set(entry.key, waiting)
    else if (known === undefined) waiting.settle({ accepted: true })
    this.#options.changed()
    this.pump()
    return { eventId, timestamp, answered: waiting.answered }
  }

  /** Events without a verdict, oldest first. */
  get pending(): readonly OutgoingPush[] {
    return [...this.#waiting.values()].filter(({ over, owed }) => !over && owed === undefined).map(({ entry }) => entry.event)
  }

  /** Retries at once: a host has connected, or has changed its selection. */
  retryNow(): void {
    this.#removesFrom = 0
    this.#changed = true
    for (const waiting of this.#waiting.values()) waiting.notBefore = Math.min(waiting.notBefore, this.#options.clock.now())
    this.pump()
  }

  /** A host has left, so what only it has not answered is concluded. */
  left(): void {
    this.#changed = true
    this.pump()
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#timer?.()
    this.#removal?.()
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
    // Before anything is sent: a host that has just come must not get what others have answered.
    if (this.#changed) for (const waiting of this.#waiting.values()) this.#conclude(waiting)
    this.#changed = false
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
  #wants(host: LiveHost, { entry: { event }, done, over, owed }: Waiting): boolean {
    if (over || done.has(host) || host.gone || !this.#options.offered(event.featureSet)) return false
    if (owed?.includes(host) === false) return false
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
    // Also after a failed attempt: the host may have left, and others have answered.
    this.#conclude(waiting)
    this.pump()
  }

  /**
   * Settles `answered` when a host has accepted the event, or all reachable ones have refused it. Removes the event from the store when
   * no reachable host still has to answer, and from memory when no other one has to.
   */
  #conclude(waiting: Waiting): void {
    // Its removal has failed.
    if (waiting.over && waiting.removal === 'none') this.#remove(waiting)
    if (waiting.over || waiting.done.size === 0) return
    const { done, flying } = waiting
    const open = [...this.#options.hosts()].filter(host => this.#wants(host, waiting))
    const held = [...open, ...flying].some(({ reachable }) => reachable)
    const answers = [...done.values()]
    const answer = answers.find(({ accepted }) => accepted) ?? (held ? undefined : answers[0])
    if (waiting.owed === undefined) {
      if (answer === undefined) return
      if (!answer.accepted) this.#options.trace('push-refused', { eventId: waiting.entry.event.eventId, reason: answer.reason })
      waiting.owed = open
      waiting.settle(answer)
      this.#options.changed()
    }
    waiting.over = open.length === 0 && flying.size === 0
    if (!held) this.#remove(waiting)
  }

  /** Removes the event from the store. If that fails it is tried again, so that a restart does not repeat it. */
  #remove(waiting: Waiting): void {
    if (waiting.removal === 'done') return this.#forget(waiting)
    const { clock, eventStore, trace } = this.#options
    if (waiting.removal === 'running' || clock.now() < this.#removesFrom) return
    waiting.removal = 'running'
    const done = (): void => {
      waiting.removal = 'done'
      this.#forget(waiting)
    }
    this.#dropping = Promise.all([this.#dropping, eventStore.drop([waiting.entry])]).then(done, error => {
      waiting.removal = 'none'
      this.#removesFrom = clock.now() + longestMs
      trace('outbox-not-written', error)
      this.#retryRemoval()
    })
  }

  // One timer for all events that could not be removed.
  #retryRemoval(): void {
    this.#removal?.()
    this.#removal = this.#options.clock.setTimeout(() => this.left(), longestMs, true)
  }

  /** Removes an event from memory, or the oldest of too many that are kept for hosts that are away. */
  #forget(waiting: Waiting): void {
    const { key } = waiting.entry
    if (waiting.over && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
    if (waiting.over) return
    const retained = [...this.#waiting.values()].filter(({ removal }) => removal === 'done')
    for (const { entry } of retained.slice(0, Math.max(0, retained.length - mostRetained))) this.#waiting.delete(entry.key)
  }

  // Events are ordered by age, so the loop stops at the first young one.
  #expire(): void {
    const oldest = this.#options.clock.now() - this.#options.keepMs
    for (const waiting of this.#waiting.values()) {
      if (waiting.entry.at > oldest) return
      if (waiting.over || waiting.flying.size > 0) continue
      waiting.over = true
      this.#remove(waiting)
      if (waiting.owed !== undefined) continue
      const error = expired(waiting.entry.event)
      this.#options.trace('push-expired', { eventId: waiting.entry.event.eventId, error })
      waiting.fail(error)
      this.#options.changed()
    }
  }

  // Merges stored events with those in memory.
  async #load(): Promise<void> {
    const before = new Map(this.#waiting)
    const found = await this.#options.eventStore.all()
    const there = new Set(found.map(({ key }) => key))
    // What was in memory and is no longer has been answered while the store was read.
    for (const entry of found)
      if (!this.#waiting.has(entry.key) && !before.has(entry.key)) this.#waiting.set(entry.key, new Waiting(entry))
    for (const [key, waiting] of before) {
      // Another process has delivered it.
      if (there.has(key) || waiting.removal !== 'none' || waiting.flying.size > 0) continue
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
