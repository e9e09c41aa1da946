/** A host of one server for the tests of the examples: enables what it is told, answers what is asked, and writes everything down. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { ConnectOptions } from '../../src/client/api.ts'
import { type Client, connect } from '../../src/client/index.ts'
import type { Target } from '../../src/client/target.ts'
import type { LiveConnection } from '../../src/features/live/client-api.ts'
import type { InferenceRequest } from '../../src/features/live/inference/messages.ts'
import type { PushEvent } from '../../src/features/live/push-events/messages.ts'
import type { Scope } from '../../src/features/live/scopes/messages.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import type { Server } from '../../src/server/index.ts'
import { connectInMemory } from '../../src/testing/index.ts'

/** Both ways in which MCP Live travels: on a session, and by listening. */
export const wires = ['2025-11-25', '2026-07-28'] as const satisfies readonly RevisionId[]

export const model = { id: 'test-model', vendor: 'test', contextWindow: 100_000, capabilities: ['tools'] }

export interface LiveHostOptions extends Omit<ConnectOptions, 'live'> {
  readonly revision?: RevisionId
  /** Default: all that the server declares. */
  readonly enabled?: readonly string[]
  readonly approve?: (scope: Scope, featureSet: string) => boolean
  readonly think?: (request: InferenceRequest) => string
}

export interface LiveHost {
  readonly mcp: Client
  readonly live: LiveConnection
  readonly pushed: PushEvent[]
  readonly asked: { readonly featureSet: string; readonly scope: Scope }[]
  readonly inferred: InferenceRequest[]
}

export async function liveHost(target: Server | Target, options: LiveHostOptions = {}): Promise<LiveHost> {
  const { revision, enabled, approve = () => false, think = () => '', ...rest } = options
  const [pushed, asked, inferred]: [PushEvent[], LiveHost['asked'], InferenceRequest[]] = [[], [], []]
  const live: ConnectOptions['live'] = {
    select: declared => {
      const wanted = enabled ?? [...declared.keys()]
      return { enabled: wanted, disabled: [...declared.keys()].filter(name => !wanted.includes(name)), canEnable: () => true }
    },
    onPush: async event => {
      pushed.push(event)
      return { accepted: true, inferenceId: `inf_${pushed.length}` }
    },
    onInfer: async request => {
      inferred.push(request)
      return {
        content: think(request),
        model: model.id,
        finishReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1 },
      }
    },
    onElevate: async request => {
      asked.push(request)
      const { payload } = request.scope
      if (!approve(request.scope, request.featureSet)) return { approved: false, reason: 'The test says no' }
      return { approved: true, ...(payload && { payload }) }
    },
    modelInfo: () => model,
  }
  const wire = revision === undefined ? {} : { revisions: [revision] }
  const given = { ...rest, ...wire, live }
  const mcp = await (isServer(target) ? connectInMemory(target, given) : connect(target, given))
  onTestFinished(() => mcp.close())
  if (mcp.live === undefined) throw new Error('The server is not live')
  return { mcp, live: mcp.live, pushed, asked, inferred }
}

/** The command that starts an example as a process of its own. */
export function command(example: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const file = join(import.meta.dirname, '../../examples', example, 'server.ts')
  return { command: process.execPath, args: ['--disable-warning=ExperimentalWarning', file, ...args], env }
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'vivarium-example-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

let turns = 0

/** What hooks are told of a turn. */
export function turn(userMessage: string | null, conversationId = 'c1') {
  return { inferenceId: `inf_t${++turns}`, conversationId, turnIndex: 0, userMessage, model }
}

export function answered(userMessage: string | null, assistantMessage: string) {
  return { ...turn(userMessage), assistantMessage, usage: { inputTokens: 10, outputTokens: 10 } }
}

/** For hooks that need not hurry. */
export const patient = { signal: new AbortController().signal }

function isServer(target: Server | Target): target is Server {
  return typeof target === 'object' && 'door' in target
}
