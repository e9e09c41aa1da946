/** A host of MCP Live that looks and listens, and does nothing: what a server wants of it is refused with these words. */
import type { LiveHandlers } from '../client/live-handlers.ts'
import { why } from '../core/why.ts'
import type { PushEvent } from '../features/live/push-events/messages.ts'

const only = why('UNSUPPORTED', 'cli.guest', 'This host only listens', 'Connect a host that does more: vivarium up')

/** Enables every feature set where events are wanted, else none. Events are only shown, so sets that declare too little are heard, too. */
export function liveGuest(onPush?: (event: PushEvent) => void): LiveHandlers {
  return {
    select: declared => {
      const enabled = onPush === undefined ? [] : [...declared.keys()]
      const uses = Object.fromEntries(enabled.map(name => [name, ['pushEvents', 'channels', 'channels.incoming'] as const]))
      return { enabled, disabled: [], canEnable: () => false, uses }
    },
    onPush: async event => {
      if (onPush === undefined) return { accepted: false, reason: only.message, data: only }
      onPush(event)
      return { accepted: true }
    },
    onInfer: () => Promise.reject(new Error(only.message)),
    onElevate: async () => ({ approved: false, reason: only.message, data: only }),
    modelInfo: () => ({ id: 'none', vendor: 'none', contextWindow: 0, capabilities: [] }),
  }
}
