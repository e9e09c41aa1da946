/** Permissions on the wire: asking what would be allowed, and for scopes; the token of what was granted goes in `_meta`. */

import type { Asker, Exchange } from '../../../engine/exchange.ts'
import { NS, notification, officialIds, request } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { array, integer, object, optional, record, string } from '../../../jsonrpc/shape.ts'

/** Whether a caller may hear of an event, and why not; `guarded`: by a grant that may end. */
export interface EventVisibility {
  readonly refusal: string | undefined
  readonly guarded: boolean
}

/** What other features may use of permissions. */
interface PermissionsPort {
  /** Lets a request in by the grant that it presents, where nothing did before. */
  admit(exchange: Exchange): Promise<void>
  /** Whether a caller may hear of an event; undefined where its token alone decides. */
  judgeEvent(asker: Asker, name: string, scopes: readonly string[]): Promise<EventVisibility> | undefined
  /** How long a grant lasts that nobody uses; undefined where nothing is granted here. */
  readonly sessionMs: number | undefined
}

/** What other features may use of permissions. */
export const permissionsPort = port<PermissionsPort>('permissions')

/** The name of the extension. */
export const permissionsExtension = `${NS}/permissions`

/** `scopes_held` is what the caller believes, and decides nothing. */
export interface WireCheck {
  readonly tool: string
  readonly parameters?: Params | undefined
  readonly scopes_held?: readonly string[] | undefined
}

export interface WireChecked {
  readonly allowed: boolean
  readonly missing_scopes?: readonly string[]
  readonly elevation_url?: string
  readonly reason?: string
}

interface WireSession {
  readonly token: string
  readonly scopes: readonly string[]
  readonly expires_at: string
  readonly inactivity_timeout_seconds?: number
}

/** The answer to a negotiation. */
export interface WireNegotiated {
  readonly granted_scopes: readonly string[]
  readonly denied_scopes: readonly { readonly scope: string; readonly reason: string }[]
  /** Only where something was granted. */
  readonly session?: WireSession
}

const check = { tool: string, parameters: optional(record), scopes_held: optional(array(string)) }

/** One check, or a list of them, answered as a list in the same order. */
export const checkPermissions = request<WireChecked | { readonly checks: readonly WireChecked[] }>()({
  name: 'permissions/check',
  to: 'server',
  in: officialIds,
  extension: permissionsExtension,
  params: object({ ...check, tool: optional(string), checks: optional(array(object(check))) }),
})

/** Asks which scopes the caller gets. */
export const negotiatePermissions = request<WireNegotiated>()({
  name: 'permissions/negotiate',
  to: 'server',
  in: officialIds,
  extension: permissionsExtension,
  params: object({ requested_scopes: array(string), justification: optional(string), ttl_seconds: optional(integer) }),
})

/** What was granted is over, and with it what the session was subscribed to by it. To those who declared the extension. */
export const permissionsEnded = notification({
  name: 'notifications/permissions/ended',
  to: 'client',
  in: officialIds,
  params: object({ reason: string, uris: optional(array(string)) }),
})

/** The token that a request presents; undefined where it presents none. What is no text is presented too, and is no token. */
export function presentedIn(meta: Params | undefined): unknown {
  if (meta === undefined || !Object.hasOwn(meta, permissionsExtension)) return undefined
  const said = meta[permissionsExtension]
  return isRecord(said) ? said['session_token'] : null
}

/** In the `_meta` of a request: the token of what was granted. */
export interface WirePresented {
  readonly session_token: string
}
