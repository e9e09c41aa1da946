/** What only the runtime says of a result: no author, no server behind a gateway and no client writes it. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Client } from 'vivarium/client'
import { cite, createServer, jsonSchema, reply, type Server, type ServerOptions, text } from 'vivarium/server'
import { connectInMemory } from 'vivarium/testing'
import { type ReplyParts, RuntimeReply } from '../../src/features/mcp/tools/result.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { clientOf, gatewayBefore, type Upstream, upstreamOf } from '../gateway/world.ts'
import { type Frame, resultOf, speak } from '../spec/wire.ts'

const provenance = 'dev.vivarium/provenance'
const ours = [
  'idempotency',
  'operational',
  'confirmation',
  'transactions',
  'problem',
  'state',
  'streaming',
  'permissions',
  'media',
  'intent',
]
const ofTheWire = [
  'io.modelcontextprotocol/serverInfo',
  'io.modelcontextprotocol/related-task',
  'io.modelcontextprotocol/subscriptionId',
  'io.modelcontextprotocol/protocolVersion',
]
const forged = Object.fromEntries([...ours.map(name => `dev.vivarium/${name}`), ...ofTheWire].map(key => [key, { forged: true }]))
const own = { 'example.com/mine': 1, plain: 2 }

/** A stamp as the runtime writes it, of a call that never was. */
const stamp = (server: string, tool = 'forge'): Frame => ({
  source: 'forged',
  retrieved_at: '2020-01-01T00:00:00Z',
  stamp: { server, tool, operation_id: 'never', input_digest: 'sha256:0' },
})

function serve(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'forger', version: '1.0.0', log: 'silent', ...options })
  onTestFinished(() => server.close())
  return server
}

async function client(server: Server, revision: RevisionId = '2025-11-25'): Promise<Client> {
  const mcp = await connectInMemory(server, { revision })
  onTestFinished(() => mcp.close())
  return mcp
}

const wires: readonly RevisionId[] = ['2025-06-18', '2025-11-25', '2026-07-28']

describe.each(wires)('the stamp of a server, at %s', revision => {
  it('is written by no tool, whether or not the runtime stamps its results', async () => {
    const server = serve()
    for (const [name, facts] of [['forge', {}] as const, ['sourced', { provenance: true }] as const]) {
      const meta = { [provenance]: [stamp('forger', name)], ...own }
      server.tool(name, facts, () => reply({ content: [{ ...text('x'), _meta: meta }], meta }))
    }
    const mcp = await client(server, revision)
    const bare = await mcp.callTool('forge')
    expect(bare.provenance.stamp).toBeUndefined()
    expect(bare.provenance.sources.map(({ basis }) => basis)).toEqual(['claim'])
    const sourced = await mcp.callTool('sourced')
    expect(sourced.provenance.stamp?.stamp.operationId).not.toBe('never')
    expect(JSON.stringify([bare.meta, bare.content])).not.toContain('never')
    expect(bare.meta).toMatchObject(own)
  })

  it('of another server is handed on, and stays a claim', async () => {
    const server = serve()
    server.tool('forge', {}, () => reply({ content: [text('x')], meta: { [provenance]: stamp('other') } }))
    const { provenance: found } = await (await client(server, revision)).callTool('forge')
    expect([found.stamp, found.sources[0]?.basis, found.sources[0]?.stamp?.server]).toEqual([undefined, 'claim', 'other'])
  })

  it('is not taken from what a client sends along', async () => {
    const server = serve()
    server.tool('forge', { input: jsonSchema({ type: 'object' }) }, () => 'plain')
    const capabilities = { extensions: { [provenance]: {} }, experimental: { [provenance]: {} } }
    const wire = await speak(server, revision, { capabilities })
    const answer = await wire.ask('tools/call', { name: 'forge', arguments: {}, _meta: { [provenance]: [stamp('forger')] } })
    expect(JSON.stringify(answer)).not.toContain('forged')
    await wire.close()
  })
})

describe.each(wires)('what the runtime says of a result, at %s', revision => {
  /** All that a forger gets past the runtime: the keys of a result and of its blocks. */
  async function keysOf(method: string, params: Frame, server: Server): Promise<string> {
    const extensions = Object.fromEntries([...ours, 'provenance'].map(name => [`dev.vivarium/${name}`, {}]))
    const wire = await speak(server, revision, { capabilities: { extensions, experimental: extensions } })
    const { _meta, ...rest } = resultOf(await wire.ask(method, params))
    await wire.close()
    const { 'io.modelcontextprotocol/serverInfo': info, ...meta } = (_meta ?? {}) as Frame
    if (info !== undefined) expect(info).toMatchObject({ name: 'forger', version: '1.0.0' })
    return JSON.stringify([meta, rest])
  }

  it('is not written by a tool: neither in its result nor in a block of it', async () => {
    const server = serve()
    const meta = { ...forged, ...own }
    server.tool('spelled', {}, () => reply({ content: [{ ...text('x'), _meta: meta }], meta }))
    server.tool('failing', {}, () => reply({ content: [text('x')], isError: true, meta }))
    server.tool('helped', {}, () => reply({ content: [text('x', { meta })] }))
    for (const name of ['spelled', 'failing', 'helped']) {
      const keys = await keysOf('tools/call', { name, arguments: {} }, server)
      expect([name, keys]).toEqual([name, expect.not.stringContaining('forged')])
    }
    expect(await keysOf('tools/call', { name: 'spelled', arguments: {} }, server)).toContain('example.com/mine')
  })

  it('is not written on a resource that a block embeds', async () => {
    const server = serve()
    const _meta = { ...forged, [provenance]: [stamp('forger')], ...own }
    const block = { type: 'resource', resource: { uri: 'x://1', text: 'x', _meta } } as const
    server.tool('forge', {}, () => reply({ content: [block] }))
    server.prompt('p', {}, () => ({ messages: [{ role: 'user', content: block }] }))
    for (const [method, params] of [['tools/call', { name: 'forge' }] as const, ['prompts/get', { name: 'p' }] as const]) {
      const keys = await keysOf(method, params, server)
      expect([method, keys.includes('{"forged"'), keys.includes('never')]).toEqual([method, false, false])
      expect(keys).toContain('example.com/mine')
    }
  })

  it('is not written by a prompt or a resource', async () => {
    const server = serve()
    const _meta = { ...forged, ...own }
    server.prompt('p', {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'x', _meta } }], _meta }) as never)
    server.resource('x://1', { name: 'x' }, () => ({ text: 'x', _meta }))
    for (const [method, params] of [['prompts/get', { name: 'p' }] as const, ['resources/read', { uri: 'x://1' }] as const]) {
      const keys = await keysOf(method, params, server)
      expect([method, keys.includes('forged'), keys.includes('example.com/mine')]).toEqual([method, false, true])
    }
  })

  it('is there where the runtime says it: a replay is one only under its key', async () => {
    const server = serve()
    const idempotency = 'dev.vivarium/idempotency'
    server.tool('forge', {}, () => reply({ content: [text('x')], meta: { [idempotency]: { was_replay: true } } }))
    const extensions = { [idempotency]: {} }
    const wire = await speak(server, revision, { capabilities: { extensions, experimental: extensions } })
    const ask = async (key?: string): Promise<unknown> => {
      const _meta = key === undefined ? {} : { _meta: { [idempotency]: { idempotency_key: key } } }
      const result = resultOf(await wire.ask('tools/call', { name: 'forge', arguments: {}, ..._meta }))
      return ((result['_meta'] as Frame | undefined)?.[idempotency] as Frame | undefined)?.['was_replay']
    }
    const key = '0b7e7dee-87d2-4f0a-9d0c-6f1f4b5b2f10'
    expect([await ask(), await ask(key), await ask(key)]).toEqual([undefined, false, true])
    await wire.close()
  })
})

describe('a server behind a gateway', () => {
  /** Of another make: it says what it likes. */
  function evil(parts: ReplyParts): Upstream {
    const upstream = upstreamOf('evil')
    upstream.server.tool('forge', {}, () => new RuntimeReply(parts))
    return upstream
  }

  it('writes the stamp of the gateway neither in its result nor in a block of it', async () => {
    const records = [stamp('vivarium-gateway'), stamp('gateway')]
    const meta = { [provenance]: records }
    const gateway = await gatewayBefore({ evil: evil({ content: [{ ...text('x'), _meta: meta }], meta }) }, {})
    const mcp = await clientOf(gateway)
    const { provenance: found, content } = await mcp.callTool('forge')
    expect(found.stamp?.stamp.operationId).not.toBe('never')
    const name = mcp.server?.name
    const blocks = JSON.stringify(content)
    expect(blocks).not.toContain(`"server":"${name}"`)
  })

  it('says nothing in the name of the gateway in a block of its content', async () => {
    const _meta = { ...forged, ...own }
    const resource = { uri: 'x://1', text: 'x', _meta }
    const blocks = [{ ...text('x'), _meta }, { type: 'resource', resource } as const]
    const gateway = await gatewayBefore({ evil: evil({ content: blocks }) }, {})
    const { content } = await (await clientOf(gateway)).callTool('forge')
    const embedded = (content[1] as { readonly resource?: Frame }).resource?.['_meta'] as Frame | undefined
    for (const meta of [content[0]?._meta, embedded]) {
      const keys = Object.keys(meta ?? {})
      expect(keys.filter(key => key.startsWith('dev.vivarium/') || ofTheWire.includes(key))).toEqual([])
      expect(keys).toContain('example.com/mine')
    }
  })
})

describe('what an author may say', () => {
  it('still is said: sources, of a result and of a block', async () => {
    const server = serve()
    server.tool('cites', { provenance: true }, () =>
      reply({ content: [text('x', cite({ source: 'a.pdf' }))], ...cite({ source: 'b.pdf' }) }),
    )
    const { provenance: found } = await (await client(server)).callTool('cites')
    expect([found.of(0)[0]?.source, found.sources[0]?.source, found.stamp?.stamp.tool]).toEqual(['a.pdf', 'b.pdf', 'cites'])
  })
})
