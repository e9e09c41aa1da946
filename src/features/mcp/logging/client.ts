/** The client's side of logging: hearing the server's log, and saying how much of it to send. */
import type { SendOptions } from '../../../engine/calls.ts'
import { type ClientSession, defineClientFeature, type RequestOptions } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import { type LogLevel, message, setLevel } from './messages.ts'

/** A log message of the server. */
export interface LogMessage {
  /** The severity of the message. */
  readonly level: LogLevel
  /** The part of the server that wrote it. */
  readonly logger?: string
  /** The message: any JSON value. */
  readonly data: unknown
}

/** Controls what the server logs. */
export interface LoggingClientApi {
  /** Sets the lowest level of log messages that the server sends. */
  setLogLevel(level: LogLevel, options?: RequestOptions): Promise<void>
}

/** Options of `connect` for the log of the server. */
export interface LoggingOptions {
  /** Called with each log message of the server. Default: they are ignored. */
  readonly onLog?: (message: LogMessage) => void
  /** The lowest level of log messages that the server should send. Default: the server decides; in 2026-07-28 none are sent. */
  readonly logLevel?: LogLevel
}

interface LogRelay {
  readonly relay?: { log(message: LogMessage, within: Id | undefined): void }
}

/** Hears the server's log. */
export const loggingClient = defineClientFeature<LoggingOptions, unknown, LoggingOptions & LogRelay>({
  name: 'logging',
  options: { onLog: 'function', logLevel: 'string' },
  setup(kit, { onLog, logLevel, relay }) {
    let wish: LogWish | undefined
    const log = (): LogWish => {
      wish ??= new LogWish(kit.session)
      return wish
    }
    const client: LoggingClientApi = { setLogLevel: async (level, options) => log().set(level, kit.send(options)) }
    const heard = ({ params, within }: Exchange): void => {
      const told = params as unknown as LogMessage
      if (relay === undefined) onLog?.(told)
      else relay.log(told, within)
    }
    return {
      client,
      // Where each request says it, the first one does too.
      ...(logLevel !== undefined && { engine: { logLevel } }),
      side: { handlers: [[message, heard]] },
      opened: async () => {
        if (logLevel !== undefined) await log().begin(logLevel)
      },
    }
  },
})

/** Remembered by the session, or said with each request, whichever the wire has. */
class LogWish {
  readonly #session: ClientSession
  #level: LogLevel | undefined = undefined

  constructor(session: ClientSession) {
    this.#session = session
    session.onReopen(() => this.#repeat())
  }

  async set(level: LogLevel, options?: SendOptions): Promise<void> {
    const { engine, opened } = this.#session
    if (opened.revision.era === 'request') {
      engine.logLevel = level
      return
    }
    await this.#session.request(setLevel, { level }, options)
    this.#level = level
  }

  /** A wish from the beginning; that a server has no log, or refuses to be told, is no reason to do without it. */
  async begin(level: LogLevel): Promise<void> {
    const { opened, engine } = this.#session
    if (opened.revision.era === 'session' && opened.capabilities['logging'] === undefined) return
    try {
      await this.set(level)
    } catch (error) {
      engine.trace('log-level-refused', error)
    }
  }

  #repeat(): void {
    if (this.#level !== undefined) void this.begin(this.#level)
  }
}
