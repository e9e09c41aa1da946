/** Messages that are refused before it was clear what they are: under which id, in the words of which wire, and to whom. Off the path of good ones. */
import { problem } from '../core/problem.ts'
import type { Caller, CarrierRefusal, FrameFault } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { type Id, isId, isRecord, type Params } from '../jsonrpc/message.ts'
import { parsePruned } from '../jsonrpc/parse.ts'
import { capabilitiesKey, metaOf, type Peer, type Revision, versionHeader, versionKey } from '../revisions/index.ts'
import type { Conversation } from './conversation.ts'
import type { Engine } from './engine.ts'

/** The id of what can only have been a request: to a broken answer nothing is answered under its id. */
export function requestId(message: unknown): Id | undefined {
  if (!isRecord(message) || !isId(message['id'])) return undefined
  return message['method'] === undefined && ('result' in message || 'error' in message) ? undefined : message['id']
}

const atHead = /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"(?:result|error)":/
const atTail = /"jsonrpc":"2\.0","id":(\d{1,15})\}\s*$/

/** A frame that is beyond the limits, or no JSON: if by its ends it answers a call of ours, that call need not wait for its deadline. */
export function failUnread(conversation: Conversation | undefined, text: string, error: Error): void {
  const found = atHead.exec(text.slice(0, 64)) ?? (text.startsWith('{"result":') ? atTail.exec(text.slice(-64)) : null)
  if (found !== null) conversation?.calls?.fail(Number(found[1]), unreadable(error))
}

/** The answer to a call of ours that can do without those entries of its list that are too deep; undefined if it is none. */
export function readable(engine: Engine, conversation: Conversation | undefined, text: string): unknown {
  const calls = conversation?.calls
  for (const entries of calls?.entries() ?? []) {
    try {
      const message = parsePruned(text, engine.limits, entries)
      if (message !== undefined && message['method'] === undefined && calls?.spares(message['id'], entries) === true)
        return message
    } catch (error) {
      engine.trace('answer-unreadable', error)
    }
  }
  return undefined
}

/** The same for what is JSON, but no message. */
export function failBroken(conversation: Conversation | undefined, message: unknown, error: Error): void {
  if (isRecord(message) && message['method'] === undefined && isId(message['id']))
    conversation?.calls?.fail(message['id'], unreadable(error))
}

function unreadable(cause: Error): McpError {
  return new McpError('invalid-result', `The response is not valid: ${cause.message}`, { cause })
}

/** The wire that a message claims, by itself or by its header; else its conversation's, else the one its header names, else our newest. */
export function likelyRevision(
  engine: Engine,
  caller: Caller,
  conversation: Conversation | undefined,
  message?: unknown,
): Revision {
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
  return (conversation ?? engine.sessionLookup.known(caller))?.peer?.revision ?? named ?? unknown ?? fallback
}

/**
 * Whoever sent it, as far as that is known: on wires with sessions what the session remembers, on the others what this message says
 * of its sender. Of a handshake that is refused nothing is known yet.
 */
export function likelyPeer(
  engine: Engine,
  caller: Caller,
  conversation: Conversation | undefined,
  message?: unknown,
  revision: Revision = likelyRevision(engine, caller, conversation, message),
): Peer {
  if (revision.era === 'session') {
    const peer = (conversation ?? engine.sessionLookup.known(caller))?.peer
    return peer?.revision === revision ? peer : unknownPeer(revision)
  }
  const said = sentMeta(message)?.[capabilitiesKey]
  return isRecord(said) ? { ...unknownPeer(revision), capabilities: said } : unknownPeer(revision)
}

/** What a refusal by the carrier says beside its words, where the sender's session is known to read it. */
export function refusalData(engine: Engine, caller: Caller, { status, message, retryAfterMs }: CarrierRefusal): unknown {
  const peer = engine.sessionLookup.known(caller)?.peer
  const thrown = new McpError('refused', message, { status, ...(retryAfterMs === undefined ? {} : { data: { retryAfterMs } }) })
  const told = peer === undefined ? thrown : engine.explainTo(peer, thrown)
  return told === thrown || !(told instanceof McpError) ? undefined : told.data
}

/** A frame that its carrier refused unread, as a failure. */
export function faultError({ kind, message }: FrameFault): McpError {
  return new McpError('parse', message, kind === 'too-large' ? { cause: problem('PAYLOAD_TOO_LARGE', message) } : {})
}

/** Of whom nothing is known but the wire. */
export function unknownPeer(revision: Revision): Peer {
  return { revision, capabilities: {}, info: undefined, logLevel: undefined }
}

function claimOf(message: unknown): string | undefined {
  const claim = sentMeta(message)?.[versionKey]
  return typeof claim === 'string' ? claim : undefined
}

function sentMeta(message: unknown): Params | undefined {
  const params = isRecord(message) ? message['params'] : undefined
  return isRecord(params) ? metaOf(params) : undefined
}
