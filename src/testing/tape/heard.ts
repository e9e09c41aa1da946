/** What a server has said and nobody has looked at yet; whoever looks for something waits until it comes, it is over, or it is late. */
import type { Clock } from '../../core/clock.ts'
import type { FrameFault, Sink } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'

type Message = Readonly<Record<string, unknown>>

/** Beyond this whatever comes is not kept: a server that floods is different enough by then. */
const most = 10_000

export class Heard implements Sink {
  /** Why nothing more comes. */
  ended: string | undefined = undefined
  readonly #messages: Message[] = []
  readonly #timeoutMs: number
  readonly #clock: Clock
  #wake: () => void = () => {}

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs
    this.#clock = clock
  }

  frame(text: string): void {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      value = { unreadable: text.slice(0, 200) }
    }
    for (const part of (Array.isArray(value) ? value : [value]).filter(isRecord))
      if (this.#messages.length < most) this.#messages.push(part)
    this.#wake()
  }

  fault({ message }: FrameFault): void {
    this.#messages.push({ unreadable: message })
    this.#wake()
  }

  closed(reason?: Error): void {
    this.ended = reason?.message ?? 'the connection was closed'
    this.#wake()
  }

  /** What is there already. */
  find(wanted: (message: Message) => boolean): Message | undefined {
    const at = this.#messages.findIndex(wanted)
    return at === -1 ? undefined : this.#messages.splice(at, 1)[0]
  }

  /** The first that is wanted; undefined when it does not come. */
  async take(wanted: (message: Message) => boolean): Promise<Message | undefined> {
    let late = false
    const cancel = this.#clock.setTimeout(() => {
      late = true
      this.#wake()
    }, this.#timeoutMs)
    try {
      while (true) {
        const found = this.find(wanted)
        if (found !== undefined || late || this.ended !== undefined) return found
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
      }
    } finally {
      cancel()
    }
  }

  rest(): readonly Message[] {
    return this.#messages.splice(0)
  }
}
