/** The one way to an address that a peer chose. What DNS and sockets need is injected by whoever runs on them. */

/** The part of a `RequestInit` that requests to foreign addresses use. */
export interface OutboundRequest {
  /** Default `GET`. */
  readonly method?: string | undefined
  readonly headers?: Headers | Readonly<Record<string, string>> | undefined
  readonly body?: string | URLSearchParams | Uint8Array | null | undefined
  /** Aborted: the request ends, also while its answer is being read. */
  readonly signal?: AbortSignal | undefined
  /**
   * `follow`, the default: GET and HEAD follow at most three redirects, each checked by the whole rule; other methods refuse
   * them. `manual`: the redirect itself is the answer. `error`: a redirect is refused.
   */
  readonly redirect?: 'follow' | 'manual' | 'error' | undefined
}

/**
 * Shaped like `fetch`, so that libraries take it in place of it. Rejects with OutboundError where the address is refused, or
 * the answer is too large or too late; an answer that came is a Response of bounded size, whole already unless streams were wanted.
 */
export type Outbound = (url: string | URL, request?: OutboundRequest) => Promise<Response>

/** Names the rule that refused an address, or what went wrong on the way to it. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  /**
   * `refused`: a rule said no, and nothing was sent to where it says no; `limit`: too large or too late; `failed`: the network,
   * or what it answered, is at fault.
   */
  readonly kind: 'refused' | 'limit' | 'failed'

  constructor(kind: OutboundError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.kind = kind
  }
}
