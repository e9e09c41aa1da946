/** The way to one subscriber, and whether it takes more now: a listen request, or the stream of a session or connection. */
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'

export interface EventOutlet {
  /** Who is at its other end: the same object for the same one. */
  readonly to: object
  /** Whether somebody reads, and has taken what was sent before. */
  readonly ready: boolean
  send<P>(method: Method<P, undefined>, params: P): void
  /** Calls back once, when it may be ready again. */
  whenReady(fn: () => void): void
  /** Nothing more is sent. */
  close(): void
}

type Send = <P>(method: Method<P, undefined>, params: P) => void

/** What a listen request brings back. */
export function listenOutlet(exchange: Exchange, send: Send): EventOutlet {
  const { reply } = exchange
  return {
    to: exchange,
    get ready() {
      return !reply.closed && reply.blocked !== true
    },
    send: (method, params) => send(method, params),
    whenReady: fn => reply.onFree?.(fn),
    close: () => {},
  }
}

/** What is said unasked in a session or on a connection. Over HTTP nobody may be there to hear it for a while. */
export function conversationOutlet(conversation: Conversation, engine: Engine): EventOutlet {
  let waiting: (() => void) | undefined
  const wake = (): void => {
    const fn = waiting
    waiting = undefined
    fn?.()
  }
  const off = conversation.onHeard(wake)
  return {
    to: conversation,
    get ready() {
      const { ended, ready, push, connection, heard } = conversation
      if (ended || !ready) return false
      return connection === undefined ? heard && push?.blocked !== true : connection.blocked !== true
    },
    send: (method, params) => {
      engine.notify(conversation, method, params)
    },
    whenReady: fn => {
      waiting = fn
      const { connection, push, heard } = conversation
      if (connection !== undefined) connection.onFree?.(wake)
      else if (heard) push?.onFree?.(wake)
    },
    close: () => {
      waiting = undefined
      off()
    },
  }
}
