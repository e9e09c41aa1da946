/** Permissions on the wire: checks, negotiation, and the token of a grant in `_meta`. */

import type { Asker, Exchange } from '../../../engine/exchange.ts'
import { NS, notification, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { array, integer, object, optional, record, string } from '../../../jsonrpc/shape.ts'

/** Whether a caller may receive an event. `guarded`: by a grant that may end. */
export interface EventVisibility {
  readonly refusal: string | undefined
  readonly guarded: boolean
}

/** What other features may do with permissions. */
interface PermissionsPort {
  /** Determines the grant that a request presents, if no layer has done so yet. */
  admit(exchange: Exchange): Promise<void>
  /** Whether a caller may receive an event; undefined if its token alone decides. */
  judgeEvent(asker: Asker, name: string, scopes: readonly string[]): Promise<EventVisibility> | undefined
  /** The idle timeout of grants; undefined if this server grants nothing. */
  readonly sessionMs: number | undefined
}

/** The port of this feature. */
export const permissionsPort = port<PermissionsPort>('permissions')

/** The extension name. */
export const permissionsExtension = `${NS}/permissions`

/** One check. `scopes_held` is informative and has no effect. */
export interface WireCheck {
  readonly tool: string
  readonly parameters?: Params | undefined
  readonly scopes_held?: readonly string[] | undefined
}

/** The answer to one check. */
export interface WireChecked {
  readonly allowed: boolean
  readonly missing_scopes?: readonly string[]
  /** Where the user can grant what is missing. */
  readonly elevation_url?: string
  readonly reason?: string
}

// A grant and its token.
interface WireSession {
  readonly token: string
  readonly scopes: readonly string[]
  readonly expires_at: string
  /** The grant ends after this long without use. */
  readonly inactivity_timeout_seconds?: number
}

/** The answer to a negotiation. */
export interface WireNegotiated {
  readonly granted_scopes: readonly string[]
  readonly denied_scopes: readonly { readonly scope: string; readonly reason: string }[]
  /** Present only if something was granted. */
  readonly session?: WireSession
}

const check = { tool: string, parameters: optional(record), scopes_held: optional(array(string)) }

/** Checks one call or a list of calls. */
export const checkPermissions = request<WireChecked | { readonly checks: readonly WireChecked[] }>()({
  name: 'permissions/check',
  to: 'server',
  in: officialIds,
  extension: permissionsExtension,
  params: object({ ...check, tool: optional(string), checks: optional(array(object(check))) }),
})

/** Requests scopes. */
export const negotiatePermissions = request<WireNegotiated>()({
  name: 'permissions/negotiate',
  to: 'server',
  in: officialIds,
  extension: permissionsExtension,
  params: object({ requested_scopes: array(string), justification: optional(string), ttl_seconds: optional(integer) }),
})

/** Tells that a grant has ended, and which subscriptions ended with it. */
export const permissionsEnded = notification({
  name: 'notifications/permissions/ended',
  to: 'client',
  in: officialIds,
  params: object({ reason: string, uris: optional(array(string)) }),
})

/** The token that a request presents; undefined if none. A malformed value counts as presented, and is invalid. */
export function presentedIn(meta: Params | undefined): unknown {
  const said = meta?.[permissionsExtension]
  if (said === undefined) return undefined
  return isRecord(said) ? said['session_token'] : null
}

/** The token in the `_meta` of a request. */
export interface WirePresented {
  readonly session_token: string
}
