/** What a wire revision is: data and a few pure functions, only what no feature owns. */
import type { Carrier } from '../jsonrpc/connection.ts'
import type { Params } from '../jsonrpc/message.ts'

/** The ids of all protocol revisions. */
export type RevisionId = '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25' | '2026-07-28' | 'draft-2026-v1' | 's3'

/** The version of this package, as its peers are told it beside its name. */
export const version = '0.1.0'

/** Name and version of a program. */
export interface Implementation {
  /** The name, for programs. */
  readonly name: string
  /** The version. */
  readonly version: string
  /** The name that people see. Default: `name`. */
  readonly title?: string
  /** What it does, in a sentence. */
  readonly description?: string
  /** The address of its website. */
  readonly websiteUrl?: string
  /** Images that clients can show next to its name. */
  readonly icons?: readonly Icon[]
}

/** An image for a name. */
export interface Icon {
  /** The address of the image: an https URL or a data URL. */
  readonly src: string
  /** The media type of the image, for example `image/png`. */
  readonly mimeType?: string
  /** The sizes of the image, for example `48x48`, or `any` for vector images. */
  readonly sizes?: readonly string[]
  /** The theme that the image is made for. Default: any. */
  readonly theme?: 'light' | 'dark'
}

/** The capabilities that one side declares. */
export type Capabilities = Readonly<Record<string, unknown>>

/** What is known of the other end while one message is handled: remembered per session, or read from each request. */
export interface Peer {
  readonly revision: Revision
  readonly capabilities: Capabilities
  readonly info: Implementation | undefined
  /** The log level this request asked for, on wires where each request says so. */
  readonly logLevel: string | undefined
}

/** Failure kinds that no feature owns. */
export type CommonKind =
  | 'parse'
  | 'invalid-request'
  | 'method-not-found'
  | 'invalid-params'
  | 'internal'
  | 'invalid-envelope'
  | 'header-mismatch'
  | 'capability-missing'
  | 'version-unsupported'
  | 'not-initialized'
  | 'method-not-allowed'
  | 'session-missing'
  | 'session-unknown'
  | 'insufficient-scope'
  /** Who asks may not, and a token with more scopes would not help. */
  | 'forbidden'
  | 'busy'
  | 'rate-limited'

/** What a wire does over HTTP. */
export interface HttpPolicy {
  /** Sessions by header, a GET stream and DELETE. */
  readonly session: boolean
  /** Messages after the handshake must name their session, unless the server serves without sessions. */
  readonly sessionRequired: boolean
  /** A server that has no metadata about its authorization is its own authorization server. */
  readonly authorizesItself: boolean
  /** An authorization server that does not announce PKCE is taken not to know it. */
  readonly announcesPkce: boolean
  /** Broken streams continue by GET with Last-Event-ID. */
  readonly resume: boolean
  /** Streams open with an empty event so that they can be left and re-joined at once. */
  readonly prime: boolean
  /** A client that hangs up has cancelled its request. */
  readonly disconnectCancels: boolean
  /** Statuses other than 200 for a failure that is answered in the body. */
  readonly status: Readonly<Partial<Record<CommonKind, number>>>
  /** Headers that the client sends with a message of this wire. */
  headers(method: string | undefined, params: Params | undefined, nameParam: string | undefined): Record<string, string>
}

/** One version of the wire. */
export interface Revision {
  readonly id: RevisionId
  /** The version string on the wire. */
  readonly wire: string
  /** The wire of which this one is a patch: its steps come first. Undefined: a patch of the canonical model itself. */
  readonly base: RevisionId | undefined
  /** Whether a session remembers the revision, or each request names it. */
  readonly era: 'session' | 'request'
  /** Index into per-revision tables. */
  readonly ordinal: number
  /** A small early dialect beside the official line, told apart by words of its own. */
  readonly dialect: boolean
  readonly batch: boolean
  /** How an error answers a request whose id could not be read. */
  readonly unknownId: 'omit' | 'null'
  /** How a server asks its client: by a request, inside a result, or not at all. */
  readonly asks: 'push' | 'result' | 'none'
  /**
   * How a server tells of arguments that do not fit a tool's schema. Wires up to 2025-06-18 leave it open, later ones want a result:
   * models read results, and mend what they did. So it is a result wherever a wire allows that.
   */
  readonly wrongArguments: 'result' | 'error'
  /** Lists come in pages; else everything is sent at once. */
  readonly pages: boolean
  /**
   * Both ends declare feature by feature what they support. Where they cannot, a handful of flags stand for it, and what is not
   * declared may be there all the same.
   */
  readonly detailedCapabilities: boolean
  /** The member of the capabilities among which extensions are declared; undefined where they have no place. */
  readonly extensionsIn: 'extensions' | 'experimental' | undefined
  /** Who says which log messages it wants: a session once, or each request; undefined where there are none. */
  readonly logLevelBy: 'session' | 'request' | undefined
  /** A cancelled request is still answered. */
  readonly answersCancelled: boolean
  readonly errors: Readonly<Record<CommonKind, number>>
  readonly http: HttpPolicy
  /** Whether a cancel is a message, or just letting go of the exchange. */
  cancels(carrier: Carrier): 'notify' | 'abort'
  /** Whether each request must name its sender in its envelope; undefined on wires without one. */
  readonly clientInfo?: 'optional' | 'required'
  /** Request era: what every request's `_meta` must carry. */
  requestMeta?(capabilities: Capabilities, info: Implementation, logLevel: string | undefined): Record<string, unknown>
  /** Request era: what every result must carry, beside `resultType`. */
  resultMeta?(info: Implementation): Record<string, unknown> | undefined
}

// What most wires share: numbers and HTTP manners.

const numbers: Record<CommonKind, number> = {
  parse: -32700,
  'invalid-request': -32600,
  'method-not-found': -32601,
  'invalid-params': -32602,
  internal: -32603,
  'invalid-envelope': -32602,
  'header-mismatch': -32600,
  'capability-missing': -32602,
  'version-unsupported': -32602,
  'not-initialized': -32600,
  'method-not-allowed': -32600,
  'session-missing': -32600,
  'session-unknown': -32600,
  'insufficient-scope': -32600,
  forbidden: -32600,
  busy: -32000,
  'rate-limited': -32000,
}

/** Failures that HTTP itself announces, on every wire. */
const statuses: Partial<Record<CommonKind, number>> = {
  parse: 400,
  'invalid-request': 400,
  'version-unsupported': 400,
  'not-initialized': 400,
  'method-not-allowed': 405,
  'session-missing': 400,
  'session-unknown': 404,
  'insufficient-scope': 403,
  busy: 503,
  'rate-limited': 429,
}

const sessionHttp: HttpPolicy = {
  session: true,
  sessionRequired: true,
  authorizesItself: false,
  announcesPkce: false,
  resume: true,
  prime: false,
  disconnectCancels: false,
  status: statuses,
  headers: () => ({}),
}

type SessionRevision = Pick<Revision, 'id' | 'wire' | 'base' | 'ordinal'> &
  Partial<Omit<Revision, 'era' | 'errors' | 'http'>> & {
    errors?: Partial<Record<CommonKind, number>>
    http?: Partial<HttpPolicy>
  }

/** A wire with a handshake that a session remembers. */
export function sessionRevision(parts: SessionRevision): Revision {
  return {
    era: 'session',
    dialect: false,
    batch: false,
    unknownId: 'null',
    asks: 'push',
    wrongArguments: 'result',
    pages: true,
    detailedCapabilities: true,
    extensionsIn: 'experimental',
    logLevelBy: 'session',
    answersCancelled: false,
    cancels: () => 'notify',
    ...parts,
    errors: { ...numbers, ...parts.errors },
    http: { ...sessionHttp, ...parts.http },
  }
}

/** The error numbers of stateless wires. */
export const statelessErrorCodes: Record<CommonKind, number> = {
  ...numbers,
  'header-mismatch': -32020,
  'capability-missing': -32021,
  'version-unsupported': -32022,
  busy: -32603,
  'rate-limited': -32603,
}

/** The HTTP statuses of failures on stateless wires. */
export const requestStatuses: Partial<Record<CommonKind, number>> = {
  ...statuses,
  'method-not-found': 404,
  'invalid-envelope': 400,
  'header-mismatch': 400,
  'capability-missing': 400,
}
