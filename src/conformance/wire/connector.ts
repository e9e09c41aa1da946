/**
 * Opens raw connections to one server at one revision on one carrier. Processes take long to start, so that over stdio one is kept
 * for the next that wants the same; whoever needs an untouched one says so.
 */
import type { Carrier, Frame, OpenOptions, RevisionId } from '../scenario.ts'
import { isStateless } from './envelope.ts'
import { sayHello } from './hello.ts'
import { type SendGuard, WirePeer } from './peer.ts'
import { type Places, pipeTo } from './places.ts'

export interface ConnectorOptions {
  readonly places: Places
  readonly carrier: Carrier
  readonly revision: RevisionId
  readonly headers: Readonly<Record<string, string>>
  readonly guard: SendGuard
  readonly onFrame?: ((frame: Frame, on: FrameOrigin) => void) | undefined
}

/** On which connection a frame passed. */
export interface FrameOrigin {
  readonly revision: RevisionId
  readonly carrier: Carrier
  /** The same object for all frames of one connection. */
  readonly connection: object
}

const mostClosing = 3

export class Connector {
  readonly #options: ConnectorOptions
  readonly #spare = new Map<string, WirePeer>()
  readonly #closing = new Set<Promise<void>>()
  #over = false

  constructor(options: ConnectorOptions) {
    this.#options = options
  }

  async open(options: OpenOptions = {}): Promise<WirePeer> {
    const key = this.#keyOf(options)
    const kept = key === undefined ? undefined : this.#spare.get(key)
    if (key !== undefined) this.#spare.delete(key)
    if (kept !== undefined && kept.ended === undefined) {
      kept.renew(options)
      return kept
    }
    return this.#fresh(options)
  }

  async #fresh(options: OpenOptions): Promise<WirePeer> {
    const { places, carrier, revision, headers, guard, onFrame } = this.#options
    const pipe = pipeTo(places, carrier, revision, headers, options)
    const origin = { revision, carrier, connection: pipe }
    const peer = new WirePeer(pipe, revision, options, guard, onFrame && (frame => onFrame(frame, origin)))
    try {
      await peer.start()
      if (options.hello === false) return peer
      peer.hello = await sayHello(peer, revision, options)
      if (carrier === 'http' && !isStateless(revision) && revision !== 's3' && options.listen !== false) await peer.listen()
      return peer
    } catch (error) {
      await away(peer)
      throw error
    }
  }

  /** A connection is no longer needed. `reusable`: nothing was done with it that another would notice. */
  async release(peer: WirePeer, options: OpenOptions, reusable: boolean): Promise<void> {
    const key = reusable && !this.#over && peer.ended === undefined ? this.#keyOf(options) : undefined
    if (key !== undefined && !this.#spare.has(key)) this.#spare.set(key, peer)
    else if (this.#options.carrier === 'stdio') await this.#closeLater(peer)
    else await away(peer)
  }

  /** A process takes its time to end; the next scenario need not wait for it, as long as they do not pile up. */
  async #closeLater(peer: WirePeer): Promise<void> {
    const closing = away(peer).finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
    if (this.#closing.size >= mostClosing) await Promise.race(this.#closing)
  }

  async close(): Promise<void> {
    this.#over = true
    const peers = [...this.#spare.values()]
    this.#spare.clear()
    await Promise.all([...peers.map(away), ...this.#closing])
  }

  /** What connections must have in common to stand for each other; undefined: none may. */
  #keyOf(options: OpenOptions): string | undefined {
    const { carrier, revision } = this.#options
    if (carrier !== 'stdio' || options.fresh === true || options.hello === false) return undefined
    return isStateless(revision) ? 'any' : JSON.stringify([options.capabilities, options.extensions, options.live])
  }
}

/** What cannot even be closed has been judged all the same. */
async function away(peer: WirePeer): Promise<void> {
  await peer.close().catch(() => undefined)
}
