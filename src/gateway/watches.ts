/**
 * What clients watch, and what the gateway was told to watch, is watched at its upstream, once for all of them, and again after each
 * time that it was gone. A client is told that it watches something only when its upstream knows, so that nothing which happens after
 * that goes unheard.
 */
import type { Client } from '../client/client.ts'
import type { Clock } from '../core/clock.ts'
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
import type { UpstreamNews } from './trust/events.ts'

/** What watching needs of the gateway. */
interface WatchesPort {
  readonly server: Server
  readonly catalog: GatewayCatalog
  readonly news: UpstreamNews
  readonly clock: Clock
  client(upstream: string): Client | undefined
}

/** One resource of an upstream. */
interface Watch extends UpstreamPlace {
  /** The addresses by which clients watch it. */
  readonly uris: Set<string>
  /** It is watched though no client does. */
  readonly standing: boolean
  /** Ends it. Undefined while its upstream is not there. */
  stop: AbortController | undefined
  /** Settles when its upstream has taken it up, or cannot. */
  held: Promise<void>
}

/** How long an upstream may take over it before its client hears that it watches; it is watched all the same. */
const holdMs = 2_000
/** So many of one request are waited for. */
const mostWaited = 100

/** Subscribes at upstreams to every resource that some client watches. */
export class Watches {
  readonly #port: WatchesPort
  readonly #watches = new Map<string, Watch>()
  /** By the address by which clients watch it; undefined while nobody knows where it is. */
  readonly #wanted = new Map<string, Watch | undefined>()
  /** What some client watches. */
  readonly #watched = new Set<string>()
  /** What some client is about to watch. */
  readonly #coming = new Tally<string>()

  constructor(port: WatchesPort) {
    this.#port = port
    port.server.engine.onWatch.add((uri, watched) => this.#changed(uri, watched))
    port.server.engine.extend({ layers: [this.#layer()] })
    for (const [upstream, own] of port.news.standing)
      this.#watches.set(keyOf({ upstream, own }), watchOf({ upstream, own }, true))
  }

  /** Upstreams have come or gone: what is watched there may be watched now. */
  look(): void {
    // Whoever answers for an address now may be another one than before.
    for (const uri of this.#wanted.keys()) this.#place(uri)
    for (const watch of this.#watches.values()) if (watch.stop === undefined) this.#begin(watch)
  }

  /** Where something is watched, also where it is offered no more. */
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
      // Behind all that may refuse it.
      stage: 'record',
      methods: [subscribe.name, 'subscriptions/listen'],
      run: async (exchange, next) => {
        const uris = urisOf(exchange)
        for (const uri of uris) {
          this.#coming.add(uri, 1)
          this.#want(uri)
        }
        try {
          if (uris.length > 0) await this.#within(Promise.all(uris.map(uri => this.#wanted.get(uri)?.held)))
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

  /** Some client watches it now, or none does any more. */
  #changed(uri: string, watched: boolean): void {
    if (watched) {
      this.#watched.add(uri)
      this.#want(uri)
    } else {
      this.#watched.delete(uri)
      this.#settle(uri)
    }
  }

  /** Watches it at its upstream as soon as that is known and there. */
  #want(uri: string): void {
    if (this.#wanted.has(uri)) return
    this.#wanted.set(uri, undefined)
    this.#place(uri)
    const watch = this.#wanted.get(uri)
    if (watch !== undefined && watch.stop === undefined) this.#begin(watch)
  }

  /** Lets go of it where nobody wants it. */
  #settle(uri: string): void {
    if (this.#watched.has(uri) || this.#coming.of(uri) > 0) return
    this.#leave(uri)
    this.#wanted.delete(uri)
  }

  /** Finds out where it is now. While its upstream is gone it stays where it was. */
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

  /** The last address that leaves ends the subscription at the upstream. */
  #leave(uri: string): void {
    const watch = this.#wanted.get(uri)
    if (watch?.uris.delete(uri) !== true || watch.uris.size > 0 || watch.standing) return
    watch.stop?.abort()
    this.#watches.delete(keyOf(watch))
  }

  /** Subscribes at the upstream, where that is connected. */
  #begin(watch: Watch): void {
    const client = this.#port.client(watch.upstream)
    if (client === undefined) return
    const stop = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    watch.stop = stop
    watch.held = promise
    const { news } = this.#port
    news.watched(watch.upstream, watch.own, true)
    void this.#follow(client, watch, { signal: stop.signal, onWatched: resolve }).finally(() => {
      resolve()
      const current = this.#watches.get(keyOf(watch))
      // Somebody else may watch it anew by now.
      if (current === watch || current === undefined) news.watched(watch.upstream, watch.own, false)
      if (watch.stop === stop) watch.stop = undefined
    })
  }

  /** Passes updates on until the upstream or the watch ends. */
  async #follow(client: Client, watch: Watch, options: FollowOptions): Promise<void> {
    const { server, news } = this.#port
    const { upstream, own, uris } = watch
    try {
      for await (const part of client.resourceUpdates(own, options)) {
        // A part that is watched by itself is told there.
        if (part === own || this.#watches.get(keyOf({ upstream, own: part }))?.stop === undefined)
          news.updated(upstream, own, part)
        for (const uri of uris) server.resourceUpdated(uri)
      }
    } catch (error) {
      // It announces no updates, or is gone: the one is its right, after the other it is watched again.
      if (!options.signal.aborted) server.engine.trace('upstream-watch', { upstream, uri: own, error })
    }
  }

  /** Settles with it, or when the wait is over. */
  #within(held: Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#port.clock.setTimeout(resolve, holdMs, true)
    void held.then(() => resolve())
    return promise.finally(cancel)
  }
}

interface FollowOptions {
  readonly signal: AbortSignal
  readonly onWatched: () => void
}

function watchOf({ upstream, own }: UpstreamPlace, standing: boolean): Watch {
  return { upstream, own, uris: new Set(), standing, stop: undefined, held: Promise.resolve() }
}

/** What a request wants to watch. */
function urisOf({ route, params }: Exchange): readonly string[] {
  const { uri, notifications } = params
  if (route.method.name === subscribe.name) return [uri as string]
  const uris = isRecord(notifications) ? notifications['resourceSubscriptions'] : undefined
  return Array.isArray(uris) ? uris.filter(each => typeof each === 'string').slice(0, mostWaited) : []
}

function keyOf({ upstream, own }: UpstreamPlace): string {
  return `${upstream}\n${own}`
}

// A session's stream may sit on one gateway while its client subscribes at another: whoever took the subscription tells the others,
// and the one that has the stream watches from then on. What is told is gone after a while; who looked in vain has nothing to tell.

const prefix = 'gateway/session/'
const toldMs = 30_000
const againMs = 500

/** Tells other gateways on the store about subscriptions of shared sessions. */
export class SessionNews {
  readonly #server: Server
  readonly #store: Store
  readonly #end = new AbortController()
  /** By key: the last that was looked at. */
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

  /** Writes the name of the session, so that other gateways look at it again. */
  async #tell({ conversation, correlation }: Exchange): Promise<void> {
    const { session } = conversation
    const name = session === undefined ? undefined : await this.#server.engine.sharing?.nameOf(session)
    if (name === undefined) return
    const place = `${prefix}${name.slice(name.lastIndexOf('/') + 1)}`
    const outcome = await this.#store.commit([put(place, JSON.stringify({ name, by: correlation }), { ttl: toldMs })])
    if (outcome.ok) this.#seen.set(place, outcome.results[0]?.version ?? 0)
  }

  async #follow(): Promise<void> {
    const { engine } = this.#server
    try {
      for await (const _ of this.#store.watch([prefix], this.#end.signal)) await this.#lookSurely()
    } catch (error) {
      if (!this.#end.signal.aborted) engine.trace('session-news', error)
    }
  }

  /** A store that fails now works again later: until then nothing else is heard either. */
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

  /** Refreshes the sessions whose entries are new since the last look. */
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
