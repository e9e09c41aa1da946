import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { isRecord, type Params } from '../../src/jsonrpc/message.ts'
import { createServer } from '../../src/server/index.ts'

interface Peer {
  call(name: string, args?: Params, meta?: Params): Promise<Params>
  list(): Promise<readonly string[]>
}

const info = { name: 'plain', version: '1.0.0' }
const yes = { action: 'accept' as const, content: { confirm: true } }

async function openV1(url: URL, asks: boolean): Promise<Peer> {
  const client = new ClientV1(info, { capabilities: asks ? { elicitation: {} } : {} })
  if (asks) client.setRequestHandler(ElicitRequestSchema, () => yes)
  await client.connect(new HttpV1(url) as TransportV1)
  onTestFinished(() => client.close())
  return {
    call: (name, args = {}, meta) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }),
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
  }
}

async function openV2(url: URL, asks: boolean): Promise<Peer> {
  const capabilities = asks ? { elicitation: { form: {} } } : {}
  const client = new ClientV2(info, { capabilities, versionNegotiation: { mode: 'auto' } })
  if (asks) client.setRequestHandler('elicitation/create', () => yes)
  await client.connect(new HttpV2(url))
  onTestFinished(() => client.close())
  return {
    call: (name, args = {}, meta) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }),
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
  }
}

async function start(): Promise<{ url: URL; tickets: Set<string> }> {
  const tickets = new Set<string>()
  const grant = ({ scopes }: { scopes: readonly string[] }) => scopes
  const server = createServer({ name: 'tracker', version: '1.0.0', facade: true, permissions: { grant }, log: 'silent' })
  const input = z.object({ title: z.string() })
  server.tool('create', { input, output: input, undo: { tool: 'delete', arguments: ({ args }) => args } }, ({ title }) => {
    if (title === 'bad') throw new Error('There is no room')
    tickets.add(title)
    return { title }
  })
  server.tool('delete', { input, idempotent: true }, ({ title }) => String(tickets.delete(title)))
  server.tool('wipe', { confirm: { message: 'Wipe all?' } }, () => {
    tickets.clear()
    return 'wiped'
  })
  server.tool('archive', { input, scopes: ['archive'] }, ({ title }) => `archived ${title}`)
  const { url, close } = await server.listen()
  onTestFinished(async () => {
    await close()
    await server.close()
  })
  return { url: new URL(url), tickets }
}

const structured = (result: Params): Params => (isRecord(result['structuredContent']) ? result['structuredContent'] : {})
const text = (result: Params): string => String((result['content'] as readonly Params[])[0]?.['text'])

describe.each([
  ['the official SDK v1', openV1],
  ['the official SDK v2', openV2],
])('%s, which knows no extension, over HTTP', (_, open) => {
  test('makes a transaction and takes it back', async () => {
    const { url, tickets } = await start()
    const { call, list } = await open(url, false)
    expect(await list()).toContain('begin_transaction')
    const { transaction_id } = structured(await call('begin_transaction', { description: 'two at once' }))
    for (const title of ['a', 'b']) expect(structured(await call('create', { title, transaction_id }))).toEqual({ title })
    expect([...tickets]).toEqual(['a', 'b'])
    expect(structured(await call('rollback_transaction', { transaction_id }))).toMatchObject({ status: 'rolled_back' })
    expect([...tickets]).toEqual([])
    // A refusal of a tool with an output schema comes in words alone: this client would hold it against the schema.
    expect(await call('create', { title: 'c', transaction_id })).toMatchObject({ isError: true })
    expect(structured(await call('commit_transaction', { transaction_id: 'none' }))).toMatchObject({
      error: { code: 'RESOURCE_NOT_FOUND' },
    })
  })

  test('asks for scopes and uses what it was granted', async () => {
    const { url } = await start()
    const { call } = await open(url, false)
    expect(structured(await call('check_permissions', { tool: 'archive' }))).toMatchObject({ missing_scopes: ['archive'] })
    const { session } = structured(await call('negotiate_scopes', { requested_scopes: ['archive'] }))
    const session_token = (session as Params)['token']
    expect(text(await call('archive', { title: 'a', session_token }))).toBe('archived a')
  })

  test('does under one key what it repeats only once', async () => {
    const { url } = await start()
    const { call, list } = await open(url, false)
    // From here on it holds results against the schemas.
    await list()
    const first = await call('create', { title: 'a', idempotency_key: 'k-1' })
    expect(structured(await call('create', { title: 'a', idempotency_key: 'k-1' }))).toEqual(structured(first))
    expect(await call('create', { title: 'b', idempotency_key: 'k-1' })).toMatchObject({ isError: true })
    expect(await call('create', { title: 'bad', idempotency_key: 'k-2' })).toMatchObject({ isError: true })
  })

  test('has its user asked, or brings the yes in _meta where it cannot be asked', async () => {
    const { url, tickets } = await start()
    const asking = await open(url, true)
    await asking.call('create', { title: 'a' })
    expect(text(await asking.call('wipe'))).toBe('wiped')
    const silent = await open(url, false)
    await silent.call('create', { title: 'b' })
    const refused = await silent.call('wipe')
    expect([refused['isError'], [...tickets]]).toEqual([true, ['b']])
    const { confirmation_token } = (refused['_meta'] as Params)['dev.vivarium/confirmation'] as Params
    const meta = { 'dev.vivarium/confirmation': { confirmation_token, user_confirmed: true } }
    expect(text(await silent.call('wipe', {}, meta))).toBe('wiped')
  })
})
