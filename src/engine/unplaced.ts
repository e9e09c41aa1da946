/** Messages that are refused before it was clear what they are: under which id, and in the words of which wire. Off the path of good ones. */
import type { Caller } from '../jsonrpc/connection.ts'
import { type Id, isId, isRecord } from '../jsonrpc/message.ts'
import { metaOf, type Revision, versionHeader, versionKey } from '../revisions/index.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'

/** The id of what can only have been a request: to a broken answer nothing is answered under its id. */
export function requestId(message: unknown): Id | undefined {
  if (!isRecord(message) || !isId(message['id'])) return undefined
  return message['method'] === undefined && ('result' in message || 'error' in message) ? undefined : message['id']
}

/** The wire that a message claims, by itself or by its header; else its conversation's, else the one its header names, else our newest. */
export function likelyRevision(engine: Engine, caller: Caller, conversation: Conversation | undefined, message?: unknown): Revision {
  const { spoken, fallback } = engine
  const header = versionHeader(caller)
  const named = header === undefined ? undefined : spoken.byWire(header)
  const claim = claimOf(message)
  if (claim !== undefined || named?.era === 'request') {
    const claimed = claim === undefined ? named : spoken.byWire(claim)
    return claimed?.era === 'request' ? claimed : fallback
  }
  // Whoever names in the header alone what nobody knows is on a wire with sessions.
  const unknown = header === undefined ? undefined : spoken.sessions[0]
  return (conversation ?? engine.seating.known(caller))?.peer?.revision ?? named ?? unknown ?? fallback
}

function claimOf(message: unknown): string | undefined {
  const params = isRecord(message) ? message['params'] : undefined
  const claim = isRecord(params) ? metaOf(params)?.[versionKey] : undefined
  return typeof claim === 'string' ? claim : undefined
}
