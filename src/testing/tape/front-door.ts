/**
 * HTTP exchanges as conversations: a session each, and one for all that name none. It knows of the protocol only what tells whose a
 * frame is. What is said unasked goes on the stream of the exchange that it names, else on the one kept open for it, else it waits.
 */
import { randomUUID } from 'node:crypto'
import type { Caller, Connection, Door, Lane } from '../../jsonrpc/connection.ts'
import { failureFrame, isRecord } from '../../jsonrpc/message.ts'
import { parse } from '../../jsonrpc/parse.ts'
import { HttpConversation } from './http-conversation.ts'

/** The most sessions at a time: a mock or a recording serves a few. */
const mostSessions = 1_000

export class FrontDoor implements Door {
  readonly #accept: (connection: Connection) => void
  readonly #sessions = new Map<string, HttpConversation>()
  #sessionless: HttpConversation | undefined = undefined

  constructor(accept: (connection: Connection) => void) {
    this.#accept = accept
  }

  deliver(text: string, caller: Caller, reply: Lane): void {
    const value = tryParse(text)
    const session = caller.header?.('mcp-session-id')
    const conversation = opens(value) ? this.#begin() : session === undefined ? this.#shared() : this.#sessions.get(session)
    if (conversation === undefined) return refuse(reply, 404, 'There is no such session. Send initialize to begin one')
    conversation.take(text, value, reply)
  }

  listen(caller: Caller, lane: Lane): void {
    const conversation = this.#sessions.get(caller.header?.('mcp-session-id') ?? '')
    if (conversation === undefined) return refuse(lane, 405, 'A stream is opened within a session. Send initialize to begin one')
    conversation.hear(lane)
  }

  leave(caller: Caller, reply: Lane): void {
    const session = caller.header?.('mcp-session-id') ?? ''
    const conversation = this.#sessions.get(session)
    if (conversation === undefined) return refuse(reply, 404, 'There is no such session')
    this.#sessions.delete(session)
    void conversation.close()
    reply.end({ status: 200 })
  }

  accept(connection: Connection): void {
    this.#accept(connection)
  }

  async close(): Promise<void> {
    const all = [...this.#sessions.values(), ...(this.#sessionless === undefined ? [] : [this.#sessionless])]
    await Promise.all(all.map(conversation => conversation.close()))
  }

  #begin(): HttpConversation | undefined {
    const [oldest] = this.#sessions
    if (this.#sessions.size >= mostSessions && oldest !== undefined) {
      this.#sessions.delete(oldest[0])
      void oldest[1].close()
    }
    const id = randomUUID()
    const conversation = new HttpConversation(id)
    this.#sessions.set(id, conversation)
    conversation.onClose(() => this.#sessions.delete(id))
    this.#accept(conversation)
    return conversation
  }

  #shared(): HttpConversation {
    const open = this.#sessionless
    if (open !== undefined && !open.ended) return open
    const conversation = new HttpConversation(undefined)
    this.#sessionless = conversation
    this.#accept(conversation)
    return conversation
  }
}

function opens(value: unknown): boolean {
  return Array.isArray(value) ? value.some(opens) : isRecord(value) && value['method'] === 'initialize'
}

function refuse(lane: Lane, status: number, message: string): void {
  lane.send(failureFrame(null, { code: -32600, message }), { final: true, status })
}

function tryParse(text: string): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}
