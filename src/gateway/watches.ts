/** What clients watch is watched at its upstream, once for all of them, and again after each time that it was gone. */
import type { Client } from '../client/client.ts'
import type { Server } from '../server/api.ts'
import type { Catalog } from './catalog.ts'

export interface WatchesPort {
  readonly server: Server
  readonly catalog: Catalog
  client(upstream: string): Client | undefined
  /** The upstream says that a resource, by its own address, is another one now. */
  updated(upstream: string, uri: string): void
}

/** Where a resource is. */
interface Place {
  readonly upstream: string
  readonly own: string
}

interface Watch {
  /** Ends it. Undefined while its upstream is not there. */
  stop: AbortController | undefined
}

export class Watches {
  readonly #port: WatchesPort
  readonly #watches = new Map<string, Watch>()

  constructor(port: WatchesPort) {
    this.#port = port
    port.server.engine.onWatch.add((uri, watched) => this.#changed(uri, watched))
  }

  /** Upstreams have come or gone: what is watched there may be watched now. */
  look(): void {
    for (const [uri, watch] of this.#watches) if (watch.stop === undefined) this.#begin(uri, watch)
  }

  close(): void {
    for (const { stop } of this.#watches.values()) stop?.abort()
    this.#watches.clear()
  }

  #changed(uri: string, watched: boolean): void {
    const known = this.#watches.get(uri)
    if (watched && known === undefined) {
      const watch: Watch = { stop: undefined }
      this.#watches.set(uri, watch)
      this.#begin(uri, watch)
    } else if (!watched) {
      known?.stop?.abort()
      this.#watches.delete(uri)
    }
  }

  #begin(uri: string, watch: Watch): void {
    const found = this.#port.catalog.resource(uri)
    const client = found === undefined ? undefined : this.#port.client(found.upstream)
    if (found === undefined || client === undefined) return
    const stop = new AbortController()
    watch.stop = stop
    void this.#follow(client, found, uri, stop.signal).finally(() => {
      if (watch.stop === stop) watch.stop = undefined
    })
  }

  async #follow(client: Client, found: Place, uri: string, signal: AbortSignal): Promise<void> {
    const { server } = this.#port
    try {
      for await (const part of client.resourceUpdates(found.own, { signal })) {
        this.#port.updated(found.upstream, part)
        server.resourceUpdated(uri)
      }
    } catch (error) {
      // It announces no updates, or is gone: the one is its right, after the other it is watched again.
      if (!signal.aborted) server.engine.trace('upstream-watch', { uri, error })
    }
  }
}
