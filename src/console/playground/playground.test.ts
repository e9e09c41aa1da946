/** The playground: what a server offers, and calls at several revisions, by the API and against a real server in memory. */
import { describe, expect, it } from 'vitest'
import { playgroundWorld } from '../../../test/console/playground-console.ts'
import { fakeClock } from '../../testing/clock.ts'
import type { Call, Offer } from '../contract/index.ts'

describe('what is offered', () => {
  it('self names the target and the screens; no path takes a command or an address', async () => {
    const me = await (await playgroundWorld({ label: './shop.ts', again: './shop.ts' })).page()
    const { body } = await me.get('/self')
    expect(body).toMatchObject({
      kind: 'playground',
      name: './shop.ts',
      target: { again: './shop.ts' },
      screens: ['playground', 'traffic', 'approvals', 'logs'],
    })
    expect(body['resources']).not.toContain('/audit')
  })

  it('tools, resources, templates and prompts are listed in pages and shown whole with a schema for a form', async () => {
    const me = await (await playgroundWorld()).page()
    const first = (await me.get('/servers/shop/tools?limit=2')).body as { items: Offer[]; next: string }
    const rest = (await me.get(`/servers/shop/tools?after=${first.next}`)).body as { items: Offer[] }
    expect([...first.items, ...rest.items].map(({ name }) => name)).toEqual(['order', 'large', 'wait', 'ask', 'think'])
    expect(first.items[0]).toEqual({ kind: 'tool', name: 'order', description: 'Orders', destructive: false })
    expect((await me.get('/servers/shop/resources')).body).toMatchObject({
      items: [
        { kind: 'resource', name: 'note://1' },
        { kind: 'template', name: 'page://{number}' },
      ],
    })
    const tool = await me.get('/servers/shop/offer?kind=tool&item=order')
    expect(tool.body).toMatchObject({ definition: { name: 'order' }, input: { required: ['item'] }, completes: [] })
    const prompt = await me.get('/servers/shop/offer?kind=prompt&item=greet')
    expect(prompt.body).toMatchObject({ input: { properties: { name: { type: 'string' } }, required: ['name'] } })
    const template = await me.get(`/servers/shop/offer?kind=template&item=${encodeURIComponent('page://{number}')}`)
    expect(template.body).toMatchObject({ input: { required: ['number'] }, completes: ['number'] })
    expect((await me.get('/servers/shop/offer?kind=tool&item=none')).status).toBe(404)
  })

  it('a list is read again when the server says that it has changed, and the row of the server counts it', async () => {
    const { page, server } = await playgroundWorld()
    const me = await page()
    await expect.poll(async () => (await me.get('/servers')).body).toMatchObject({ items: [{ status: 'up', tools: 5 }] })
    server.tool('late', {}, () => 'late')
    await expect.poll(async () => (await me.get('/servers')).body).toMatchObject({ items: [{ tools: 6 }] })
  })
})

describe('calls', () => {
  it('are made at several revisions side by side, each with its result and its own connection', async () => {
    const me = await (await playgroundWorld()).page()
    const revisions = ['2026-07-28', '2025-06-18', '2024-11-05']
    const call = await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions })
    expect(call.runs.map(({ revision, state }) => [revision, state])).toEqual(revisions.map(each => [each, 'done']))
    for (const { result, ms } of call.runs) {
      expect(result).toMatchObject({ content: [{ type: 'text', text: '1 bread' }] })
      expect(ms).toBeGreaterThan(0)
    }
    expect(new Set(call.runs.map(({ connection }) => connection)).size).toBe(3)
    const known = (await me.get('/servers/shop/revisions')).body as { items: { revision: string; state: string }[] }
    expect(known.items.filter(({ state }) => state === 'spoken').map(({ revision }) => revision)).toEqual(revisions)
    const again = await me.called({ tool: 'order', arguments: { item: 'tea' }, revisions: ['2025-06-18'] })
    expect(again.runs[0]?.connection).toBe(call.runs[1]?.connection)
    expect(again.runs[0]?.openMs).toBeUndefined()
  })

  it('read resources, fill in templates and get prompts', async () => {
    const me = await (await playgroundWorld()).page()
    expect((await me.called({ uri: 'note://1' })).runs[0]?.result).toMatchObject({ contents: [{ text: 'a note' }] })
    const page = await me.called({ template: 'page://{number}', arguments: { number: '7' } })
    expect(page).toMatchObject({ kind: 'resource', name: 'page://7', runs: [{ result: { contents: [{ text: 'page 7' }] } }] })
    const prompt = await me.called({ prompt: 'greet', arguments: { name: 'Ann' } })
    expect(prompt.runs[0]?.result).toMatchObject({ messages: [{ content: { text: 'Hello Ann' } }] })
  })

  it('that fail say why, and arguments reach the server as they are', async () => {
    const me = await (await playgroundWorld()).page()
    const call = await me.called({ tool: 'none', arguments: { odd: [1, { deep: null }] } })
    expect(call.runs[0]).toMatchObject({ state: 'failed', problem: { code: '-32602' } })
    const [sent] = await me.frames('method=tools/call&way=out')
    const { body } = await me.get(`/frames/${sent?.n}`)
    expect(JSON.parse(String(body['text']))).toMatchObject({ params: { arguments: { odd: [1, { deep: null }] } } })
  })

  it('name their frames, and frames of other calls are not among them', async () => {
    const me = await (await playgroundWorld()).page()
    const [one, other] = await Promise.all([
      me.called({ tool: 'order', arguments: { item: 'bread' } }),
      me.called({ tool: 'order', arguments: { item: 'tea' } }),
    ])
    for (const [call, item] of [
      [one, 'bread'],
      [other, 'tea'],
    ] as const) {
      const frames = await me.frames(`call=${call.id}`)
      expect(frames.map(({ kind }) => kind)).toEqual(['request', 'result'])
      expect(frames[0]?.about).toContain(item)
      expect(call.runs[0]?.frames).toEqual({ first: frames[0]?.n, last: frames[1]?.n })
    }
  })

  it('with a long result give its beginning, and all of it on demand', async () => {
    const me = await (await playgroundWorld()).page()
    const call = await me.called({ tool: 'large' })
    const [run] = call.runs
    expect(run?.result).toBeUndefined()
    expect(run?.beginning?.length).toBe(65_536)
    const { body } = await me.get(`/calls/${call.id}/results/${run?.revision}`)
    expect(String(body['text']).length).toBe(run?.length)
  })

  it('are cancelled, and the server learns of it', async () => {
    const me = await (await playgroundWorld()).page()
    const { id } = (await me.post('/calls', { tool: 'wait', revisions: ['2025-06-18'] })).body as unknown as Call
    await expect.poll(async () => (await me.frames('method=tools/call')).length).toBe(1)
    expect((await me.remove(`/calls/${id}`)).status).toBe(204)
    await expect.poll(async () => (await me.get(`/calls/${id}`)).body).toMatchObject({ state: 'cancelled' })
    await expect.poll(async () => (await me.frames('method=notifications/cancelled')).length).toBe(1)
  })

  it('wait for a form that the server sends, which is filled in in the approvals', async () => {
    const me = await (await playgroundWorld()).page()
    const called = me.called({ tool: 'ask', revisions: ['2025-06-18'] })
    const { id, kind, digest, payload } = await me.waiting()
    expect([kind, payload]).toEqual(['form', expect.objectContaining({ message: 'How many?', schema: expect.anything() })])
    expect((await me.post(`/approvals/${id}`, { yes: true, digest, content: { loaves: 3 } })).status).toBe(200)
    expect(JSON.stringify((await called).runs[0]?.result)).toContain('3')
  })

  it('that ask a model get what a person writes in its place', async () => {
    const me = await (await playgroundWorld()).page()
    const called = me.called({ tool: 'think', revisions: ['2025-06-18'] })
    const { id, kind, digest, payload } = await me.waiting()
    expect([kind, payload]).toEqual(['sampling', expect.objectContaining({ stage: 'write', params: expect.anything() })])
    expect((await me.post(`/approvals/${id}`, { yes: true, digest, content: { text: 'Because.' } })).status).toBe(200)
    expect(JSON.stringify((await called).runs[0]?.result)).toContain('Because.')
    expect(JSON.stringify((await me.get('/log?event=console')).body)).toContain(`ann approved ${id}`)
  })

  it('leave a connection open for five minutes, but the preferred one for good', async () => {
    const clock = fakeClock()
    const { page } = await playgroundWorld({}, { clock })
    const me = await page()
    await me.called({ tool: 'order', arguments: { item: 'bread' }, revisions: ['2025-06-18'] })
    const open = async () => {
      const { items } = (await me.get('/connections')).body as { items: { revision?: string; open: boolean }[] }
      return items.filter(each => each.open).map(({ revision }) => revision)
    }
    await expect.poll(open).toEqual(['2025-06-18', '2026-07-28'])
    clock.advance(300_000)
    await expect.poll(open).toEqual(['2026-07-28'])
    expect((await me.called({ tool: 'order', arguments: { item: 'tea' }, revisions: ['2025-06-18'] })).state).toBe('done')
  })

  it.each([
    [{ tool: 'order', uri: 'note://1' }, 'tool'],
    [{ tool: 'order', timeout: 1 }, 'timeout'],
    [{ tool: 'order', revisions: ['1999-01-01'] }, 'revision'],
    [{ tool: 'order', revisions: [7] }, 'revisions'],
    [{ tool: 'order', command: 'rm' }, 'command'],
  ])('that are wrong are refused by name: %j', async (wish, member) => {
    const me = await (await playgroundWorld()).page()
    expect(await me.post('/calls', wish)).toMatchObject({ status: 400, body: { code: 'INVALID_INPUT', details: { member } } })
  })

  it('are for operators; who only views sees neither arguments nor results', async () => {
    const { page } = await playgroundWorld()
    const [me, eve] = [await page(), await page({ by: 'eve', roles: ['viewer'] })]
    expect(await eve.post('/calls', { tool: 'order' })).toMatchObject({ status: 403, body: { code: 'ROLE_REQUIRED' } })
    const { id, runs } = await me.called({ tool: 'order', arguments: { item: 'plan-b' } })
    const paths = [
      `/calls/${id}`,
      '/calls',
      `/frames?call=${id}`,
      `/frames/${runs[0]?.frames?.first}`,
      `/frames/${runs[0]?.frames?.last}`,
    ]
    for (const path of paths) {
      const { status, body } = await eve.get(path)
      expect([status, JSON.stringify(body)]).toEqual([200, expect.not.stringContaining('plan-b')])
    }
    expect(((await eve.get('/frames?text=plan-b')).body['items'] as unknown[]).length).toBe(0)
    expect((await eve.get(`/calls/${id}/results/${runs[0]?.revision}`)).status).toBe(403)
    const failed = await me.called({ tool: 'no plan-b', arguments: {} })
    expect(failed.runs[0]?.problem?.message).toContain('plan-b')
    const { runs: seen } = (await eve.get(`/calls/${failed.id}`)).body as unknown as Call
    expect(seen[0]?.problem).toEqual({ code: '-32602', message: 'The call failed.' })
    const log = JSON.stringify((await me.get('/log?event=console')).body)
    expect(log).toContain('ann called tool order of shop')
    expect(log).toContain('eve POST /calls refused ROLE_REQUIRED')
  })
})
