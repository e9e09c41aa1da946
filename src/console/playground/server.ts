/** A server of a playground: a connection for each revision, opened on first use, shared, and closed when nobody used it for a while. */
import { type Client, type ConnectOptions, connect } from '../../client/index.ts'
import type { Cancel, Clock } from '../../core/clock.ts'
import { officialRevisions, type RevisionId, revisionById, revisions } from '../../revisions/index.ts'
import { messageOf } from '../../stores/store.ts'
import type { RevisionRow } from '../contract/calls.ts'
import type { ServerRow, Why } from '../contract/servers.ts'
import { ConsoleFailure } from '../failure.ts'
import { passing } from '../frames/http-heads.ts'
import type { ConnectObserver, Traffic } from '../frames/traffic.ts'
import type { PlaygroundTarget } from '../shown.ts'

/** How long a connection stays open that nobody uses. */
const idleMs = 300_000
/** What is shown of an error. */
const mostSaid = 2_000

export interface PlaygroundServerParts {
  readonly name: string
  readonly target: PlaygroundTarget
  readonly options: ConnectOptions
  readonly clock: Clock
  readonly traffic: Traffic
  /** Its row has changed. */
  changed(): void
}

interface Opened {
  readonly client: Client
  readonly observer: ConnectObserver
  /** How long it took to open. */
  readonly openMs: number
}

interface Slot {
  readonly opening: Promise<Opened>
  opened?: Opened
  users: number
  idle?: Cancel
}

/** A connection that is being used. */
export interface Used {
  readonly client: Client
  readonly connection: string
  /** Present where it was opened for this use. */
  readonly openMs?: number
}

/** How many of each kind a server offers. */
type Counts = Pick<ServerRow, 'tools' | 'resources' | 'prompts'>

/** One server, at any revision. */
export class PlaygroundServer {
  readonly name: string
  readonly #parts: PlaygroundServerParts
  /** Revisions that may be spoken: the official ones, the newest first, then the others. */
  readonly revisions: readonly RevisionId[]
  /** By revision; the one that both sides agree on by themselves is also under `preferred`. */
  readonly #slots = new Map<RevisionId | 'preferred', Slot>()
  readonly #unspoken = new Map<RevisionId, string>()
  readonly #spoken = new Set<RevisionId>()
  #preferred: RevisionId | undefined
  #status: ServerRow['status'] = 'connecting'
  #why: Why | undefined
  #counts: Counts = { tools: 0, resources: 0, prompts: 0 }
  readonly #end = new AbortController()

  constructor(parts: PlaygroundServerParts) {
    this.#parts = parts
    this.name = parts.name
    const wanted = parts.options.revisions
    const others = revisions.map(({ id }) => id).filter(id => !officialRevisions.includes(id))
    this.revisions = [...officialRevisions.toReversed(), ...others].filter(id => wanted?.includes(id) ?? true)
  }

  get row(): ServerRow {
    const slot = this.#slots.get('preferred')?.opened
    const revision = this.#preferred
    const carrier = slot?.observer.last?.row.carrier
    return {
      ...{ name: this.name, status: this.#status, ...this.#counts, held: 0, left: 0 },
      ...(this.#why !== undefined && { why: this.#why }),
      ...(revision !== undefined && { revision, era: eraOf(revision) }),
      ...(carrier !== undefined && { carrier: carrier === 'sse' ? 'http' : carrier }),
    }
  }

  /** What is known of each revision, the newest first. */
  get known(): readonly RevisionRow[] {
    return this.revisions.map(revision => {
      const why = this.#unspoken.get(revision)
      const connection = this.#slots.get(revision)?.opened?.observer.last?.row.name
      return {
        ...{ revision, era: eraOf(revision), preferred: revision === this.#preferred },
        state: this.#spoken.has(revision) ? 'spoken' : why === undefined ? 'unknown' : 'unspoken',
        ...(why !== undefined && !this.#spoken.has(revision) && { why }),
        ...(connection !== undefined && { connection }),
      }
    })
  }

  /** The revision that both sides agree on by themselves, once it is known. */
  get preferred(): RevisionId | undefined {
    return this.#preferred
  }

  /** Opens the preferred connection; also after it was lost. */
  async start(): Promise<void> {
    await this.use(undefined, async () => {}).catch(() => undefined)
  }

  /** Connects again, where it is down. */
  retry(): void {
    if (this.#status === 'down') void this.start()
  }

  /** How much it offers, as far as it was listed. */
  count(counts: Partial<Counts>): void {
    this.#counts = { ...this.#counts, ...counts }
    this.#parts.changed()
  }

  /** One of the revisions of this server, by its id; undefined stays undefined. */
  revisionOf(given: string | undefined): RevisionId | undefined {
    if (given === undefined) return undefined
    const found = this.revisions.find(id => id === given)
    if (found !== undefined) return found
    throw new ConsoleFailure('INVALID_INPUT', 'There is no such revision here.', `Give one of ${this.revisions.join(', ')}.`, {
      member: 'revision',
    })
  }

  /** Works with the connection of a revision, or of the preferred one; rejects where it cannot be opened. */
  async use<T>(revision: RevisionId | undefined, work: (used: Used) => Promise<T>): Promise<T> {
    const key = revision === undefined || revision === this.#preferred ? 'preferred' : revision
    const known = this.#slots.get(key)
    const slot = known ?? this.#open(key)
    slot.users++
    slot.idle?.()
    try {
      const { client, observer, openMs } = await slot.opening
      const connection = observer.last?.row.name ?? this.name
      return await work({ client, connection, ...(known === undefined && { openMs }) })
    } finally {
      slot.users--
      if (slot.users === 0 && key !== 'preferred' && this.#slots.get(key) === slot)
        slot.idle = this.#parts.clock.setTimeout(() => void this.#endIdle(key, slot), idleMs, true)
    }
  }

  async close(): Promise<void> {
    this.#end.abort(new Error('The process is ending'))
    await Promise.all([...new Set(this.#slots.values())].map(slot => this.#closeSlot(slot)))
  }

  #open(key: RevisionId | 'preferred'): Slot {
    if (this.#end.signal.aborted) throw new ConsoleFailure('UNAVAILABLE', 'The process is ending.', 'Start it again.')
    const opening = this.#connect(key)
    const slot: Slot = { opening, users: 0 }
    this.#slots.set(key, slot)
    if (key === 'preferred') this.#become('connecting')
    opening.then(
      opened => this.#opened(key, slot, opened),
      (error: unknown) => this.#failed(key, slot, error),
    )
    return slot
  }

  async #connect(key: RevisionId | 'preferred'): Promise<Opened> {
    const { target, options, traffic, name } = this.#parts
    const observer = traffic.observe(name)
    const began = performance.now()
    const only = key === 'preferred' ? {} : { revisions: [key] }
    const wanted = { ...options, ...only, ...observer.options, signal: this.#end.signal }
    // What is opened here outlives the call that it is opened for, and its frames do not belong to that.
    const client = await passing.run({}, () => connect(typeof target === 'function' ? target() : target, wanted))
    observer.settle(client.revision)
    return { client, observer, openMs: Math.round(performance.now() - began) }
  }

  #opened(key: RevisionId | 'preferred', slot: Slot, opened: Opened): void {
    slot.opened = opened
    const { revision, ended } = opened.client
    this.#spoken.add(revision)
    if (key === 'preferred') {
      this.#preferred = revision
      if (!this.#slots.has(revision)) this.#slots.set(revision, slot)
      this.#become('up')
    }
    void ended.then(error => {
      for (const [name, each] of this.#slots) if (each === slot) this.#slots.delete(name)
      if (key === 'preferred' && !this.#end.signal.aborted) this.#become('down', this.#said(error ?? 'The connection has ended'))
    })
  }

  #failed(key: RevisionId | 'preferred', slot: Slot, error: unknown): void {
    if (this.#slots.get(key) === slot) this.#slots.delete(key)
    const said = this.#said(error)
    if (key === 'preferred') this.#become('down', said)
    else this.#unspoken.set(key, said)
  }

  #said(error: unknown): string {
    return this.#parts.traffic.redaction.text(messageOf(error)).slice(0, mostSaid)
  }

  #become(status: ServerRow['status'], message?: string): void {
    this.#status = status
    const fix = 'See Traffic and Logs, then try again.'
    this.#why = message === undefined ? undefined : { code: 'UNREACHABLE', rule: 'target', message, fix }
    this.#parts.changed()
  }

  async #endIdle(key: RevisionId, slot: Slot): Promise<void> {
    if (slot.users > 0 || this.#slots.get(key) !== slot) return
    this.#slots.delete(key)
    await this.#closeSlot(slot)
  }

  async #closeSlot(slot: Slot): Promise<void> {
    slot.idle?.()
    const opened = await slot.opening.catch(() => undefined)
    await opened?.client.close().catch(() => undefined)
  }
}

function eraOf(revision: RevisionId): 'stateful' | 'stateless' {
  return revisionById(revision).era === 'session' ? 'stateful' : 'stateless'
}
