/** Log messages that a server sends. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { type LogLevel, message } from './messages.ts'

export interface LogMessage {
  readonly level: LogLevel
  readonly logger?: string
  readonly data: unknown
}

export function loggingClient(onLog: ((message: LogMessage) => void) | undefined): Side {
  return { handlers: [[message, ({ params }: Exchange) => onLog?.(params as unknown as LogMessage)]] }
}
