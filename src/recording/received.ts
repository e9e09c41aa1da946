/** What a server has sent and nobody has looked at yet; whoever looks for a message waits until it comes, the connection ends, or it is late. */
import type { Clock } from '../core/clock.ts'
import type { FrameFault, Sink } from '../jsonrpc/connection.ts'
import { jsonValue, messagesOf, type RecordedMessage } from './format.ts'

/** Beyond this whatever comes is not kept: a server that floods is different enough by then. */
const most = 10_000

/** The messages of one connection that wait to be looked at. */
export class ReceivedMessages implements Sink {
  /** Why nothing more comes. */
  ended: string | undefined = undefined
  readonly #messages: RecordedMessage[] = []
  readonly #timeoutMs: number
  readonly #clock: Clock
  #wake: () => void = () => {}

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs
    this.#clock = clock
  }

  frame(text: string): void {
    for (const message of messagesOf(jsonValue(text) ?? { unreadable: text.slice(0, 200) }))
      if (this.#messages.length < most) this.#messages.push(message)
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
  find(wanted: (message: RecordedMessage) => boolean): RecordedMessage | undefined {
    const at = this.#messages.findIndex(wanted)
    return at === -1 ? undefined : this.#messages.splice(at, 1)[0]
  }

  /** The first that is wanted; undefined when it does not come. */
  async take(wanted: (message: RecordedMessage) => boolean): Promise<RecordedMessage | undefined> {
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

  rest(): readonly RecordedMessage[] {
    return this.#messages.splice(0)
  }
}
