/**
 * Opens Streamable HTTP connections of a client in browsers and Workers. Replaces `client.ts` in that build: requests use
 * `fetch`, and sockets, proxies and certificates are up to the platform.
 */
import type { Credentials } from '../../core/credentials.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { authorizedWire } from './client-authorized.ts'
import { type ClientSettings, clientSettings, HttpClientConnection } from './client-connection.ts'
import { type Fetch, fetchWire } from './client-fetch.ts'
import { type HttpWire, httpUrl } from './client-wire.ts'

/** The options of a client's HTTP connection on this platform. */
interface HttpClientOptions extends Partial<ClientSettings> {
  /** Makes the requests instead of the platform's own. */
  readonly fetch?: Fetch
  /** Supplies credentials, and new ones if those are refused. */
  readonly authorizer?: Credentials
}

/** A connection to the server at `url`. Nothing is sent before the first message. */
export function httpClientConnection(url: string | URL, options: HttpClientOptions = {}): Connection {
  const target = httpUrl(url)
  return new HttpClientConnection(target, wireFor(target, options), clientSettings(options))
}

/** The wire for these options. */
export function wireFor(url: URL, options: HttpClientOptions): HttpWire {
  const fetch: Fetch = options.fetch ?? ((address, init) => globalThis.fetch(address, init))
  const wire = fetchWire(url, fetch)
  return options.authorizer === undefined ? wire : authorizedWire(url, wire, options.authorizer)
}
