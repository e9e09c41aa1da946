/** What servers say of their resources and lists, as events that clients subscribe to: one kind of each for every server. */

import { type Buckets, createBuckets } from '../../core/bucket.ts'
import type { Clock } from '../../core/clock.ts'
import { Tally } from '../../core/occupancy.ts'
import { pause } from '../../engine/backoff.ts'
import type { EventHandle } from '../../features/reliability/events/offering.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Server } from '../../server/api.ts'
import { NotificationOwner, type NotificationOwnerParts } from './notification-owner.ts'
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

export function upstreamNews(
  setting: TrustSettings['events'],
  server: () => Server | undefined,
  parts: NotificationOwnerParts,
): UpstreamNews {
  return setting === undefined || setting === false ? silent : new UpstreamEvents(setting, server, parts)
}

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

  async #tell(name: string, told: Told): Promise<void> {
    const { signal } = this.#end
    for (let waitMs = this.#pace.take(told.upstream); waitMs > 0; waitMs = this.#pace.take(told.upstream)) {
      await pause(this.#clock, waitMs, signal, true)
      if (signal.aborted) return
    }
    await this.#handles.get(name)?.emit(told).catch(this.#failed)
  }

  #of(name: string, description: string): void {
    const server = this.#server()
    if (server === undefined || this.#handles.has(name) || !/^[A-Za-z0-9_.\-/]{1,128}$/.test(name)) return
    this.#handles.set(name, server.event(name, { description, payload }))
  }
}
