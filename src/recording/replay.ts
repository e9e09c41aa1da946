/** Sends the client's part of a recording again and compares what the server says now with what it said then. */
import { type Clock, realClock } from '../core/clock.ts'
import type { Carrier, Connection, FrameFault, Sink } from '../jsonrpc/connection.ts'
import { isId, isRecord } from '../jsonrpc/message.ts'
import { comparing, type LeafDifference } from './difference.ts'
import { jsonValue, messagesOf, type RecordedMessage } from './format.ts'
import { FrameSender } from './frame-sender.ts'
import type { RecordedConnection, RecordedFrame } from './read.ts'

/** Options of `replayTape`. */
export interface ReplayTapeOptions {
  /**
   * Paths whose values are not compared, in addition to those that always differ: `result.serverInfo.version`, `**.elapsed`.
   * Default: none.
   */
  readonly ignore?: readonly string[]
  /** Headers for a server over HTTP, for example credentials, which are not recorded. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long to wait for each recorded answer, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number
  /** For tests: time and timers. Default: the real clock. */
  readonly clock?: Clock
}

/** What the server answers differently. */
export interface TapeDifference extends LeafDifference {
  /** The number of the conversation on the tape, from 1. */
  readonly conversation: number
  /** The line of the tape. 0 if it is not on the tape. */
  readonly line: number
  /** What differs: `answer to tools/call`, `request roots/list`, `notification notifications/progress`, `connection`. */
  readonly what: string
}

/** The result of a replay. */
export interface TapeReplayed {
  /** What the server answers otherwise. Empty if nothing differs. */
  readonly differences: readonly TapeDifference[]
  /** How many frames of the client were sent. */
  readonly sent: number
  /** How many conversations were replayed. */
  readonly conversations: number
}

/** Replays connections one after the other, each over one that `open` opens. */
export async function replayConnections(
  recorded: readonly RecordedConnection[],
  open: (carrier: Carrier) => Promise<Connection>,
  options: ReplayTapeOptions,
): Promise<TapeReplayed> {
  const differences: TapeDifference[] = []
  let sent = 0
  for (const [at, { carrier, frames }] of recorded.entries()) {
    const replay = new Replay(options, at + 1)
    await replay.run(frames, new FrameSender(await open(carrier)))
    differences.push(...replay.differences)
    sent += replay.sent
  }
  return { differences, sent, conversations: recorded.length }
}

/** The replay of one connection. */
class Replay {
  readonly differences: TapeDifference[] = []
  sent = 0
  readonly #conversation: number
  readonly #compare: ReturnType<typeof comparing>
  readonly #received: ReceivedMessages
  readonly #methods = new Map<unknown, string>()
  /** Questions of the server: the id of then, and that of now. */
  readonly #questions = new Map<unknown, unknown>()
  readonly #learned = new Map<string, string>()
  readonly #told: { readonly message: RecordedMessage; readonly line: number }[] = []

  constructor({ ignore, timeoutMs = 30_000, clock = realClock }: ReplayTapeOptions, at: number) {
    this.#conversation = at
    this.#compare = comparing(ignore)
    this.#received = new ReceivedMessages(timeoutMs, clock)
  }

  async run(frames: readonly RecordedFrame[], sender: FrameSender): Promise<void> {
    try {
      await sender.start(this.#received)
      for (const frame of frames) {
        const parts = messagesOf(frame.value)
        if (frame.from === 'client') this.#send(sender, frame, parts)
        else for (const part of parts) await this.#expect(part, frame.line)
      }
      for (const { message, line } of this.#told) await this.#expectTold(message, line)
      this.#rest()
    } finally {
      await sender.close().catch(() => {})
    }
  }

  /** Sends a recorded frame with the ids and values of this run. */
  #send(sender: FrameSender, { text, value, headers }: RecordedFrame, parts: readonly RecordedMessage[]): void {
    for (const { id, method } of parts) if (typeof method === 'string' && isId(id)) this.#methods.set(id, method)
    const answers = parts.filter(({ method }) => method === undefined)
    // Nobody has asked, so there is nothing to answer; that it was not asked is a difference already.
    if (answers.length > 0 && answers.every(({ id }) => !this.#questions.has(id))) return
    const put = this.#today(value)
    this.sent++
    sender.send(put === value ? text : JSON.stringify(put), mirrored(headers))
  }

  /** The same value where nothing in it has changed since. */
  #today(value: unknown): unknown {
    if (Array.isArray(value)) {
      const items = value.map(item => this.#today(item))
      return items.every((item, at) => item === value[at]) ? value : items
    }
    if (typeof value === 'string') return this.#learned.get(value) ?? value
    if (!isRecord(value)) return value
    const answers = value['method'] === undefined && value['jsonrpc'] !== undefined
    const members = Object.entries(value).map(([name, item]): [string, unknown] => {
      if (answers && name === 'id') return [name, this.#questions.get(item) ?? item]
      return [name, name === 'jsonrpc' || name === 'method' ? item : this.#today(item)]
    })
    return members.every(([name, item]) => item === value[name]) ? value : Object.fromEntries(members)
  }

  /** Waits for a recorded message; notifications are checked at the end. */
  async #expect(message: RecordedMessage, line: number): Promise<void> {
    const { method, id } = message
    if (typeof method !== 'string') {
      const what = `answer to ${this.#methods.get(id) ?? 'an unknown request'}`
      const now = await this.#received.take(({ method: own, id: other }) => own === undefined && other === id)
      return this.#hold(what, line, message, now)
    }
    if (id === undefined) return void this.#told.push({ message, line })
    const now = await this.#received.take(({ method: own, id: other }) => own === method && other !== undefined)
    if (now !== undefined) this.#questions.set(id, now['id'])
    this.#hold(`request ${method}`, line, message, now)
  }

  /** In whatever order they come: the same one first, else the next of its name. */
  async #expectTold(message: RecordedMessage, line: number): Promise<void> {
    const named = ({ method, id }: RecordedMessage): boolean => method === message['method'] && id === undefined
    const same = this.#received.find(other => named(other) && this.#compare(message, other).differences.length === 0)
    this.#hold(`notification ${message['method']}`, line, message, same ?? (await this.#received.take(named)))
  }

  /** Records the differences of a message, or that it did not arrive. */
  #hold(what: string, line: number, before: RecordedMessage, after: RecordedMessage | undefined): void {
    const place = { conversation: this.#conversation, line, what }
    if (after === undefined) {
      const why = this.#received.ended === undefined ? '' : `: ${this.#received.ended}`
      this.differences.push({ ...place, path: '', before: contentOf(before), after: `nothing arrived${why}` })
      return
    }
    const { differences, learned } = this.#compare(before, after)
    for (const [then, now] of learned) this.#learned.set(then, now)
    for (const difference of differences) this.differences.push({ ...place, ...difference })
  }

  /** What came beyond the tape. */
  #rest(): void {
    for (const message of this.#received.rest()) {
      const { method, id } = message
      const what = method === undefined ? 'answer' : `${id === undefined ? 'notification' : 'request'} ${String(method)}`
      const place = { conversation: this.#conversation, line: 0, what, path: '' }
      this.differences.push({ ...place, before: undefined, after: contentOf(message) })
    }
  }
}

function contentOf({ params, result, error }: RecordedMessage): unknown {
  return result ?? error ?? params ?? {}
}

/** Headers that repeat what a frame says; the others belong to the carrier, or are of their time. */
function mirrored(headers: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-')))
}

// What a server has sent and nobody has looked at yet; whoever looks for a message waits until it comes, the connection ends, or it is late.

/** Beyond this whatever comes is not kept: a server that floods is different enough by then. */
const most = 10_000

/** The messages of one connection that wait to be looked at. */
class ReceivedMessages implements Sink {
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
