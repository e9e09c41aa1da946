/** The chat of a host through the API: what a page reads and does, before real servers, on both kinds of store. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { call, hostWorld, notesServer, shopServer, target, told } from '../../../test/console/host-console.ts'
import { scripted } from '../../host/models/scripted.ts'
import type { TurnSpan } from '../contract/turn-spans.ts'

async function sqlite(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-console-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'host.db')}`
}

const allow = { otherwise: { tool: 'allow' } } as const
const live = { enable: ['*'] }

describe.each([
  ['memory', async () => 'memory:'],
  ['SQLite', sqlite],
])('on %s', (_, store) => {
  it('a message becomes a turn with prompt, inferences, calls, cost, answer, and spans with true times', async () => {
    const { server } = shopServer()
    const model = scripted([call('create', { text: 'tea' }), 'It is made.'])
    const { page } = await hostWorld({
      store: await store(),
      model,
      policy: allow,
      servers: { shop: { target: target(server), live } },
    })
    const me = await page()
    const before = Date.now()
    const { turn } = await told(me, 'Make tea')
    expect(turn).toMatchObject({
      ...{ conversation: 'main', seq: 0, from: { kind: 'user' }, status: 'done', text: 'Make tea', answer: 'It is made.' },
      prompt: { model: 'scripted', sections: expect.arrayContaining([expect.objectContaining({ from: 'tools' })]) },
      inferences: [
        { n: 0, calls: [0] },
        { n: 1, calls: [] },
      ],
      calls: [{ n: 0, server: 'shop', tool: 'create', status: 'done', arguments: { text: 'tea' }, result: expect.any(String) }],
      cost: { inferences: 2 },
    })
    const spans = turn['spans'] as TurnSpan[]
    expect(spans[0]).toMatchObject({ id: 'turn', kind: 'turn', status: 'ok' })
    expect(spans.filter(({ kind }) => kind !== 'waiting').map(({ id }) => id)).toEqual([
      ...['turn', 'inference.0', 'call.0', 'inference.1'],
    ])
    for (const { from, to = 0 } of spans) {
      expect(from).toBeGreaterThanOrEqual(before)
      expect(to).toBeGreaterThanOrEqual(from)
    }
  })

  it('conversations and turns are listed newest first, in pages', async () => {
    const { page } = await hostWorld({ store: await store(), model: scripted('Yes.', { again: true }) })
    const me = await page()
    for (const text of ['one', 'two', 'three']) await told(me, text)
    await told(me, 'elsewhere', 'inbox/shop')
    const { items } = (await me.get('/conversations')).body as { items: { id: string; turns: number }[] }
    expect(items.map(({ id, turns }) => [id, turns]).sort()).toEqual([
      ['inbox/shop', 1],
      ['main', 3],
    ])
    const first = (await me.get('/conversations/main/turns?limit=2')).body as { items: { text: string }[]; next: string }
    expect(first.items.map(({ text }) => text)).toEqual(['three', 'two'])
    const rest = (await me.get(`/conversations/main/turns?limit=2&after=${first.next}`)).body as typeof first
    expect([rest.items.map(({ text }) => text), rest.next]).toEqual([['one'], undefined])
    expect((await me.get('/conversations/none/turns')).body).toEqual({ items: [] })
    expect(await me.get('/conversations/main/turns/9')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
  })

  it('undo shows what it will do, and does exactly that: what stays has its reason', async () => {
    const { server, made } = shopServer()
    const notes = notesServer()
    const model = scripted([
      {
        calls: [
          ...call('create', { text: 'tea' }).calls,
          ...call('mail', { text: 'hi' }).calls,
          ...call('add_note', { text: 'x' }).calls,
        ],
      },
      'Done.',
    ])
    const servers = { shop: { target: target(server), live }, notes: { target: target(notes), live } }
    const { page, host } = await hostWorld({ store: await store(), model, policy: allow, servers, limits: { parallelCalls: 1 } })
    const me = await page()
    const { path } = await told(me, 'Do three things')
    expect(made).toEqual(['tea'])
    const plan = (await me.get(`${path}/undo`)).body
    expect(plan).toMatchObject({
      complete: false,
      turns: [0],
      steps: [
        { call: 2, tool: 'add_note', outcome: 'planned', by: 'rollback', to: null },
        { call: 1, tool: 'mail', outcome: 'stays', why: { code: 'NO_WAY_BACK' } },
        {
          call: 0,
          tool: 'create',
          outcome: 'planned',
          by: 'compensation',
          compensation: { tool: 'remove', arguments: { text: 'tea' } },
        },
      ],
    })
    expect(made).toEqual(['tea'])
    expect(await me.post(`${path}/undo`, { digest: 'sha256:other' })).toMatchObject({
      status: 409,
      body: { code: 'DIGEST_MISMATCH' },
    })
    const { status, body } = await me.post(`${path}/undo`, { digest: plan['digest'] })
    expect([status, body]).toMatchObject([
      200,
      {
        complete: false,
        steps: [
          { call: 2, outcome: 'undone', by: 'rollback' },
          { call: 1, outcome: 'stays', why: { code: 'NO_WAY_BACK' } },
          { call: 0, outcome: 'undone', by: 'compensation' },
        ],
      },
    ])
    expect(made).toEqual([])
    expect((await me.get(path)).body).toMatchObject({ status: 'undone' })
    expect((await me.get(`${path}/undo`)).body).toMatchObject({ again: true, turns: [], complete: false })
    const { items } = await host.searchAudit({ by: 'ann', target: 'console', outcome: 'success' })
    expect(items.map(({ more }) => more?.['detail'])).toContain('POST /conversations/:conversation/turns/:seq/undo')
  })
})

it('a call waits for an answer of the page; the turn says who gave it and how long it took', async () => {
  const { server } = shopServer()
  const model = scripted([call('mail', { text: 'hi' }), 'Sent.'])
  const policy = { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] } as const
  const { page, host } = await hostWorld({ model, policy, servers: { shop: { target: target(server), live } } })
  const me = await page()
  const sent = await me.post('/conversations/main/turns', { text: 'Write' })
  const approval = await me.waiting()
  expect(approval).toMatchObject({
    kind: 'call',
    server: 'shop',
    tool: 'mail',
    rule: 'careful',
    payload: { text: 'hi' },
    conversation: 'main',
  })
  expect(approval.inferenceId).toBe(sent.body['inferenceId'])
  expect(approval.lasts).toEqual(['once', '1h'])
  expect((await me.post(`/approvals/${approval.id}`, { yes: true, digest: approval.digest })).status).toBe(200)
  await expect.poll(async () => (await me.get('/conversations/main/turns/0')).body['status']).toBe('done')
  const { body } = await me.get('/conversations/main/turns/0')
  expect(body).toMatchObject({ calls: [{ status: 'done', asked: { yes: true, by: 'ann' } }] })
  expect((body['spans'] as TurnSpan[]).find(({ id }) => id === 'question.0')).toMatchObject({
    parent: 'call.0',
    note: 'yes by ann',
  })
  expect((await host.audit({ kind: 'approval' })).notes).toMatchObject([{ outcome: 'success', by: 'ann' }])
  expect((await me.get('/grants')).body).toEqual({ items: [] })
})

it('a yes for an hour is a grant, which an approver takes back', async () => {
  const { server } = shopServer()
  const model = scripted([call('mail', { text: 'hi' }), 'Sent.', call('mail', { text: 'hi' }), 'Sent.'])
  const policy = { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] } as const
  const { page } = await hostWorld({ model, policy, servers: { shop: { target: target(server), live } } })
  const me = await page()
  await me.post('/conversations/main/turns', { text: 'Write' })
  const { id, digest } = await me.waiting()
  await me.post(`/approvals/${id}`, { yes: true, digest, for: '1h' })
  await expect.poll(async () => (await me.get('/conversations/main/turns/0')).body['status']).toBe('done')
  const { items } = (await me.get('/grants')).body as { items: { id: string; server: string }[] }
  expect(items).toMatchObject([{ server: 'shop', effect: 'allow', kind: 'tool', covers: 'call' }])
  const path = `/grants/shop/${items[0]?.id}`
  expect((await (await page({ roles: ['viewer', 'operator'] })).remove(path)).status).toBe(403)
  expect((await me.remove(path)).status).toBe(204)
  expect((await me.remove(path)).status).toBe(404)
  await me.post('/conversations/main/turns', { text: 'Again' })
  expect((await me.waiting()).tool).toBe('mail')
})

it('a feature set is enabled by a yes of the page, and stays so', async () => {
  const { server } = shopServer()
  const { page, host } = await hostWorld({ model: scripted([]), servers: { shop: { target: target(server) } } })
  const me = await page()
  const { id, digest, kind, untilChanged, payload } = await me.waiting()
  expect([kind, untilChanged, payload]).toMatchObject(['set', true, { kind: 'set', featureSet: 'shop.news' }])
  expect((await me.post(`/approvals/${id}`, { yes: true, digest, for: 'once' })).status).toBe(200)
  await expect.poll(() => host.server('shop')?.live?.featureSets.get('shop.news')?.enabled).toBe(true)
  await expect.poll(async () => (await me.get('/grants')).body['items']).toMatchObject([{ kind: 'set', effect: 'allow' }])
})

it('a form of a server is filled in the page', async () => {
  const { server } = shopServer()
  const { page } = await hostWorld({
    model: scripted([call('ask'), 'Good.']),
    policy: allow,
    servers: { shop: { target: target(server), live } },
  })
  const me = await page()
  await me.post('/conversations/main/turns', { text: 'Ask me' })
  const { id, digest, kind, payload } = await me.waiting()
  expect([kind, payload]).toMatchObject(['form', { message: 'How many?', schema: { type: 'object' } }])
  expect((await me.post(`/approvals/${id}`, { yes: true, digest })).body).toMatchObject({ details: { member: 'content' } })
  expect((await me.post(`/approvals/${id}`, { yes: true, digest, content: { count: 'many' } })).body).toMatchObject({
    message: expect.stringContaining('count'),
  })
  expect((await me.post(`/approvals/${id}`, { yes: true, digest, content: { count: 3 } })).status).toBe(200)
  await expect.poll(async () => (await me.get('/conversations/main/turns/0')).body['status']).toBe('done')
  expect((await me.get('/conversations/main/turns/0')).body).toMatchObject({
    calls: [{ result: expect.stringContaining('accept {"count":3}') }],
  })
})

it('a turn is stopped, and one that has ended cannot be', async () => {
  const model = scripted([{ text: 'Slow.', latencyMs: 600_000 }])
  const { page } = await hostWorld({ model })
  const me = await page()
  await me.post('/conversations/main/turns', { text: 'Wait' })
  await expect.poll(async () => ((await me.get('/conversations/main/turns/0')).body['inferences'] as unknown[]).length).toBe(1)
  const { status, spans } = (await me.get('/conversations/main/turns/0')).body as { status: string; spans: TurnSpan[] }
  expect(status).toBe('running')
  expect(spans.filter(span => span.status === 'open').map(({ id }) => id)).toEqual(['turn', 'inference.0'])
  expect((await me.post('/conversations/main/turns/0/cancel')).status).toBe(204)
  await expect.poll(async () => (await me.get('/conversations/main/turns/0')).body['status']).toBe('cancelled')
  expect(await me.post('/conversations/main/turns/0/cancel')).toMatchObject({ status: 409, body: { code: 'TURN_ENDED' } })
})

it('who only views sees that there are turns, and nothing of what is said in them', async () => {
  const { server } = shopServer()
  const model = scripted([call('create', { text: 'a-secret-word' }), 'a-secret-word'])
  const { page } = await hostWorld({ model, policy: allow, servers: { shop: { target: target(server), live } } })
  await told(await page(), 'a-secret-word')
  const viewer = await page({ by: 'eve', roles: ['viewer'] })
  const paths = ['/conversations', '/conversations/main/turns', '/conversations/main/turns/0', '/conversations/main/turns/0/undo']
  const all = await Promise.all(
    [...paths, '/conversations/main/turns/0/calls/0', '/audit', '/inbox', '/state'].map(path => viewer.get(path)),
  )
  for (const { status, body } of all) {
    expect(status).toBe(200)
    expect(JSON.stringify(body)).not.toContain('a-secret-word')
  }
  expect(all[2]?.body).toMatchObject({ reduced: true, calls: [{ tool: 'create', status: 'done' }] })
})
