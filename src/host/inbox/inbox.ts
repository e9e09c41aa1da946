/**
 * The inbox of a host: events that servers push are written down before they are answered, then run one after the other within their
 * lane, across restarts and processes, each until its turn is committed.
 */
import type { Cancel } from '../../core/clock.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import { add, put, remove } from '../../stores/ops.ts'
import { Acceptance } from './acceptance.ts'
import type { AcceptOptions, Inbox, InboxOptions, InboxRecord, InboxRun, ListOptions, OpenOptions } from './options.ts'
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
  type Seen,
  seenKey,
  serverOf,
  type Todo,
  todoKey,
  tryKey,
} from './records.ts'
import { Runs } from './runs.ts'
import { Shelf } from './shelf.ts'

export function createInbox(options: InboxOptions): Inbox {
  return new HostInbox(options)
}

/** How often a look is taken at what other processes do, at most. */
const lookMs = 1_000
/** How long what runs has to end. */
const graceMs = 5_000

class HostInbox implements Inbox {
  readonly #shelf: Shelf
  readonly #acceptance: Acceptance
  #runs: Runs | undefined
  #timer: Cancel | undefined
  /** The last calls of other processes that were answered, by server. */
  readonly #calls = new Map<string, number>()

  constructor(options: InboxOptions) {
    this.#shelf = new Shelf(options, async (server, items) => this.#runs?.run(server, items))
    this.#acceptance = new Acceptance(this.#shelf)
  }

  accept(server: string, event: PushEvent, options: AcceptOptions = {}): Promise<PushAnswer> {
    return this.#acceptance.accept(server, event, options)
  }

  async open(run: InboxRun, options: OpenOptions = {}): Promise<void> {
    if (this.#shelf.opened) throw new Error('The inbox is open already')
    this.#shelf.opened = true
    this.#runs = new Runs(this.#shelf, run, options)
    const held = this.#shelf.runners.hold()
    if (held !== undefined) await held
    this.#shelf.lanes.open()
    for (const server of await this.#waiting()) await this.#shelf.own(server)
    this.#plan()
  }

  async close(): Promise<void> {
    if (!this.#shelf.opened) return
    this.#timer?.()
    this.#shelf.lanes.close()
    this.#runs?.end()
    await this.#shelf.lanes.ended(graceMs)
    this.#shelf.opened = false
    for (const server of this.#shelf.owners.servers) this.#shelf.forget(server)
    // Where the store is gone, others find out by the lease.
    await this.#shelf.owners.letGo().catch(error => this.#shelf.failed('', 'Servers could not be handed over', error))
    this.#shelf.runners.release()
    this.#shelf.runners.close()
  }

  reconsider(): void {
    this.#shelf.lanes.wake()
  }

  visits(server: string, inferenceId: string): () => void {
    return this.#shelf.chains.visits(server, inferenceId)
  }

  async list({ server, state, after, limit = 100 }: ListOptions): Promise<readonly InboxRecord[]> {
    const start = seenKey(server, '')
    const found: InboxRecord[] = []
    const most = Math.min(limit, 1_000)
    for (let from = after === undefined ? undefined : seenKey(server, after); found.length < most; ) {
      const page = await this.#shelf.store.scan(start, from === undefined ? {} : { after: from })
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
    const entry = await this.#shelf.store.get(seenKey(server, eventId))
    return entry === undefined ? undefined : this.#record(server, readSeen(entry.value))
  }

  async dead(server: string): Promise<readonly InboxRecord[]> {
    const found = await this.#shelf.store.scan(`${prefix}dead/${part(server)}/`)
    return found.map(({ value }) => {
      const { event, inferenceId, at, attempts, why } = readDead(value)
      const { eventId, featureSet } = event
      return { server, eventId, featureSet, inferenceId, state: 'dead', at, preview: previewOf(event), attempts, why, event }
    })
  }

  async replay(server: string, eventId: string): Promise<boolean> {
    const { store } = this.#shelf
    const known = await store.get(seenKey(server, eventId))
    const seen = known === undefined ? undefined : readSeen(known.value)
    if (known === undefined || seen?.state !== 'dead') return false
    const buried = await store.get(deadKey(server, seen.seq))
    if (buried === undefined) return false
    const { attempts: _, why: __, ...todo } = readDead(buried.value)
    const seq = this.#shelf.nextSeq()
    const waiting: Seen = { ...seen, seq, state: 'waiting' }
    const outcome = await store.commit([
      remove(buried.key, buried.version),
      put(known.key, JSON.stringify(waiting), { ifVersion: known.version }),
      put(todoKey(server, seq), JSON.stringify(todo satisfies Todo)),
      add(countKey(server), 1),
      put(callKey(server), seq),
    ])
    if (!outcome.ok) return false
    if (this.#shelf.owners.owns(server)) await this.#shelf.load(server)
    else await this.#shelf.own(server)
    return true
  }

  async #record(server: string, seen: Seen): Promise<InboxRecord> {
    const { eventId, featureSet, inferenceId, state, at, preview = '', attempts = [], why } = seen
    const base = { server, eventId, featureSet, inferenceId, state, at, preview, attempts, ...(why && { why }) }
    if (state !== 'waiting') return base
    const [todo, tries] = await Promise.all([
      this.#shelf.store.get(todoKey(server, seen.seq)),
      this.#shelf.store.get(tryKey(server, seen.seq)),
    ])
    if (todo === undefined) return base
    const { event, ...asked } = readTodo(todo.value)
    const notBefore = seen.notBefore ?? asked.notBefore
    const tried = tries === undefined ? attempts : readAttempts(tries.value)
    return { ...base, attempts: tried, event, ...(notBefore !== undefined && { notBefore }) }
  }

  /** Servers of which something waits. Each is found by one look, however much that is. */
  async #waiting(): Promise<readonly string[]> {
    const start = `${prefix}todo/`
    const servers: string[] = []
    for (let after: string | undefined; ; ) {
      const [first] = await this.#shelf.store.scan(start, { limit: 1, ...(after !== undefined && { after }) })
      if (first === undefined) return servers
      const server = serverOf(first.key)
      servers.push(server)
      after = `${start}${part(server)}/~`
    }
  }

  #plan(): void {
    const look = (): void => {
      this.#lookAround()
        .catch(error => this.#shelf.failed('', 'What other processes do could not be read', error))
        .finally(() => {
          if (this.#shelf.opened) this.#plan()
        })
    }
    this.#timer = this.#shelf.clock.setTimeout(look, Math.min(lookMs, this.#shelf.runners.leaseMs / 3), true)
  }

  /** What others accepted for servers of ours is read; servers of processes that ended become ours. */
  async #lookAround(): Promise<void> {
    for (const { key, version } of await this.#shelf.store.scan(`${prefix}call/`)) {
      const server = serverOf(key)
      if (this.#shelf.owners.owns(server)) {
        if (this.#calls.get(server) !== version) await this.#shelf.load(server)
        this.#calls.set(server, version)
      } else await this.#shelf.own(server)
    }
    for (const server of await this.#waiting()) if (!this.#shelf.owners.owns(server)) await this.#shelf.own(server)
  }
}
