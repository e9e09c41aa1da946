/** A host for the raw servers of these tests: says yes to everything, writes down what it is asked, and is told otherwise by tests. */
import { afterEach } from 'vitest'
import type { ConnectOptions } from '../../../src/client/api.ts'
import type { Client } from '../../../src/client/client.ts'
import { connect } from '../../../src/client/connect.ts'
import type { Why } from '../../../src/core/suggestion.ts'
import type { LiveConnection, LiveHandlers } from '../../../src/features/live/client-api.ts'
import type { InferenceRequest } from '../../../src/features/live/inference/messages.ts'
import type { PushEvent } from '../../../src/features/live/push-events/messages.ts'
import { type Carrier, type RawOptions, type RawServer, rawServer } from './raw-server.ts'

export const model = { id: 'm-1', vendor: 'lab', contextWindow: 8_000, capabilities: ['tools'] }

/** Sets of every kind, as a 0.2 server declares them. */
export const mcpl = {
  version: '0.2',
  pushEvents: true,
  contextHooks: { beforeInference: true, afterInference: { blocking: true } },
  inferenceRequest: { streaming: true },
  modelInfo: true,
  featureSets: {
    'lab.push': { description: 'Pushes', uses: ['pushEvents'] },
    'lab.hooks': { description: 'Hooks', uses: ['contextHooks.beforeInference', 'contextHooks.afterInference'] },
    'lab.think': { description: 'Thinks', uses: ['inferenceRequest'] },
    'lab.files': { description: 'Files', uses: ['tools'], scoped: true },
    'lab.notes': { description: 'Notes', uses: ['tools'], rollback: true, hostState: true },
    'lab.off': { description: 'Nobody enables it', uses: ['pushEvents', 'inferenceRequest'] },
  },
}

export interface Host {
  readonly raw: RawServer
  readonly client: Client
  readonly live: LiveConnection
  readonly pushed: PushEvent[]
  readonly inferred: InferenceRequest[]
  readonly diagnosed: Why[]
}

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

export interface HostOptions extends RawOptions {
  readonly handlers?: Partial<LiveHandlers>
  readonly connecting?: ConnectOptions
}

/** The raw server, to be closed after the test. */
export async function serve(carrier: Carrier, options: RawOptions = { mcpl }): Promise<RawServer> {
  const raw = await rawServer(carrier, options)
  cleanups.push(() => raw.close())
  return raw
}

/** Connects to it; what the host hears is in the books. */
export async function attach(raw: RawServer, { handlers = {}, connecting = {} }: HostOptions = {}) {
  const books = { pushed: [] as PushEvent[], inferred: [] as InferenceRequest[], diagnosed: [] as Why[] }
  const client = await connect(raw.target, {
    ...raw.options,
    ...connecting,
    live: { ...standing(books), ...handlers },
  })
  cleanups.push(() => client.close())
  return { raw, client, ...books }
}

export async function host(carrier: Carrier, options: HostOptions = {}): Promise<Host> {
  const attached = await attach(await serve(carrier, { mcpl, ...options }), options)
  const { live } = attached.client
  if (live === undefined) throw new Error('The server was not found to be live')
  return { ...attached, live }
}

/** Says yes to everything, and writes it down. */
export function standing(books: { pushed: PushEvent[]; inferred: InferenceRequest[]; diagnosed: Why[] }): LiveHandlers {
  return {
    select: declared => {
      const names = [...declared.keys()]
      return { enabled: names, disabled: names.filter(name => name.endsWith('.off')), canEnable: name => name === 'lab.off' }
    },
    onPush: async event => {
      books.pushed.push(event)
      return { accepted: true, inferenceId: `inf-${books.pushed.length}` }
    },
    onInfer: async request => {
      books.inferred.push(request)
      return { content: 'thought', model: 'm-1', finishReason: 'end_turn', usage: { inputTokens: 3, outputTokens: 1 } }
    },
    onElevate: async ({ scope }) => ({ approved: true, ...(scope.payload === undefined ? {} : { payload: scope.payload }) }),
    modelInfo: () => model,
    onDiagnostic: what => {
      books.diagnosed.push(what)
    },
  }
}

/** A push that is all right. */
export function push(more: Readonly<Record<string, unknown>> = {}) {
  return {
    featureSet: 'lab.push',
    eventId: 'e-1',
    timestamp: '2026-01-23T10:30:00Z',
    payload: { content: [{ type: 'text', text: 'ping' }] },
    ...more,
  }
}

export const turn = { inferenceId: 'inf-1', conversationId: 'c-1', turnIndex: 0, userMessage: 'hi', model }
export const over = { ...turn, assistantMessage: 'hello', usage: { inputTokens: 5, outputTokens: 2 } }
