/** The client's end of Streamable HTTP where there is nothing but `fetch`: sockets, proxies and certificates are the platform's matter. */
import type { Credentials } from '../../core/credentials.ts'
import type { Connection } from '../../jsonrpc/connection.ts'
import { authorizedWire } from './client-authorized.ts'
import { type ClientSettings, clientSettings, HttpClientConnection } from './client-connection.ts'
import { type Fetch, fetchWire } from './client-fetch.ts'
import { type HttpWire, httpUrl } from './client-wire.ts'

/** What an HTTP connection of a client can be told. */
export interface HttpClientOptions extends Partial<ClientSettings> {
  /** Makes the requests instead of the platform's own. */
  readonly fetch?: Fetch
  /** Brings credentials, and better ones where those are refused. */
  readonly authorizer?: Credentials
}

/** A connection to the server at `url`. Nothing is sent before the first message. */
export function httpClientConnection(url: string | URL, options: HttpClientOptions = {}): Connection {
  const target = httpUrl(url)
  return new HttpClientConnection(target, wireFor(target, options), clientSettings(options))
}

/** The wire that the options ask for. */
export function wireFor(url: URL, options: HttpClientOptions): HttpWire {
  const fetch: Fetch = options.fetch ?? ((address, init) => globalThis.fetch(address, init))
  const wire = fetchWire(url, fetch)
  return options.authorizer === undefined ? wire : authorizedWire(url, wire, options.authorizer)
}
