/** What passed between the client under test and the scripted server, in order: the evidence of every verdict. */
import { isRecord } from '../../jsonrpc/message.ts'
import { listIn, objectIn, parsedJson } from '../expectations.ts'
import type { Carrier, Json, RevisionId } from '../scenario.ts'
import { isStateless, keys } from '../wire/envelope.ts'
import type { ClientEnd } from './drive.ts'
import type { ScriptedServer } from './server.ts'

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
  const value = parsedJson(text)
  const frame = isRecord(value) ? value : undefined
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

// ── What a play has shown, ready for questions: the messages of the client by kind, what it declared, what it reported.

/** What the client says came of a step. */
export interface Reported {
  readonly as: string
  readonly ok: boolean
  readonly text?: string
  readonly isError?: boolean
  readonly code?: number
  readonly message?: string
  readonly progress?: number
  readonly problem?: boolean
  readonly count?: number
}

/** All that scenarios may ask about one play. */
export class Observation {
  readonly log: MessageLog
  readonly revision: RevisionId
  readonly wire: string
  readonly carrier: Carrier
  readonly end: ClientEnd
  readonly stateless: boolean

  constructor({ log, revision, wire, carrier }: ScriptedServer, end: ClientEnd) {
    this.log = log
    this.revision = revision
    this.wire = wire
    this.carrier = carrier
    this.end = end
    this.stateless = isStateless(revision)
  }

  /** All that the client has sent. */
  get fromClient(): readonly LoggedMessage[] {
    return this.log.messages.filter(({ from }) => from === 'client')
  }

  /** Its requests, of one method or of all. */
  requests(method?: string): readonly LoggedMessage[] {
    return this.fromClient.filter(
      message =>
        typeof message.method === 'string' && 'id' in (message.frame ?? {}) && (method ?? message.method) === message.method,
    )
  }

  notices(method: string): readonly LoggedMessage[] {
    return this.fromClient.filter(({ frame }) => frame?.['method'] === method && !('id' in frame))
  }

  /** Its answers to what it was asked. */
  get answers(): readonly LoggedMessage[] {
    return this.fromClient.filter(({ frame }) => frame !== undefined && !('method' in frame) && 'id' in frame)
  }

  answer(id: unknown): LoggedMessage | undefined {
    return this.answers.find(answer => answer.id === id)
  }

  /** Calls of a tool; of any but the report where none is named. */
  calls(tool?: string): readonly LoggedMessage[] {
    return this.requests(this.revision === 's3' ? 'tools/invoke' : 'tools/call').filter(({ params: { name } }) =>
      tool === undefined ? name !== 'test-report' : name === tool,
    )
  }

  /** Whether it came past the opening: it asked for something. The ground of all further verdicts. */
  get opened(): boolean {
    return this.requests().some(({ method }) => !isOpening(method))
  }

  get info(): Json {
    return this.stateless
      ? objectIn(this.requests().at(-1)?.meta, keys.info)
      : objectIn(this.requests('initialize').at(-1)?.params, 'clientInfo')
  }

  /** What the client says that it can do. */
  get capabilities(): Json {
    return this.stateless
      ? objectIn(this.requests().at(-1)?.meta, keys.capabilities)
      : objectIn(this.requests('initialize').at(-1)?.params, 'capabilities')
  }

  /** Whether a capability is declared: `has('elicitation.url')`. */
  has(path: string): boolean {
    let at: unknown = this.capabilities
    for (const name of path.split('.')) at = isRecord(at) ? at[name] : undefined
    return at !== undefined && at !== false
  }

  /** Whether an extension is declared; where each request does that: with any of them. */
  extension(id: string): boolean {
    const declared = this.stateless ? this.requests().map(({ meta }) => objectIn(meta, keys.capabilities)) : [this.capabilities]
    return declared.some(one => id in objectIn(one, 'extensions') || id in objectIn(one, 'experimental'))
  }

  /** What the client says came of its steps, by name. */
  get reported(): ReadonlyMap<string, Reported> {
    const report = this.requests('tools/call').find(({ params }) => params['name'] === 'test-report')
    const steps = listIn(report?.args, 'steps') as readonly Reported[]
    return new Map(steps.map(entry => [entry.as, entry]))
  }

  /** HTTP requests without a message, of one kind. */
  visits(method: string, path = '/mcp'): readonly HttpVisit[] {
    return this.log.visits.filter(visit => visit.method === method && visit.path.startsWith(path))
  }

  note<T>(name: string): T | undefined {
    return this.log.notes.get(name) as T | undefined
  }
}

/** Whether a request of this method may come before a session is announced as open. */
export function isOpening(method: unknown): boolean {
  return method === 'initialize' || method === 'ping' || method === 'server/discover'
}
