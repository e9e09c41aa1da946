/** The requests that one end has sent and the other has not answered, so that nobody hangs up before. */
import { isId, isRecord } from '../../jsonrpc/message.ts'

/** More than this is not counted: whoever leaves so many unanswered waits for none of them. */
const most = 10_000

export class Outstanding {
  readonly #open = new Set<string | number>()
  #waiting: (() => void)[] = []

  asked(text: string): void {
    for (const part of partsOf(text))
      if (typeof part['method'] === 'string' && isId(part['id']) && this.#open.size < most) this.#open.add(part['id'])
  }

  answered(text: string): void {
    for (const part of partsOf(text)) if (part['method'] === undefined && isId(part['id'])) this.#open.delete(part['id'])
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

function partsOf(text: string): readonly Record<string, unknown>[] {
  try {
    const value: unknown = JSON.parse(text)
    return (Array.isArray(value) ? value : [value]).filter(isRecord)
  } catch {
    return []
  }
}
