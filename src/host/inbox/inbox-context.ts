/** What the parts of an inbox share: the store, the lanes, who owns what, and the settings with their defaults. */
import { randomUUID } from 'node:crypto'
import { type Clock, type Duration, durationText, realClock, toMilliseconds } from '../../core/clock.ts'
import { Runners } from '../../core/journal/runners.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { check, messageOf, type Op, put, remove, type Store } from '../../stores/store.ts'
import { EventQueues, type Item } from './event-queues.ts'
import type { InboxNote, InboxOptions } from './options.ts'
import {
  type Attempt,
  inboxOwnerKey,
  numberOf,
  readAttempts,
  readTodo,
  seqOf,
  seqText,
  type Todo,
  todoKey,
  tryKey,
} from './records.ts'

interface InboxSettings {
  readonly waiting: number
  readonly bytes: number
  readonly attempts: number
  readonly interruptions: number
  readonly firstMs: number
  readonly longestMs: number
  readonly runMs: number
  readonly keepMs: number
}

/** Events that are held in memory while they wait; those beyond are read again when it is their turn. */
const held = 5_000

/** What the parts of an inbox share. */
export class InboxContext {
  readonly store: Store
  readonly clock: Clock
  readonly options: InboxOptions
  readonly settings: InboxSettings
  readonly runners: Runners
  readonly owners: Owners
  readonly lanes: EventQueues
  readonly chains: Chains
  readonly id: () => string
  readonly random: () => number
  opened = false
  readonly #owning = new Map<string, Promise<boolean>>()
  /** Servers that are not in the config, and of which this was told. */
  readonly #absent = new Set<string>()
  #held = 0
  #last = 0

  constructor(options: InboxOptions, run: (server: string, items: readonly Item[]) => Promise<void>) {
    const { store, clock = realClock, id = randomUUID, random = Math.random, concurrency = 4 } = options
    this.options = options
    this.settings = settingsOf(options)
    this.store = store
    this.clock = clock
    this.id = id
    this.random = random
    this.runners = new Runners({ store, clock, id: id(), leaseMs: toMilliseconds(options.lease ?? '6s', 'lease') })
    this.chains = new Chains(options.chain ?? {}, clock)
    this.owners = new Owners(store, this.runners)
    const perServer = options.perServer ?? Math.max(1, Math.ceil(concurrency / 2))
    this.lanes = new EventQueues({ clock, concurrency, perServer, run })
  }

  /** Grows with time, and always: also where the clock is set back. */
  nextSeq(): string {
    this.#last = Math.max(this.#last + 1, this.clock.now() * 1024)
    return seqText(this.#last, this.runners.id)
  }

  /** Puts what is written into its lane, if this process runs it. `seat` is its place where one was kept. */
  place(server: string, seq: string, version: number, todo: Todo, attempts: readonly Attempt[] = [], seat?: Item): void {
    const item = seat ?? this.lanes.reserve(server, todo.lane, seq)
    item.version = version
    item.attempts = attempts
    item.notBefore = todo.notBefore ?? 0
    item.todo = todo
    this.#held++
    if (this.#held > held) this.#lighten(item, todo)
    this.lanes.ready(server, todo.lane, item)
  }

  /** Its event is on the store. */
  #lighten(item: Item, todo: Todo): void {
    this.#held--
    item.todo = { ...todo, event: { ...todo.event, content: [] } }
    item.light = true
  }

  /** What there is to do of an item; undefined where it is done already, or was taken away. */
  async body(server: string, item: Item): Promise<Todo | undefined> {
    if (!item.light) return item.todo
    const entry = await this.store.get(todoKey(server, item.seq))
    if (entry === undefined || entry.version !== item.version) return undefined
    return readTodo(entry.value)
  }

  gone(item: Item): void {
    if (item.state === 'ready' && !item.light) this.#held--
    item.state = 'gone'
  }

  /** Makes a server ours, if nobody else has it, and reads what waits. */
  own(server: string): Promise<boolean> {
    let owning = this.#owning.get(server)
    if (owning === undefined) {
      owning = this.#own(server).finally(() => this.#owning.delete(server))
      this.#owning.set(server, owning)
    }
    return owning
  }

  async #own(server: string): Promise<boolean> {
    // Another process may have it in its config: it is left to that one.
    if (!this.opened || !this.isConfigured(server)) return false
    if (this.owners.owns(server)) return true
    if (!(await this.owners.take(server))) return false
    // Nothing runs before all is read: what came first has the first turn.
    await this.load(server)
    if (this.owners.owns(server)) this.lanes.activate(server)
    return true
  }

  /** Reads what waits of a server that is ours. What is here already stays as it is. */
  async load(server: string): Promise<void> {
    const tries = new Map<string, readonly Attempt[]>()
    for await (const { key, value } of this.#pages(tryKey(server, ''))) tries.set(seqOf(key), readAttempts(value))
    for await (const { key, value, version } of this.#pages(todoKey(server, ''))) {
      const seq = seqOf(key)
      this.#last = Math.max(this.#last, numberOf(seq))
      if (!this.owners.owns(server)) return
      if (!this.lanes.has(server, seq)) this.place(server, seq, version, readTodo(value), (tries.get(seq) ?? []).map(interrupted))
    }
  }

  async *#pages(start: string) {
    for (let after: string | undefined; ; ) {
      const page = await this.store.scan(start, after === undefined ? {} : { after })
      yield* page
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }

  /** Another process has it now. */
  lost(server: string): void {
    this.owners.lost(server)
    this.forget(server)
  }

  /** What waits is on the store; here it is not needed any more. */
  forget(server: string): void {
    for (const item of this.lanes.drop(server)) this.gone(item)
  }

  /** Whether its events may run now. Where it is not in the config they are neither run nor lost: they wait until it is. */
  isConfigured(server: string): boolean {
    const configured = this.options.isConfigured?.(server) ?? true
    if (configured) this.#absent.delete(server)
    else if (!this.#absent.has(server)) {
      this.#absent.add(server)
      this.told(server, absent(server), { outcome: 'held' })
    }
    return configured
  }

  told(server: string, what: Why, note: InboxNote): void {
    this.options.onDiagnostic?.(server, what, note)
  }

  failed(server: string, what: string, error: unknown): void {
    const fix = 'Look at the store; what was accepted is kept and tried again'
    this.told(server, why('INBOX_STORE', 'inbox', `${what}: ${clip(messageOf(error))}`, fix), { outcome: 'dropped' })
  }
}

function absent(server: string): Why {
  const message = `Events of ${clip(server)} wait: it is not in the config, or switched off`
  return why('SERVER_ABSENT', 'inbox.server', message, 'Put it into the config again; then they run')
}

/** Whoever was at it has ended in the midst of it: else it would not be read anew. */
function interrupted(attempt: Attempt): Attempt {
  return attempt.outcome === 'running' ? { ...attempt, outcome: 'interrupted' } : attempt
}

function settingsOf(options: InboxOptions): InboxSettings {
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

// Chains: an event becomes a turn, the turn reaches a server by a call or a hook, the server pushes the next event, and so on. How
// deep an event lies in one is known where its server says which inference it came of. Where it does not, it can only be suspected:
// the event came while a turn was at that server, or right after.

/** How long chains of events may become. */
export interface ChainOptions {
  /** Events in a row, each brought about by the turn of the one before. Default 8. */
  readonly depth?: number
  /** How long after a call or a hook an event of that server may have come of it. Default 1 s. */
  readonly window?: Duration
  /** How long an event waits that seems to lie deeper. Default 10 s. */
  readonly pause?: Duration
}

/** Where an event stands in the chain that led to it. */
export interface ChainPosition {
  /** 1: nothing of ours brought it about, as far as is known. */
  readonly depth: number
  /** Servers whose events began the turns that it came of, or may have come of. */
  readonly through: readonly string[]
  /** Its server said so. */
  readonly told: boolean
}

/** A turn that an event began: how deep it lies, and the servers whose events led to it. */
interface ChainedTurn {
  readonly depth: number
  readonly servers: readonly string[]
}

const usersTurn: ChainedTurn = { depth: 0, servers: [] }

/** A turn that is, or was just now, at a server. */
interface Visit {
  readonly turn: ChainedTurn
  ended: number | undefined
}

const remembered = 10_000
/** Visits of one server that are told apart, at most: beyond that the oldest are forgotten. */
const visitsKept = 100

/** Knows which event led to which, so that servers cannot wake each other without end. */
export class Chains {
  readonly depth: number
  readonly pauseMs: number
  readonly #windowMs: number
  readonly #clock: Clock
  /** The turns that events began, by inference, the oldest first. */
  readonly #turns = new Map<string, ChainedTurn>()
  readonly #visits = new Map<string, Visit[]>()

  constructor({ depth = 8, window = '1s', pause = '10s' }: ChainOptions, clock: Clock) {
    if (!Number.isSafeInteger(depth) || depth < 1)
      throw new TypeError(`inbox.chain.depth is ${depth}: give a whole number from 1`)
    this.depth = depth
    this.#windowMs = toMilliseconds(window, 'inbox.chain.window')
    this.pauseMs = toMilliseconds(pause, 'inbox.chain.pause')
    this.#clock = clock
  }

  /** An event becomes a turn. */
  began(inferenceId: string, depth: number, servers: readonly string[] = []): void {
    this.#turns.delete(inferenceId)
    this.#turns.set(inferenceId, { depth, servers })
    const [oldest] = this.#turns.size > remembered ? this.#turns.keys() : []
    if (oldest !== undefined) this.#turns.delete(oldest)
  }

  /** A turn is at a server; what is returned says that it has left it. */
  visits(server: string, inferenceId: string): () => void {
    const visit: Visit = { turn: this.#turns.get(inferenceId) ?? usersTurn, ended: undefined }
    const visits = this.#fresh(server)
    visits.push(visit)
    this.#visits.set(server, visits.slice(-visitsKept))
    return () => {
      visit.ended = this.#clock.now()
    }
  }

  /** Where an event stands that comes now. */
  placeOf(server: string, { origin, extra }: PushEvent): ChainPosition {
    const named = origin?.['inferenceId'] ?? extra?.['inferenceId']
    const known = typeof named === 'string' ? this.#turns.get(named) : undefined
    const visits = this.#visits.has(server) ? this.#fresh(server).map(({ turn }) => turn) : []
    // What a server says makes it no less likely that the others were the cause: who is suspected stays so.
    const led = (known === undefined ? visits : [known, ...visits]).flatMap(({ servers }) => servers)
    const through = [...new Set(led)].filter(other => other !== server).sort()
    if (known !== undefined) return { depth: known.depth + 1, told: true, through }
    return { depth: Math.max(-1, ...visits.map(({ depth }) => depth)) + 1 || 1, told: false, through }
  }

  /** Why one that lies too deep does not run, or not now. */
  tooDeep(server: string, { eventId }: PushEvent, { depth, told }: ChainPosition): Why {
    const what = `Event ${quoted(eventId)} of ${clip(server)}`
    const rule = `inbox.chain.depth ${this.depth}`
    if (told) {
      const message = `${what} is number ${depth} of events that each came of the one before`
      return why('CHAIN_TOO_DEEP', rule, message, 'Let the server not answer its own events, or raise inbox.chain.depth')
    }
    const message = `${what} seems to be number ${depth} of events that each came of the one before: it waits ${durationText(this.pauseMs)}`
    const fix = 'Let the server say origin.inferenceId where it knows what an event came of, or raise inbox.chain.depth'
    return why('CHAIN_TOO_DEEP', rule, message, fix)
  }

  #fresh(server: string): Visit[] {
    const since = this.#clock.now() - this.#windowMs
    const fresh = (this.#visits.get(server) ?? []).filter(({ ended }) => ended === undefined || ended >= since)
    if (fresh.length === 0) this.#visits.delete(server)
    return fresh
  }
}

// Who runs the events of a server: one process at a time. Another takes over once that one has let go or is silent for longer than
// its lease; whatever the silent one still writes fails, since every write of a run checks who the owner is.

/** Which process works on the events of a server. */
class Owners {
  readonly #store: Store
  readonly #runners: Runners
  /** Servers that are ours, by the version of the record that says so. */
  readonly #owned = new Map<string, number>()

  constructor(store: Store, runners: Runners) {
    this.#store = store
    this.#runners = runners
  }

  owns(server: string): boolean {
    return this.#owned.has(server)
  }

  get servers(): readonly string[] {
    return [...this.#owned.keys()]
  }

  /** Holds only as long as it is ours. Undefined where it is not. */
  fence(server: string): Op | undefined {
    const version = this.#owned.get(server)
    return version === undefined ? undefined : check(inboxOwnerKey(server), version)
  }

  /** Whether it is ours now. */
  async take(server: string): Promise<boolean> {
    if (this.#owned.has(server)) return true
    const key = inboxOwnerKey(server)
    const found = await this.#store.get(key)
    if (found !== undefined && found.value !== this.#runners.id && (await this.#runners.isAlive(found.value))) return false
    const when = found === undefined ? { ifAbsent: true } : { ifVersion: found.version }
    const outcome = await this.#store.commit([put(key, this.#runners.id, when)])
    if (!outcome.ok) return false
    this.#owned.set(server, outcome.results[0]?.version ?? 0)
    return true
  }

  /** Another has it. */
  lost(server: string): void {
    this.#owned.delete(server)
  }

  /** Others need not wait for the lease to end. */
  async letGo(): Promise<void> {
    for (const [server, version] of this.#owned) await this.#store.commit([remove(inboxOwnerKey(server), version)])
    this.#owned.clear()
  }
}
