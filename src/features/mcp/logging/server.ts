/** Log messages from handlers to the client, in both models: a level per session, or per request and else silence. */
import { type CallContext, exchangeOf } from '../../../engine/context.ts'
import type { ConversationSlot } from '../../../engine/conversation.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature } from '../../../engine/server-feature.ts'
import { ratesPort } from '../rates/messages.ts'
import { type LogLevel, levels, message, setLevel } from './messages.ts'

/** Undefined until the client sets it: then everything from info up. */
const level: ConversationSlot<{ least: LogLevel }> = {
  make: () => ({ least: 'info' }),
  key: 'log-level',
  save: ({ least }) => least,
  restore: (value, saved) => {
    if (levels.includes(saved as LogLevel)) value.least = saved as LogLevel
  },
}

/** Log messages to the caller. */
export interface LoggingContext {
  /**
   * Sends a log message to the client, if the client wants that level. The log of the server itself is the option `log`.
   * @example ctx.log('info', 'The index is ready')
   */
  readonly log: (level: LogLevel, data: unknown, logger?: string) => void
}

/** Log messages to clients: `ctx.log`. */
export const loggingFeature = defineServerFeature<object>({
  name: 'logging',
  context: {
    get log() {
      const exchange = exchangeOf(this)
      const allow = (): boolean => exchange.engine.ports.get(ratesPort).log(exchange)
      return (at: LogLevel, data: unknown, logger?: string) => void sendLog(exchange, at, data, logger, allow)
    },
  } satisfies LoggingContext & ThisType<CallContext>,
  setup: () => ({ sides: [loggingServer()] }),
})

function loggingServer(): Side {
  return {
    handlers: [
      [
        setLevel,
        ({ conversation, params }: Exchange) => {
          conversation.recall(level).least = params['level'] as LogLevel
          return conversation.persist?.(level).then(() => ({})) ?? {}
        },
      ],
    ],
    memories: [level],
    capabilities: ({ logLevelBy }) => (logLevelBy === undefined ? {} : { logging: {} }),
  }
}

/** The least severe level that this caller has asked for; undefined where it has not. */
export function wantedLevel({ peer, conversation }: Exchange): LogLevel | undefined {
  return peer.revision.logLevelBy === 'request' ? (peer.logLevel as LogLevel | undefined) : conversation.remembered(level)?.least
}

/** False when the client does not want to hear it, or `allow` says that it is too much. */
function sendLog(exchange: Exchange, at: LogLevel, data: unknown, logger: string | undefined, allow: () => boolean): boolean {
  const { peer, conversation } = exchange
  const least = peer.revision.era === 'request' ? (peer.logLevel as LogLevel | undefined) : conversation.recall(level).least
  if (least === undefined || levels.indexOf(at) < levels.indexOf(least) || !allow()) return false
  return exchange.notify(message, { level: at, data, ...(logger === undefined ? {} : { logger }) }, { spare: true })
}
