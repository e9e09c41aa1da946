/** The one way to an address that a peer chose. What DNS and sockets need is injected by whoever runs on them. */

export interface OutboundRequest {
  readonly method?: string
  readonly headers?: Headers | Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams | Uint8Array
  readonly signal?: AbortSignal
}

/**
 * Shaped like `fetch`, so that libraries take it in place of it. Rejects with OutboundError where the address is refused, or
 * the answer is too large or too late; an answer that came is a Response of bounded size.
 */
export type Outbound = (url: string | URL, request?: OutboundRequest) => Promise<Response>

/** Names the rule that refused an address, or what went wrong on the way to it. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  /** `refused`: a rule said no and nothing was sent; `limit`: too large or too late; `failed`: the network said no. */
  readonly kind: 'refused' | 'limit' | 'failed'

  constructor(kind: OutboundError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}
