/**
 * What the parts of an inbox share: store, queues and settings (`InboxContext`), the depth of event chains (`Chains`), and which process
 * runs a server's events (`Owners`).
 */
import { randomUUID } from 'node:crypto'
import { type Clock, type Duration, durationText, realClock, toMilliseconds } from '../../core/clock.ts'
import { ProcessLeases } from '../../core/journal/process-leases.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { check, entriesUnder, messageOf, type Op, put, remove, type Store } from '../../stores/store.ts'
import { EventQueues, type Item } from './event-queues.ts'
import type { InboxNote, InboxOptions } from './options.ts'
import { type Attempt, inboxKeys, readAttempts, readTodo, seqText, type Todo } from './records.ts'

/** Events kept in memory; the content of others is read when they run. */
const held = 5_000

/** What the parts of an inbox share. */
export class InboxContext {
  readonly store: Store
  readonly clock: Clock
  readonly options: InboxOptions
  readonly settings: ReturnType<typeof settingsOf>
  readonly runners: ProcessLeases
  readonly owners: Owners
  readonly lanes: EventQueues
  readonly chains: Chains
  readonly id: () => string
  readonly random: () => number
  opened = false
  readonly #owning = new Map<string, Promise<boolean>>()
  /** Servers that are not configured and were reported as such. */
  readonly #absent = new Set<string>()
  /** Events in memory with content. */
  #held = 0
  /** The last sequence number. */
  #last = 0

  constructor(options: InboxOptions, run: (server: string, items: readonly Item[]) => Promise<void>) {
    const { store, clock = realClock, id = randomUUID, random = Math.random, concurrency = 4 } = options
    this.options = options
    this.settings = settingsOf(options)
    this.store = store
    this.clock = clock
    this.id = id
    this.random = random
    this.runners = new ProcessLeases({ store, clock, id: id(), leaseMs: toMilliseconds(options.lease ?? '6s', 'lease') })
    this.chains = new Chains(options.chain ?? {}, clock)
    this.owners = new Owners(store, this.runners)
    const perServer = options.perServer ?? Math.max(1, Math.ceil(concurrency / 2))
    this.lanes = new EventQueues({ clock, concurrency, perServer, run })
  }

  /** A sequence number that always grows, even if the clock goes back. */
  nextSeq(): string {
    this.#last = Math.max(this.#last + 1, this.clock.now() * 1024)
    return seqText(this.#last, this.runners.id)
  }

  /** Puts a stored event into its lane. `reserved`: its reserved place, if any. */
  place(server: string, seq: string, version: number, todo: Todo, attempts: readonly Attempt[] = [], reserved?: Item): void {
    const item = reserved ?? this.lanes.reserve(server, todo.lane, seq)
    Object.assign(item, { version, attempts, notBefore: todo.notBefore ?? 0, todo })
    this.#held++
    if (this.#held > held) this.#lighten(item, todo)
    this.lanes.ready(server, todo.lane, item)
  }

  /** Drops the content from memory. */
  #lighten(item: Item, todo: Todo): void {
    this.#held--
    item.todo = { ...todo, event: { ...todo.event, content: [] } }
    item.light = true
  }

  /** The work of an item; undefined where it is already done or was taken over. */
  async body(server: string, item: Item): Promise<Todo | undefined> {
    if (!item.light) return item.todo
    const entry = await this.store.get(inboxKeys.todo(server, item.seq))
    if (entry === undefined || entry.version !== item.version) return undefined
    return readTodo(entry.value)
  }

  /** Marks an item as finished. */
  gone(item: Item): void {
    if (item.state === 'ready' && !item.light) this.#held--
    item.state = 'gone'
  }

  /** Takes ownership of a server, if nobody else has it, and loads its events. */
  own(server: string): Promise<boolean> {
    let owning = this.#owning.get(server)
    if (owning === undefined) {
      owning = this.#own(server).finally(() => this.#owning.delete(server))
      this.#owning.set(server, owning)
    }
    return owning
  }

  async #own(server: string): Promise<boolean> {
    // Another process may have this server in its config.
    if (!this.opened || !this.isConfigured(server)) return false
    if (this.owners.owns(server)) return true
    if (!(await this.owners.take(server))) return false
    // Nothing runs before everything is loaded, because the order matters.
    await this.load(server)
    if (this.owners.owns(server)) this.lanes.activate(server)
    return true
  }

  /** Loads the waiting events of an owned server; those in memory stay as they are. */
  async load(server: string): Promise<void> {
    const [tries, todos] = [inboxKeys.try(server, ''), inboxKeys.todo(server, '')]
    const attempts = new Map<string, readonly Attempt[]>()
    for await (const { key, value } of entriesUnder(this.store, tries)) attempts.set(key.slice(tries.length), readAttempts(value))
    for await (const { key, value, version } of entriesUnder(this.store, todos)) {
      const seq = key.slice(todos.length)
      this.#last = Math.max(this.#last, Number.parseInt(seq, 10))
      if (!this.owners.owns(server)) return
      if (this.lanes.has(server, seq)) continue
      this.place(server, seq, version, readTodo(value), (attempts.get(seq) ?? []).map(interrupted))
    }
  }

  /** Another process owns the server now. */
  lost(server: string): void {
    this.owners.lost(server)
    this.forget(server)
  }

  /** Removes a server's events from memory; the store keeps them. */
  forget(server: string): void {
    for (const item of this.lanes.drop(server)) this.gone(item)
  }

  /** Whether a server is configured. Events of others wait until it is. */
  isConfigured(server: string): boolean {
    const configured = this.options.isConfigured?.(server) ?? true
    if (configured) this.#absent.delete(server)
    else if (!this.#absent.has(server)) {
      this.#absent.add(server)
      this.told(server, absent(server), { outcome: 'held' })
    }
    return configured
  }

  /** Reports a diagnostic. */
  told(server: string, what: Why, note: InboxNote): void {
    this.options.onDiagnostic?.(server, what, note)
  }

  /** Reports a failure of the store. */
  failed(server: string, what: string, error: unknown): void {
    const fix = 'Check the store. Accepted events are kept and retried'
    this.told(server, why('INBOX_STORE', 'inbox', `${what}: ${clip(messageOf(error))}`, fix), { outcome: 'dropped' })
  }
}

function absent(server: string): Why {
  const message = `Events of ${clip(server)} wait, because the server is not in the config or is disabled`
  return why('SERVER_ABSENT', 'inbox.server', message, 'Add or enable the server in the config. The events then run')
}

/** A running attempt that is read from the store was cut off by the end of its process. */
function interrupted(attempt: Attempt): Attempt {
  return attempt.outcome === 'running' ? { ...attempt, outcome: 'interrupted' } : attempt
}

/** The settings with their defaults; see `InboxOptions`. */
function settingsOf(options: InboxOptions) {
  const { backoff = { first: '1s', longest: '5m' } } = options
  return {
    waiting: options.waiting ?? 10_000,
    bytes: options.bytes ?? 1024 * 1024,
    attempts: options.attempts ?? 5,
    interruptions: options.interruptions ?? 20,
    firstMs: toMilliseconds(backoff.first, 'backoff.first'),
    longestMs: toMilliseconds(backoff.longest, 'backoff.longest'),
    runMs: toMilliseconds(options.runTime ?? '10m', 'runTime'),
    keepMs: toMilliseconds(options.keep ?? '7d', 'keep'),
  }
}

// Chains: an event starts a turn, the turn calls a server, the server pushes another event, and so on. The depth is known where the server
// names the inference that caused an event. Otherwise it is only suspected, from events that arrive while a turn is at the server or
// shortly after.

/** Limits for chains of events. */
export interface ChainOptions {
  /** Events in a row, each caused by the turn of the previous one. Default 8. */
  readonly depth?: number
  /** How long after a call or a hook an event of that server may be caused by it. Default 1 s. */
  readonly window?: Duration
  /** How long an event waits that seems to be deeper. Default 10 s. */
  readonly pause?: Duration
}

/** The position of an event in its chain. */
interface ChainPosition {
  /** 1: not caused by a turn of the host, as far as is known. */
  readonly depth: number
  /** Servers whose events started the turns that caused it, or may have. */
  readonly through: readonly string[]
  /** The server named the cause. */
  readonly told: boolean
}

/** A turn that an event started: its depth, and the servers whose events led to it. */
interface ChainedTurn {
  readonly depth: number
  readonly servers: readonly string[]
}

const usersTurn: ChainedTurn = { depth: 0, servers: [] }

/** A turn that is at a server, or was recently. */
interface Visit {
  readonly turn: ChainedTurn
  ended: number | undefined
}

const remembered = 10_000
/** Visits per server; older ones are forgotten. */
const mostVisits = 100

/** Tracks which event caused which, so that servers cannot wake each other without end. */
export class Chains {
  readonly depth: number
  readonly pauseMs: number
  readonly #windowMs: number
  readonly #clock: Clock
  /** Turns started by events, by inference, oldest first. */
  readonly #turns = new Map<string, ChainedTurn>()
  readonly #visits = new Map<string, Visit[]>()

  constructor({ depth = 8, window = '1s', pause = '10s' }: ChainOptions, clock: Clock) {
    if (!Number.isSafeInteger(depth) || depth < 1)
      throw new TypeError(`inbox.chain.depth must be a whole number of at least 1, not ${depth}`)
    this.depth = depth
    this.#windowMs = toMilliseconds(window, 'inbox.chain.window')
    this.pauseMs = toMilliseconds(pause, 'inbox.chain.pause')
    this.#clock = clock
  }

  /** An event starts a turn. */
  began(inferenceId: string, depth: number, servers: readonly string[] = []): void {
    this.#turns.delete(inferenceId)
    this.#turns.set(inferenceId, { depth, servers })
    const [oldest] = this.#turns.size > remembered ? this.#turns.keys() : []
    if (oldest !== undefined) this.#turns.delete(oldest)
  }

  /** A turn is at a server; the returned function ends the visit. */
  visits(server: string, inferenceId: string): () => void {
    const visit: Visit = { turn: this.#turns.get(inferenceId) ?? usersTurn, ended: undefined }
    const visits = this.#fresh(server)
    visits.push(visit)
    this.#visits.set(server, visits.slice(-mostVisits))
    return () => {
      visit.ended = this.#clock.now()
    }
  }

  /** The position of an event that arrives now. */
  placeOf(server: string, { origin, extra }: PushEvent): ChainPosition {
    const named = origin?.['inferenceId'] ?? extra?.['inferenceId']
    const known = typeof named === 'string' ? this.#turns.get(named) : undefined
    const visits = this.#visits.has(server) ? this.#fresh(server).map(({ turn }) => turn) : []
    // A named cause does not rule out the others, so suspected servers stay included.
    const led = (known === undefined ? visits : [known, ...visits]).flatMap(({ servers }) => servers)
    const through = [...new Set(led)].filter(other => other !== server).sort()
    if (known !== undefined) return { depth: known.depth + 1, told: true, through }
    return { depth: Math.max(-1, ...visits.map(({ depth }) => depth)) + 1 || 1, told: false, through }
  }

  /** Why an event that is too deep is refused or delayed. */
  tooDeep(server: string, { eventId }: PushEvent, { depth, told }: ChainPosition): Why {
    const what = `Event ${quoted(eventId)} of ${clip(server)}`
    const rule = `inbox.chain.depth ${this.depth}`
    if (told) {
      const message = `${what} is number ${depth} in a chain of events, each caused by the one before. The limit is ${this.depth}`
      return why(
        'CHAIN_TOO_DEEP',
        rule,
        message,
        'Correct the server so that it does not react to its own events, or raise inbox.chain.depth',
      )
    }
    const message = `${what} is probably number ${depth} in a chain of events, each caused by the one before (limit ${this.depth}). It is delayed by ${durationText(this.pauseMs)}`
    const fix = 'Correct the server so that it sends origin.inferenceId with the cause of an event, or raise inbox.chain.depth'
    return why('CHAIN_TOO_DEEP', rule, message, fix)
  }

  /** The visits of a server that are recent enough. */
  #fresh(server: string): Visit[] {
    const since = this.#clock.now() - this.#windowMs
    const fresh = (this.#visits.get(server) ?? []).filter(({ ended }) => ended === undefined || ended >= since)
    if (fresh.length === 0) this.#visits.delete(server)
    return fresh
  }
}

// Ownership: one process runs the events of a server. Another takes over when it lets go or its lease expires. Every write of a run checks
// the owner, so late writes of the previous owner fail.

/** Which process runs the events of a server. */
class Owners {
  readonly #store: Store
  readonly #runners: ProcessLeases
  /** Owned servers, with the version of the owner record. */
  readonly #owned = new Map<string, number>()

  constructor(store: Store, runners: ProcessLeases) {
    this.#store = store
    this.#runners = runners
  }

  owns(server: string): boolean {
    return this.#owned.has(server)
  }

  get servers(): readonly string[] {
    return [...this.#owned.keys()]
  }

  /** Whether a live process has it. */
  async isOwned(server: string): Promise<boolean> {
    const found = await this.#store.get(inboxKeys.owner(server))
    return found !== undefined && (await this.#runners.isAlive(found.value))
  }

  /** An operation that fails when the server is no longer ours; undefined where it is not ours. */
  fence(server: string): Op | undefined {
    const version = this.#owned.get(server)
    return version === undefined ? undefined : check(inboxKeys.owner(server), version)
  }

  /** Takes ownership; false where another live process has it. */
  async take(server: string): Promise<boolean> {
    const key = inboxKeys.owner(server)
    const found = await this.#store.get(key)
    if (found !== undefined && found.value !== this.#runners.id && (await this.#runners.isAlive(found.value))) return false
    const when = found === undefined ? { ifAbsent: true } : { ifVersion: found.version }
    const outcome = await this.#store.commit([put(key, this.#runners.id, when)])
    if (!outcome.ok) return false
    this.#owned.set(server, outcome.results[0]?.version ?? 0)
    return true
  }

  /** Another process has it. */
  lost(server: string): void {
    this.#owned.delete(server)
  }

  /** Gives up all servers, so that others need not wait for the lease. */
  async letGo(): Promise<void> {
    for (const [server, version] of this.#owned) await this.#store.commit([remove(inboxKeys.owner(server), version)])
    this.#owned.clear()
  }
}
