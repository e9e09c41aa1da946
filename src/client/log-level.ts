/** Which log messages the server sends: remembered by the session, or said with each request, whichever the wire has. */
import type { SendOptions } from '../engine/calls.ts'
import { type LogLevel, setLevel } from '../features/mcp/logging/messages.ts'
import type { Session } from './session.ts'

export class LogWish {
  readonly #session: Session
  #level: LogLevel | undefined = undefined

  constructor(session: Session) {
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
