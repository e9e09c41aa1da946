/** Inbox, states, explanations, audit and news of a host through the API, and every route of a host with every role. */
import { describe, expect, it } from 'vitest'
import { pageHeaders } from '../../../test/console/gateway-console.ts'
import { call, hostWorld, notesServer, shopServer, target, told } from '../../../test/console/host-console.ts'
import { scripted } from '../../host/models/scripted.ts'
import type { ExplainNode } from '../contract/explain.ts'
import type { InboxEvent } from '../contract/inbox.ts'
import type { Role } from '../contract/session.ts'
import type { StateNode } from '../contract/state.ts'
import { hostRoutes } from './routes.ts'

const allow = { otherwise: { tool: 'allow', push: 'allow' } } as const
const live = { enable: ['*'] }
const add = (text: string) => call('add_note', { text })

async function notesWorld(script: Parameters<typeof scripted>[0]) {
  const servers = { notes: { target: target(notesServer()), live } }
  const world = await hostWorld({ model: scripted(script), policy: allow, servers })
  return { ...world, me: await world.page() }
}

describe('states', () => {
  it('have checkpoints newest first, content, differences, and go back', async () => {
    const { me, host } = await notesWorld([add('a'), 'One.', add('b'), 'Two.', add('c'), 'Three.'])
    for (const text of ['1', '2', '3']) await told(me, text)
    const sets = (await me.get('/state')).body['items'] as { head: string }[]
    expect(sets).toMatchObject([{ server: 'notes', featureSet: 'notes.edit', checkpoints: 3, rollsBack: true }])
    const first = (await me.get('/state/notes/notes.edit/tree?limit=2')).body as { items: StateNode[]; next: string }
    const rest = (await me.get(`/state/notes/notes.edit/tree?limit=2&after=${first.next}`)).body as typeof first
    expect([first.items.length, rest.items.length, rest.next]).toEqual([2, 1, undefined])
    expect(first.items[0]).toMatchObject({ checkpoint: sets[0]?.head, current: true, state: 'kept' })
    expect(first.items[0]?.parent).toBe(first.items[1]?.checkpoint)
    const [newest, middle] = first.items.map(({ checkpoint }) => encodeURIComponent(checkpoint))
    expect((await me.get(`/state/notes/notes.edit/at?checkpoint=${middle}`)).body['value']).toEqual({ notes: ['a', 'b'] })
    expect((await me.get(`/state/notes/notes.edit/diff?from=${middle}&to=${newest}`)).body).toMatchObject({
      steps: [{ op: 'add', path: '/notes/-', value: 'c' }],
      count: 1,
    })
    expect((await me.post('/state/notes/notes.edit/rollback', { to: first.items[1]?.checkpoint })).body).toMatchObject({
      success: true,
    })
    expect(await host.state.before('notes', 'notes.edit')).toMatchObject({ state: { notes: ['a', 'b'] } })
    expect((await me.post('/state/notes/notes.edit/rollback', { to: 'nowhere' })).body).toMatchObject({
      success: false,
      why: { code: 'CHECKPOINT_NOT_FOUND' },
    })
  })

  it('are shown without content to who only views, and those that do not exist are not found', async () => {
    const { me, page } = await notesWorld([add('secret-a'), 'One.', add('secret-b'), 'Two.'])
    for (const text of ['1', '2']) await told(me, text)
    const viewer = await page({ roles: ['viewer'] })
    const { items } = (await viewer.get('/state/notes/notes.edit/tree')).body as { items: StateNode[] }
    const [newest, oldest] = items.map(({ checkpoint }) => encodeURIComponent(checkpoint))
    const at = (await viewer.get(`/state/notes/notes.edit/at?checkpoint=${newest}`)).body
    expect(Object.keys(at)).toEqual(['checkpoint', 'length'])
    const { body } = await viewer.get(`/state/notes/notes.edit/diff?from=${oldest}&to=${newest}`)
    expect(body).toMatchObject({ count: 1, steps: [{ op: 'add' }] })
    expect(JSON.stringify(body)).not.toContain('secret')
    expect((await me.get('/state/notes/none/tree')).status).toBe(404)
    expect((await me.get('/state/notes/notes.edit/at?checkpoint=none')).status).toBe(404)
    expect((await me.get('/state/notes/notes.edit/at')).body).toMatchObject({ details: { member: 'checkpoint' } })
  })
})

describe('the inbox', () => {
  it('lists events newest first with their state, the turn they woke, and explains them', async () => {
    const { server, news } = shopServer()
    const model = scripted([call('create', { text: 'tea' }), 'Noted.', 'Noted too.'])
    const { page, host } = await hostWorld({ model, policy: allow, servers: { shop: { target: target(server), live } } })
    await host.open()
    const me = await page()
    await news.push({ content: 'Tea is out', eventId: 'first' })
    const inbox = async () => (await me.get('/inbox')).body as { items: InboxEvent[]; counts: unknown }
    await expect.poll(async () => (await inbox()).counts).toMatchObject({ done: 1, waiting: 0 })
    await news.push({ content: 'Milk is out', eventId: 'second' })
    await expect.poll(async () => (await inbox()).counts).toMatchObject({ done: 2, waiting: 0 })
    const { items } = await inbox()
    expect(items.map(({ eventId, preview }) => [eventId, preview])).toEqual([
      ['second', 'Milk is out'],
      ['first', 'Tea is out'],
    ])
    const { body } = await me.get('/inbox/shop/first')
    expect(body).toMatchObject({
      state: 'done',
      attempts: [{ n: 1, outcome: 'done' }],
      turn: { conversation: 'inbox/shop', seq: 0 },
    })
    expect((await me.get('/inbox?state=dead')).body).toMatchObject({ items: [], counts: { done: 2 } })
    expect((await me.get('/conversations/inbox%2Fshop/turns')).body['items']).toMatchObject([
      { from: { kind: 'event', eventId: 'second' }, preview: 'Milk is out' },
      { from: { kind: 'event', eventId: 'first' } },
    ])
    const story = (await me.get('/explain/first')).body
    const nodes = story['nodes'] as ExplainNode[]
    expect(story['sentence']).toMatch(/^An event of shop was accepted\. The turn was answered, after a call of shop\.create/)
    expect(nodes.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['event', 'turn', 'call']))
    expect(story['edges']).toContainEqual({ from: 'event:first', to: `turn:${items[1]?.inferenceId}`, kind: 'caused' })
    expect((await me.get(`/explain/${items[1]?.inferenceId}`)).body['joined']).toContain('first')
    expect((await me.get('/explain/nothing')).status).toBe(404)
    expect(await me.post('/inbox/shop/first/replay')).toMatchObject({ status: 409, body: { code: 'NOT_DEAD' } })
  })

  it('tries a dead event again, and says why it died', async () => {
    const { server, news } = shopServer()
    const model = scripted([{ error: new Error('no model today') }, 'Noted.'])
    const inbox = { attempts: 1 }
    const { page, host } = await hostWorld({ model, policy: allow, inbox, servers: { shop: { target: target(server), live } } })
    await host.open()
    const me = await page()
    await news.push({ content: 'Tea is out', eventId: 'only' })
    await expect.poll(async () => (await me.get('/inbox/shop/only')).body['state']).toBe('dead')
    expect((await me.get('/inbox/shop/only')).body).toMatchObject({
      why: { code: 'EVENT_DEAD' },
      attempts: [{ outcome: 'failed' }],
    })
    expect(await me.post('/inbox/shop/only/replay')).toMatchObject({ status: 200, body: { eventId: 'only' } })
    await expect.poll(async () => (await me.get('/inbox/shop/only')).body['state']).toBe('done')
    const { items } = await host.searchAudit({ by: 'ann', target: 'console' })
    expect(items.map(({ more }) => more?.['detail'])).toContain('POST /inbox/:server/:event/replay')
  })
})

it('self, servers, audit and its proof, budgets, spent and traffic are those of the host', async () => {
  const { server } = shopServer()
  const budgets = [{ name: 'daily', counts: 'tokens', most: 1_000_000, per: '1d', user: true, by: 'all' }] as const
  const model = scripted([call('mail', { text: 'hi' }), 'Sent.'])
  const { page } = await hostWorld(
    { model, policy: allow, budgets, servers: { shop: { target: target(server), live } } },
    { name: 'desk', chat: { examples: ['Try this'] } },
  )
  const me = await page()
  await told(me, 'Write')
  expect((await me.get('/self')).body).toMatchObject({
    kind: 'host',
    name: 'desk',
    durable: false,
    screens: expect.arrayContaining(['chat']),
  })
  expect((await me.get('/host')).body).toEqual({ model: 'scripted', conversation: 'main', examples: ['Try this'] })
  expect((await me.get('/servers')).body).toMatchObject({ items: [{ name: 'shop', status: 'up', tools: 5, era: 'stateful' }] })
  expect((await me.get('/audit?event=tool&server=shop&tool=mail')).body).toMatchObject({
    items: [{ event: 'tool', target: 'mail', outcome: 'success', more: { server: 'shop', tool: 'mail' } }],
  })
  expect((await me.post('/audit/proof')).status).toBe(202)
  await expect.poll(async () => (await me.get('/audit/proof')).body).toMatchObject({ state: 'done', outcome: { ok: true } })
  expect((await me.get('/budgets')).body).toMatchObject({
    items: [{ unit: 'tokens', most: 1_000_000, who: 'all', per: 86_400_000 }],
  })
  expect(((await me.get('/budgets')).body['items'] as { used: number }[])[0]?.used).toBeGreaterThan(0)
  expect((await me.get('/spent')).body).toMatchObject({ items: [{ requests: 2 }] })
  expect((await me.get('/traffic?by=tool')).body).toMatchObject({
    items: [{ rows: [{ server: 'shop', tool: 'mail', calls: 1 }] }],
  })
  expect((await me.get('/clients')).status).toBe(404)
})

it('a turn is told as it is made: accepted, its parts and spans, its end; without words to who only views', async () => {
  const { server } = shopServer()
  const model = scripted([call('create', { text: 'tea' }), 'It is made.'])
  const { page, console: running } = await hostWorld({
    model,
    policy: allow,
    servers: { shop: { target: target(server), live } },
  })
  const me = await page()
  const read = async (cookie: string) => {
    const stream = await fetch(`${running.url}api/1/events?topics=turn,part,span`, { headers: { cookie } })
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const reading = (async () => {
      for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) text += next.value
    })()
    reading.catch(() => undefined)
    await expect.poll(() => text).toContain('event: hello')
    return { text: () => text, stop: () => reader?.cancel() }
  }
  const viewer = await page({ by: 'eve', roles: ['viewer'] })
  const [mine, eves] = [await read(me.cookie), await read(viewer.cookie)]
  await told(me, 'Make tea')
  for (const stream of [mine, eves]) {
    await expect.poll(stream.text).toMatch(/"status":"done","at":/)
    const events = stream
      .text()
      .split('\n\n')
      .filter(each => each.includes('event: '))
    const parts = events
      .filter(each => each.includes('event: part'))
      .map(each => JSON.parse(each.split('data: ')[1] ?? '') as { part: { type: string } })
    expect(parts.map(({ part }) => part.type)).toEqual([
      ...['prompt', 'inference', 'inference', 'call', 'result', 'inference', 'text', 'inference', 'answer'],
    ])
    const spans = events
      .filter(each => each.includes('event: span'))
      .map(each => JSON.parse(each.split('data: ')[1] ?? '') as { id: string; to?: number })
    const open = new Set(spans.map(({ id }) => id))
    expect([...open].sort()).toEqual(['call.0', 'inference.0', 'inference.1', 'turn'])
    for (const id of open) expect(spans.findLast(span => span.id === id)?.to).toBeGreaterThan(0)
  }
  expect(mine.text()).toContain('It is made.')
  for (const words of ['It is made.', 'Make tea', '"tea"']) expect(eves.text()).not.toContain(words)
  await Promise.all([mine.stop(), eves.stop()])
})

it('events, checkpoints and heads are told, and what the host refuses has its reason', async () => {
  const { server, news } = shopServer()
  const model = scripted(['Noted.', add('a'), 'One.'])
  const servers = { shop: { target: target(server), live }, notes: { target: target(notesServer()), live } }
  const { page, host, console: running } = await hostWorld({ model, policy: allow, servers })
  await host.open()
  const me = await page()
  const stream = await fetch(`${running.url}api/1/events?topics=inbox,checkpoint,head,audit`, { headers: { cookie: me.cookie } })
  let text = ''
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  const reading = (async () => {
    for (let next = await reader?.read(); next !== undefined && !next.done; next = await reader?.read()) text += next.value
  })()
  reading.catch(() => undefined)
  await expect.poll(() => text).toContain('event: hello')
  await news.push({ content: 'Tea is out', eventId: 'first' })
  await expect.poll(() => text).toMatch(/event: inbox\ndata: .*"eventId":"first".*"state":"done"/)
  await told(me, 'Note it')
  await expect.poll(() => text).toMatch(/event: checkpoint\ndata: .*"featureSet":"notes.edit".*"current":true/)
  expect(text).toMatch(/event: head\ndata: .*"featureSet":"notes.edit"/)
  expect(text).toMatch(/event: audit\ndata: .*"event":"tool".*"target":"add_note"/)
  await reader?.cancel()
  expect(await me.post('/conversations/main/turns', { text: '/nothing here' })).toMatchObject({
    status: 409,
    body: { code: 'REFUSED', details: { code: expect.any(String) } },
  })
  expect(await me.post('/conversations/main/turns', { text: 'x', attach: [{ server: 1 }] })).toMatchObject({ status: 400 })
})

/** Every route of a host, as a request that fits its form. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /conversations/:conversation/turns': { text: 'Hello' },
  'POST /conversations/:conversation/turns/:seq/undo': { digest: 'sha256:none' },
  'POST /state/:server/:set/rollback': { to: 'none' },
}

it('every route of a host is for its role alone, for nobody without a session, and each refusal is written down', async () => {
  const { page, console: running, host } = await hostWorld({ model: scripted('Yes.', { again: true }) })
  const routes = Object.entries(hostRoutes({ host, turns: undefined as never, facts: { conversation: 'main', examples: [] } }))
  const { resources } = (await (await page()).get('/self')).body as { resources: readonly string[] }
  for (const [key] of routes) expect(resources).toContain(key.split(' ')[1])
  const roles: readonly Role[] = ['viewer', 'operator', 'approver']
  const sessions = await Promise.all(roles.map(async role => [role, await page({ by: role, roles: [role] })] as const))
  const refused: string[] = []
  for (const [key, { role }] of routes) {
    const [method = '', pattern = ''] = key.split(' ')
    const path = pattern.replace(/:seq|:call/g, '0').replace(/:\w+/g, 'none')
    const send = { method, ...(method !== 'GET' && { body: JSON.stringify(bodies[key] ?? {}) }) }
    const headers = method === 'GET' ? {} : pageHeaders(running)
    expect([key, (await fetch(`${running.url}api/1${path}`, { ...send, headers })).status]).toEqual([key, 401])
    for (const [mine, { cookie }] of sessions) {
      const { status } = await fetch(`${running.url}api/1${path}`, { ...send, headers: { ...headers, cookie } })
      expect([key, mine, status === 403]).toEqual([key, mine, mine !== role])
      expect([key, status < 500]).toEqual([key, true])
      if (mine !== role && method !== 'GET') refused.push(`${mine} ${key}`)
    }
  }
  const written = async () => {
    const { items } = await host.searchAudit({ code: 'ROLE_REQUIRED', limit: 1_000 })
    return items.map(({ more }) => `${more?.['by']} ${more?.['detail']}`).sort()
  }
  await expect.poll(written).toEqual(refused.sort())
})
