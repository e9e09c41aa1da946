/**
 * Callers that may call no longer: their calls under way are stopped and told so, their sessions end, and their connections are
 * closed. What waits for an answer of theirs (a question, an approval) ends with the call that it belongs to.
 */
import type { Principal } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import { type Exchange, onCallerGone } from './exchange.ts'

/** Ends the calls, sessions and connections of all principals that match. */
export function disconnect(engine: Engine, matches: (principal: Principal) => boolean): void {
  const meant = ({ caller }: Pick<Exchange | Conversation, 'caller'>): boolean =>
    caller.principal !== undefined && matches(caller.principal)
  for (const exchange of activeExchanges(engine)) if (meant(exchange)) stopCall(exchange, refused())
  for (const conversation of [...engine.sessions.all()]) {
    if (!meant(conversation)) continue
    engine.sessions.delete(conversation.session as string)
    engine.sharing?.forget(conversation.session as string)
  }
  for (const conversation of [...engine.connected]) {
    const { connection } = conversation
    if (connection === undefined || !meant(conversation)) continue
    conversation.end(refused())
    if (connection.expire === undefined) connection.close().catch(error => engine.trace('close-failed', error))
    else connection.expire()
  }
}

/** All requests that are being handled, also in the background. Of stateless callers without a principal only where somebody asked for it (`keepsAll`). */
export function activeExchanges({ inFlight, sessions, connected }: Engine): readonly Exchange[] {
  const conversations = [...sessions.all(), ...connected]
  return [...new Set([...inFlight.alone, ...conversations.flatMap(({ running }) => running), ...inFlight.detached.keys()])]
}

/** Stops the work of a call and answers it with a failure, which its task ends with where it has become one. What it has done by then stays done. */
export function stopCall(exchange: Exchange, why: Error): void {
  // Nobody may come back for it.
  exchange.set(onCallerGone, undefined)
  exchange.engine.inFlight.detached.get(exchange)?.(why)
  exchange.stop(why.message)
  if (!exchange.answered) exchange.engine.fail(exchange, why)
}

function refused(): McpError {
  return new McpError(
    'invalid-request',
    'Your access to this server was revoked during the call. Part of the call may have run. Get a new token before you call again',
  )
}

// Whether work failed because it was told to stop, which is nobody's mistake, or for a reason of its own.

/** How many causes are followed: a chain of them may be a ring. */
const deepest = 8

/** Libraries hand on the reason they were given, wrap it, or throw an `AbortError` of their own. */
export function failedByStop(exchange: Exchange, error: unknown): boolean {
  if (!exchange.cancelled) return false
  const { reason } = exchange.signal
  let at = error
  for (let depth = 0; depth < deepest && at instanceof Error; depth++) {
    if (at === reason || at.name === 'AbortError') return true
    at = at.cause
  }
  return false
}

/** What its caller is told, where there is still somebody to hear it. It has no cause, so that logs do not take it for a mistake. */
export function stoppedFailure(): McpError {
  return new McpError('internal', 'The request was cancelled before it completed')
}
