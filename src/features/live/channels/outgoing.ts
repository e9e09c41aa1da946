/**
 * An answer on its way into a channel while it is written (0.4 §14.3). One piece is under way at a time; what is said meanwhile is the
 * next one, so that a slow server gets fewer pieces, and never a queue of them.
 */

/** A stream to a server that takes it. */
export interface ChannelStream {
  push(delta: string): void
  /** It is over. `text`: the answer as it is published, or what was said until it broke off. Settles when the server has heard it. */
  end(text: string): Promise<void>
}

interface OutgoingParts {
  /** Whether the server may still hear it: consent may go while somebody writes. */
  readonly allowed: () => boolean
  readonly chunk: (index: number, delta: string) => Promise<unknown>
  readonly complete: (text: string) => Promise<unknown>
  readonly failed: (error: unknown) => void
}

export class OutgoingStream implements ChannelStream {
  readonly #parts: OutgoingParts
  #waiting = ''
  #index = 0
  #broken = false
  #sending: Promise<void> | undefined = undefined

  constructor(parts: OutgoingParts) {
    this.#parts = parts
  }

  push(delta: string): void {
    if (this.#broken) return
    this.#waiting += delta
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
  }

  /** Who has heard nothing needs no end. */
  async end(text: string): Promise<void> {
    await this.#sending
    const heard = this.#index > 0 && !this.#broken && this.#parts.allowed()
    this.#broken = true
    if (heard) await this.#parts.complete(text).catch(this.#parts.failed)
  }

  async #send(): Promise<void> {
    try {
      while (this.#waiting !== '' && this.#parts.allowed()) {
        const delta = this.#waiting
        this.#waiting = ''
        await this.#parts.chunk(this.#index++, delta)
      }
      // What may not be heard is not kept for later either.
      if (this.#waiting !== '') this.#broken = true
    } catch (error) {
      this.#broken = true
      this.#parts.failed(error)
    }
    if (this.#broken) this.#waiting = ''
  }
}
