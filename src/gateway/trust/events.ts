/**
 * Notifications of upstreams as events that clients subscribe to: `resource_updated` and `list_changed` for each upstream. With several
 * processes on one store, `NotificationOwner` decides which of them publishes.
 */
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import type { Cancel, Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'
import { ProcessLeases } from '../../core/journal/process-leases.ts'
import { Tally } from '../../core/occupancy.ts'
import { pause } from '../../engine/backoff.ts'
import type { EventHandle } from '../../features/reliability/events/offering.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Server } from '../../server/api.ts'
import { type Entry, entriesUnder, put, remove, type Store } from '../../stores/store.ts'
import type { TrustSettings } from './settings.ts'

type ChangedList = 'tools' | 'resources' | 'prompts'

/** The schema of all event payloads. */
const payload = {
  type: 'object',
  properties: { upstream: { type: 'string' }, uri: { type: 'string' }, list: { type: 'string' } },
  required: ['upstream'],
} as const

type Handle = EventHandle<typeof payload>

/** A payload. */
interface EventPayload {
  readonly upstream: string
  readonly uri?: string
  readonly list?: string
}

/** Events per upstream. */
const mostPerSecond = 50
/** Pending events per upstream. */
const mostTelling = 10_000

/** Publishes at most one event at a time per subject, at a bounded rate per upstream. */
export class UpstreamEvents {
  /** Resources that are watched even if no client does, by the upstream's own addresses. */
  readonly standing: readonly (readonly [upstream: string, uri: string])[]
  readonly #server: () => Server | undefined
  readonly #failed: (error: unknown) => void
  readonly #owners: NotificationOwner
  readonly #handles = new Map<string, Handle>()
  readonly #clock: Clock
  readonly #pace: Buckets
  /** Subjects that are being published; `again`: one more event follows. */
  readonly #telling = new Map<string, { again: boolean }>()
  /** Pending events by upstream. */
  readonly #waiting = new Tally<string>()
  readonly #end = new AbortController()

  constructor(
    setting: true | Exclude<TrustSettings['events'], boolean | undefined>,
    server: () => Server | undefined,
    parts: NotificationOwnerParts,
  ) {
    this.#server = server
    this.#failed = parts.failed
    this.#owners = new NotificationOwner(parts)
    this.#clock = parts.clock
    this.#pace = createBuckets({ perSecond: mostPerSecond, clock: parts.clock })
    const named = typeof setting === 'object' ? Object.entries(setting) : []
    this.standing = named.flatMap(([upstream, uris]) => [...new Set(uris)].map(uri => [upstream, uri] as const))
  }

  /** The upstream is connected: its events can be subscribed to. */
  offer(upstream: string): void {
    this.#of(`${upstream}/resource_updated`, `A resource of the server ${upstream} has changed`)
    this.#of(`${upstream}/list_changed`, `The tools, resources or prompts of the server ${upstream} have changed`)
    this.#owners.begin(`${upstream}\nlists`)
  }

  /** The upstream is gone. */
  gone(upstream: string): void {
    this.#owners.end(`${upstream}\nlists`)
  }

  /** A resource is watched there, or no longer. */
  watched(upstream: string, uri: string, watched: boolean): void {
    const name = `${upstream}\nuri ${uri}`
    if (watched) this.#owners.begin(name)
    else this.#owners.end(name)
  }

  /** A watched resource, or a part of it, has changed. */
  updated(upstream: string, uri: string, part: string): void {
    this.#owners.heard(`${upstream}\nuri ${uri}`, part, () => this.#emit(`${upstream}/resource_updated`, { upstream, uri: part }))
  }

  /** A list of the upstream has changed. */
  changed(upstream: string, list: ChangedList): void {
    this.#owners.heard(`${upstream}\nlists`, list, () => this.#emit(`${upstream}/list_changed`, { upstream, list }))
  }

  close(): Promise<void> {
    this.#end.abort()
    return this.#owners.close()
  }

  /** Publishes an event. Repeats of a pending subject are merged into one event that follows. */
  #emit(name: string, told: EventPayload): void {
    const key = `${name}\n${told.uri ?? told.list}`
    const state = this.#telling.get(key)
    if (state !== undefined) {
      state.again = true
      return
    }
    const { upstream } = told
    if (this.#waiting.of(upstream) >= mostTelling)
      return this.#failed(
        new Error(`An event of a server was dropped, because ${mostTelling} events wait to be sent (the limit): ${clip(name)}`),
      )
    const made = { again: false }
    this.#telling.set(key, made)
    this.#waiting.add(upstream, 1)
    void this.#tell(name, told).finally(() => {
      this.#telling.delete(key)
      this.#waiting.add(upstream, -1)
      if (made.again && !this.#end.signal.aborted) this.#emit(name, told)
    })
  }

  /** Waits until the upstream's rate allows it. */
  async #tell(name: string, told: EventPayload): Promise<void> {
    const { signal } = this.#end
    for (let waitMs = this.#pace.take(told.upstream); waitMs > 0; waitMs = this.#pace.take(told.upstream)) {
      await pause(this.#clock, waitMs, signal, true)
      if (signal.aborted) return
    }
    await this.#handles.get(name)?.emit(told).catch(this.#failed)
  }

  /** Registers an event at the server face, where its name is valid there. */
  #of(name: string, description: string): void {
    const server = this.#server()
    if (server === undefined || this.#handles.has(name) || !/^[A-Za-z0-9_.\-/]{1,128}$/.test(name)) return
    this.#handles.set(name, server.event(name, { description, payload }))
  }
}

// Ownership of notifications. All gateways on a store hear an upstream; the one that holds the claim publishes. If it dies, another takes
// the claim and publishes what it heard since the last moment at which the dead one may have published: duplicates are possible, losses are
// not. Without a shared store everything is published at once.

interface NotificationOwnerParts {
  /** Undefined where no other gateway shares it. */
  readonly store: Store | undefined
  readonly clock: Clock
  failed(error: unknown): void
}

/** The key prefix of claims in the store. */
const prefix = 'gateway/voice/'
/** How long a process counts as alive after its last sign. */
const leaseMs = 3_000
/** How often claims of others are checked. */
const lookMs = 1_000
/** Lifetime of a claim in the store; longer than any lease, so that only abandoned claims expire. */
const retentionMs = 7 * 86_400_000
/** Announcements that are kept per subject while another gateway publishes. */
const mostStored = 100

/** One subject, and whether this process owns it. */
interface Claim {
  /** The key in the store. */
  readonly key: Promise<string>
  /** The version of our entry; undefined where another process owns it, or the owner is unknown. */
  held: number | undefined
  /** The owner was never looked up: everything heard so far counts. */
  fresh: boolean
  /** Announcements that were heard but not published here, by subject. */
  readonly stored: Map<string, { readonly at: number; readonly tell: () => void }>
}

/** Decides which process of a shared store publishes what an upstream announces. */
export class NotificationOwner {
  readonly #parts: NotificationOwnerParts
  readonly #runners: ProcessLeases | undefined
  readonly #claims = new Map<string, Claim>()
  readonly #end = new AbortController()
  #timer: Cancel | undefined = undefined
  #looking: Promise<void> | undefined = undefined
  /** Claims that are being given back. */
  readonly #delivering = new Set<Promise<unknown>>()

  constructor(parts: NotificationOwnerParts) {
    this.#parts = parts
    const { store, clock } = parts
    if (store === undefined) return
    this.#runners = new ProcessLeases({ store, clock, id: crypto.randomUUID(), leaseMs })
    void this.#follow(store)
  }

  /** Starts to listen to a subject. */
  begin(name: string): void {
    if (this.#runners === undefined || this.#claims.has(name)) return
    this.#claims.set(name, { key: keyOf(name), held: undefined, fresh: true, stored: new Map() })
    this.#look()
  }

  /** Stops listening, and gives the claim back. */
  end(name: string): void {
    const claim = this.#claims.get(name)
    if (claim === undefined) return
    this.#claims.delete(name)
    if (claim.held !== undefined) this.#give(claim, claim.held)
  }

  /** Handles an announcement: `tell` is called now, later or never, depending on the owner. */
  heard(name: string, about: string, tell: () => void): void {
    const claim = this.#claims.get(name)
    if (this.#runners === undefined || claim?.held !== undefined) return tell()
    if (claim === undefined) return
    claim.stored.delete(about)
    claim.stored.set(about, { at: this.#parts.clock.now(), tell })
    const [oldest] = claim.stored.keys()
    if (claim.stored.size > mostStored && oldest !== undefined) claim.stored.delete(oldest)
  }

  /** Gives all claims back. */
  async close(): Promise<void> {
    this.#timer?.()
    this.#end.abort()
    for (const name of [...this.#claims.keys()]) this.end(name)
    await this.#looking
    await Promise.all(this.#delivering)
    this.#runners?.close()
  }

  /** Gives a claim back, so that another process takes it at once. */
  #give({ key }: Claim, held: number): void {
    this.#runners?.release()
    const given = key
      .then(at => this.#parts.store?.commit([remove(at, held)]))
      .catch(this.#parts.failed)
      .finally(() => this.#delivering.delete(given))
    this.#delivering.add(given)
  }

  /** Reacts to changes in the store. Hints may get lost and dead processes give none, so `#look` also polls. */
  async #follow(store: Store): Promise<void> {
    try {
      for await (const _ of store.watch([prefix], this.#end.signal)) this.#look()
    } catch (error) {
      if (!this.#end.signal.aborted) this.#parts.failed(error)
    }
  }

  /** One check at a time; repeats while another process holds some claim. */
  #look(): void {
    this.#looking ??= this.#claim()
      .catch(this.#parts.failed)
      .finally(() => {
        this.#looking = undefined
        if (this.#end.signal.aborted || [...this.#claims.values()].every(({ held }) => held !== undefined)) return
        this.#timer ??= this.#parts.clock.setTimeout(
          () => {
            this.#timer = undefined
            this.#look()
          },
          lookMs,
          true,
        )
      })
  }

  /** Compares all claims with the store. */
  async #claim(): Promise<void> {
    const { store } = this.#parts
    if (store === undefined) return
    const entries = new Map<string, Entry>()
    for await (const entry of entriesUnder(store, prefix)) entries.set(entry.key, entry)
    const alive = new Map<string, boolean>()
    for (const [name, claim] of this.#claims) {
      const entry = entries.get(await claim.key)
      if (claim.held === undefined) await this.#take(name, claim, entry, alive)
      else if (entry !== undefined && entry.value !== this.#runners?.id) {
        // Another process took the claim because this one seemed dead.
        claim.held = undefined
        this.#runners?.release()
      }
    }
  }

  /** Takes a claim without an owner, or whose owner is dead. */
  async #take(name: string, claim: Claim, entry: Entry | undefined, alive: Map<string, boolean>): Promise<void> {
    const { store, clock } = this.#parts
    const runners = this.#runners
    if (store === undefined || runners === undefined) return
    // The owner may have died at any time since then.
    const doubtful = clock.now() - leaseMs - 2 * lookMs
    if (entry !== undefined && (await this.#lives(entry, runners, alive))) {
      claim.fresh = false
      return forgetBefore(claim, doubtful)
    }
    const { fresh } = claim
    await runners.hold()
    const condition = entry === undefined ? { ifAbsent: true } : { ifVersion: entry.version }
    const outcome = await store.commit([put(await claim.key, runners.id, { ...condition, ttl: retentionMs })])
    const version = outcome.ok ? outcome.results[0]?.version : undefined
    if (version === undefined) return runners.release()
    // `end` may have been called meanwhile.
    if (this.#claims.get(name) !== claim) return this.#give(claim, version)
    // An owner that gave the claim back has published everything before.
    this.#begun(claim, version, entry === undefined && !fresh ? clock.now() : doubtful)
  }

  /** Whether the owner of an entry lives; cached during one check. */
  async #lives({ value }: Entry, runners: ProcessLeases, alive: Map<string, boolean>): Promise<boolean> {
    const known = alive.get(value) ?? (await runners.isAlive(value))
    alive.set(value, known)
    return known
  }

  /** This process owns the claim now; publishes what it heard since `since`. */
  #begun(claim: Claim, version: number, since: number): void {
    claim.held = version
    claim.fresh = false
    forgetBefore(claim, since)
    for (const { tell } of claim.stored.values()) tell()
    claim.stored.clear()
  }
}

/** Drops announcements that are older. */
function forgetBefore({ stored }: Claim, since: number): void {
  for (const [about, { at }] of stored) if (at < since) stored.delete(about)
}

/** A digest, because subjects can be long. */
async function keyOf(name: string): Promise<string> {
  return `${prefix}${await digestText(name)}`
}
