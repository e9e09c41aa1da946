/** Callers that open a stream for what is said unasked, come back to one that broke, or end their session. */
import type { Caller, Lane, Resumed } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { type Awaitable, isThenable } from '../jsonrpc/message.ts'
import type { Revision } from '../revisions/index.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'
import { likelyPeer } from './malformed-messages.ts'
import { refuseUnplaced } from './receive.ts'

/** Settles when the lane may be opened, if it was not refused. */
export function openListening(engine: Engine, caller: Caller, lane: Lane): Awaitable<void> {
  const refused = (error: unknown): void => refuseUnplaced(engine, lane, undefined, error, likelyPeer(engine, caller, undefined))
  try {
    const conversation = engine.sessionLookup.sessionOf(caller)
    // What it hears is decided by the token with which it listens, not by that of the handshake.
    conversation.caller = { ...conversation.caller, principal: caller.principal }
    const last = caller.header?.('last-event-id')
    if (last === undefined || !httpOf(conversation).resume) return hear(engine, conversation, lane)
    const resumed = lane.resume?.(conversation.session as string, last) ?? false
    if (!isThenable(resumed)) return goneOn(engine, conversation, lane, resumed)
    return resumed.then(how => goneOn(engine, conversation, lane, how), unread).then(undefined, refused)
  } catch (error) {
    refused(error)
  }
}

export function leave(engine: Engine, caller: Caller, reply: Lane): void {
  try {
    const conversation = engine.sessionLookup.sessionOf(caller)
    const { session = '' } = conversation
    engine.sessions.delete(session)
    if (engine.sharing === undefined) reply.end({ status: 200 })
    else engine.sharing.end(session, caller, reply)
  } catch (error) {
    refuseUnplaced(engine, reply, undefined, error, likelyPeer(engine, caller, undefined))
  }
}

function hear(engine: Engine, conversation: Conversation, lane: Lane): void {
  if (conversation.push !== undefined && !conversation.push.closed) conversation.push.end()
  conversation.push = lane
  const http = httpOf(conversation)
  if (http.resume) lane.keep?.(conversation.session as string, http.prime)
  takenUp(engine, conversation)
}

function goneOn(engine: Engine, conversation: Conversation, lane: Lane, how: Resumed): void {
  if (how === false)
    throw new McpError('invalid-request', 'There is no stream in this session that sent that event id; open a new one')
  if (how === true) return takenUp(engine, conversation)
  if (conversation.ended) lane.end()
  else hear(engine, conversation, lane)
}

/** Somebody reads what is said unasked, perhaps again. */
function takenUp(engine: Engine, conversation: Conversation): void {
  for (const fn of engine.onListen) fn(conversation)
  conversation.takenUp()
}

function unread(cause: unknown): never {
  throw new McpError('busy', 'The streams of this session cannot be read now; try again', {
    cause,
    data: { retryAfterMs: 1_000 },
  })
}

function httpOf({ peer }: Conversation): Revision['http'] {
  return (peer as { revision: Revision }).revision.http
}
