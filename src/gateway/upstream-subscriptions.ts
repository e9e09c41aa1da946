/**
 * Subscriptions to upstream resources: each resource that clients watch is watched once at its upstream, and again after a reconnect. A
 * client's subscription is confirmed only after the upstream's, so that no update is missed. `SessionNews` shares subscriptions of
 * sessions between gateways on one store.
 */
import type { Client } from '../client/client.ts'
import type { Clock } from '../core/clock.ts'
import { settlesWithin } from '../core/deadlines.ts'
import { Tally } from '../core/occupancy.ts'
import { pause } from '../engine/backoff.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import { subscribe } from '../features/mcp/resources/messages.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Server } from '../server/api.ts'
import { put, type Store } from '../stores/store.ts'
import type { UpstreamPlace } from './addresses.ts'
import type { GatewayCatalog } from './catalog.ts'
import type { UpstreamEvents } from './trust/events.ts'

/** What watching needs from the gateway. */
interface WatchesPort {
  readonly server: Server
  readonly catalog: GatewayCatalog
  readonly news: UpstreamEvents | undefined
  readonly clock: Clock
  client(upstream: string): Client | undefined
}

/** One watched resource. */
interface Watch extends UpstreamPlace {
  /** The addresses by which clients watch it. */
  readonly uris: Set<string>
  /** Watched by configuration, without a client. */
  readonly standing: boolean
  /** Ends the subscription; undefined while there is none. */
  stop: AbortController | undefined
  /** Settles when the upstream has confirmed the subscription, or failed. */
  held: Promise<void>
}

/** How long a client waits for the upstream's confirmation; the subscription goes on in any case. */
const holdMs = 2_000
/** Subscriptions of one request that are waited for. */
const mostWaited = 100

/** Subscribes at upstreams to every resource that some client watches. */
export class UpstreamSubscriptions {
  readonly #port: WatchesPort
  /** By upstream and own address. */
  readonly #watches = new Map<string, Watch>()
  /** By the client's address; undefined while no upstream offers it. */
  readonly #wanted = new Map<string, Watch | undefined>()
  /** Addresses that some client watches. */
  readonly #watched = new Set<string>()
  /** Addresses of subscriptions that are being set up. */
  readonly #coming = new Tally<string>()

  constructor(port: WatchesPort) {
    this.#port = port
    port.server.engine.onWatch.add((uri, watched) => this.#changed(uri, watched))
    port.server.engine.extend({ layers: [this.#layer()] })
    for (const [upstream, own] of port.news?.standing ?? [])
      this.#watches.set(keyOf({ upstream, own }), watchOf({ upstream, own }, true))
  }

  /** The catalog has changed: moves and starts subscriptions. */
  look(): void {
    // Another upstream may serve an address now.
    for (const uri of this.#wanted.keys()) this.#place(uri)
    for (const watch of this.#watches.values()) if (watch.stop === undefined) this.#begin(watch)
  }

  /** Where a resource is watched, even if it is no longer offered. */
  placeOf(uri: string): UpstreamPlace | undefined {
    return this.#wanted.get(uri)
  }

  close(): void {
    for (const { stop } of this.#watches.values()) stop?.abort()
    this.#watches.clear()
    this.#wanted.clear()
  }

  #layer(): Layer {
    return {
      // After all layers that may refuse the request.
      stage: 'record',
      methods: [subscribe.name, 'subscriptions/listen'],
      run: async (exchange, next) => {
        const uris = urisOf(exchange)
        for (const uri of uris) {
          this.#coming.add(uri, 1)
          this.#want(uri)
        }
        try {
          if (uris.length > 0) {
            const held = Promise.all(uris.map(uri => this.#wanted.get(uri)?.held))
            await settlesWithin(held, holdMs, this.#port.clock)
          }
          return await next()
        } finally {
          for (const uri of uris) {
            this.#coming.add(uri, -1)
            this.#settle(uri)
          }
        }
      },
    }
  }

  /** A client started to watch an address, or the last one stopped. */
  #changed(uri: string, watched: boolean): void {
    if (watched) {
      this.#watched.add(uri)
      this.#want(uri)
    } else {
      this.#watched.delete(uri)
      this.#settle(uri)
    }
  }

  /** Watches an address at its upstream as soon as that is known and connected. */
  #want(uri: string): void {
    if (this.#wanted.has(uri)) return
    this.#wanted.set(uri, undefined)
    this.#place(uri)
    const watch = this.#wanted.get(uri)
    if (watch !== undefined && watch.stop === undefined) this.#begin(watch)
  }

  /** Ends the watch where no client needs it. */
  #settle(uri: string): void {
    if (this.#watched.has(uri) || this.#coming.of(uri) > 0) return
    this.#leave(uri)
    this.#wanted.delete(uri)
  }

  /** Finds the upstream of an address. While none offers it, the watch stays where it was. */
  #place(uri: string): void {
    const found = this.#port.catalog.resource(uri)
    if (found === undefined) return
    const key = keyOf(found)
    const known = this.#watches.get(key)
    if (known !== undefined && this.#wanted.get(uri) === known) return
    this.#leave(uri)
    const watch = known ?? watchOf(found, false)
    watch.uris.add(uri)
    this.#watches.set(key, watch)
    this.#wanted.set(uri, watch)
  }

  /** Removes an address; the last one ends the upstream subscription. */
  #leave(uri: string): void {
    const watch = this.#wanted.get(uri)
    if (watch?.uris.delete(uri) !== true || watch.uris.size > 0 || watch.standing) return
    watch.stop?.abort()
    this.#watches.delete(keyOf(watch))
  }

  /** Subscribes at the upstream, where it is connected. */
  #begin(watch: Watch): void {
    const client = this.#port.client(watch.upstream)
    if (client === undefined) return
    const stop = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    watch.stop = stop
    watch.held = promise
    const { news } = this.#port
    news?.watched(watch.upstream, watch.own, true)
    void this.#follow(client, watch, { signal: stop.signal, onWatched: resolve }).finally(() => {
      resolve()
      const current = this.#watches.get(keyOf(watch))
      // It may have been watched again meanwhile.
      if (current === watch || current === undefined) news?.watched(watch.upstream, watch.own, false)
      if (watch.stop === stop) watch.stop = undefined
    })
  }

  /** Passes updates on until the upstream or the watch ends. */
  async #follow(client: Client, watch: Watch, options: FollowOptions): Promise<void> {
    const { server, news } = this.#port
    const { upstream, own, uris } = watch
    try {
      for await (const part of client.resourceUpdates(own, options)) {
        // A part with its own subscription is reported there.
        if (part === own || this.#watches.get(keyOf({ upstream, own: part }))?.stop === undefined)
          news?.updated(upstream, own, part)
        for (const uri of uris) server.resourceUpdated(uri)
      }
    } catch (error) {
      // The upstream announces no updates, or the connection ended; after a reconnect it is watched again.
      if (!options.signal.aborted) server.engine.trace('upstream-watch', { upstream, uri: own, error })
    }
  }
}

/** How `#follow` is ended, and told that the upstream has confirmed. */
interface FollowOptions {
  readonly signal: AbortSignal
  readonly onWatched: () => void
}

function watchOf({ upstream, own }: UpstreamPlace, standing: boolean): Watch {
  return { upstream, own, uris: new Set(), standing, stop: undefined, held: Promise.resolve() }
}

/** The addresses that a request subscribes to. */
function urisOf({ route, params }: Exchange): readonly string[] {
  const { uri, notifications } = params
  if (route.method.name === subscribe.name) return [uri as string]
  const uris = isRecord(notifications) ? notifications['resourceSubscriptions'] : undefined
  return Array.isArray(uris) ? uris.filter(each => typeof each === 'string').slice(0, mostWaited) : []
}

function keyOf({ upstream, own }: UpstreamPlace): string {
  return `${upstream}\n${own}`
}

// Shared sessions: a session's stream may be open at one gateway while its client subscribes at another. The one that took the subscription
// writes a note in the store, and the one with the stream reloads the session. Notes expire.

const prefix = 'gateway/session/'
/** How long a note stays in the store. */
const toldMs = 30_000
/** The pause after a failed read. */
const againMs = 500

/** Tells other gateways on the store about subscriptions of shared sessions. */
export class SessionNews {
  readonly #server: Server
  readonly #store: Store
  readonly #end = new AbortController()
  /** The newest version seen, by key. */
  #seen = new Map<string, number>()

  constructor(server: Server, store: Store) {
    this.#server = server
    this.#store = store
    server.engine.extend({ layers: [this.#layer()] })
    void this.#follow()
  }

  close(): void {
    this.#end.abort()
  }

  #layer(): Layer {
    return {
      stage: 'enter',
      methods: ['resources/subscribe', 'resources/unsubscribe'],
      run: async (exchange, next) => {
        const result = await next()
        await this.#tell(exchange).catch(error => this.#server.engine.trace('session-not-told', error))
        return result
      },
    }
  }

  /** Writes a note with the session's name. */
  async #tell({ conversation, correlation }: Exchange): Promise<void> {
    const { session } = conversation
    const name = session === undefined ? undefined : await this.#server.engine.sharing?.nameOf(session)
    if (name === undefined) return
    const place = `${prefix}${name.slice(name.lastIndexOf('/') + 1)}`
    const outcome = await this.#store.commit([put(place, JSON.stringify({ name, by: correlation }), { ttl: toldMs })])
    if (outcome.ok) this.#seen.set(place, outcome.results[0]?.version ?? 0)
  }

  /** Reads notes whenever one changes. */
  async #follow(): Promise<void> {
    const { engine } = this.#server
    try {
      for await (const _ of this.#store.watch([prefix], this.#end.signal)) await this.#lookSurely()
    } catch (error) {
      if (!this.#end.signal.aborted) engine.trace('session-news', error)
    }
  }

  /** Reads notes until it works: a failing store recovers, and nothing else can be heard until then. */
  async #lookSurely(): Promise<void> {
    const { engine } = this.#server
    for (;;) {
      try {
        return await this.#look()
      } catch (error) {
        if (this.#end.signal.aborted) return
        engine.trace('session-news', error)
        await pause(engine.clock, againMs, this.#end.signal, true)
      }
    }
  }

  /** Reloads the sessions whose notes are new. */
  async #look(): Promise<void> {
    const found = await this.#store.scan(prefix)
    const seen = new Map<string, number>()
    for (const { key, value, version } of found) {
      seen.set(key, version)
      if (this.#seen.get(key) === version) continue
      const { name } = JSON.parse(value) as { readonly name: string }
      this.#server.engine.sharing?.refresh(name)
    }
    this.#seen = seen
  }
}
