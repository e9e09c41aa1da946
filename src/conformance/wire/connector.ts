/**
 * Opens raw connections to one server at one revision on one carrier. Processes take long to start, so that over stdio one is kept
 * for the next that wants the same; whoever needs an untouched one says so.
 */

import type { Acceptor } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Carrier, Frame, OpenOptions, RevisionId, Subject } from '../scenario.ts'
import { isStateless, sayHello } from './envelope.ts'
import { httpPipe, ssePipe } from './http.ts'
import { type SendGuard, WirePeer } from './peer.ts'
import { memoryPipe, stdioPipe, webSocketPipe } from './pipes.ts'
import type { Pipe } from './raw-peer.ts'

/** What all connections of a cell have in common. */
interface ConnectorOptions {
  readonly places: Places
  readonly carrier: Carrier
  readonly revision: RevisionId
  readonly headers: Readonly<Record<string, string>>
  readonly guard: SendGuard
  readonly onFrame?: ((frame: Frame, on: FrameOrigin) => void) | undefined
}

/** The connection of a frame. */
export interface FrameOrigin {
  /** The revision of the connection. */
  readonly revision: RevisionId
  /** The carrier of the connection. */
  readonly carrier: Carrier
  /** The same object for all frames of one connection. */
  readonly connection: object
}

const mostClosing = 3

/** The connections of one cell. */
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
    const stored = key === undefined ? undefined : this.#spare.get(key)
    if (key !== undefined) this.#spare.delete(key)
    if (stored !== undefined && stored.ended === undefined) {
      stored.renew(options)
      return stored
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

// ── Where a server can be reached: one place per carrier, and a raw connection to any of them.

/** One server at several addresses. */
export interface Places {
  /** The command that serves on standard input and output. */
  readonly stdio?: Subject
  /** The URL of Streamable HTTP. */
  readonly http?: string | URL
  /** The URL of the HTTP+SSE stream (2024-11-05). */
  readonly sse?: string | URL
  /** The URL of the WebSocket, `ws:` or `wss:`. */
  readonly websocket?: string | URL
  /** A server in this process: `server.acceptor`. */
  readonly memory?: Acceptor
}

/** What can be judged: a URL, a command, a server of this process, or one server at several addresses. */
export type JudgeTarget =
  | string
  | URL
  | Subject
  | {
      /** A server in this process: `server.acceptor`. */
      readonly acceptor: Acceptor
    }
  | FormerTarget
  | Places

/** A server under its former name. */
interface FormerTarget {
  /**
   * The former name of `acceptor`.
   * @deprecated Use `acceptor`.
   */
  readonly door: Acceptor
}

/** The places of a target; throws TypeError where it has none. */
export function placesOf(target: JudgeTarget): Places {
  if (typeof target === 'string' || target instanceof URL) return placeOf(target)
  if ('command' in target) return { stdio: target }
  if ('acceptor' in target) return { memory: target.acceptor }
  return 'door' in target ? { memory: target.door } : target
}

function placeOf(target: string | URL): Places {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url?.protocol === 'ws:' || url?.protocol === 'wss:') return { websocket: url }
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return { http: url }
  throw new TypeError(`Cannot test "${clip(String(target))}": pass a full http, https, ws or wss URL, or { command, args }`)
}

const carriers: readonly Carrier[] = ['memory', 'stdio', 'http', 'sse', 'websocket']

/** The carriers that a server has a place for, in the order of reports. */
export function carriersOf(places: Places): readonly Carrier[] {
  return carriers.filter(carrier => places[carrier] !== undefined)
}

/** A carrier to the place, not started. `headers` go with everything over HTTP. */
function pipeTo(
  places: Places,
  carrier: Carrier,
  revision: RevisionId,
  headers: Readonly<Record<string, string>>,
  options: OpenOptions,
): Pipe {
  const given = { ...headers, ...options.headers }
  if (carrier === 'stdio' && places.stdio !== undefined) return stdioPipe(places.stdio)
  if (carrier === 'memory' && places.memory !== undefined) return memoryPipe(places.memory)
  if (carrier === 'http' && places.http !== undefined) return httpPipe({ url: new URL(places.http), headers: given }, revision)
  if (carrier === 'sse' && places.sse !== undefined) return ssePipe({ url: new URL(places.sse), headers: given })
  if (carrier === 'websocket' && places.websocket !== undefined)
    return webSocketPipe({ url: new URL(places.websocket), headers: given, protocols: options.protocols })
  throw new TypeError(`The target has no address for ${carrier}`)
}
