/** Where a server can be reached: one place per carrier, and a raw connection to any of them. */
import type { Door } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Carrier, OpenOptions, RevisionId, Subject } from '../scenario.ts'
import { httpPipe } from './http.ts'
import { memoryPipe } from './memory.ts'
import type { Pipe } from './pipe.ts'
import { ssePipe } from './sse-pair.ts'
import { stdioPipe } from './stdio.ts'
import { webSocketPipe } from './websocket.ts'

/** One server, wherever it serves. */
export interface Places {
  readonly stdio?: Subject
  readonly http?: string | URL
  /** The old pair: where its stream is opened. */
  readonly sse?: string | URL
  readonly websocket?: string | URL
  /** A server in this process: `server.door`. */
  readonly memory?: Door
}

/** What can be judged: a URL, a command, a server of this process, or one server at several places. */
export type JudgeTarget = string | URL | Subject | { readonly door: Door } | Places

export function placesOf(target: JudgeTarget): Places {
  if (typeof target === 'string' || target instanceof URL) return placeOf(target)
  if ('command' in target) return { stdio: target }
  return 'door' in target ? { memory: target.door } : target
}

function placeOf(target: string | URL): Places {
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url?.protocol === 'ws:' || url?.protocol === 'wss:') return { websocket: url }
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return { http: url }
  throw new TypeError(`Cannot judge "${clip(String(target))}": give a full http, https, ws or wss URL, or { command, args }`)
}

const carriers: readonly Carrier[] = ['memory', 'stdio', 'http', 'sse', 'websocket']

export function carriersOf(places: Places): readonly Carrier[] {
  return carriers.filter(carrier => places[carrier] !== undefined)
}

/** A carrier to the place, not started. `headers` go with everything over HTTP. */
export function pipeTo(
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
  throw new TypeError(`The target has no place for ${carrier}`)
}
