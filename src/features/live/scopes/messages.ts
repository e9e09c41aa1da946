/** Wire messages of scopes (MCP Live 0.2 §7): what a server wants to act on, and whether the host allows it. */
import { request, sessionRevisionIds } from '../../../engine/method.ts'
import { array, boolean, object, optional, record, string } from '../../../jsonrpc/shape.ts'

/** What a set wants to act on. */
export interface Scope {
  /** What the user reads, and what lists are matched against. */
  readonly label: string
  /** Further facts about it, for programs. */
  readonly payload?: Record<string, unknown>
}

/**
 * Scopes of a feature set that are decided without asking. The host chooses the pattern language; here `*` stands for any characters but a
 * slash, and `**` for any characters.
 */
export interface ScopeLists {
  /**
   * Scopes that are allowed.
   * @example ["/project/**"]
   */
  readonly whitelist?: readonly string[]
  /**
   * Scopes that are refused; this takes precedence over `whitelist`.
   * @example ["**\/.env"]
   */
  readonly blacklist?: readonly string[]
}

/** The host's answer. */
export interface Elevation {
  readonly approved: boolean
  /** If approved: the payload, possibly changed by the host. */
  readonly payload?: Readonly<Record<string, unknown>>
  /** If denied: why. */
  readonly reason?: string
  /** If denied: code, rule and fix. */
  readonly data?: unknown
}

/** The shape of a scope. */
export const scopeShape = object({ label: string, payload: optional(record) })
/** The shape of allow and deny lists. */
export const scopeListsShape = object({ whitelist: optional(array(string)), blacklist: optional(array(string)) })
/** The shape of the host's answer. */
export const elevationShape = object({ approved: boolean, payload: optional(record), reason: optional(string) })

/** Asks the host to allow a scope. */
export const elevateScope = request<Elevation>()({
  name: 'scope/elevate',
  to: 'client',
  in: sessionRevisionIds,
  params: object({ featureSet: string, scope: scopeShape }),
})
