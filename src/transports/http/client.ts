/** The client's end of Streamable HTTP on Node. */
import type { Credentials } from '../../core/credentials.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { authorizedWire } from './client-authorized.ts'
import { type ClientSettings, clientSettings, HttpClientConnection } from './client-connection.ts'
import { type Fetch, fetchWire } from './client-fetch.ts'
import { type NodeWireOptions, nodeWire } from './client-node.ts'
import { socketWire } from './client-socket.ts'
import { type HttpWire, httpUrl } from './client-wire.ts'

/** What an HTTP connection of a client can be told. */
export interface HttpClientOptions extends Partial<ClientSettings>, NodeWireOptions {
  /** Makes the requests instead of node:http; what concerns sockets (`connectTimeoutMs`, `tls`, …) is then its matter. */
  readonly fetch?: Fetch
  /** Brings credentials, and better ones where those are refused. */
  readonly authorizer?: Credentials
}

/**
 * A connection to the server at `url`. Nothing is sent before the first message.
 * @example
 * const connection = httpClientConnection('https://example.com/mcp', { headers: { authorization: `Bearer ${token}` } })
 */
export function httpClientConnection(url: string | URL, options: HttpClientOptions = {}): Connection {
  const target = httpUrl(url)
  return new HttpClientConnection(target, wireFor(target, options), clientSettings(options))
}

/** The wire that the options ask for. */
export function wireFor(url: URL, options: HttpClientOptions): HttpWire {
  const wire = options.fetch === undefined ? wireTo(url, options) : fetchWire(url, options.fetch)
  return options.authorizer === undefined ? wire : authorizedWire(url, wire, options.authorizer)
}

/** Plain HTTP has a wire of our own; TLS is left to Node. */
function wireTo(url: URL, options: HttpClientOptions): HttpWire {
  return url.protocol === 'https:' ? nodeWire(url, options) : socketWire(url, options)
}
