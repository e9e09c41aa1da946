/** An event stream as its reader sees it: one message after the other, and the id to come back with. */
import type { Frame } from './spec/wire.ts'

export class Stream {
  readonly status: number
  lastId: string | undefined = undefined
  readonly #events: AsyncGenerator<Frame, void>
  readonly #cutting: AbortController

  constructor(response: Response, cutting: AbortController) {
    this.status = response.status
    this.#cutting = cutting
    this.#events = this.#read(response)
  }

  /** The next message; undefined at the end. */
  async next(): Promise<Frame | undefined> {
    return (await this.#events.next()).value ?? undefined
  }

  /** All that is still to come. */
  async all(): Promise<Frame[]> {
    const events: Frame[] = []
    for await (const event of this.#events) events.push(event)
    return events
  }

  /** Breaks the connection. */
  cut(): void {
    this.#cutting.abort()
  }

  async *#read({ body }: Response): AsyncGenerator<Frame, void> {
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
        if (data !== undefined) yield JSON.parse(data)
      }
    }
  }
}
