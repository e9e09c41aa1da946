/** The requests that one end has sent and the other has not answered, so that nobody closes the connection before. */
import { isId } from '../jsonrpc/message.ts'
import { jsonValue, messagesOf } from './format.ts'

/** More than this is not counted: whoever leaves so many unanswered waits for none of them. */
const most = 10_000

/** Counts the open requests of one connection. */
export class UnansweredRequests {
  readonly #open = new Set<string | number>()
  #waiting: (() => void)[] = []

  asked(text: string): void {
    for (const part of messagesOf(jsonValue(text)))
      if (typeof part['method'] === 'string' && isId(part['id']) && this.#open.size < most) this.#open.add(part['id'])
  }

  answered(text: string): void {
    for (const part of messagesOf(jsonValue(text)))
      if (part['method'] === undefined && isId(part['id'])) this.#open.delete(part['id'])
    if (this.#open.size === 0) this.#wake()
  }

  /** Resolves when all is answered, or nothing can be any more. */
  quiet(): Promise<void> {
    return this.#open.size === 0 ? Promise.resolve() : new Promise(resolve => this.#waiting.push(resolve))
  }

  end(): void {
    this.#open.clear()
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
