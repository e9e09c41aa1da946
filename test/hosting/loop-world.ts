/** For tests: a loop with real servers in memory, a real store, and ports that let everything pass and remember what they saw. */

import { connect } from '../../src/client/connect.ts'
import type { LiveConnection, LiveHandlers } from '../../src/features/live/client-api.ts'
import { toolSetOf } from '../../src/features/live/dialects/messages.ts'
import type { PushEvent } from '../../src/features/live/push-events/messages.ts'
import { Loop, type LoopOptions } from '../../src/host/loop/loop.ts'
import type { LoopParts, LoopServer } from '../../src/host/loop/ports.ts'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import type { Params } from '../../src/jsonrpc/message.ts'
import type { Note } from '../../src/policy/audit/host-audit.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Store } from '../../src/stores/store.ts'
import { memoryPair } from '../../src/transports/memory.ts'

export const allowing: LoopParts['policy'] = {
  decide: async () => ({ do: 'allow', rule: 'test' }),
  approve: async () => ({ yes: true }),
}

export const boundless: LoopParts['budgets'] = { reserve: async () => ({ settle: () => undefined }) }

export const stateless: LoopParts['state'] = {
  before: async () => ({ order: 0 }),
  record: async (_server, _set, { checkpoint }) => ({ checkpoint, current: true, whys: [] }),
  rollback: async () => ({ success: false }),
}

export interface WorldOptions extends Omit<Partial<LoopOptions>, 'servers' | 'audit'> {
  readonly model: LoopOptions['model']
  readonly servers?: Readonly<Record<string, Server>>
  readonly lives?: Readonly<Record<string, LiveConnection>>
  /** Only these tools of a server. */
  readonly pinned?: Readonly<Record<string, readonly string[]>>
  readonly onConfirm?: () => boolean
  readonly revision?: RevisionId
  readonly wrap?: (server: string) => (connection: Connection) => Connection
  /** Connections instead of servers. */
  readonly pipes?: Readonly<Record<string, () => Connection>>
}

export interface World {
  readonly loop: Loop
  readonly store: Store
  readonly notes: Note[]
  readonly servers: LoopServer[]
  readonly pushed: readonly PushEvent[]
  close(): Promise<void>
}

export async function openWorld(options: WorldOptions): Promise<World> {
  const store = options.store ?? memoryStore()
  const notes: Note[] = []
  const audit: LoopParts['audit'] = {
    note: note => void notes.push(note),
    ops: note => {
      notes.push(note)
      return []
    },
  }
  const servers: LoopServer[] = []
  const pushed: PushEvent[] = []
  const standard = { policy: allowing, budgets: boundless, state: stateless }
  const loop = new Loop({ ...standard, ...options, store, audit, servers: () => servers })
  for (const [name, server] of Object.entries(options.servers ?? {}))
    servers.push(await connected(loop, name, near(server), options, pushed))
  for (const [name, pipe] of Object.entries(options.pipes ?? {}))
    servers.push(await connected(loop, name, pipe(), options, pushed))
  for (const [name, live] of Object.entries(options.lives ?? {})) {
    const client = await connect(near(createServer({ name, version: '1.0.0' })))
    servers.push({ name, client, live, tools: async () => [] })
  }
  return {
    ...{ loop, store, notes, servers, pushed },
    close: async () => {
      await loop.close()
      for (const { client } of servers) await client?.close()
    },
  }
}

async function connected(
  loop: Loop,
  name: string,
  pipe: Connection,
  { pinned, onConfirm, revision, wrap }: WorldOptions,
  pushed: PushEvent[],
): Promise<LoopServer> {
  const { live, ...answers } = loop.answers.for(name)
  const handlers: LiveHandlers = {
    ...live,
    select: declared => ({ enabled: [...declared.keys()], disabled: [], canEnable: () => true }),
    onPush: async event => {
      pushed.push(event)
      return { accepted: true, inferenceId: `inf_${event.eventId}` }
    },
    onElevate: async ({ scope }) => ({ approved: true, ...(scope.payload !== undefined && { payload: scope.payload }) }),
  }
  const client = await connect(pipe, {
    ...answers,
    ...(wrap && { wrap: wrap(name) }),
    live: handlers,
    ...(revision && { revisions: [revision] }),
    ...(onConfirm && { onConfirm }),
  })
  const tools: LoopServer['tools'] = async () => {
    const found = []
    for await (const tool of client.tools()) {
      const featureSet = toolSetOf(tool as unknown as Params, new Map())
      const stateSet = featureSet === undefined ? client.toolSet(tool.name) : undefined
      if (pinned?.[name]?.includes(tool.name) ?? true) found.push({ tool, featureSet, stateSet })
    }
    return found
  }
  return {
    name,
    client,
    tools,
    get live() {
      return client.live
    },
  }
}

/** The client's end of a pipe to it. */
function near(server: Server): Connection {
  const [mine, far] = memoryPair()
  server.acceptor.accept(far)
  return mine
}
