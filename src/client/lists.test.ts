import { describe, expect, it } from 'vitest'
import { type Frame, modernServer, Refusal, type Script, sessionServer, toolList } from '../../test/client/scripted-server.ts'
import { createServer } from '../server/index.ts'
import { fakeClock } from '../testing/clock.ts'
import { connectInMemory } from '../testing/connect.ts'
import type { ConnectOptions } from './api.ts'
import type { Client } from './client.ts'
import { connect } from './connect.ts'

async function open(script: Script, options: ConnectOptions = {}) {
  const server = modernServer(script, { tools: { listChanged: true } })
  return { server, mcp: await connect(server.connection, options) }
}

async function names(mcp: Client): Promise<string[]> {
  const all: string[] = []
  for await (const { name } of mcp.tools()) all.push(name)
  return all
}

/** Pages of a list, by cursor. */
const paged = (pages: Readonly<Record<string, Frame>>) => (params: Frame) => pages[String(params['cursor'] ?? 'first')]

describe('a list that the server does not have', () => {
  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const)('is empty at %s', async revision => {
    const server = createServer({ name: 's', version: '1' })
    await using mcp = await connectInMemory(server, { revision })
    for (const list of [mcp.tools(), mcp.prompts(), mcp.resources(), mcp.resourceTemplates()]) {
      expect(await list.next()).toEqual({ done: true, value: undefined })
    }
    await server.close()
  })

  it('though it said that it has, is empty too, so that the others can be had; a trace names it', async () => {
    const server = sessionServer({ 'tools/list': () => toolList({ name: 'a' }) }, { tools: {}, resources: {}, prompts: {} })
    const traced: unknown[] = []
    const onTrace = (event: string, detail: unknown) => event === 'list-missing' && traced.push(detail)
    await using mcp = await connect(server.connection, { onTrace })
    for (const list of [mcp.resources(), mcp.prompts(), mcp.resourceTemplates()])
      expect(await list.next()).toEqual({ done: true, value: undefined })
    expect(await names(mcp)).toEqual(['a'])
    expect(traced).toEqual([
      { method: 'resources/list', capability: 'resources' },
      { method: 'prompts/list', capability: 'prompts' },
    ])
  })

  it('of tools, though it said that it has them, is empty as well', async () => {
    await using mcp = await connect(sessionServer({}, { tools: {} }).connection)
    expect(await names(mcp)).toEqual([])
  })

  it('for another reason than that it does not know it is a failure', async () => {
    const down = () => {
      throw new Refusal(-32603, 'The database is down')
    }
    await using mcp = await connect(sessionServer({ 'resources/list': down }, { resources: {} }).connection)
    await expect(mcp.resources().next()).rejects.toMatchObject({ code: -32603 })
  })
})

describe('a list', () => {
  it('pages by itself, in order, and sends each cursor as it came', async () => {
    const pages = {
      first: { ...toolList({ name: 'a' }, { name: 'b' }), nextCursor: 'two' },
      two: { ...toolList(), nextCursor: '  three ' },
      '  three ': toolList({ name: 'c' }),
    }
    const { server, mcp } = await open({ 'tools/list': paged(pages) })
    await using _ = mcp
    expect(await names(mcp)).toEqual(['a', 'b', 'c'])
    expect(server.params('tools/list')).toEqual([{}, { cursor: 'two' }, { cursor: '  three ' }])
  })

  it('goes on with an empty cursor: only absence is the end (trap 29)', async () => {
    const pages = { first: { ...toolList({ name: 'a' }), nextCursor: '' }, '': toolList({ name: 'b' }) }
    const { server, mcp } = await open({ 'tools/list': paged(pages) })
    await using _ = mcp
    expect(await names(mcp)).toEqual(['a', 'b'])
    expect(server.params('tools/list')).toEqual([{}, { cursor: '' }])
  })

  it('ends with null, as some servers write absence', async () => {
    const { mcp } = await open({ 'tools/list': () => ({ ...toolList({ name: 'a' }), nextCursor: null }) })
    await using _ = mcp
    expect(await names(mcp)).toEqual(['a'])
  })

  it('fetches no page that nobody reads', async () => {
    const { server, mcp } = await open({ 'tools/list': () => ({ ...toolList({ name: 'a' }), nextCursor: 'more' }) })
    await using _ = mcp
    for await (const tool of mcp.tools()) if (tool.name === 'a') break
    expect(server.of('tools/list')).toHaveLength(1)
  })

  it('without end is given up after 64 pages (H5)', async () => {
    let page = 0
    const { server, mcp } = await open({
      'tools/list': () => ({ ...toolList({ name: `t${page}` }), nextCursor: String(++page) }),
    })
    await using _ = mcp
    await expect(names(mcp)).rejects.toThrow('more than 64 pages')
    expect(server.of('tools/list')).toHaveLength(64)
  })

  it('may have exactly 64 pages', async () => {
    let page = 0
    const last = () => (++page < 64 ? { nextCursor: 'x' } : {})
    const { mcp } = await open({ 'tools/list': () => ({ ...toolList({ name: `t${page}` }), ...last() }) })
    await using _ = mcp
    expect(await names(mcp)).toHaveLength(64)
  })

  it('of more than 10,000 entries is given up at the limit', async () => {
    const many = Array.from({ length: 6_000 }, (_, n) => ({ name: `t${n}` }))
    const { mcp } = await open({ 'tools/list': () => ({ ...toolList(...many), nextCursor: 'again' }) })
    await using _ = mcp
    let count = 0
    const read = async () => {
      for await (const __ of mcp.tools()) count++
    }
    await expect(read()).rejects.toThrow('more than 10000 tools')
    expect(count).toBe(10_000)
  })

  it('keeps to other limits where they are given', async () => {
    const endless = () => ({ ...toolList({ name: 'a' }, { name: 'b' }), nextCursor: 'more' })
    const pages = await open({ 'tools/list': endless }, { limits: { listPages: 2 } })
    await expect(names(pages.mcp)).rejects.toThrow('more than 2 pages')
    await pages.mcp.close()
    const items = await open({ 'tools/list': endless }, { limits: { listItems: 3 } })
    await expect(names(items.mcp)).rejects.toThrow('more than 3 tools')
    await items.mcp.close()
  })

  it.each([
    [{}],
    [{ tools: {} }],
    [{ tools: null }],
    [[]],
    [null],
    ['tools'],
    [{ tools: [], nextCursor: 7 }],
    [{ tools: [], nextCursor: {} }],
  ])('that is answered with %j is a broken answer, not an empty list', async result => {
    const { mcp } = await open({ 'tools/list': () => result })
    await using _ = mcp
    await expect(names(mcp)).rejects.toMatchObject({ kind: 'invalid-result', message: expect.stringContaining('tools/list') })
  })

  it.each([
    ['resources', 'resources/list'],
    ['resourceTemplates', 'resources/templates/list'],
    ['prompts', 'prompts/list'],
  ] as const)('of %s pages likewise', async (member, method) => {
    const pages = {
      first: { resultType: 'complete', [member]: [{ name: 'a', uri: 'x:a', uriTemplate: 'x:{a}' }], nextCursor: '2' },
      '2': { resultType: 'complete', [member]: [{ name: 'b', uri: 'x:b', uriTemplate: 'x:{b}' }] },
    }
    const { mcp } = await open({ [method]: paged(pages) })
    await using _ = mcp
    const all: string[] = []
    for await (const { name } of mcp[member]()) all.push(name)
    expect(all).toEqual(['a', 'b'])
  })
})

describe('what the server lets us keep', () => {
  const kept =
    (ttlMs: unknown, more: Frame = {}) =>
    () => ({ ...toolList({ name: 'a' }), ttlMs, cacheScope: 'private', ...more })

  it.each(['public', 'private'])('is kept for its time, whatever its scope: %s concerns shared caches only', async cacheScope => {
    const clock = fakeClock()
    const { server, mcp } = await open({ 'tools/list': kept(1_000, { cacheScope }) }, { clock })
    await using _ = mcp
    await names(mcp)
    clock.advance(999)
    expect(await names(mcp)).toEqual(['a'])
    expect(server.of('tools/list')).toHaveLength(1)
    clock.advance(1)
    await names(mcp)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it.each([[0], [-1], [undefined], ['1000'], [null]])('with ttlMs %j is not kept', async ttlMs => {
    const { server, mcp } = await open({ 'tools/list': kept(ttlMs) })
    await using _ = mcp
    await names(mcp)
    await names(mcp)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('for longer than a day is kept for a day', async () => {
    const clock = fakeClock()
    const { server, mcp } = await open({ 'tools/list': kept(1e15) }, { clock })
    await using _ = mcp
    await names(mcp)
    clock.advance(86_400_001)
    await names(mcp)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('goes when a change of it is announced, and only that goes', async () => {
    const prompts = () => ({ resultType: 'complete', prompts: [], ttlMs: 60_000, cacheScope: 'public' })
    const { server, mcp } = await open({ 'tools/list': kept(60_000), 'prompts/list': prompts })
    await using _ = mcp
    const read = async () => {
      await names(mcp)
      for await (const __ of mcp.prompts());
    }
    await read()
    await server.tell('notifications/tools/list_changed')
    await read()
    expect([server.of('tools/list').length, server.of('prompts/list').length]).toEqual([2, 1])
  })

  it('is not kept when a change is announced while it is under way', async () => {
    const { server, mcp } = await open({})
    await using _ = mcp
    server.on('tools/list', () => {
      void server.tell('notifications/tools/list_changed')
      return kept(60_000)()
    })
    await names(mcp)
    await names(mcp)
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('is kept by page and by what the caller adds to the request', async () => {
    const pages = { first: { ...kept(60_000)(), nextCursor: '2' }, '2': kept(60_000)() }
    const { server, mcp } = await open({ 'tools/list': paged(pages) })
    await using _ = mcp
    await names(mcp)
    await names(mcp)
    expect(server.of('tools/list')).toHaveLength(2)
    for await (const __ of mcp.tools({ meta: { 'example.com/tenant': 'b' } }));
    expect(server.of('tools/list')).toHaveLength(4)
  })

  it('of a resource goes with the update of it or of a part of it, and stays with that of another', async () => {
    const read = ({ uri }: Frame) => ({
      resultType: 'complete',
      contents: [{ uri, text: 't' }],
      ttlMs: 60_000,
      cacheScope: 'private',
    })
    const { server, mcp } = await open({ 'resources/read': read })
    await using _ = mcp
    const look = () => Promise.all(['x:/a', 'x:/b'].map(uri => mcp.readResource(uri)))
    await look()
    await server.tell('notifications/resources/updated', { uri: 'x:/a/part' })
    await look()
    expect(server.params('resources/read').map(({ uri }) => uri)).toEqual(['x:/a', 'x:/b', 'x:/a'])
  })

  it('is forgotten first-come when there is too much of it', async () => {
    const read = ({ uri }: Frame) => ({
      resultType: 'complete',
      contents: [{ uri, text: 't' }],
      ttlMs: 60_000,
      cacheScope: 'private',
    })
    const { server, mcp } = await open({ 'resources/read': read })
    await using _ = mcp
    for (let n = 0; n <= 256; n++) await mcp.readResource(`x:${n}`)
    await mcp.readResource('x:256')
    await mcp.readResource('x:0')
    expect(server.of('resources/read')).toHaveLength(258)
  })

  it('is a matter of the newest wire: an older server that says ttlMs means nothing we know of, but it is taken at its word', async () => {
    const server = sessionServer({ 'tools/list': kept(60_000) })
    await using mcp = await connect(server.connection)
    await names(mcp)
    await names(mcp)
    expect(server.of('tools/list')).toHaveLength(1)
  })
})
