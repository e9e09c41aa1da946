/** What passed between the client under test and the scripted server, in order: the evidence of every verdict. */
import { isRecord } from '../../jsonrpc/message.ts'
import { objectIn } from '../define.ts'
import type { Json } from '../scenario.ts'

/** The head of an HTTP request. */
export interface HttpHead {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** An HTTP request that brought no message. */
export interface HttpVisit extends HttpHead {
  readonly at: number
  readonly line: number
}

/**
 * As much of Node's answer to a request as plays need, so that our types can be read without those of Node. What they are given is
 * the real thing, of `node:http`.
 */
export interface HttpResponse {
  readonly headersSent: boolean
  writeHead(status: number, headers?: Readonly<Record<string, string | number>>): HttpResponse
  write(chunk: string | Uint8Array): boolean
  end(chunk?: string | Uint8Array): unknown
}

/** One message. Members that it lacks, or has of another kind, are undefined or empty. */
export interface LoggedMessage {
  /** Milliseconds since the play began. */
  readonly at: number
  readonly from: 'client' | 'server'
  readonly text: string
  /** The connection it came on; over HTTP the exchange. */
  readonly line: number
  /** Absent: the text is no JSON object. */
  readonly frame?: Json
  readonly id: unknown
  readonly method: unknown
  readonly params: Json
  readonly meta: Json
  /** The arguments of a call. */
  readonly args: Json
  readonly http?: HttpHead
  readonly headers: Readonly<Record<string, string>>
}

/** The form in which the log keeps a text. */
export function messageOf(text: string, more: Pick<LoggedMessage, 'at' | 'from' | 'line'>, http?: HttpHead): LoggedMessage {
  const frame = read(text)
  const params = objectIn(frame, 'params')
  return {
    ...more,
    text,
    ...(frame === undefined ? {} : { frame }),
    id: frame?.['id'],
    method: frame?.['method'],
    params,
    meta: objectIn(params, '_meta'),
    args: objectIn(params, 'arguments'),
    ...(http === undefined ? {} : { http }),
    headers: http?.headers ?? {},
  }
}

function read(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A play says little; a client that floods the server is not logged for ever. */
const most = 20_000

/** Grows while a play runs; handlers wait on it. */
export class MessageLog {
  readonly messages: LoggedMessage[] = []
  readonly visits: HttpVisit[] = []
  /** Lines that the client closed before they were answered. */
  readonly closed: { readonly line: number; readonly at: number }[] = []
  /** What handlers wrote down for the verdict. */
  readonly notes = new Map<string, unknown>()
  readonly #began = performance.now()
  #lines = 0
  #waiting: (() => void)[] = []

  get now(): number {
    return performance.now() - this.#began
  }

  newLine(): number {
    return ++this.#lines
  }

  received(text: string, line: number, http?: HttpHead): LoggedMessage {
    return this.#add(messageOf(text, { at: this.now, from: 'client', line }, http))
  }

  sent(text: string, line: number): void {
    this.#add(messageOf(text, { at: this.now, from: 'server', line }))
  }

  visited(visit: HttpHead, line: number): void {
    if (this.visits.length < most) this.visits.push({ ...visit, at: this.now, line })
    this.wake()
  }

  left(line: number): void {
    this.closed.push({ line, at: this.now })
    this.wake()
  }

  /** What the client has sent with this method so far. */
  of(method: string): readonly LoggedMessage[] {
    return this.messages.filter(message => message.from === 'client' && message.method === method)
  }

  /** Waits for what `look` finds; undefined when the time is over. */
  async until<T>(look: () => T | undefined, ms: number): Promise<T | undefined> {
    const end = this.now + ms
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      const left = end - this.now
      if (left <= 0) return undefined
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, left)
        this.#waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #add(message: LoggedMessage): LoggedMessage {
    if (this.messages.length < most) this.messages.push(message)
    this.wake()
    return message
  }
}
