/** Plays the client's part of a transcript over any connection, and holds the server to its own. */
import type { Connection, Outgoing } from '../jsonrpc/connection.ts'
import { type Id, isId, isRecord } from '../jsonrpc/message.ts'
import { fillValues, matchFrame } from '../recording/difference.ts'
import { parseTranscript, type Transcript, type TranscriptFrame, type TranscriptStep } from '../recording/transcript.ts'

/** Options of `playTranscript`. */
export interface PlayOptions {
  /** Returns what accompanies a frame, on carriers that need more than the frame. Default: nothing. */
  readonly outgoing?: (
    frame: unknown,
    step: {
      /** Whether the frame is wrong on purpose. */
      readonly wrong: boolean
    },
  ) => Outgoing
  /** Called when a frame was sent, for what a client does in addition. Default: not called. */
  readonly onSaid?: (frame: unknown) => void | Promise<void>
  /** How long to wait for an expected frame, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number
  /** Whether frames must arrive in the written order. Default true, except over HTTP, where streams can overtake each other. */
  readonly ordered?: boolean
}

/**
 * Plays a transcript and closes the connection. Throws at the first frame that differs, is missing, or was not expected.
 * @example await playTranscript(await readFile('tools.txt', 'utf8'), connection)
 */
export async function playTranscript(
  transcript: string | Transcript,
  connection: Connection,
  options: PlayOptions = {},
): Promise<void> {
  const { values, steps } = typeof transcript === 'string' ? parseTranscript(transcript) : transcript
  const player = new Player(connection, values, options)
  try {
    await player.start()
    for (const step of steps) await player.take(step)
  } finally {
    await connection.close()
  }
  player.finish()
}

interface ReceivedFrame {
  readonly frame: unknown
  readonly status: number | undefined
}

class Player {
  readonly #connection: Connection
  readonly #options: PlayOptions
  readonly #ordered: boolean
  readonly #inbox: ReceivedFrame[] = []
  readonly #open = new Map<Id, AbortController>()
  #values: ReadonlyMap<string, unknown>
  #failure: unknown = undefined
  #wake: () => void = () => {}

  constructor(connection: Connection, values: ReadonlyMap<string, unknown>, options: PlayOptions) {
    this.#connection = connection
    this.#values = values
    this.#options = options
    this.#ordered = options.ordered ?? connection.carrier !== 'http'
  }

  async start(): Promise<void> {
    await this.#connection.start({
      frame: (text, status) => {
        this.#inbox.push({ frame: JSON.parse(text), status })
        this.#wake()
      },
      fault: fault => this.#fail(new Error(fault.message)),
      closed: reason => {
        if (reason !== undefined) this.#fail(reason)
      },
    })
  }

  async take(step: TranscriptStep): Promise<void> {
    if (step.kind === 'drop') return this.#open.get(step.id)?.abort()
    if (step.from === 'server') return this.#expect(step)
    const frame = fillValues(step.value, this.#values)
    const outgoing = this.#options.outgoing?.(frame, step)
    const headers = { ...outgoing?.headers, ...step.headers }
    const sent = this.#connection.send(JSON.stringify(frame), { ...outgoing, headers, ...this.#exchange(frame) })
    if (sent !== undefined) sent.catch(error => this.#lost(frame, error))
    await this.#options.onSaid?.(frame)
  }

  /** What came beyond the last line. */
  finish(): void {
    const [more] = this.#inbox
    if (more !== undefined) throw new Error(`The transcript is over, but more came: ${JSON.stringify(more.frame)}`)
  }

  #exchange(frame: unknown): Outgoing {
    if (!isRecord(frame) || frame['method'] === undefined || !isId(frame['id'])) return {}
    const abort = new AbortController()
    this.#open.set(frame['id'], abort)
    return { id: frame['id'], signal: abort.signal }
  }

  async #expect(step: TranscriptFrame): Promise<void> {
    const timer = setTimeout(() => this.#fail(new Error('Nothing more came in time')), this.#options.timeoutMs ?? 5_000)
    try {
      while (!this.#find(step)) {
        if (this.#failure !== undefined) throw this.#mismatch(step)
        if (this.#ordered && this.#inbox.length > 0) throw this.#mismatch(step)
        await new Promise<void>(resolve => {
          this.#wake = resolve
        })
      }
    } finally {
      clearTimeout(timer)
    }
  }

  #find({ value, status }: TranscriptFrame): boolean {
    const last = this.#ordered ? Math.min(1, this.#inbox.length) : this.#inbox.length
    for (let at = 0; at < last; at++) {
      const heard = this.#inbox[at] as ReceivedFrame
      const values = matchFrame(value, heard.frame, this.#values)
      if (values === undefined) continue
      if (this.#connection.carrier === 'http' && heard.status !== (status ?? 200)) continue
      this.#values = values
      this.#inbox.splice(at, 1)
      return true
    }
    return false
  }

  #lost(frame: unknown, error: unknown): void {
    const id = isRecord(frame) && isId(frame['id']) ? this.#open.get(frame['id']) : undefined
    if (id?.signal.aborted !== true) this.#fail(error)
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    this.#wake()
  }

  #mismatch({ line, value, status }: TranscriptFrame): Error {
    const got = this.#inbox.map(heard => `${heard.status ?? ''} ${JSON.stringify(heard.frame)}`).join('\n       ') || 'nothing'
    const want = `${status ?? ''} ${JSON.stringify(fillValues(value, this.#values))}`
    return new Error(`Line ${line} of the transcript:\n  want ${want}\n  got  ${got}`, { cause: this.#failure })
  }
}
