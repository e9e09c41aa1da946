/**
 * MCP Live on wires where a server sends no requests: the host holds one long request open, on which the server delivers what it has to
 * say, and answers by requests of its own. Described in `docs/live-binding.md`.
 */
import { notification, request, requestIds } from '../../../engine/method.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { anything, array, boolean, integer, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import { liveExtension, selectionShape, speakingLive, type WireSelection } from '../feature-sets/messages.ts'

/** What a host says when it begins to listen. */
export interface WireListen {
  /** Chosen by the host, hard to guess, the same for as long as it lives: requests that carry it in `_meta` belong to this stream. */
  readonly hostId?: string | undefined
  /** The cursor of the last delivery that was answered or, if it wants no answer, heard: what follows it is delivered again. */
  readonly after?: string | undefined
  readonly policy?: WireSelection | undefined
  /** What a host says of itself in `experimental.mcpl` elsewhere: version and capabilities. */
  readonly host?: Params | undefined
}

/** Why the stream ended; the host may listen anew. */
export interface Listened {
  readonly reason: 'closing' | 'replaced' | 'overload'
}

/** A message that the server would have sent by itself. */
export interface WireDelivery {
  /** Stands for the id of a request: answers name it, and it is the same when it comes again. */
  readonly deliveryId: string
  readonly cursor: string
  /** Whether it is a request: false for what nobody answers. */
  readonly answer: boolean
  readonly method: string
  readonly params: Params
}

interface WireChunk {
  readonly index: number
  readonly delta: string
}

/** One of: the result, the error, or chunks of an inference whose result is still to come. */
export interface WireAnswer {
  readonly deliveryId: string
  readonly result?: Params | undefined
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown } | undefined
  readonly chunks?: readonly WireChunk[] | undefined
}

const toServer = { to: 'server', in: requestIds, extension: liveExtension, declares: speakingLive } as const

/** Opens the stream on which a stateless server sends its messages. */
export const listenLive = request<Listened>()({
  ...toServer,
  name: 'live/listen',
  lasting: true,
  params: object({
    hostId: optional(string),
    after: optional(string),
    policy: optional(selectionShape),
    host: optional(record),
  }),
})

/** The first message on the stream: what was left unanswered follows. */
export const listeningLive = notification({
  to: 'client',
  in: requestIds,
  name: 'live/listening',
  params: object({ cursor: string, redelivers: integer }),
})

/** Brings one message of the server on a listen request. */
export const deliverLive = notification({
  to: 'client',
  in: requestIds,
  name: 'live/deliver',
  params: object({ deliveryId: string, cursor: string, answer: boolean, method: string, params: record }),
})

/** `known: false`: nobody waits for it any more; there is nothing to be done about it. */
export const answerLive = request<{ readonly known: boolean }>()({
  ...toServer,
  name: 'live/answer',
  instant: true,
  params: object({
    deliveryId: string,
    result: optional(record),
    error: optional(object({ code: integer, message: string, data: optional(anything) })),
    chunks: optional(array(object({ index: integer, delta: string }))),
  }),
})
