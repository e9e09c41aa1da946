/** A real client on a real server, without a socket between them. */
import { type Client, type ConnectOptions, connect } from '../client/index.ts'
import { openerOf, type Target } from '../client/target.ts'
import { redact } from '../core/redact.ts'
import { clientLimits } from '../engine/limits.ts'
import type { Connection } from '../jsonrpc/connection.ts'
import { listenerFrameBytes } from '../recording/listener.ts'
import { openTape, type Tape } from '../recording/mock-server.ts'
import { type ProxyOptions, type RecordingProxy, startProxy } from '../recording/proxy.ts'
import { type ReplayTapeOptions, replayConnections, type TapeReplayed } from '../recording/replay.ts'
import { type OnFrame, tapConnection } from '../recording/tap.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { Server } from '../server/index.ts'
import { memoryPair } from '../transports/memory.ts'

/** Options of `connectInMemory`: those of `connect`, and some for tests. */
export interface InMemoryOptions extends ConnectOptions {
  /** The only protocol revision to speak. Default: the newest that both sides speak. */
  readonly revision?: RevisionId
  /** Called with every frame that the client sends (`out`) and receives (`in`). Default: not called. */
  readonly onFrame?: OnFrame
}

/**
 * Connects a client to a server of the same process, without a network. For tests.
 * @example await using mcp = await connectInMemory(server, { revision: '2025-06-18' })
 */
export function connectInMemory(server: Server, { revision, onFrame, ...options }: InMemoryOptions = {}): Promise<Client> {
  const [near, far] = memoryPair()
  server.acceptor.accept(far)
  const connection = onFrame === undefined ? near : tapConnection(near, onFrame)
  return connect(connection, revision === undefined ? options : { ...options, revisions: [revision] })
}

// Recording and replaying servers by their URL, their command or a function that connects: for tests of servers and clients of others.

/** A server to record, or to replay against. */
export type ProxyTarget = Target | (() => Connection)

/**
 * Starts a proxy between a client and a server, which passes on every frame unchanged and records it.
 * @example const proxy = await startRecording('https://example.com/mcp', { file: 'session.tape', client: { port: 7000 } })
 */
export async function startRecording(target: ProxyTarget, options: ProxyOptions): Promise<RecordingProxy> {
  const url = isHttp(target) ? new URL(target) : undefined
  return startProxy({ open: () => openConnection(target, options), url }, { target: labelOf(target), ...options })
}

/**
 * Sends what the client sent on a tape to a server, and returns what the server answers differently.
 * @example
 * const { differences } = await replayTape('session.tape', 'http://127.0.0.1:7420/mcp', { ignore: ['result.serverInfo.version'] })
 */
export async function replayTape(
  tape: string | Tape,
  target: ProxyTarget,
  options: ReplayTapeOptions = {},
): Promise<TapeReplayed> {
  const { conversations } = typeof tape === 'string' ? await openTape(tape) : tape
  const { headers } = options
  return replayConnections(conversations, carrier => openConnection(target, { headers, pair: carrier === 'sse' }), options)
}

/** `pair`: over HTTP by the two endpoints of 2024-11-05. */
async function openConnection(
  target: ProxyTarget,
  { headers, pair }: { readonly headers?: ProxyOptions['headers']; readonly pair?: boolean | undefined },
): Promise<Connection> {
  if (typeof target === 'function') return target()
  const opener = openerOf(target, { headers, limits: { ...clientLimits, frameBytes: listenerFrameBytes } })
  return pair === true && opener.openOldPair !== undefined ? opener.openOldPair() : opener.open()
}

function isHttp(target: ProxyTarget): target is string | URL {
  return (typeof target === 'string' || target instanceof URL) && /^https?:/.test(String(target))
}

function labelOf(target: ProxyTarget): string {
  if (typeof target === 'string' || target instanceof URL) {
    const url = new URL(target)
    return `${url.origin}${url.pathname}`
  }
  if (typeof target !== 'object' || !('command' in target)) return 'a connection'
  // Arguments may hold a key.
  return redact([target.command, ...(target.args ?? [])].join(' '))
}
