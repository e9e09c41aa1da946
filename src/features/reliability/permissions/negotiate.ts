/** Granting scopes: what the author's function says, and never more than was asked for or than the caller's token has. */
import { lifetimeOfSeconds, toMilliseconds } from '../../../core/duration.ts'
import { isScope, mostScopes } from '../../../core/scope.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { ownerOf } from '../../../engine/owner.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isTrusted } from '../../mcp/authorization/messages.ts'
import type { WireNegotiated } from './messages.ts'
import type { PermissionAnswer, PermissionsParts } from './server.ts'
import { type PermissionSessions, sessionName } from './sessions.ts'

interface Wish {
  readonly requested_scopes: readonly string[]
  readonly justification?: string
  readonly ttl_seconds?: number
}

export async function negotiated(
  parts: PermissionsParts,
  sessions: PermissionSessions,
  exchange: Exchange,
): Promise<WireNegotiated> {
  const wish = exchange.params as unknown as Wish
  const asked = [...new Set(wish.requested_scopes)]
  if (asked.length > mostScopes) throw invalid(`requested_scopes has ${asked.length} entries; the limit is ${mostScopes}`)
  if (wish.ttl_seconds !== undefined && wish.ttl_seconds <= 0) throw invalid('ttl_seconds must be above 0')
  const owner = await ownerOf(exchange)
  const id = crypto.randomUUID()
  const possible = new Map(asked.map(scope => [scope, refusalOf(parts, exchange, scope)]))
  const candidates = asked.filter(scope => possible.get(scope) === undefined)
  const answer = await answerOf(parts, exchange, wish, candidates, sessionName(owner, id))
  const granted = candidates.filter(scope => answer.scopes.includes(scope))
  const denied = asked
    .filter(scope => !granted.includes(scope))
    .map(scope => ({
      scope: clip(scope, 255),
      reason: possible.get(scope) ?? reasonIn(answer, scope) ?? 'This server does not grant it',
    }))
  if (granted.length === 0) return { granted_scopes: [], denied_scopes: denied }
  const idleMs = toMilliseconds(parts.idle ?? '15m', 'permissions.idle')
  const { token, expires } = await sessions.open(owner, id, granted, ttlOf(parts, wish, answer), idleMs, exchange.correlation)
  return {
    granted_scopes: granted,
    denied_scopes: denied,
    session: {
      token,
      scopes: granted,
      // Never later than it ends.
      expires_at: new Date(expires).toISOString(),
      inactivity_timeout_seconds: Math.floor(idleMs / 1000),
    },
  }
}

/** Why a scope cannot be granted, whatever the author says. */
function refusalOf(parts: PermissionsParts, { caller }: Exchange, scope: string): string | undefined {
  if (!isScope(scope) || scope.includes('*')) return 'This is no name of a scope'
  const held = caller.principal?.scopes
  if (held !== undefined) return held.includes(scope) ? undefined : 'The access token does not have it'
  if (parts.grant !== undefined || isTrusted(caller)) return undefined
  return 'Nobody is authorized here'
}

async function answerOf(
  { grant }: PermissionsParts,
  { caller }: Exchange,
  { justification }: Wish,
  scopes: readonly string[],
  session: string,
): Promise<PermissionAnswer> {
  if (grant === undefined || scopes.length === 0) return { scopes }
  const answer = await grant({ scopes, session, principal: caller.principal, justification })
  return 'scopes' in answer ? answer : { scopes: answer }
}

function reasonIn({ reasons = {} }: PermissionAnswer, scope: string): string | undefined {
  return Object.hasOwn(reasons, scope) ? reasons[scope] : undefined
}

function ttlOf(parts: PermissionsParts, { ttl_seconds: wanted }: Wish, { ttl }: PermissionAnswer): number {
  const most = toMilliseconds(parts.ttl ?? '1h', 'permissions.ttl')
  const own = ttl === undefined ? most : toMilliseconds(ttl, 'ttl')
  return lifetimeOfSeconds(wanted, { mostMs: Math.min(most, own) })
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', `params.${message}`)
}
