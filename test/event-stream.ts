/** An event stream as its reader sees it: one message after the other, and the id to come back with. */
import type { Frame } from './spec/wire.ts'

export class Stream {
  readonly status: number
  lastId: string | undefined
  /** Without a message an event brings only its id. */
  readonly #events: AsyncGenerator<Frame | undefined, void>
  readonly #cutting: AbortController
  readonly #ahead: Frame[] = []

  /** `lastId`: with which it was come back to. */
  constructor(response: Response, cutting: AbortController, lastId?: string) {
    this.status = response.status
    this.lastId = lastId
    this.#cutting = cutting
    this.#events = this.#read(response)
  }

  /** The next message; undefined at the end. */
  async next(): Promise<Frame | undefined> {
    if (this.#ahead.length > 0) return this.#ahead.shift()
    for await (const frame of this.#rest()) return frame
    return undefined
  }

  /** Waits for one event, with a message or without, and so for an id of this stream. */
  async begun(): Promise<void> {
    const { value } = await this.#events.next()
    if (value) this.#ahead.push(value)
  }

  /** All that is still to come. */
  async all(): Promise<Frame[]> {
    const frames: Frame[] = []
    for (let frame = await this.next(); frame !== undefined; frame = await this.next()) frames.push(frame)
    return frames
  }

  /** Breaks the connection. */
  cut(): void {
    this.#cutting.abort()
  }

  async *#rest(): AsyncGenerator<Frame, void> {
    for (;;) {
      const { value, done } = await this.#events.next()
      if (done === true) return
      if (value !== undefined) yield value
    }
  }

  async *#read({ body }: Response): AsyncGenerator<Frame | undefined, void> {
    if (body === null) return
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = text.slice(0, end)
        text = text.slice(end + 2)
        this.lastId = /^id: (.*)$/m.exec(event)?.[1] ?? this.lastId
        const data = /^data: ?(\S.*)$/m.exec(event)?.[1]
        yield data === undefined ? undefined : JSON.parse(data)
      }
    }
  }
}
