/** A real client on a real server, without a socket between them. */
import { type Client, type ConnectOptions, connect } from '../client/index.ts'
import { type OnFrame, tapConnection } from '../recording/tap.ts'
import type { RevisionId } from '../revisions/index.ts'
import type { Server } from '../server/index.ts'
import { memoryPair } from '../transports/memory.ts'

/** The options of `connect`, and what only a test wants. */
export interface InMemoryOptions extends ConnectOptions {
  /** Speak this wire only. Default: whatever both prefer. */
  readonly revision?: RevisionId
  /** Hears every frame, as the client sends (`out`) and gets (`in`) it. */
  readonly onFrame?: OnFrame
}

/**
 * Connects a client to a server of the same process.
 * @example await using mcp = await connectInMemory(server, { revision: '2025-06-18' })
 */
export function connectInMemory(server: Server, { revision, onFrame, ...options }: InMemoryOptions = {}): Promise<Client> {
  const [near, far] = memoryPair()
  server.door.accept(far)
  const connection = onFrame === undefined ? near : tapConnection(near, onFrame)
  return connect(connection, revision === undefined ? options : { ...options, revisions: [revision] })
}
