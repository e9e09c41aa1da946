/**
 * Opens Streamable HTTP connections of a client on Node, and chooses the wire: plain sockets for http:, node:https for https:,
 * or the `fetch` of the caller. `client.web.ts` replaces it in the build for browsers.
 */
import type { Credentials } from '../../core/credentials.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { authorizedWire } from './client-authorized.ts'
import { type ClientSettings, clientSettings, HttpClientConnection } from './client-connection.ts'
import { type Fetch, fetchWire } from './client-fetch.ts'
import { NodeWire, type NodeWireOptions } from './client-node.ts'
import { SocketWire } from './client-socket.ts'
import { type HttpWire, httpUrl } from './client-wire.ts'

/** The options of a client's HTTP connection. */
export interface HttpClientOptions extends Partial<ClientSettings>, NodeWireOptions {
  /** Makes the requests instead of our own wires; socket options (`connectTimeoutMs`, `tls`, …) then have no effect. */
  readonly fetch?: Fetch
  /** Supplies credentials, and new ones if those are refused. */
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

/** The wire for these options. */
export function wireFor(url: URL, options: HttpClientOptions): HttpWire {
  const wire = options.fetch === undefined ? wireTo(url, options) : fetchWire(url, options.fetch)
  return options.authorizer === undefined ? wire : authorizedWire(url, wire, options.authorizer)
}

/** Plain HTTP uses our own wire; TLS uses that of Node. */
function wireTo(url: URL, options: HttpClientOptions): HttpWire {
  return url.protocol === 'https:' ? new NodeWire(url, options) : new SocketWire(url, options)
}
