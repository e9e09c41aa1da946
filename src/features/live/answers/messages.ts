/**
 * What every client part of MCP Live needs to answer a message that a server sends on its own initiative, and to send a text in pieces.
 * One answerer serves a request, a notification and a delivery of the listen binding; it asks the gate what the connection currently
 * permits.
 */
import type { Why } from '../../../core/suggestion.ts'
import type { Method } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Announcement, SetUse } from '../dialects/messages.ts'

/** One message of a server while it is answered. */
export interface AnswerContext {
  /** Aborted when the server cancels the message or the connection ends. */
  readonly signal: AbortSignal
  /** Sends one piece of the answer ahead of the final result; settles when the server has received it. */
  chunk(index: number, delta: string): Awaitable<void>
}

/** Answers one method that a server sends to its host. */
export interface Answerer {
  /** The method that is answered. */
  readonly method: Method
  /**
   * True for data, which waits until the server knows the selection. Control messages are answered at once, because servers block on
   * them.
   */
  readonly waits: boolean
  /** Computes the result; throws an McpError to refuse the message. */
  answer(params: Params, asked: AnswerContext): Awaitable<unknown>
}

/** What a connection knows of the server and the selected feature sets, and what it permits them. */
export interface LiveGate {
  /** What the server announced; nothing before its handshake. */
  readonly announced: Announcement
  /** Whether the server has announced anything yet. */
  readonly heard: boolean
  /** Whether the server has been told a selection; before that it is unknown which sets may use channels. */
  readonly selected: boolean
  /** Whether the set is selected, with its current declaration. */
  isEnabled(featureSet: string): boolean
  /** Whether the server announced the capability and the selection grants it. */
  isGranted(path: string): boolean
  /** Throws if the set is not declared, not enabled, or not allowed this use. */
  admit(featureSet: string, use: SetUse): void
  /** Like `admit`, but returns a boolean instead of throwing. */
  admits(featureSet: string, use: SetUse): boolean
  /** The sets that are allowed this use; for messages that name no set. */
  admitted(use: SetUse): readonly string[]
  /** Reports something that was dropped or ignored to the host. */
  diagnose(why: Why): void
}

/** The error for a message whose capability the server did not announce. */
export function unannounced(method: string, capability: string): McpError {
  return new McpError('method-not-found', `The server has not announced the capability ${capability}, which ${method} needs`, {
    data: { capability, fix: `Announce ${capability} in experimental.mcpl` },
  })
}

interface PiecesParts {
  /** Sends one piece; settles when the server has received it. */
  readonly send: (index: number, delta: string) => Awaitable<unknown>
  /** Whether the server may still receive pieces; consent can be withdrawn while they are sent. */
  readonly allowed: () => boolean
  /** Called when a piece could not be sent. */
  readonly failed?: (error: unknown) => void
}

/** Sends a text in pieces, one at a time: what is added while one is being sent is joined into the next, so a slow server gets fewer. */
export class Pieces {
  readonly #parts: PiecesParts
  #waiting = ''
  #index = 0
  /** Ended, or a piece was lost or held back: later ones would leave a gap. */
  #over = false
  #sending: Promise<void> | undefined = undefined

  constructor(parts: PiecesParts) {
    this.#parts = parts
  }

  add(delta: string): void {
    if (delta === '' || this.#over) return
    this.#waiting += delta
    this.#sending ??= this.#send()
  }

  /** Resolves when all pieces are sent; no more are taken. True: the server has all of them, and may be told of the end. */
  async end(): Promise<boolean> {
    await this.#sending
    const whole = this.#index > 0 && !this.#over && this.#parts.allowed()
    this.#over = true
    return whole
  }

  async #send(): Promise<void> {
    const { send, allowed, failed } = this.#parts
    try {
      while (this.#waiting !== '' && allowed()) {
        const delta = this.#waiting
        this.#waiting = ''
        await send(this.#index++, delta)
      }
      // Text that may no longer be sent is dropped, not kept for later.
      this.#over ||= this.#waiting !== ''
    } catch (error) {
      this.#over = true
      failed?.(error)
    }
    this.#sending = undefined
  }
}
