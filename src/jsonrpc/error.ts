/** The one class of protocol failure. A kind, never a number: what number it has on a wire is the revision's or the feature's matter. */

/** The kinds of failures that JSON-RPC itself defines. Features add their own. */
type EnvelopeKind = 'parse' | 'invalid-request' | 'method-not-found' | 'invalid-params' | 'internal'

/** An error of the protocol: an unknown tool, invalid params, … `kind` says which. */
export class McpError extends Error {
  /** Always `McpError`. */
  override readonly name = 'McpError'
  /** What kind of failure it is, for example `unknown-tool`. The JSON-RPC code follows from it. */
  readonly kind: EnvelopeKind | (string & {})
  /** Further data, sent as `error.data`. */
  readonly data: unknown
  /** The JSON-RPC error code, if a peer sent the error. */
  readonly code: number | undefined
  /** The HTTP status that carried the error, if there was one. */
  readonly status: number | undefined

  constructor(kind: string, message: string, more: { data?: unknown; cause?: unknown; code?: number; status?: number } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.kind = kind
    this.data = more.data
    this.code = more.code
    this.status = more.status
  }

  /** Converts anything thrown to an `McpError` that reveals nothing of the original message. */
  static from(thrown: unknown): McpError {
    if (thrown instanceof McpError) return thrown
    return new McpError('internal', 'Internal server error; the log of the server has the cause', { cause: thrown })
  }
}
