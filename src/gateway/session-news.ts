/**
 * A session's stream may sit on one gateway while its client subscribes at another: whoever took the subscription tells the others,
 * and the one that has the stream watches from then on. What is told is gone after a while; who looked in vain has nothing to tell.
 */
import { pause } from '../engine/backoff.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import type { Server } from '../server/api.ts'
import { put, type Store } from '../stores/store.ts'

const prefix = 'gateway/session/'
const toldMs = 30_000
const againMs = 500

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
