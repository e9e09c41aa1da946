/** Reads a stream of server-sent events and keeps what scenarios look at: ids, types, the wait that is asked for. */

export interface StreamEvent {
  /** Empty for plain messages. */
  readonly type: string
  readonly data: string
  readonly id?: string
  readonly retry?: number
}

export class EventReader {
  readonly #onEvent: (event: StreamEvent) => void
  readonly #decoder = new TextDecoder()
  #rest = ''
  #fields: { type: string; data: string[]; id?: string; retry?: number } = { type: '', data: [] }

  constructor(onEvent: (event: StreamEvent) => void) {
    this.#onEvent = onEvent
  }

  push(bytes: Uint8Array): void {
    this.#rest += this.#decoder.decode(bytes, { stream: true })
    // A CR at the very end may be half of a line end: it waits for what follows.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#line(line)
  }

  #line(line: string): void {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'data') this.#fields.data.push(value)
    else if (name === 'event') this.#fields.type = value
    else if (name === 'id') this.#fields.id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.#fields.retry = Number(value)
  }

  #dispatch(): void {
    const { type, data, ...rest } = this.#fields
    this.#fields = { type: '', data: [] }
    if (data.length === 0 && rest.id === undefined && rest.retry === undefined) return
    this.#onEvent({ type: type === 'message' ? '' : type, data: data.join('\n'), ...rest })
  }
}
