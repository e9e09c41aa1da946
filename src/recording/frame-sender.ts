/**
 * Frames that somebody else wrote, on any carrier. A pipe takes them as they are; over HTTP each needs the headers of its revision, which
 * are read from the frames themselves.
 */
import { getPrompt } from '../features/mcp/prompts/messages.ts'
import { readResource } from '../features/mcp/resources/messages.ts'
import { cancelTask, getTask, updateTask } from '../features/mcp/tasks/messages.ts'
import { callTool } from '../features/mcp/tools/messages.ts'
import {
  beginTransaction,
  commitTransaction,
  getTransaction,
  rollbackTransaction,
} from '../features/reliability/transactions/messages.ts'
import type { Connection, Outgoing, Sink } from '../jsonrpc/connection.ts'
import { clip } from '../jsonrpc/limits.ts'
import { failureFrame, type Id, isId, isRecord, type Params } from '../jsonrpc/message.ts'
import { metaOf, type Revision, revisions, versionKey } from '../revisions/index.ts'
import { jsonValue, messagesOf } from './format.ts'

/** The message of a frame that decides how it is sent. */
interface SentMessage {
  readonly method: string
  readonly id: Id | undefined
  readonly params: Params | undefined
}

const byWire = new Map(revisions.map(revision => [revision.wire, revision]))

/** The member of params that a header repeats, on wires where one does. */
const names = new Map<string, string | undefined>(
  [
    ...[callTool, getPrompt, readResource, getTask, updateTask, cancelTask],
    ...[beginTransaction, commitTransaction, rollbackTransaction, getTransaction],
  ].map(({ name, nameParam }) => [name, nameParam]),
)

/** What HTTP refused without a message is answered by this number, which servers may define. */
const refused = -32000

/** Sends frames over one connection. */
export class FrameSender {
  readonly #connection: Connection
  /** What the handshake settled; undefined before it, and on wires without one. */
  #settled: Revision | undefined = undefined
  /** The id of an open `initialize` request. */
  #opening: Id | undefined = undefined
  #sink: Sink | undefined = undefined
  #stopped = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Starts the connection and watches for the answer to `initialize`. */
  async start(sink: Sink): Promise<void> {
    this.#sink = sink
    await this.#connection.start({
      frame: (text, status) => {
        if (this.#opening !== undefined) this.#settle(text)
        sink.frame(text, status)
      },
      fault: fault => sink.fault(fault),
      closed: reason => sink.closed(reason),
    })
  }

  /** Sends a frame. What cannot be delivered is answered as an error where it asks, so that nobody waits in vain. */
  send(text: string, headers?: Readonly<Record<string, string>>): void {
    const first = sentIn(text)
    if (first?.method === 'initialize') this.#opening = first.id
    if (this.#drops(first)) return
    const sent = this.#connection.send(
      text,
      this.#connection.carrier === 'http' ? outgoingOf(first, this.#settled, headers) : idOf(first),
    )
    if (sent === undefined) return
    sent.then(
      () => first?.method === 'notifications/initialized' && this.#listen(),
      (error: Error) => {
        if (this.#stopped || first?.id === undefined) return
        this.#sink?.frame(failureFrame(first.id, { code: refused, message: clip(error.message, 500) }))
      },
    )
  }

  close(): Promise<void> {
    this.#stopped = true
    return this.#connection.close()
  }

  /** On stateless HTTP a cancel is to let go of the exchange. */
  #drops(first: SentMessage | undefined): boolean {
    const { drop, carrier } = this.#connection
    if (first?.method !== 'notifications/cancelled' || carrier !== 'http' || this.#settled !== undefined) return false
    const id = first.params?.['requestId']
    if (!isId(id) || drop === undefined) return false
    drop.call(this.#connection, id, 'cancelled')
    return true
  }

  /** Takes the negotiated revision from the answer to `initialize`. */
  #settle(text: string): void {
    const answer = jsonValue(text)
    if (!isRecord(answer) || answer['id'] !== this.#opening || answer['method'] !== undefined) return
    this.#opening = undefined
    const result = answer['result']
    const version = isRecord(result) ? result['protocolVersion'] : undefined
    if (typeof version === 'string') this.#settled = byWire.get(version)
  }

  /** Opens the stream for messages of the server, where the revision has one. */
  #listen(): void {
    const { listen } = this.#connection
    if (this.#settled?.http.session !== true || listen === undefined || this.#stopped) return
    const headers = this.#settled.http.headers(undefined, undefined, undefined)
    listen.call(this.#connection, { session: true, resume: this.#settled.http.resume, headers })
  }
}

/** What goes with a frame that somebody else wrote, on a connection that speaks this revision. */
export function foreignOutgoing(text: string, { carrier }: Pick<Connection, 'carrier'>, settled: Revision | undefined): Outgoing {
  const first = sentIn(text)
  return carrier === 'http' ? outgoingOf(first, settled) : idOf(first)
}

/** What HTTP needs beside the frame: headers, session and resumption. */
function outgoingOf(
  first: SentMessage | undefined,
  settled: Revision | undefined,
  headers?: Readonly<Record<string, string>>,
): Outgoing {
  const revision = revisionOf(first?.params, settled)
  const { session = true, resume = false } = revision?.http ?? {}
  const about = { ...idOf(first), session, resume }
  if (first?.method === 'initialize') return about
  const own = revision?.http.headers(first?.method, first?.params, names.get(first?.method ?? ''))
  return { ...about, headers: { ...own, ...headers } }
}

/** The revision that a message names, otherwise the negotiated one. */
function revisionOf(params: Params | undefined, settled: Revision | undefined): Revision | undefined {
  const named = metaOf(params)?.[versionKey]
  return typeof named === 'string' ? (byWire.get(named) ?? settled) : settled
}

function idOf(first: SentMessage | undefined): Outgoing {
  return first?.id === undefined ? {} : { id: first.id }
}

/** The request or notification of a frame; of a batch the first that asks. */
function sentIn(text: string): SentMessage | undefined {
  const parts = messagesOf(jsonValue(text)).filter(part => typeof part['method'] === 'string')
  const part = parts.find(({ id }) => isId(id)) ?? parts[0]
  if (part === undefined) return undefined
  const { method, id, params } = part
  return { method: String(method), id: isId(id) ? id : undefined, params: isRecord(params) ? params : undefined }
}

// The requests that one end has sent and the other has not answered, so that nobody closes the connection before.

/** More than this is not counted: whoever leaves so many unanswered waits for none of them. */
const most = 10_000

/** Counts the open requests of one connection. */
export class UnansweredRequests {
  readonly #open = new Set<string | number>()
  readonly #waiting: (() => void)[] = []

  /** Counts the requests of a sent frame. */
  asked(text: string): void {
    for (const part of messagesOf(jsonValue(text)))
      if (typeof part['method'] === 'string' && isId(part['id']) && this.#open.size < most) this.#open.add(part['id'])
  }

  /** Discounts the requests that a frame answers. */
  answered(text: string): void {
    for (const part of messagesOf(jsonValue(text)))
      if (part['method'] === undefined && isId(part['id'])) this.#open.delete(part['id'])
    if (this.#open.size === 0) this.#wake()
  }

  /** Resolves when all is answered, or nothing can be any more. */
  quiet(): Promise<void> {
    return this.#open.size === 0 ? Promise.resolve() : new Promise(resolve => this.#waiting.push(resolve))
  }

  /** Nothing more can be answered: resolves all waits. */
  end(): void {
    this.#open.clear()
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
