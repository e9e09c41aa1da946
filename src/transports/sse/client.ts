/** The client's end of the old HTTP+SSE pair on Node. */
import type { Connection } from '../../jsonrpc/connection.ts'
import { type HttpClientOptions, wireFor } from '../http/client.ts'
import { clientSettings } from '../http/client-settings.ts'
import { httpUrl } from '../http/client-wire.ts'
import { SseClientConnection } from './client-connection.ts'

export interface SseClientOptions extends HttpClientOptions {
  /** Until the server has named the address to post to. Default 10 s. */
  readonly endpointTimeoutMs?: number
}

/** A connection to the 2024-11-05 server whose stream is at `url`. `start` resolves when the server has said where to post. */
export function sseClientConnection(url: string | URL, options: SseClientOptions = {}): Connection {
  const target = httpUrl(url)
  const settings = { ...clientSettings(options), endpointTimeoutMs: options.endpointTimeoutMs ?? 10_000 }
  return new SseClientConnection(target, wireFor(target, options), settings)
}
