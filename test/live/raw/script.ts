/** What a raw server of these tests says by itself: answers by method, and a book of all that its host has sent. */
import { type Awaitable, isRecord } from '../../../src/jsonrpc/message.ts'

export type Frame = Readonly<Record<string, unknown>>
export type Answer = (params: Frame, frame: Frame) => Awaitable<unknown>

/** Given instead of a result: no answer at all. */
export const silence = Symbol('silence')

/** Thrown instead of a result: a JSON-RPC error. */
export class Refusal extends Error {
  readonly body: Frame

  constructor(code: number, message = 'refused', data?: unknown) {
    super(message)
    this.body = { code, message, ...(data === undefined ? {} : { data }) }
  }
}

export class Script {
  /** All that the host has sent, in order, as it came. */
  readonly heard: Frame[] = []
  readonly #answers: Map<string, Answer>
  #wake: (() => void)[] = []
  #asked = 100

  constructor(answers: Readonly<Record<string, Answer>>) {
    this.#answers = new Map(Object.entries(answers))
  }

  on(method: string, answer: Answer): void {
    this.#answers.set(method, answer)
  }

  of(method: string): Frame[] {
    return this.heard.filter(frame => frame['method'] === method)
  }

  nextId(): number {
    return ++this.#asked
  }

  /** Resolves with the first truthy thing that `look` finds, looking again whenever the host has sent something. */
  async until<T>(look: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = look()
      if (found !== undefined && found !== false) return found
      await new Promise<void>(resolve => this.#wake.push(resolve))
    }
  }

  /** The message with this method that came as the `nth` of its kind. */
  hears(method: string, nth = 1): Promise<Frame> {
    return this.until(() => this.of(method)[nth - 1])
  }

  note(frame: Frame): void {
    this.heard.push(frame)
    for (const wake of this.#wake.splice(0)) wake()
  }

  /** What to answer a frame with; undefined: nothing. */
  async answer(frame: Frame): Promise<Frame | undefined> {
    const { id, method } = frame
    if (method === undefined) return undefined
    const answer = this.#answers.get(String(method))
    const params = isRecord(frame['params']) ? frame['params'] : {}
    try {
      if (id === undefined) {
        await answer?.(params, frame)
        return undefined
      }
      if (answer === undefined) throw new Refusal(-32601, `Method not found: ${String(method)}`)
      const result = await answer(params, frame)
      return result === silence ? undefined : { jsonrpc: '2.0', id, result }
    } catch (error) {
      if (id === undefined) return undefined
      const body = error instanceof Refusal ? error.body : { code: -32603, message: String(error) }
      return { jsonrpc: '2.0', id, error: body }
    }
  }
}
