/** The one way to an address that a peer chose. What DNS and sockets need is injected by whoever runs on them. */

/** Options of a request to a foreign address. */
export interface OutboundRequest {
  /** The HTTP method. Default `GET`. */
  readonly method?: string | undefined
  /** The request headers. Default: none. */
  readonly headers?: Headers | Readonly<Record<string, string>> | undefined
  /** The request body. Default: none. */
  readonly body?: string | URLSearchParams | Uint8Array | null | undefined
  /** Aborts the request, also while the response is read. */
  readonly signal?: AbortSignal | undefined
  /**
   * `follow` (the default): GET and HEAD follow at most three redirects, each of which is checked; other methods refuse them.
   * `manual`: returns the redirect. `error`: refuses it.
   */
  readonly redirect?: 'follow' | 'manual' | 'error' | undefined
}

/**
 * A `fetch` for addresses that a peer chose. Rejects with `OutboundError` if the address is refused or the response is too large
 * or too late. The body is complete, unless streams were requested.
 */
export type Outbound = (url: string | URL, request?: OutboundRequest) => Promise<Response>

/** A request to a foreign address that was refused or failed. */
export class OutboundError extends Error {
  /** Always `OutboundError`. */
  override readonly name = 'OutboundError'
  /**
   * `refused`: a rule refused the address, and nothing was sent to it. `limit`: the response was too large or too late. `failed`:
   * the network or the response failed.
   */
  readonly kind: 'refused' | 'limit' | 'failed'

  constructor(kind: OutboundError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}
