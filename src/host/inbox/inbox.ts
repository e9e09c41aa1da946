/**
 * The inbox of a host: stores pushed events before they are acknowledged, then runs them in order within each queue, across restarts and
 * processes, until the turn of each is committed. This file joins `acceptance.ts`, `event-queues.ts` and `runs.ts`.
 */
import type { Cancel } from '../../core/clock.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import { add, put, remove } from '../../stores/store.ts'
import { Acceptance } from './acceptance.ts'
import { InboxContext } from './inbox-context.ts'
import type { AcceptOptions, Inbox, InboxOpenOptions, InboxOptions, InboxRecord, InboxRun, ListOptions } from './options.ts'
import {
  callKey,
  countKey,
  deadKey,
  part,
  prefix,
  previewOf,
  readAttempts,
  readDead,
  readSeen,
  readTodo,
  type SeenEvent,
  seenKey,
  serverOfKey,
  type Todo,
  todoKey,
  tryKey,
} from './records.ts'
import { Runs } from './runs.ts'

/** Creates the inbox of a host. */
export function createInbox(options: InboxOptions): Inbox {
  return new HostInbox(options)
}

/** How often the work of other processes is checked, at most. */
const lookMs = 1_000
/** How long runs may take to end when the inbox closes. */
const graceMs = 5_000

class HostInbox implements Inbox {
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

  accept(server: string, event: PushEvent, options: AcceptOptions = {}): Promise<PushAnswer> {
    return this.#acceptance.accept(server, event, options)
  }

  async open(run: InboxRun, options: InboxOpenOptions = {}): Promise<void> {
    if (this.#context.opened) throw new Error('The inbox is open already')
    this.#context.opened = true
    this.#runs = new Runs(this.#context, run, options)
    const held = this.#context.runners.hold()
    if (held !== undefined) await held
    this.#context.lanes.open()
    for (const server of await this.#waiting()) await this.#context.own(server)
    this.#plan()
  }

  /** Stops runs, then gives up ownership so that other processes continue at once. */
  async close(): Promise<void> {
    if (!this.#context.opened) return
    this.#timer?.()
    this.#context.lanes.close()
    this.#runs?.end()
    await this.#context.lanes.ended(graceMs)
    this.#context.opened = false
    for (const server of this.#context.owners.servers) this.#context.forget(server)
    // Where the store is unreachable, others notice by the lease.
    await this.#context.owners.letGo().catch(error => this.#context.failed('', 'Servers could not be handed over', error))
    this.#context.runners.release()
    this.#context.runners.close()
  }

  reconsider(): void {
    this.#context.lanes.wake()
  }

  visits(server: string, inferenceId: string): () => void {
    return this.#context.chains.visits(server, inferenceId)
  }

  /** Pages through the records of a server; the state filter is applied after reading. */
  async list({ server, state, after, limit = 100 }: ListOptions): Promise<readonly InboxRecord[]> {
    const start = seenKey(server, '')
    const found: InboxRecord[] = []
    const most = Math.min(limit, 1_000)
    for (let from = after === undefined ? undefined : seenKey(server, after); found.length < most; ) {
      const page = await this.#context.store.scan(start, from === undefined ? {} : { after: from })
      const last = page.at(-1)
      if (last === undefined) break
      for (const { value } of page) {
        const seen = readSeen(value)
        if (found.length < most && (state === undefined || seen.state === state)) found.push(await this.#record(server, seen))
      }
      from = last.key
    }
    return found
  }

  async get(server: string, eventId: string): Promise<InboxRecord | undefined> {
    const entry = await this.#context.store.get(seenKey(server, eventId))
    return entry === undefined ? undefined : this.#record(server, readSeen(entry.value))
  }

  /** Dead events keep their whole content, for a replay. */
  async dead(server: string): Promise<readonly InboxRecord[]> {
    const found = await this.#context.store.scan(`${prefix}dead/${part(server)}/`)
    return found.map(({ value }) => {
      const { event, inferenceId, at, attempts, why } = readDead(value)
      const { eventId, featureSet } = event
      return { server, eventId, featureSet, inferenceId, state: 'dead', at, preview: previewOf(event), attempts, why, event }
    })
  }

  /** Puts a dead event back into its queue, in one commit. */
  async replay(server: string, eventId: string): Promise<boolean> {
    const { store } = this.#context
    const known = await store.get(seenKey(server, eventId))
    const seen = known === undefined ? undefined : readSeen(known.value)
    if (known === undefined || seen?.state !== 'dead') return false
    const buried = await store.get(deadKey(server, seen.seq))
    if (buried === undefined) return false
    const { attempts: _, why: __, ...todo } = readDead(buried.value)
    const seq = this.#context.nextSeq()
    const waiting: SeenEvent = { ...seen, seq, state: 'waiting' }
    const outcome = await store.commit([
      remove(buried.key, buried.version),
      put(known.key, JSON.stringify(waiting), { ifVersion: known.version }),
      put(todoKey(server, seq), JSON.stringify(todo satisfies Todo)),
      add(countKey(server), 1),
      put(callKey(server), seq),
    ])
    if (!outcome.ok) return false
    if (this.#context.owners.owns(server)) await this.#context.load(server)
    else await this.#context.own(server)
    return true
  }

  /** A stored record with what only the queue knows. */
  async #record(server: string, seen: SeenEvent): Promise<InboxRecord> {
    const { eventId, featureSet, inferenceId, state, at, preview = '', attempts = [], why } = seen
    const base = { server, eventId, featureSet, inferenceId, state, at, preview, attempts, ...(why && { why }) }
    if (state !== 'waiting') return base
    const [todo, tries] = await Promise.all([
      this.#context.store.get(todoKey(server, seen.seq)),
      this.#context.store.get(tryKey(server, seen.seq)),
    ])
    if (todo === undefined) return base
    const { event, ...asked } = readTodo(todo.value)
    const notBefore = seen.notBefore ?? asked.notBefore
    const tried = tries === undefined ? attempts : readAttempts(tries.value)
    return { ...base, attempts: tried, event, ...(notBefore !== undefined && { notBefore }) }
  }

  /** Servers with waiting events. One read per server, however many events it has. */
  async #waiting(): Promise<readonly string[]> {
    const start = `${prefix}todo/`
    const servers: string[] = []
    for (let after: string | undefined; ; ) {
      const [first] = await this.#context.store.scan(start, { limit: 1, ...(after !== undefined && { after }) })
      if (first === undefined) return servers
      const server = serverOfKey(first.key)
      servers.push(server)
      after = `${start}${part(server)}/~`
    }
  }

  /** Schedules the next check of other processes. */
  #plan(): void {
    const look = (): void => {
      this.#lookAround()
        .catch(error => this.#context.failed('', 'What other processes do could not be read', error))
        .finally(() => {
          if (this.#context.opened) this.#plan()
        })
    }
    this.#timer = this.#context.clock.setTimeout(look, Math.min(lookMs, this.#context.runners.leaseMs / 3), true)
  }

  /** Loads events that others accepted for our servers, and takes over servers of processes that ended. */
  async #lookAround(): Promise<void> {
    for (const { key, version } of await this.#context.store.scan(`${prefix}call/`)) {
      const server = serverOfKey(key)
      if (this.#context.owners.owns(server)) {
        if (this.#calls.get(server) !== version) await this.#context.load(server)
        this.#calls.set(server, version)
      } else await this.#context.own(server)
    }
    for (const server of await this.#waiting()) if (!this.#context.owners.owns(server)) await this.#context.own(server)
  }
}
