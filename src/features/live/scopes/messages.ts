/** Scopes inside a feature set (MCP Live 0.2 §7): what a server wants to act on, and whether the host lets it. */
import { request, sessionIds } from '../../../engine/method.ts'
import { array, boolean, object, optional, record, string } from '../../../jsonrpc/shape.ts'

/** What a server asks its host to allow: a label, and what it is about. */
export interface Scope {
  readonly label: string
  readonly payload?: Record<string, unknown>
}

/** Which labels need no question, and which are refused without one. Patterns are the host's; by default globs. */
export interface ScopeLists {
  readonly whitelist?: readonly string[]
  readonly blacklist?: readonly string[]
}

/** The host's answer to a wider scope. */
export interface Elevation {
  readonly approved: boolean
  /** On approval: what the request gave along. */
  readonly payload?: Readonly<Record<string, unknown>>
  /** On denial. */
  readonly reason?: string
  /** On denial: code, rule and way out, for hosts that say why. */
  readonly data?: unknown
}

/** A scope, as it comes on the wire. */
export const scopeShape = object({ label: string, payload: optional(record) })
/** Allow and deny lists, as they come on the wire. */
export const scopeListsShape = object({ whitelist: optional(array(string)), blacklist: optional(array(string)) })
/** The host's answer, as it comes on the wire. */
export const elevationShape = object({ approved: boolean, payload: optional(record), reason: optional(string) })

/** Asks the host for a wider scope. */
export const elevateScope = request<Elevation>()({
  name: 'scope/elevate',
  to: 'client',
  in: sessionIds,
  params: object({ featureSet: string, scope: scopeShape }),
})
