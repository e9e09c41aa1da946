/** A client made of bare frames: says what a test tells it to say, and writes down what comes back. */
import type { Acceptor } from '../src/jsonrpc/connection.ts'
import { isRecord } from '../src/jsonrpc/message.ts'
import { officialRevisions, type RevisionId, revisionById } from '../src/revisions/index.ts'
import { memoryPair } from '../src/transports/memory.ts'

export type Frame = Readonly<Record<string, unknown>>

export interface RawWire {
  /** All that came, in order. */
  readonly heard: readonly Frame[]
  /** Sends a request under the next number (or the given id) and waits for its answer. */
  ask(method: string, params?: Frame, id?: string | number): Promise<Frame>
  /** Sends a request whose answer is not waited for; gives its id. */
  begin(method: string, params?: Frame, id?: string | number): string | number
  tell(method: string, params?: Frame): void
  /** Waits until a frame with this method has come that was not waited for before. */
  next(method: string): Promise<Frame>
  /** What came with this method so far, once all that was sent before is here. */
  all(method: string): Promise<readonly Frame[]>
  close(): Promise<void>
}

/** The member of a request's `_meta` that names its version and its sender, on wires that have no handshake. */
export function envelope(revision: RevisionId): Frame {
  const { requestMeta } = revisionById(revision)
  return requestMeta?.({}, { name: 'raw', version: '1' }, undefined) ?? {}
}

/** Connects in memory and, where the wire has one, makes the handshake; without `ready` only its first half. */
export async function rawWire(acceptor: Acceptor, revision: RevisionId, ready = true): Promise<RawWire> {
  const [near, far] = memoryPair()
  const heard: Frame[] = []
  const taken = new Set<Frame>()
  const wake: (() => void)[] = []
  let nextId = 100
  acceptor.accept(far)
  await near.start({
    frame: text => {
      heard.push(JSON.parse(text))
      for (const fn of wake.splice(0)) fn()
    },
    fault: () => {},
    closed: () => {
      for (const fn of wake.splice(0)) fn()
    },
  })
  const modern = revisionById(revision).era === 'request'
  const send = (frame: Frame): void => {
    void near.send(JSON.stringify({ jsonrpc: '2.0', ...frame }))
  }
  const find = async (fits: (frame: Frame) => boolean): Promise<Frame> => {
    for (;;) {
      const frame = heard.find(one => !taken.has(one) && fits(one))
      if (frame !== undefined) {
        taken.add(frame)
        return frame
      }
      await new Promise<void>(resolve => wake.push(resolve))
    }
  }
  const withMeta = (params: Frame): Frame => {
    if (!modern) return params
    return { ...params, _meta: { ...envelope(revision), ...(isRecord(params['_meta']) ? params['_meta'] : {}) } }
  }
  const wire: RawWire = {
    heard,
    begin: (method, params = {}, id = nextId++) => {
      send({ id, method, params: withMeta(params) })
      return id
    },
    ask: (method, params, id) => {
      const used = wire.begin(method, params, id)
      return find(frame => frame['id'] === used && frame['method'] === undefined)
    },
    tell: (method, params = {}) => send({ method, params }),
    next: method => find(frame => frame['method'] === method),
    all: async method => {
      // Answers keep the order of the pipe: once this one is here, so is whatever was said before.
      await wire.ask('no/such/method')
      return heard.filter(frame => frame['method'] === method)
    },
    close: () => near.close(),
  }
  await hello(wire, revision, ready)
  return wire
}

async function hello(wire: RawWire, revision: RevisionId, ready: boolean): Promise<void> {
  const dialect = revision === 's3'
  if (revisionById(revision).era === 'request') return
  const official = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
  await wire.ask('initialize', dialect ? { mcpVersion: '2025-06-18', clientCapabilities: {} } : official)
  if (ready) wire.tell(dialect ? 'initialized' : 'notifications/initialized')
}

/** What a server declares at a revision, by whatever way the wire has to ask. */
export async function declaredAt(acceptor: Acceptor, revision: RevisionId): Promise<Frame> {
  const wire = await rawWire(acceptor, revision)
  const hello =
    revisionById(revision).era === 'request' ? (await wire.ask('server/discover'))['result'] : wire.heard[0]?.['result']
  return ((hello as Frame)['capabilities'] ?? {}) as Frame
}

export const everyRevision: readonly RevisionId[] = [...officialRevisions, 'draft-2026-v1', 's3']
