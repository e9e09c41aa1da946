/** A peer made of bare frames, in memory: says what a test tells it to say, answers what the server asks, writes down what comes. */
import type { Acceptor, Caller, Carrier, Connection } from '../../src/jsonrpc/connection.ts'
import { isRecord } from '../../src/jsonrpc/message.ts'
import { officialRevisions, type RevisionId, revisionById } from '../../src/revisions/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'

export type Frame = Readonly<Record<string, unknown>>

export const everyRevision: readonly RevisionId[] = [...officialRevisions, 'draft-2026-v1', 's3']
export const official: readonly RevisionId[] = everyRevision.filter(id => id !== 's3')
export const sessionRevisions = everyRevision.filter(id => revisionById(id).era === 'session')
export const requestRevisions = everyRevision.filter(id => revisionById(id).era === 'request')

export interface PeerOptions {
  /** What the peer declares, in its handshake or in every request. */
  readonly capabilities?: Frame
  /** Authenticated as this. */
  readonly principal?: string
  /** As what its pipe counts. Default: what it is, memory. */
  readonly carrier?: Carrier
  /** What its token allows. */
  readonly scopes?: readonly string[]
  /** Answers to what the server asks by request. */
  readonly answers?: Readonly<Record<string, (params: Frame) => unknown>>
  /** Without it the connection stays as it was opened: no handshake. */
  readonly hello?: boolean
}

export interface Wire {
  /** All that came, in order. */
  readonly heard: readonly Frame[]
  /** Everything as it came. */
  readonly texts: readonly string[]
  /** What the server's answer to the handshake said. */
  readonly hello: Frame | undefined
  say(value: unknown): void
  begin(method: string, params?: Frame, id?: string | number): string | number
  ask(method: string, params?: Frame, id?: string | number): Promise<Frame>
  tell(method: string, params?: Frame): void
  /** The next frame that fits and was not taken before. */
  next(fits: (frame: Frame) => boolean): Promise<Frame>
  /** Settles when all that was said before has been answered, or never will be. */
  quiet(): Promise<readonly Frame[]>
  close(): Promise<void>
}

const keys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  info: 'io.modelcontextprotocol/clientInfo',
}

/** The `_meta` that each request of a stateless wire carries. */
export function envelope(revision: RevisionId, capabilities: Frame = {}): Frame {
  const { era, wire } = revisionById(revision)
  if (era === 'session') return {}
  return { [keys.version]: wire, [keys.capabilities]: capabilities, [keys.info]: { name: 'bare', version: '1' } }
}

export function enveloped(revision: RevisionId, params: Frame = {}, capabilities: Frame = {}): Frame {
  if (revisionById(revision).era === 'session') return params
  return { ...params, _meta: { ...envelope(revision, capabilities), ...(isRecord(params['_meta']) ? params['_meta'] : {}) } }
}

export function helloParams(revision: RevisionId, capabilities: Frame = {}): Frame {
  if (revision === 's3')
    return { mcpVersion: '2025-06-18', clientCapabilities: { supportsProgress: true, supportsCancellation: true } }
  return { protocolVersion: revision, capabilities, clientInfo: { name: 'bare', version: '1' } }
}

export async function speak(
  server: { readonly acceptor: Acceptor },
  revision: RevisionId,
  options: PeerOptions = {},
): Promise<Wire> {
  const [near, far] = memoryPair()
  const heard: Frame[] = []
  const texts: string[] = []
  const taken = new Set<Frame>()
  const wake: (() => void)[] = []
  let nextId = 1000
  server.acceptor.accept(identified(far, options.principal, options.scopes, options.carrier))
  const send = (frame: unknown): void => {
    void near.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }
  await near.start({
    frame: text => {
      texts.push(text)
      const frame = JSON.parse(text)
      for (const each of Array.isArray(frame) ? frame : [frame]) heard.push(each)
      reply(frame, options, send)
      for (const fn of wake.splice(0)) fn()
    },
    fault: () => {},
    closed: () => {
      for (const fn of wake.splice(0)) fn()
    },
  })
  const wire: Wire & { hello: Frame | undefined } = {
    heard,
    texts,
    hello: undefined,
    say: send,
    begin: (method, params, id = nextId++) => {
      send({ jsonrpc: '2.0', id, method, params: enveloped(revision, params, options.capabilities) })
      return id
    },
    ask: (method, params, id) => {
      const used = wire.begin(method, params, id)
      return wire.next(frame => frame['id'] === used && frame['method'] === undefined)
    },
    tell: (method, params = {}) => send({ jsonrpc: '2.0', method, params }),
    next: async fits => {
      for (;;) {
        const frame = heard.find(one => !taken.has(one) && fits(one))
        if (frame !== undefined) {
          taken.add(frame)
          return frame
        }
        await new Promise<void>(resolve => wake.push(resolve))
      }
    },
    quiet: async () => {
      for (let round = 0; round < 3; round++) {
        await new Promise<void>(resolve => setImmediate(() => resolve()))
        await wire.ask('no/such/method')
      }
      return heard
    },
    close: () => near.close(),
  }
  if (options.hello !== false && revisionById(revision).era === 'session') {
    wire.hello = await wire.ask('initialize', helloParams(revision, options.capabilities))
    wire.tell(revision === 's3' ? 'initialized' : 'notifications/initialized')
  }
  return wire
}

/** The same connection, of somebody. */
export function identified(
  connection: Connection,
  principal: string | undefined,
  scopes?: readonly string[],
  carrier = connection.carrier,
): Connection {
  if (principal === undefined && carrier === connection.carrier) return connection
  const caller: Caller = { carrier, connection, ...(principal !== undefined && { principal: { id: principal, scopes } }) }
  return {
    carrier,
    caller,
    start: sink => connection.start(sink),
    send: (frame, outgoing) => connection.send(frame, outgoing),
    close: () => connection.close(),
  }
}

function reply(frame: Frame, { answers = {} }: PeerOptions, send: (frame: unknown) => void): void {
  const { id, method, params } = frame
  const answer = typeof method === 'string' && id !== undefined ? answers[method] : undefined
  if (answer !== undefined) send({ jsonrpc: '2.0', id, result: answer((params ?? {}) as Frame) })
}

export function resultOf(frame: Frame): Frame {
  if (!isRecord(frame['result'])) throw new Error(`No result object in ${JSON.stringify(frame).slice(0, 500)}`)
  return frame['result']
}

export function errorOf(frame: Frame): { readonly code: number; readonly message: string; readonly data?: Frame } {
  if (!isRecord(frame['error'])) throw new Error(`No error in ${JSON.stringify(frame).slice(0, 500)}`)
  return frame['error'] as unknown as { code: number; message: string; data?: Frame }
}

/** The first text block of a tool's result. */
export function textOf(frame: Frame): string {
  const block = (resultOf(frame)['content'] as readonly Frame[])[0]
  return String(block?.['text'])
}

/** What a call is named on a wire. */
export function callName(revision: RevisionId): string {
  return revision === 's3' ? 'tools/invoke' : 'tools/call'
}
