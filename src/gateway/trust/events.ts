/** What servers say of their resources and lists, as events that clients subscribe to: one kind of each for every server. */
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import type { Cancel, Clock } from '../../core/clock.ts'
import { digestText } from '../../core/digest.ts'
import { Runners } from '../../core/journal/runners.ts'
import { Tally } from '../../core/occupancy.ts'
import { pause } from '../../engine/backoff.ts'
import type { EventHandle } from '../../features/reliability/events/offering.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Server } from '../../server/api.ts'
import { type Entry, put, remove, type Store, storeLimits } from '../../stores/store.ts'
import type { TrustSettings } from './settings.ts'

type ChangedList = 'tools' | 'resources' | 'prompts'

/** What is told of upstreams, and by whom it is asked for. */
export interface UpstreamNews {
  /** Addresses, as their servers know them, that are watched whether a client does or not. */
  readonly standing: readonly (readonly [upstream: string, uri: string])[]
  /** The upstream is there: its events can be subscribed to. */
  offer(upstream: string): void
  /** It is gone. */
  gone(upstream: string): void
  /** A resource is watched there, and no longer. */
  watched(upstream: string, uri: string, watched: boolean): void
  /** What is watched, or a part of it, is another one now. */
  updated(upstream: string, uri: string, part: string): void
  changed(upstream: string, list: ChangedList): void
  close(): Promise<void>
}

const payload = {
  type: 'object',
  properties: { upstream: { type: 'string' }, uri: { type: 'string' }, list: { type: 'string' } },
  required: ['upstream'],
} as const

type Handle = EventHandle<typeof payload>

interface Told {
  readonly upstream: string
  readonly uri?: string
  readonly list?: string
}

/** Of one server. */
const mostPerSecond = 50
/** Different things of one server that are being told. */
const mostTelling = 10_000

const silent: UpstreamNews = {
  standing: [],
  offer: () => {},
  gone: () => {},
  watched: () => {},
  updated: () => {},
  changed: () => {},
  close: async () => {},
}

/** Creates the events of upstreams; without the setting, one that does nothing. */
export function upstreamNews(
  setting: TrustSettings['events'],
  server: () => Server | undefined,
  parts: NotificationOwnerParts,
): UpstreamNews {
  return setting === undefined || setting === false ? silent : new UpstreamEvents(setting, server, parts)
}

/** Publishes one event at a time for each subject, at a bounded rate per upstream. */
class UpstreamEvents implements UpstreamNews {
  readonly standing: UpstreamNews['standing']
  readonly #server: () => Server | undefined
  readonly #failed: (error: unknown) => void
  readonly #owners: NotificationOwner
  readonly #handles = new Map<string, Handle>()
  readonly #clock: Clock
  readonly #pace: Buckets
  readonly #telling = new Map<string, { again: boolean }>()
  readonly #waiting = new Tally<string>()
  readonly #end = new AbortController()

  constructor(setting: NonNullable<TrustSettings['events']>, server: () => Server | undefined, parts: NotificationOwnerParts) {
    this.#server = server
    this.#failed = parts.failed
    this.#owners = new NotificationOwner(parts)
    this.#clock = parts.clock
    this.#pace = createBuckets({ perSecond: mostPerSecond, clock: parts.clock })
    const named = typeof setting === 'object' ? Object.entries(setting) : []
    this.standing = named.flatMap(([upstream, uris]) => [...new Set(uris)].map(uri => [upstream, uri] as const))
  }

  offer(upstream: string): void {
    this.#of(`${upstream}/resource_updated`, `A resource of the server ${upstream} is another one now`)
    this.#of(`${upstream}/list_changed`, `The tools, resources or prompts of the server ${upstream} are others now`)
    this.#owners.begin(`${upstream}\nlists`)
  }

  gone(upstream: string): void {
    this.#owners.end(`${upstream}\nlists`)
  }

  watched(upstream: string, uri: string, watched: boolean): void {
    const name = `${upstream}\nuri ${uri}`
    if (watched) this.#owners.begin(name)
    else this.#owners.end(name)
  }

  updated(upstream: string, uri: string, part: string): void {
    this.#owners.heard(`${upstream}\nuri ${uri}`, part, () => this.#emit(`${upstream}/resource_updated`, { upstream, uri: part }))
  }

  changed(upstream: string, list: ChangedList): void {
    this.#owners.heard(`${upstream}\nlists`, list, () => this.#emit(`${upstream}/list_changed`, { upstream, list }))
  }

  close(): Promise<void> {
    this.#end.abort()
    return this.#owners.close()
  }

  /** One at a time of each: what is said again before that lasts, or faster than a server may speak, is told by one event after it. */
  #emit(name: string, told: Told): void {
    const key = `${name}\n${told.uri ?? told.list}`
    const state = this.#telling.get(key)
    if (state !== undefined) {
      state.again = true
      return
    }
    const { upstream } = told
    if (this.#waiting.of(upstream) >= mostTelling)
      return this.#failed(new Error(`A server says more than can be told: ${clip(name)}`))
    const made = { again: false }
    this.#telling.set(key, made)
    this.#waiting.add(upstream, 1)
    void this.#tell(name, told).finally(() => {
      this.#telling.delete(key)
      this.#waiting.add(upstream, -1)
      if (made.again && !this.#end.signal.aborted) this.#emit(name, told)
    })
  }

  /** Waits until the rate of its upstream allows it. */
  async #tell(name: string, told: Told): Promise<void> {
    const { signal } = this.#end
    for (let waitMs = this.#pace.take(told.upstream); waitMs > 0; waitMs = this.#pace.take(told.upstream)) {
      await pause(this.#clock, waitMs, signal, true)
      if (signal.aborted) return
    }
    await this.#handles.get(name)?.emit(told).catch(this.#failed)
  }

  /** Registers an event at the server face, where its name is one that clients can use. */
  #of(name: string, description: string): void {
    const server = this.#server()
    if (server === undefined || this.#handles.has(name) || !/^[A-Za-z0-9_.\-/]{1,128}$/.test(name)) return
    this.#handles.set(name, server.event(name, { description, payload }))
  }
}

// Which of several gateways on one store tells what a server says. All hear it, and one tells it: whoever was first to listen holds a
// claim, as long as it lives and listens. When it dies another one takes over, and tells what it heard itself since the dead one can
// have told anything for certain: rather twice than never. Without a shared store everything is told at once.

interface NotificationOwnerParts {
  /** Undefined where no other gateway is on it. */
  readonly store: Store | undefined
  readonly clock: Clock
  failed(error: unknown): void
}

const prefix = 'gateway/voice/'
const leaseMs = 3_000
const lookMs = 1_000
/** What the dead have left goes in the end; whoever holds a claim for so long goes on unless another one takes it. */
const keptMs = 7 * 86_400_000
/** Different things that are kept of one server's words while another gateway tells them. */
const mostKept = 100

/** One subject, and whether this process owns it. */
interface Claim {
  readonly key: Promise<string>
  /** The version of our own entry; undefined: another one's, or not known yet. */
  held: number | undefined
  /** It is not known yet whose it is: all that is heard meanwhile counts. */
  fresh: boolean
  /** What was heard and not told here, by what it is about. */
  readonly kept: Map<string, { readonly at: number; readonly tell: () => void }>
}

/** Decides which process of a shared store publishes what an upstream announces. */
export class NotificationOwner {
  readonly #parts: NotificationOwnerParts
  readonly #runners: Runners | undefined
  readonly #claims = new Map<string, Claim>()
  readonly #end = new AbortController()
  #timer: Cancel | undefined = undefined
  #looking: Promise<void> | undefined = undefined
  readonly #giving = new Set<Promise<unknown>>()

  constructor(parts: NotificationOwnerParts) {
    this.#parts = parts
    const { store, clock } = parts
    if (store === undefined) return
    this.#runners = new Runners({ store, clock, id: crypto.randomUUID(), leaseMs })
    void this.#follow(store)
  }

  /** We listen to this from now on. */
  begin(name: string): void {
    if (this.#runners === undefined || this.#claims.has(name)) return
    this.#claims.set(name, { key: keyOf(name), held: undefined, fresh: true, kept: new Map() })
    this.#look()
  }

  /** We do not any more. */
  end(name: string): void {
    const claim = this.#claims.get(name)
    if (claim === undefined) return
    this.#claims.delete(name)
    if (claim.held !== undefined) this.#give(claim, claim.held)
  }

  /** Something was said: `tell` is called now, or later, or never. */
  heard(name: string, about: string, tell: () => void): void {
    const claim = this.#claims.get(name)
    if (this.#runners === undefined || claim?.held !== undefined) return tell()
    if (claim === undefined) return
    claim.kept.delete(about)
    claim.kept.set(about, { at: this.#parts.clock.now(), tell })
    const [oldest] = claim.kept.keys()
    if (claim.kept.size > mostKept && oldest !== undefined) claim.kept.delete(oldest)
  }

  async close(): Promise<void> {
    this.#timer?.()
    this.#end.abort()
    for (const name of [...this.#claims.keys()]) this.end(name)
    await this.#looking
    await Promise.all(this.#giving)
    this.#runners?.close()
  }

  /** Gives the claim back, so that another process takes it at once. */
  #give({ key }: Claim, held: number): void {
    this.#runners?.release()
    const given = key
      .then(at => this.#parts.store?.commit([remove(at, held)]))
      .catch(this.#parts.failed)
      .finally(() => this.#giving.delete(given))
    this.#giving.add(given)
  }

  /** A claim that is given back is taken at once; hints may be lost, and the dead give none: it is looked now and then. */
  async #follow(store: Store): Promise<void> {
    try {
      for await (const _ of store.watch([prefix], this.#end.signal)) this.#look()
    } catch (error) {
      if (!this.#end.signal.aborted) this.#parts.failed(error)
    }
  }

  /** One look at a time; again after a moment while some claims are another's. */
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

  /** Compares all claims with what lies on the store. */
  async #claim(): Promise<void> {
    const { store } = this.#parts
    if (store === undefined) return
    const entries = new Map<string, Entry>()
    for (let after = ''; ; ) {
      const page = await store.scan(prefix, { after })
      for (const entry of page) entries.set(entry.key, entry)
      if (page.length < storeLimits.page) break
      after = page.at(-1)?.key ?? ''
    }
    const alive = new Map<string, boolean>()
    for (const [name, claim] of this.#claims) {
      const entry = entries.get(await claim.key)
      if (claim.held === undefined) await this.#take(name, claim, entry, alive)
      else if (entry !== undefined && entry.value !== this.#runners?.id) this.#lose(claim)
    }
  }

  /** We were taken for dead. */
  #lose(claim: Claim): void {
    claim.held = undefined
    this.#runners?.release()
  }

  /** Takes a claim that nobody holds, or whose holder is dead. */
  async #take(name: string, claim: Claim, entry: Entry | undefined, alive: Map<string, boolean>): Promise<void> {
    const { store, clock } = this.#parts
    const runners = this.#runners
    if (store === undefined || runners === undefined) return
    const doubtful = clock.now() - leaseMs - 2 * lookMs
    if (entry !== undefined && (await this.#lives(entry, runners, alive))) {
      claim.fresh = false
      return forgetBefore(claim, doubtful)
    }
    const { fresh } = claim
    await runners.hold()
    const condition = entry === undefined ? { ifAbsent: true } : { ifVersion: entry.version }
    const outcome = await store.commit([put(await claim.key, runners.id, { ...condition, ttl: keptMs })])
    const version = outcome.ok ? outcome.results[0]?.version : undefined
    if (version === undefined) return runners.release()
    // It may have been let go of meanwhile.
    if (this.#claims.get(name) !== claim) return this.#give(claim, version)
    // Whoever gave it back has told all that was said before.
    this.#begun(claim, version, entry === undefined && !fresh ? clock.now() : doubtful)
  }

  async #lives({ value }: Entry, runners: Runners, alive: Map<string, boolean>): Promise<boolean> {
    const known = alive.get(value) ?? (await runners.isAlive(value))
    alive.set(value, known)
    return known
  }

  /** From now on this process tells; what it heard since the last owner can have told is told now. */
  #begun(claim: Claim, version: number, since: number): void {
    claim.held = version
    claim.fresh = false
    forgetBefore(claim, since)
    for (const { tell } of claim.kept.values()) tell()
    claim.kept.clear()
  }
}

function forgetBefore({ kept }: Claim, since: number): void {
  for (const [about, { at }] of kept) if (at < since) kept.delete(about)
}

async function keyOf(name: string): Promise<string> {
  return `${prefix}${await digestText(name)}`
}
