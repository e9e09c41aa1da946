/** Arrays, on the one wire that has them: each element is its own delivery, the answers are gathered into one frame. */
import type { Lane, SendHints } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { metaOf, type Revision, versionHeader, versionKey } from '../revisions/index.ts'
import type { Engine } from './engine.ts'
import { likelyPeer, likelyRevision } from './malformed-messages.ts'
import { type Delivery, receive, refuseMalformed } from './receive.ts'

/** Receives each message of an array by itself and answers with one array. */
export function receiveBatch(engine: Engine, delivery: Delivery, messages: readonly unknown[]): void {
  const { reply } = delivery
  const revision = batchRevision(engine, delivery)
  const peer = likelyPeer(engine, delivery.caller, delivery.conversation, undefined, revision)
  try {
    check(engine, messages, revision.batch)
    const conversation = delivery.conversation ?? engine.sessionLookup.answering(delivery)
    const answers = messages.filter(isAnswered).length
    const gathering = new GatheringLane(reply, answers)
    const silent = new SilentLane(reply)
    for (const message of messages) {
      // An array within an array would get round the limit, level by level.
      if (Array.isArray(message)) refuseMalformed(engine, gathering, undefined, nested(), peer)
      else receive(engine, { ...delivery, batched: true, message, conversation, reply: isAnswered(message) ? gathering : silent })
    }
    if (answers === 0) reply.end()
  } catch (error) {
    refuseMalformed(engine, reply, undefined, error, peer)
  }
}

function nested(): McpError {
  return new McpError('invalid-request', 'A batch must not contain another batch; send requests and notifications')
}

/** As long as no version is known, an array says that it is of the wire that has them. */
function batchRevision(engine: Engine, { caller, conversation }: Delivery): Revision {
  const unknown = (conversation ?? engine.sessionLookup.known(caller))?.peer === undefined && versionHeader(caller) === undefined
  const wire = unknown ? engine.spoken.all.find(revision => revision.batch) : undefined
  return wire ?? likelyRevision(engine, caller, conversation)
}

function check(engine: Engine, messages: readonly unknown[], allowed: boolean): void {
  if (!allowed) throw new McpError('invalid-request', 'Batches exist only at revision 2025-03-26; send each message separately')
  if (messages.length === 0) throw new McpError('invalid-request', 'The batch is empty; send at least one message')
  if (messages.length > engine.limits.batch) {
    throw new McpError(
      'invalid-request',
      `The batch has ${messages.length} messages; the limit is ${engine.limits.batch} (batch). Split it`,
    )
  }
  for (const message of messages) {
    if (!isRecord(message)) continue
    if (message['method'] === 'initialize') throw new McpError('invalid-request', 'initialize must not be part of a batch')
    const params = message['params']
    if (isRecord(params) && metaOf(params)?.[versionKey] !== undefined) {
      throw new McpError('invalid-request', 'A request that names its version in _meta must not be part of a batch')
    }
  }
}

/** Requests are answered, and so is what is no message at all; notifications and responses are not. */
function isAnswered(message: unknown): boolean {
  if (!isRecord(message)) return true
  if (typeof message['method'] === 'string') return message['id'] !== undefined
  return !('result' in message || 'error' in message)
}

/** Collects final frames and sends them as one array; what precedes an answer goes out at once. */
class GatheringLane implements Lane {
  readonly #lane: Lane
  readonly #frames: string[] = []
  #open: number

  constructor(lane: Lane, open: number) {
    this.#lane = lane
    this.#open = open
  }

  get closed(): boolean {
    return this.#lane.closed
  }

  get answerOnly(): boolean {
    return this.#lane.answerOnly === true
  }

  send(frame: string, hints?: SendHints): void {
    if (hints?.final !== true) return this.#lane.send(frame, hints)
    this.#frames.push(frame)
    this.#settle()
  }

  /** A cancelled request: one answer fewer to wait for. */
  end(): void {
    this.#settle()
  }

  onClose(fn: () => void): void {
    this.#lane.onClose(fn)
  }

  #settle(): void {
    if (--this.#open > 0) return
    if (this.#frames.length === 0) this.#lane.end()
    else this.#lane.send(`[${this.#frames.join(',')}]`, { final: true })
  }
}

/** The way back of a notification inside a batch: nowhere. */
class SilentLane implements Lane {
  readonly #lane: Lane

  constructor(lane: Lane) {
    this.#lane = lane
  }

  get closed(): boolean {
    return this.#lane.closed
  }

  send(): void {}

  end(): void {}

  onClose(fn: () => void): void {
    this.#lane.onClose(fn)
  }
}
