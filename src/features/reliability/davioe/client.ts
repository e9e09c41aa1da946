/**
 * A connection to a server of that implementation, as one to any other: each frame is put into its words on the way out, and out of them
 * on the way in. Also for servers that only answer calls and know no handshake. Loaded only where a host wants the profile.
 */
import {
  type Caller,
  type Carrier,
  type Connection,
  ConnectionError,
  type Outgoing,
  type Sink,
} from '../../../jsonrpc/connection.ts'
import { type Id, isId, isRecord, type Params } from '../../../jsonrpc/message.ts'
import { answered, called, type DavioeServerFacts, listedTools, opened, pingMethod, type SentRequest } from './answers.ts'
import { asTool, bareCall } from './calls.ts'

const notFound = -32601

/** Requests without an answer that are remembered; beyond that the oldest is taken for lost. */
const mostSent = 10_000

export class DavioeConnection implements Connection {
  readonly carrier: Carrier
  readonly caller?: Caller
  readonly #inner: Connection
  readonly #sent = new Map<Id, SentRequest>()
  #sink: Sink | undefined = undefined
  #server: DavioeServerFacts = { name: '', opened: true }

  constructor(inner: Connection) {
    this.#inner = inner
    this.carrier = inner.carrier
    if (inner.caller !== undefined) this.caller = inner.caller
  }

  start(sink: Sink): void | Promise<void> {
    this.#sink = sink
    return this.#inner.start({ ...sink, frame: (text, status, within) => sink.frame(this.#heard(text), status, within) })
  }

  send(frame: string, outgoing?: Outgoing): void | Promise<void> {
    const message: unknown = JSON.parse(frame)
    if (!isRecord(message) || typeof message['method'] !== 'string') return this.#inner.send(frame, outgoing)
    const { id, method } = message
    const params = isRecord(message['params']) ? message['params'] : {}
    // Whoever knows no handshake would only wonder about the rest of it.
    if (!isId(id)) return this.#server.opened ? this.#inner.send(frame, outgoing) : undefined
    const said = spoken(method, params)
    if (said === undefined) return this.#refuse(id, method)
    this.#remember(id, { method, params })
    return this.#inner.send(JSON.stringify({ jsonrpc: '2.0', id, ...said }), outgoing)
  }

  drop(id: Id, reason: unknown): void {
    this.#sent.delete(id)
    this.#inner.drop?.(id, reason)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  #remember(id: Id, sent: SentRequest): void {
    this.#sent.set(id, sent)
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > mostSent && oldest !== undefined) this.#sent.delete(oldest)
  }

  /** What such a server does not know is answered here, and never sent. */
  #refuse(id: Id, method: string): Promise<void> | undefined {
    const sink = this.#sink
    if (sink === undefined) return Promise.reject(new ConnectionError('lost', 'The connection was never started'))
    const error = { code: notFound, message: `A server of this profile has no ${method}` }
    queueMicrotask(() => sink.frame(JSON.stringify({ jsonrpc: '2.0', id, error })))
    return undefined
  }

  #heard(text: string): string {
    try {
      return this.#translated(text, JSON.parse(text))
    } catch {
      // What cannot be read, or is too deep to be written again, is told by whoever reads it next.
      return text
    }
  }

  #translated(text: string, message: unknown): string {
    if (!isRecord(message) || !isId(message['id']) || typeof message['method'] === 'string') return text
    const sent = this.#sent.get(message['id'])
    if (sent === undefined) return text
    this.#sent.delete(message['id'])
    return JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...this.#understood(sent, message) })
  }

  #understood(sent: SentRequest, { result, error }: Params): Params {
    const { method } = sent
    if (method === 'initialize') {
      const { server, result: hello } = opened(sent, result)
      this.#server = server
      return { result: hello }
    }
    if (error !== undefined)
      return method === pingMethod && isRecord(error) && error['code'] === notFound ? { result: {} } : { error }
    if (method === 'tools/list') return { result: listedTools(result) }
    if (method === 'tools/call') return { result: called(sent, result, this.#server) }
    return asTool.has(method) ? answered(method, result) : { result }
  }
}

/** Undefined: not to be sent at all. */
function spoken(method: string, params: Params): { readonly method: string; readonly params: Params } | undefined {
  if (method === 'tools/call') return { method, params: bareCall(params) }
  const tool = asTool.get(method)
  if (tool === undefined) return unknownMethods.has(method) ? undefined : { method, params }
  const asked = tool.arguments(params)
  return asked === undefined
    ? undefined
    : { method: 'tools/call', params: bareCall({ name: tool.name, arguments: asked, _meta: params['_meta'] }) }
}

const unknownMethods: ReadonlySet<string> = new Set(['server/discover', 'transaction/get', 'idempotency/get'])
