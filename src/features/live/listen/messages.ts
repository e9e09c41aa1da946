/**
 * Wire messages of the listen binding: on stateless wires a host keeps one long request open, on which the server delivers its
 * messages, and answers by separate requests. See `docs/reference/live-binding.md`.
 */
import { notification, request, statelessRevisionIds } from '../../../engine/method.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { anything, array, boolean, integer, object, optional, record, string } from '../../../jsonrpc/shape.ts'
import { liveDeclaration, liveExtension, selectionShape, type WireSelection } from '../feature-sets/messages.ts'

/** The params of `live/listen`. */
export interface WireListen {
  /** Chosen by the host, unguessable and stable; requests with it in `_meta` belong to this stream. */
  readonly hostId?: string | undefined
  /** The cursor of the last completed delivery; later ones are delivered again. */
  readonly after?: string | undefined
  /** The current selection. */
  readonly policy?: WireSelection | undefined
  /** What the host declares: version and capabilities. */
  readonly host?: Params | undefined
}

/** Why the stream ended; the host may listen again. */
export interface ListenEnd {
  readonly reason: 'closing' | 'replaced' | 'overload'
}

/** A message of the server on the stream. */
export interface WireDelivery {
  /** Acts as a request id; the same when the message is delivered again. */
  readonly deliveryId: string
  readonly cursor: string
  /** Whether an answer is expected. */
  readonly answer: boolean
  readonly method: string
  readonly params: Params
}

interface WireChunk {
  readonly index: number
  readonly delta: string
}

/** The result, the error, or pieces of an inference that is still running. */
export interface WireAnswer {
  readonly deliveryId: string
  readonly result?: Params | undefined
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown } | undefined
  readonly chunks?: readonly WireChunk[] | undefined
}

const toServer = { to: 'server', in: statelessRevisionIds, extension: liveExtension, declares: liveDeclaration } as const

/** Opens the stream for the server's messages. */
export const listenLive = request<ListenEnd>()({
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

/** The first message on the stream; unanswered deliveries follow. */
export const listeningLive = notification({
  to: 'client',
  in: statelessRevisionIds,
  name: 'live/listening',
  params: object({ cursor: string, redelivers: integer }),
})

/** Carries one message of the server. */
export const deliverLive = notification({
  to: 'client',
  in: statelessRevisionIds,
  name: 'live/deliver',
  params: object({ deliveryId: string, cursor: string, answer: boolean, method: string, params: record }),
})

/** Answers a delivery. `known: false`: nobody waits for it any more. */
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
