/** Log messages that a server sends. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { type LogLevel, message } from './messages.ts'

export interface LogMessage {
  readonly level: LogLevel
  readonly logger?: string
  readonly data: unknown
}

export function loggingClient(onLog: ((message: LogMessage, exchange: Exchange) => void) | undefined): Side {
  return { handlers: [[message, (exchange: Exchange) => onLog?.(exchange.params as unknown as LogMessage, exchange)]] }
}
