/** What passed between the client under test and the scripted server, in order: the evidence of every verdict. */
import { isRecord } from '../../jsonrpc/message.ts'
import { listIn, objectIn, parsedJson } from '../expectations.ts'
import type { Carrier, Json, RevisionId } from '../scenario.ts'
import { isStateless, keys } from '../wire/envelope.ts'
import type { ClientEnd } from './drive.ts'
import type { ScriptedServer } from './server.ts'

/** The head of an HTTP request. */
export interface HttpHead {
  /** The HTTP method. */
  readonly method: string
  /** The path of the request, with its query. */
  readonly path: string
  /** The request headers, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>
}

/** An HTTP request without a message. */
export interface HttpVisit extends HttpHead {
  /** When it arrived, in milliseconds since the play began. */
  readonly at: number
  /** The number of the HTTP exchange. */
  readonly line: number
}

/** The part of a Node response that plays use. */
export interface HttpResponse {
  /** Whether the head was sent. */
  readonly headersSent: boolean
  /** Sends the status and headers. */
  writeHead(status: number, headers?: Readonly<Record<string, string | number>>): HttpResponse
  /** Sends a part of the body. */
  write(chunk: string | Uint8Array): boolean
  /** Sends the last part of the body, and ends the response. */
  end(chunk?: string | Uint8Array): unknown
}

/** One message. Members that it lacks, or that have another type, are undefined or empty. */
export interface LoggedMessage {
  /** Milliseconds since the play began. */
  readonly at: number
  /** Who sent it. */
  readonly from: 'client' | 'server'
  /** The frame as text. */
  readonly text: string
  /** The number of the connection; over HTTP of the exchange. */
  readonly line: number
  /** The parsed message. Absent if the text is not a JSON object. */
  readonly frame?: Json
  /** The id of the request or response. */
  readonly id: unknown
  /** The method of a request or notification. */
  readonly method: unknown
  /** The params of a request or notification. */
  readonly params: Json
  /** The `_meta` of the params. */
  readonly meta: Json
  /** The arguments of a tool call. */
  readonly args: Json
  /** The HTTP request that brought it. Absent on other carriers. */
  readonly http?: HttpHead
  /** The headers of that request, with lower-case names. Empty on other carriers. */
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

/** The messages of a play, while it runs. */
export class MessageLog {
  /** All messages in both directions, in order. */
  readonly messages: LoggedMessage[] = []
  /** HTTP requests that brought no message, in order. */
  readonly visits: HttpVisit[] = []
  /** Exchanges that the client closed before they were answered. */
  readonly closed: {
    /** The number of the HTTP exchange. */
    readonly line: number
    /** When it was closed, in milliseconds since the play began. */
    readonly at: number
  }[] = []
  /** What handlers noted for the verdict. */
  readonly notes = new Map<string, unknown>()
  readonly #began = performance.now()
  #lines = 0
  #waiting: (() => void)[] = []

  /** Milliseconds since the play began. */
  get now(): number {
    return performance.now() - this.#began
  }

  /** Returns the number for the next connection or HTTP exchange. */
  newLine(): number {
    return ++this.#lines
  }

  /** Adds a message from the client. */
  received(text: string, line: number, http?: HttpHead): LoggedMessage {
    return this.#add(messageOf(text, { at: this.now, from: 'client', line }, http))
  }

  /** Adds a message from the server. */
  sent(text: string, line: number): void {
    this.#add(messageOf(text, { at: this.now, from: 'server', line }))
  }

  /** Adds an HTTP request that brought no message. */
  visited(visit: HttpHead, line: number): void {
    if (this.visits.length < most) this.visits.push({ ...visit, at: this.now, line })
    this.wake()
  }

  /** Adds that the client closed an exchange before it was answered. */
  left(line: number): void {
    this.closed.push({ line, at: this.now })
    this.wake()
  }

  /** The messages of this method that the client has sent so far. */
  of(method: string): readonly LoggedMessage[] {
    return this.messages.filter(message => message.from === 'client' && message.method === method)
  }

  /** Waits until `look` finds something. Undefined if the time is over. */
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

  /** Lets everybody who waits with `until` look again. */
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

/** What the client reports about a step. */
export interface StepReport {
  /** The name of the step. */
  readonly as: string
  /** Whether the step succeeded, as the client sees it. */
  readonly ok: boolean
  /** The text of the result. */
  readonly text?: string
  /** Whether the tool reported an error. */
  readonly isError?: boolean
  /** The JSON-RPC error code. */
  readonly code?: number
  /** The error message. */
  readonly message?: string
  /** How many progress notifications the client received. */
  readonly progress?: number
  /** Whether the client received a problem with the error. */
  readonly problem?: boolean
  /** How many entries, events or changes the client received. */
  readonly count?: number
}

/** Everything that a scenario can ask about a play. */
export class Observation {
  /** All messages of the play. */
  readonly log: MessageLog
  /** The revision of the play. */
  readonly revision: RevisionId
  /** The version string of that revision on the wire. */
  readonly wire: string
  /** The carrier of the play. */
  readonly carrier: Carrier
  /** How the client ended. */
  readonly end: ClientEnd
  /** Whether the revision is stateless, without a handshake. */
  readonly stateless: boolean

  constructor({ log, revision, wire, carrier }: ScriptedServer, end: ClientEnd) {
    this.log = log
    this.revision = revision
    this.wire = wire
    this.carrier = carrier
    this.end = end
    this.stateless = isStateless(revision)
  }

  /** Everything that the client has sent. */
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

  /** Its notifications of one method. */
  notices(method: string): readonly LoggedMessage[] {
    return this.fromClient.filter(({ frame }) => frame?.['method'] === method && !('id' in frame))
  }

  /** Its responses to requests of the server. */
  get answers(): readonly LoggedMessage[] {
    return this.fromClient.filter(({ frame }) => frame !== undefined && !('method' in frame) && 'id' in frame)
  }

  /** The client's response to a request of the server. */
  answer(id: unknown): LoggedMessage | undefined {
    return this.answers.find(answer => answer.id === id)
  }

  /** Its calls of one tool; without a name its calls of all tools except the report. */
  calls(tool?: string): readonly LoggedMessage[] {
    return this.requests(this.revision === 's3' ? 'tools/invoke' : 'tools/call').filter(({ params: { name } }) =>
      tool === undefined ? name !== 'test-report' : name === tool,
    )
  }

  /** Whether the client sent a request after the handshake. If not, nothing else can be judged. */
  get opened(): boolean {
    return this.requests().some(({ method }) => !isOpening(method))
  }

  /** Name and version of the client, as it states them. Empty if it states none. */
  get info(): Json {
    return this.stateless
      ? objectIn(this.requests().at(-1)?.meta, keys.info)
      : objectIn(this.requests('initialize').at(-1)?.params, 'clientInfo')
  }

  /** The capabilities that the client declares. */
  get capabilities(): Json {
    return this.stateless
      ? objectIn(this.requests().at(-1)?.meta, keys.capabilities)
      : objectIn(this.requests('initialize').at(-1)?.params, 'capabilities')
  }

  /** Whether the client declares a capability: `has('elicitation.url')`. */
  has(path: string): boolean {
    let at: unknown = this.capabilities
    for (const name of path.split('.')) at = isRecord(at) ? at[name] : undefined
    return at !== undefined && at !== false
  }

  /** Whether the client declares an extension, with any request in revisions that declare per request. */
  extension(id: string): boolean {
    const declared = this.stateless ? this.requests().map(({ meta }) => objectIn(meta, keys.capabilities)) : [this.capabilities]
    return declared.some(one => id in objectIn(one, 'extensions') || id in objectIn(one, 'experimental'))
  }

  /** What the client reports about its steps, by name. */
  get reported(): ReadonlyMap<string, StepReport> {
    const report = this.requests('tools/call').find(({ params }) => params['name'] === 'test-report')
    const steps = listIn(report?.args, 'steps') as readonly StepReport[]
    return new Map(steps.map(entry => [entry.as, entry]))
  }

  /** HTTP requests without a message, of one HTTP method. */
  visits(method: string, path = '/mcp'): readonly HttpVisit[] {
    return this.log.visits.filter(visit => visit.method === method && visit.path.startsWith(path))
  }

  /** What a handler wrote down for the verdict under this name. */
  note<T>(name: string): T | undefined {
    return this.log.notes.get(name) as T | undefined
  }
}

/** Whether a request of this method may come before a session is announced as open. */
export function isOpening(method: unknown): boolean {
  return method === 'initialize' || method === 'ping' || method === 'server/discover'
}
