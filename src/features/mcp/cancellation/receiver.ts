/** Both roles: a cancel reaches only calls of its own conversation; telling the other end when we give up ourselves. */

import { defineClientFeature } from '../../../engine/client-feature.ts'
import type { Conversation } from '../../../engine/conversation.ts'
import type { Engine } from '../../../engine/engine.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import { cancelDialect, cancelled } from './messages.ts'

/** Hearing and telling that a call was given up. */
export const cancellationFeature = defineServerFeature<object>({
  name: 'cancellation',
  setup: () => ({ sides: [cancellation()], engine: { sendCancel } }),
})

/** Both roles: cancels the request that a notification names. */
export function cancellation(): Side {
  return {
    handlers: [
      [cancelled, cancel],
      [cancelDialect, cancel],
    ],
  }
}

function cancel({ conversation, params }: Exchange): void {
  const { requestId, reason } = params as { requestId?: Id; reason?: string }
  // The handshake can not be cancelled; it has no running exchange, so it is never found here.
  for (const exchange of conversation.running) {
    if (exchange.id === requestId) exchange.cancel(reason === undefined ? undefined : clip(reason))
  }
  // A server may end a request of ours that lasts; others it has to answer.
  if (requestId !== undefined) conversation.calls?.end(requestId, new ConnectionError('lost', 'The server ended this request'))
}

/** Tells the peer that the answer to a request of ours is no longer wanted. */
export function sendCancel(engine: Engine, conversation: Conversation, id: Id, reason: string): void {
  engine.notify(conversation, cancelled, { requestId: id, reason })
}

// The client's side of cancellation: a cancel of the server reaches what runs for it.

/** Hears that the server gives a request up, and tells it when the client does. */
export const cancellationClient = defineClientFeature({
  name: 'cancellation',
  options: {},
  setup: () => ({ side: cancellation(), engine: { sendCancel } }),
})
