/** Clients of both majors of the official SDK behind one small face, with answers to all that the fixture asks. */
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js'
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Target } from '../../src/client/index.ts'

export type SdkCarrier = 'stdio' | 'http' | 'sse' | 'websocket'

interface CallOptions {
  /** The level from which this call's log is wanted, where calls say so. */
  readonly log?: string
  readonly onprogress?: (progress: { progress: number }) => void
  readonly signal?: AbortSignal
}

/** What both majors can do alike. */
export interface SdkClient {
  readonly logs: unknown[]
  /** Settles at the first announcement that the list of tools has changed. */
  readonly changed: Promise<void>
  readonly client: Pick<ClientV2, 'listTools' | 'readResource' | 'getPrompt' | 'complete' | 'close' | 'setLoggingLevel' | 'ping'>
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Readonly<Record<string, unknown>>>
  /** Asks to hear of changes, where that must be asked for. */
  listen(): Promise<void>
  /** Calls a tool as a task and tells what became of it, step by step; undefined where the SDK has no tasks. */
  readonly task?: (name: string, created: () => void) => Promise<string[]>
}

const info = { name: 'sdk', version: '1.0.0' }
const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } }
const order = { action: 'accept' as const, content: { fish: 'cod', count: 2, confirm: true } }
const rhyme = { role: 'assistant' as const, content: { type: 'text' as const, text: 'dish' }, model: 'the-model' }
const home = { roots: [{ uri: 'file:///home/ada', name: 'home' }] }

export async function openV1(carrier: SdkCarrier, target: Target): Promise<SdkClient> {
  const logs: unknown[] = []
  const client = new ClientV1(info, { capabilities })
  client.setRequestHandler(ElicitRequestSchema, () => order)
  client.setRequestHandler(CreateMessageRequestSchema, () => rhyme)
  client.setRequestHandler(ListRootsRequestSchema, () => home)
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params.data))
  const { promise: changed, resolve } = Promise.withResolvers<void>()
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
  await client.connect(transportV1(carrier, target))
  return {
    logs,
    changed,
    client: client as unknown as SdkClient['client'],
    call: (name, args = {}, { log: _, ...options } = {}) => client.callTool({ name, arguments: args }, undefined, options),
    listen: async () => {},
    task: async (name, created) => {
      const steps: string[] = []
      for await (const step of client.experimental.tasks.callToolStream({ name, arguments: {} }, undefined, {
        task: { ttl: 60_000 },
      })) {
        if (step.type === 'taskCreated') created()
        if (step.type === 'result') steps.push(JSON.stringify(step.result.content))
        else if (step.type !== 'taskStatus') steps.push(step.type)
      }
      return steps
    },
  }
}

function transportV1(carrier: SdkCarrier, target: Target): TransportV1 {
  if (carrier === 'stdio') return new StdioV1({ ...(target as { command: string; args: string[] }), stderr: 'ignore' })
  const url = new URL(target as string)
  if (carrier === 'sse') return new SSEClientTransport(url)
  // Its own types do not meet under exactOptionalPropertyTypes.
  return (carrier === 'websocket' ? new WebSocketClientTransport(url) : new HttpV1(url)) as TransportV1
}

export type NegotiationV2 = 'legacy' | 'auto' | { readonly pin: string }

export async function openV2(carrier: SdkCarrier, target: Target, mode: NegotiationV2): Promise<SdkClient> {
  const logs: unknown[] = []
  const client = new ClientV2(info, { capabilities, versionNegotiation: { mode } })
  client.setRequestHandler('elicitation/create', () => order)
  client.setRequestHandler('sampling/createMessage', () => rhyme)
  client.setRequestHandler('roots/list', () => home)
  client.setNotificationHandler('notifications/message', ({ params }) => void logs.push(params.data))
  const { promise: changed, resolve } = Promise.withResolvers<void>()
  client.setNotificationHandler('notifications/tools/list_changed', () => resolve())
  const stdio = carrier === 'stdio'
  await client.connect(
    stdio
      ? new StdioV2({ ...(target as { command: string; args: string[] }), stderr: 'ignore' })
      : new HttpV2(new URL(target as string)),
  )
  return {
    logs,
    changed,
    client,
    call: (name, args = {}, { log, ...options } = {}) => {
      const meta =
        log === undefined || client.getProtocolEra() !== 'modern' ? {} : { _meta: { 'io.modelcontextprotocol/logLevel': log } }
      return client.callTool({ name, arguments: args, ...meta }, options)
    },
    listen: async () => {
      if (client.getProtocolEra() === 'modern') await client.listen({ toolsListChanged: true })
    },
  }
}
