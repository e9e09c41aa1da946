/** The one class of protocol failure. A kind, never a number: what number it has on a wire is the revision's or the feature's matter. */

/** Kinds that belong to the envelope itself; features add their own (any string). */
type EnvelopeKind = 'parse' | 'invalid-request' | 'method-not-found' | 'invalid-params' | 'internal'

/** A failure of the protocol, by its kind. */
export class McpError extends Error {
  override readonly name = 'McpError'
  readonly kind: EnvelopeKind | (string & {})
  readonly data: unknown
  /** The number on the wire, where the failure came from a peer. */
  readonly code: number | undefined
  /** The HTTP status that carried it, where there was one. */
  readonly status: number | undefined

  constructor(kind: string, message: string, more: { data?: unknown; cause?: unknown; code?: number; status?: number } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.kind = kind
    this.data = more.data
    this.code = more.code
    this.status = more.status
  }

  /** Turns anything thrown into a protocol failure without leaking what it said: for the two edges only. */
  static from(thrown: unknown): McpError {
    if (thrown instanceof McpError) return thrown
    return new McpError('internal', 'The server failed while answering', { cause: thrown })
  }
}
