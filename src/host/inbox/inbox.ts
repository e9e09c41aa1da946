/**
 * The inbox of a host: stores pushed events before they are acknowledged, then runs them in order within each queue, across restarts and
 * processes, until the turn of each is committed. This file joins `acceptance.ts`, `event-queues.ts` and `runs.ts`.
 */
import type { Cancel } from '../../core/clock.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import { add, entriesUnder, put, remove } from '../../stores/store.ts'
import { Acceptance } from './acceptance.ts'
import { InboxContext } from './inbox-context.ts'
import type { AcceptOptions, InboxOptions, InboxRecord, InboxRun, ListOptions, NewestEvents, NewestOptions } from './options.ts'
import { inboxKeys, previewOf, readAttempts, readDead, readSeen, readTodo, type SeenEvent, type Todo } from './records.ts'
import { Runs } from './runs.ts'

/** How often the work of other processes is checked, at most. */
const lookMs = 1_000
/** Events of a server that `newest` looks at. */
const mostLooked = 10_000
/** How long runs may take to end when the inbox closes. */
const graceMs = 5_000

/** The events of servers, from their arrival to the end of their run. */
export class Inbox {
  readonly #context: InboxContext
  readonly #acceptance: Acceptance
  #runs: Runs | undefined
  #timer: Cancel | undefined
  /** By server, the last notice of another process that was handled. */
  readonly #calls = new Map<string, number>()

  constructor(options: InboxOptions) {
    this.#context = new InboxContext(options, async (server, items) => this.#runs?.run(server, items))
    this.#acceptance = new Acceptance(this.#context)
  }

  /** Resolves when the event is stored, deduplicated and has an inference id. */
  accept(server: string, event: PushEvent, options: AcceptOptions = {}): Promise<PushAnswer> {
    return this.#acceptance.accept(server, event, options)
  }

  /**
   * Runs waiting and new events at least once each; exactly once where the turn is committed with `done`. `writesBegin`: the run writes
   * `begin` itself, before anything else, so that both share a commit.
   */
  async open(
    run: InboxRun,
    {
      writesBegin = false,
    }: {
      /** Whether the run writes `begin` itself. Default false. */
      readonly writesBegin?: boolean
    } = {},
  ): Promise<void> {
    if (this.#context.opened) throw new Error('The inbox is already open')
    this.#context.opened = true
    this.#runs = new Runs(this.#context, run, writesBegin)
    const held = this.#context.runners.hold()
    if (held !== undefined) await held
    this.#context.lanes.open()
    for (const server of await this.#waiting()) await this.#context.own(server)
    this.#plan()
  }

  /** Whether this process runs events. */
  get isOpen(): boolean {
    return this.#context.opened
  }

  /** Whether this process, or another one on the store, runs the events of this server. */
  isRun(server: string): Promise<boolean> {
    return this.#context.opened ? Promise.resolve(true) : this.#context.owners.isOwned(server)
  }

  /** Stops: starts no further runs, aborts running ones and waits briefly for them. Other processes then continue at once. */
  async close(): Promise<void> {
    if (!this.#context.opened) return
    this.#timer?.()
    this.#context.lanes.close()
    this.#runs?.end()
    await this.#context.lanes.ended(graceMs)
    this.#context.opened = false
    for (const server of this.#context.owners.servers) this.#context.forget(server)
    // Where the store is unreachable, others notice by the lease.
    await this.#context.owners
      .letGo()
      .catch(error => this.#context.failed('', 'Releasing the servers for other processes failed', error))
    this.#context.runners.release()
    this.#context.runners.close()
  }

  /** Lets withheld events run again, because a budget or rule may have changed. */
  reconsider(): void {
    this.#context.lanes.wake()
  }

  /** A turn is at a server, by a call or a hook; the returned function ends the visit. Events of the server may be caused by it. */
  visits(server: string, inferenceId: string): () => void {
    return this.#context.chains.visits(server, inferenceId)
  }

  /** Lists events, one page at a time; the state filter is applied after reading. */
  async list({ server, state, after, limit = 100 }: ListOptions): Promise<readonly InboxRecord[]> {
    const found: InboxRecord[] = []
    const most = Math.min(limit, 1_000)
    const start = after === undefined ? {} : { after: inboxKeys.seen(server, after) }
    for await (const { value } of entriesUnder(this.#context.store, inboxKeys.seen(server, ''), start)) {
      const seen = readSeen(value)
      if (found.length < most && (state === undefined || seen.state === state)) found.push(await this.#record(server, seen))
      // At once, because the next step might read another page.
      if (found.length >= most) break
    }
    return found
  }

  /** The newest events of several servers. Looks at so many of each server at most, because events are stored by id, not by time. */
  async newest({ servers, state, skip = 0, limit = 100 }: NewestOptions): Promise<NewestEvents> {
    const counts = { waiting: 0, done: 0, refused: 0, dead: 0 }
    const found: { readonly server: string; readonly seen: SeenEvent }[] = []
    let cut = false
    for (const server of servers) {
      let looked = 0
      for await (const { value } of entriesUnder(this.#context.store, inboxKeys.seen(server, ''))) {
        if (looked++ === mostLooked) {
          cut = true
          break
        }
        const seen = readSeen(value)
        counts[seen.state] += 1
        if (state === undefined || seen.state === state) found.push({ server, seen })
      }
    }
    found.sort((one, other) => other.seen.at - one.seen.at || (one.seen.seq < other.seen.seq ? 1 : -1))
    const shown = found.slice(skip, skip + Math.min(limit, 1_000))
    return { items: await Promise.all(shown.map(({ server, seen }) => this.#record(server, seen))), counts, cut }
  }

  /** One event. */
  async get(server: string, eventId: string): Promise<InboxRecord | undefined> {
    const entry = await this.#context.store.get(inboxKeys.seen(server, eventId))
    return entry && this.#record(server, readSeen(entry.value))
  }

  /** Dead events: given up after too many attempts. They keep their whole content, for a replay. */
  async dead(server: string): Promise<readonly InboxRecord[]> {
    const found = await this.#context.store.scan(inboxKeys.dead(server, ''))
    return found.map(({ value }) => {
      const { event, inferenceId, at, attempts, why } = readDead(value)
      const { eventId, featureSet } = event
      return { server, eventId, featureSet, inferenceId, state: 'dead', at, preview: previewOf(event), attempts, why, event }
    })
  }

  /** Tries a dead event again: puts it back into its queue, in one commit. False where there is none. */
  async replay(server: string, eventId: string): Promise<boolean> {
    const { store } = this.#context
    const known = await store.get(inboxKeys.seen(server, eventId))
    const seen = known === undefined ? undefined : readSeen(known.value)
    if (known === undefined || seen?.state !== 'dead') return false
    const buried = await store.get(inboxKeys.dead(server, seen.seq))
    if (buried === undefined) return false
    const { attempts: _, why: __, ...todo } = readDead(buried.value)
    const seq = this.#context.nextSeq()
    const waiting: SeenEvent = { ...seen, seq, state: 'waiting' }
    const outcome = await store.commit([
      remove(buried.key, buried.version),
      put(known.key, JSON.stringify(waiting), { ifVersion: known.version }),
      put(inboxKeys.todo(server, seq), JSON.stringify(todo satisfies Todo)),
      add(inboxKeys.count(server), 1),
      put(inboxKeys.call(server), seq),
    ])
    if (!outcome.ok) return false
    if (this.#context.owners.owns(server)) await this.#context.load(server)
    else await this.#context.own(server)
    this.#context.options.onChange?.(server, eventId)
    return true
  }

  /** A stored record with what only the queue knows. */
  async #record(server: string, seen: SeenEvent): Promise<InboxRecord> {
    const { eventId, featureSet, inferenceId, state, at, preview = '', attempts = [], why } = seen
    const base = { server, eventId, featureSet, inferenceId, state, at, preview, attempts, ...(why && { why }) }
    if (state !== 'waiting') return base
    const [todo, tries] = await Promise.all([
      this.#context.store.get(inboxKeys.todo(server, seen.seq)),
      this.#context.store.get(inboxKeys.try(server, seen.seq)),
    ])
    if (todo === undefined) return base
    const { event, ...asked } = readTodo(todo.value)
    const notBefore = seen.notBefore ?? asked.notBefore
    const tried = tries === undefined ? attempts : readAttempts(tries.value)
    return { ...base, attempts: tried, event, ...(notBefore !== undefined && { notBefore }) }
  }

  /** Servers with waiting events. One read per server, however many events it has. */
  async #waiting(): Promise<readonly string[]> {
    const servers: string[] = []
    for (let after: string | undefined; ; ) {
      const [first] = await this.#context.store.scan(inboxKeys.todos, { limit: 1, ...(after !== undefined && { after }) })
      if (first === undefined) return servers
      const server = serverOfKey(first.key)
      servers.push(server)
      after = inboxKeys.todo(server, '~')
    }
  }

  /** Schedules the next check of other processes. */
  #plan(): void {
    const look = (): void => {
      this.#lookAround()
        .catch(error => this.#context.failed('', 'Reading the state of other processes failed', error))
        .finally(() => {
          if (this.#context.opened) this.#plan()
        })
    }
    this.#timer = this.#context.clock.setTimeout(look, Math.min(lookMs, this.#context.runners.leaseMs / 3), true)
  }

  /** Loads events that others accepted for our servers, and takes over servers of processes that ended. */
  async #lookAround(): Promise<void> {
    for (const { key, version } of await this.#context.store.scan(inboxKeys.calls)) {
      const server = serverOfKey(key)
      if (this.#context.owners.owns(server)) {
        if (this.#calls.get(server) !== version) await this.#context.load(server)
        this.#calls.set(server, version)
      } else await this.#context.own(server)
    }
    for (const server of await this.#waiting()) if (!this.#context.owners.owns(server)) await this.#context.own(server)
  }
}

/** The server in a key of a queued event or a notice. */
function serverOfKey(key: string): string {
  return decodeURIComponent(key.split('/')[2] ?? '')
}
