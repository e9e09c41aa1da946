/** What the runtime itself does to states and transactions, as events that those can subscribe to whose states and transactions they are. */
import type { Lifecycle } from '../features/reliability/session-state/messages.ts'
import type { ServerEvents } from './events.ts'
import type { ServerOptions } from './options.ts'

const text = { type: 'string' } as const

const sessionPayload = {
  type: 'object',
  properties: { type: text, session_id: text, timestamp: text, reason: text },
  required: ['type', 'session_id', 'timestamp'],
} as const

const sessionEvents: Readonly<Record<Lifecycle, string>> = {
  session_created: 'A session of state of yours began',
  session_renewed: 'A session of state of yours lasts longer now',
  session_expired: 'A session of state of yours is over, since nobody used it',
  session_invalidated: 'A session of state of yours was ended or rolled back: its tokens are good for nothing any more',
}

const transactionPayload = {
  type: 'object',
  properties: { transaction_id: text, status: text, reason: text },
  required: ['transaction_id', 'status'],
} as const

/** The event of a transaction that was rolled back, whoever did that. */
export const rolledBackEvent = 'transaction_rolled_back'

/** Registers those that the options ask for. */
export function offerLifecycle({ state, transactions }: ServerOptions, events: Pick<ServerEvents, 'add'>): void {
  if (state?.events === true)
    for (const [name, description] of Object.entries(sessionEvents)) events.add(name, { description, payload: sessionPayload })
  if (transactions?.events === true)
    events.add(rolledBackEvent, {
      description:
        'A transaction of yours was rolled back: because you said so, because nobody touched it, or because a right ended',
      payload: transactionPayload,
    })
}
