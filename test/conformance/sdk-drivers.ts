/** Clients of both majors of the official SDK as the kit judges them: what they do by themselves, and steps as a program would take them. */
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { ClientAnswers, ClientStep, ClientTarget, StepReport, Told } from '../../src/conformance/index.ts'
import { providerFor, signingIn } from './sdk-sign-in.ts'

type Progress = (progress: { progress: number }) => void

/** What both majors can do alike. */
interface Sdk {
  readonly client: Pick<
    ClientV1,
    'listTools' | 'listResources' | 'listResourceTemplates' | 'listPrompts' | 'readResource' | 'getPrompt' | 'complete'
  >
  call: (
    name: string,
    args: Record<string, unknown>,
    options: { signal?: AbortSignal; timeout?: number; onprogress?: Progress },
  ) => Promise<unknown>
  /** Settles at the first announcement. */
  readonly toolsChanged: Promise<void>
  readonly resourceUpdated: Promise<void>
  subscribe(uri: string): Promise<unknown>
  listen(): Promise<void>
  sendRootsListChanged(): Promise<void>
  roots: readonly { uri: string }[]
}

const info = { name: 'official-sdk', version: '1.0.0' }

function capabilitiesFor({ elicit, sample, sampleTools, roots }: ClientAnswers) {
  return {
    ...(elicit === undefined ? {} : { elicitation: { form: { applyDefaults: true }, url: {} } }),
    ...(sample === undefined ? {} : { sampling: sampleTools === true ? { tools: {} } : {} }),
    ...(roots === undefined ? {} : { roots: { listChanged: true } }),
  }
}

function answersFor({ elicit, sample }: ClientAnswers, sdk: { roots: readonly { uri: string }[] }) {
  return {
    elicit: (mode: unknown) =>
      mode === 'url' ? { action: elicit?.action ?? 'cancel' } : { ...(elicit ?? { action: 'cancel' }) },
    sample: () => ({
      role: 'assistant',
      content: { type: 'text', text: sample ?? '' },
      model: 'the-model',
      stopReason: 'endTurn',
    }),
    roots: () => ({ roots: [...sdk.roots] }),
  }
}

async function openV1(target: ClientTarget, answers: ClientAnswers, oldPair: boolean): Promise<Sdk> {
  const client = new ClientV1(info, { capabilities: capabilitiesFor(answers) })
  const [changed, updated] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sdk: Sdk = {
    client,
    roots: answers.roots ?? [],
    toolsChanged: changed.promise,
    resourceUpdated: updated.promise,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    subscribe: uri => client.subscribeResource({ uri }),
    listen: async () => {},
    sendRootsListChanged: () => client.sendRootsListChanged(),
  }
  const given = answersFor(answers, sdk)
  if (answers.elicit !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => given.elicit(params.mode) as never)
  if (answers.sample !== undefined) client.setRequestHandler(CreateMessageRequestSchema, () => given.sample() as never)
  if (answers.roots !== undefined) client.setRequestHandler(ListRootsRequestSchema, () => given.roots() as never)
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve())
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => updated.resolve())
  const provider = answers.signIn === undefined ? undefined : providerFor(answers.signIn, 1)
  const auth = provider === undefined ? {} : { authProvider: provider }
  const open = (): StdioV1 | SSEClientTransport | HttpV1 =>
    isCommand(target)
      ? new StdioV1({ command: target.command, args: [...target.args], stderr: 'ignore' })
      : oldPair
        ? new SSEClientTransport(new URL(String(target)))
        : new HttpV1(new URL(String(target)), auth)
  let transport = open()
  const finish = async (back: URLSearchParams): Promise<void> => {
    if (transport instanceof HttpV1) await transport.finishAuth(back.get('code') ?? '')
  }
  await signingIn(provider, finish, async () => {
    transport = open()
    await client.connect(transport as Transport)
  })
  closers.set(sdk, async () => {
    if (transport instanceof HttpV1) await transport.terminateSession()
    await client.close()
  })
  const { call } = sdk
  sdk.call = (name, args, options) => signingIn(provider, finish, () => call(name, args, options))
  return sdk
}

async function openV2(target: ClientTarget, answers: ClientAnswers, version: string | undefined): Promise<Sdk> {
  const mode = version === undefined ? 'auto' : version >= '2026' ? { pin: version } : 'legacy'
  const client = new ClientV2(info, { capabilities: capabilitiesFor(answers), versionNegotiation: { mode } })
  const [changed, updated] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const sdk: Sdk = {
    client: client as unknown as Sdk['client'],
    roots: answers.roots ?? [],
    toolsChanged: changed.promise,
    resourceUpdated: updated.promise,
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    subscribe: async uri =>
      client.getProtocolEra() === 'modern'
        ? void (await client.listen({ resourceSubscriptions: [uri] }))
        : client.subscribeResource({ uri }),
    listen: async () => {
      if (client.getProtocolEra() === 'modern') await client.listen({ toolsListChanged: true })
    },
    sendRootsListChanged: () => client.sendRootsListChanged(),
  }
  const given = answersFor(answers, sdk)
  if (answers.elicit !== undefined)
    client.setRequestHandler('elicitation/create', ({ params }) => given.elicit((params as { mode?: unknown }).mode) as never)
  if (answers.sample !== undefined) client.setRequestHandler('sampling/createMessage', () => given.sample() as never)
  if (answers.roots !== undefined) client.setRequestHandler('roots/list', () => given.roots() as never)
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve())
  client.setNotificationHandler('notifications/resources/updated', () => updated.resolve())
  const provider = answers.signIn === undefined ? undefined : providerFor(answers.signIn, 2)
  const auth = provider === undefined ? {} : { authProvider: provider as never }
  let transport: StdioV2 | HttpV2 | undefined
  const finish = async (back: URLSearchParams): Promise<void> => {
    if (transport instanceof HttpV2) await transport.finishAuth(back)
  }
  await signingIn(provider, finish, async () => {
    transport = isCommand(target)
      ? new StdioV2({ command: target.command, args: [...target.args], stderr: 'ignore' })
      : new HttpV2(new URL(String(target)), auth)
    await client.connect(transport)
  })
  closers.set(sdk, () => client.close())
  const { call } = sdk
  sdk.call = (name, args, options) => signingIn(provider, finish, () => call(name, args, options))
  return sdk
}

const closers = new WeakMap<Sdk, () => Promise<void>>()

function isCommand(target: ClientTarget): target is { command: string; args: readonly string[] } {
  return typeof target === 'object' && 'command' in target
}

export async function playV1(target: ClientTarget, { context, carrier }: Told): Promise<void> {
  await playWith(() => openV1(target, context.answers ?? {}, carrier === 'sse'), context)
}

export async function playV2(target: ClientTarget, { context, version }: Told): Promise<void> {
  await playWith(() => openV2(target, context.answers ?? {}, version), context)
}

async function playWith(open: () => Promise<Sdk>, { steps, report }: Told['context']): Promise<void> {
  const sdk = await open()
  const reports: StepReport[] = []
  try {
    for (const step of steps) await play(step, sdk, reports)
    if (report === true) await sdk.call('test-report', { steps: reports }, {})
  } finally {
    await closers.get(sdk)?.()
  }
}

async function play(step: ClientStep, sdk: Sdk, reports: StepReport[]): Promise<void> {
  if (step.do === 'together') {
    await Promise.all(step.steps.map(one => play(one, sdk, reports)))
    return
  }
  const as = step.as ?? step.do
  try {
    reports.push({ as, ok: true, ...(await act(step, sdk)) })
  } catch (error) {
    reports.push({ as, ok: false, message: error instanceof Error ? error.message : String(error) })
  }
}

async function act(step: ClientStep, sdk: Sdk): Promise<Partial<StepReport>> {
  const { client } = sdk
  if (step.do === 'list') return { count: await list(step.what, client) }
  if (step.do === 'call') return call(step, sdk)
  if (step.do === 'read') return { text: textOf((await client.readResource({ uri: step.uri })).contents[0]) }
  if (step.do === 'prompt') {
    const { messages } = await client.getPrompt({
      name: step.name,
      ...(step.arguments === undefined ? {} : { arguments: step.arguments }),
    })
    return { text: textOf(messages[0]?.content) }
  }
  if (step.do === 'complete') {
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: step.prompt },
      argument: { name: step.argument, value: step.value },
    })
    return { count: completion.values.length }
  }
  if (step.do === 'watch') {
    await sdk.listen()
    await within(sdk.toolsChanged)
    return { count: await list('tools', client) }
  }
  if (step.do === 'watch-resource') {
    await sdk.subscribe(step.uri)
    await within(sdk.resourceUpdated)
    return { text: textOf((await client.readResource({ uri: step.uri })).contents[0]) }
  }
  if (step.do === 'roots') {
    sdk.roots = step.roots
    await sdk.sendRootsListChanged()
    return {}
  }
  throw new Error(`This client does not know how to ${step.do}`)
}

/** The SDK gives one page; a program goes on, with an end in sight. */
async function list(what: 'tools' | 'resources' | 'templates' | 'prompts', client: Sdk['client']): Promise<number> {
  let count = 0
  let cursor: string | undefined
  for (let page = 0; page < 20; page++) {
    const params = cursor === undefined ? undefined : { cursor }
    const listed: { nextCursor?: string | undefined } & Record<string, unknown> =
      what === 'tools'
        ? await client.listTools(params)
        : what === 'resources'
          ? await client.listResources(params)
          : what === 'templates'
            ? await client.listResourceTemplates(params)
            : await client.listPrompts(params)
    const items = listed[what === 'templates' ? 'resourceTemplates' : what]
    count += Array.isArray(items) ? items.length : 0
    if (listed.nextCursor === undefined) break
    cursor = listed.nextCursor
  }
  return count
}

async function call(step: Extract<ClientStep, { do: 'call' }>, sdk: Sdk): Promise<Partial<StepReport>> {
  const giveUp = new AbortController()
  let progress = 0
  const late = step.cancel === undefined ? undefined : setTimeout(() => giveUp.abort(), step.cancel)
  const onprogress = (): void => {
    progress++
    if (step.cancel !== undefined) giveUp.abort()
  }
  try {
    const result = (await sdk.call(step.tool, step.arguments ?? {}, {
      timeout: step.timeout ?? 8_000,
      ...(step.progress === true ? { onprogress } : {}),
      ...(step.cancel === undefined ? {} : { signal: giveUp.signal }),
    })) as { content?: readonly unknown[]; isError?: boolean }
    return {
      text: textOf(result.content?.[0]),
      isError: result.isError === true,
      ...(step.progress === true ? { progress } : {}),
    }
  } finally {
    clearTimeout(late)
  }
}

function textOf(value: unknown): string {
  const text = (value as { text?: unknown } | undefined)?.text
  return typeof text === 'string' ? text : ''
}

function within(promise: Promise<void>): Promise<void> {
  return Promise.race([
    promise,
    new Promise<void>((_, reject) => setTimeout(() => reject(new Error('nothing was announced')), 4_000).unref()),
  ])
}
