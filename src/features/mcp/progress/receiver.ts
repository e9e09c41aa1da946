/** Hearing how far our own call has come: progress finds its waiter by token. The same on both roles. */
import type { Progress } from '../../../engine/calls.ts'
import { defineClientFeature } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { progress } from './messages.ts'

/** What brings progress to the call that it belongs to. */
export function progressReceiver(): Side {
  return {
    handlers: [
      [
        progress,
        ({ conversation, params }: Exchange) => {
          const { progressToken, ...step } = params
          conversation.calls?.progress(progressToken, step as unknown as Progress)
        },
      ],
    ],
  }
}

/** Hears how far the client's calls have come. */
export const progressClient = defineClientFeature({
  name: 'progress',
  options: {},
  setup: () => ({ side: progressReceiver() }),
})
