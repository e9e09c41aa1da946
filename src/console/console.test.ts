/** The API of the console: every route with every role, what the resources say, and who answers what. */
import { describe, expect, it } from 'vitest'
import { consoleWorld } from '../../test/console/gateway-console.ts'
import { upstreamOf } from '../../test/gateway/world.ts'

const ask = { name: 'careful', tool: 'pay', do: 'ask', by: 'operator' } as const
const deny = { name: 'no-etc', tool: 'pay', args: { to: 'mallory' }, do: 'deny' } as const

describe('resources', () => {
  it('self says what the process is, which paths exist, and who I am', async () => {
    const { page } = await consoleWorld({ servers: { bank: upstreamOf() } })
    const me = await page()
    const { body } = await me.get('/self')
    expect(body).toMatchObject({ kind: 'gateway', screens: expect.arrayContaining(['approvals']), session: { by: 'ann' } })
    expect(body['resources']).toContain('/approvals/:id')
    expect(body['resources']).not.toContain('/frames')
    expect((await me.get('/session')).body).toMatchObject({ roles: ['viewer', 'operator', 'approver'] })
  })

  it('servers say their state, what they offer, and the last lines of standard error', async () => {
    const { page, observe } = await consoleWorld({ servers: { bank: upstreamOf() } })
    observe.options.onStderr?.('bank', 'warming up')
    const me = await page()
    expect((await me.get('/servers')).body).toMatchObject({ items: [{ name: 'bank', status: 'up', tools: 3, held: 0 }] })
    const { body } = await me.get('/servers/bank')
    expect(body).toMatchObject({ stderr: [{ text: 'warming up' }] })
    expect(body['items']).toContainEqual({ kind: 'tool', name: 'pay', own: 'pay' })
    expect(await me.get('/servers/none')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
  })

  it('traffic, clients and budgets count calls', async () => {
    const clients = { local: { budget: { calls: 9, per: '1h' } as const } }
    const { page, client } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [deny], clients })
    await client.callTool('pay', {})
    await client.callTool('bare', {})
    await client.callTool('pay', { to: 'mallory' })
    const me = await page()
    const { items } = (await me.get('/traffic?by=each')).body as { items: { rows: unknown[] }[] }
    expect(items[0]?.rows).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ server: 'bank', tool: 'pay', client: 'local', calls: 1, failures: 0, refused: 1 }),
        expect.objectContaining({ tool: 'bare', calls: 1, failures: 1 }),
      ]),
    )
    expect((await me.get('/clients')).body).toMatchObject({
      items: [{ name: 'local', calls: 2, refused: 1, refusals: [{ why: 'no-etc', times: 1 }], budgets: [{ name: 'local.0' }] }],
    })
    expect((await me.get('/budgets')).body).toMatchObject({ items: [{ who: 'local', unit: 'calls', used: 2, most: 9 }] })
  })

  it('audit is searched newest first in pages, and its chain is proven by a job', async () => {
    const { page, client } = await consoleWorld({ servers: { bank: upstreamOf() } })
    for (let n = 0; n < 5; n++) await client.callTool('pay', { n })
    const me = await page()
    const first = (await me.get('/audit?tool=pay&limit=2')).body as { items: { position: number }[]; next: string }
    const rest = (await me.get(`/audit?tool=pay&limit=10&after=${first.next}`)).body as typeof first
    expect([first.items.length, rest.items.length, rest.next]).toEqual([2, 3, undefined])
    expect(first.items[0]?.position).toBeGreaterThan(rest.items[0]?.position ?? 0)
    expect((await me.get('/audit/proof')).status).toBe(204)
    expect(await me.post('/audit/proof')).toMatchObject({ status: 202, body: { kind: 'proof', by: 'ann' } })
    await expect.poll(async () => (await me.get('/audit/proof')).body['state']).toBe('done')
    expect((await me.get('/audit/proof')).body).toMatchObject({ outcome: { ok: true } })
  })

  it('faults are the mistakes of the last reading of the config, with their place and what to write', async () => {
    const { page, observe } = await consoleWorld({ servers: { bank: upstreamOf() } })
    const me = await page()
    expect((await me.get('/faults')).body).toEqual({ items: [] })
    const place = { file: 'gateway.yaml', line: 3 }
    const fault = { ...place, rule: 'config', message: 'There is no member "colour"', fix: 'Remove it' }
    observe.observer.setFaults([fault])
    expect((await me.get('/faults')).body).toEqual({ items: [fault] })
    observe.observer.setFaults([])
    expect((await me.get('/faults')).body).toEqual({ items: [] })
  })

  it('an unchanged answer is not sent twice', async () => {
    const me = await (await consoleWorld({ servers: { bank: upstreamOf() } })).page()
    const etag = (await me.get('/servers')).headers.get('etag') ?? ''
    expect((await me.get('/servers', { 'if-none-match': etag })).status).toBe(304)
  })

  it.each([
    ['/servers?limit=0', 'limit'],
    ['/servers?limit=1001', 'limit'],
    ['/servers?colour=red', 'colour'],
    ['/audit?after=x', 'after'],
    ['/log?level=loud', 'level'],
    ['/traffic?by=moon', 'by'],
    ['/servers?limit=1&limit=2', 'limit'],
  ])('a wrong parameter is refused by name: %s', async (path, member) => {
    const me = await (await consoleWorld({})).page()
    expect(await me.get(path)).toMatchObject({ status: 400, body: { code: 'INVALID_INPUT', details: { member } } })
  })

  it('a retry is written into the audit log with who asked for it', async () => {
    const { page, gateway } = await consoleWorld({ servers: { bank: upstreamOf() } })
    expect((await (await page()).post('/servers/bank/retry')).status).toBe(204)
    const { items } = await gateway.audit.search({ by: 'ann', server: 'bank' })
    expect(items).toMatchObject([{ outcome: 'success', more: { method: 'console POST /servers/:name/retry' } }])
  })
})

describe('approvals', () => {
  it('are shown with exact arguments and a digest, and a yes lets the call go on', async () => {
    const bank = upstreamOf()
    const { page, client, gateway } = await consoleWorld({ servers: { bank }, rules: [ask], approvals: { wait: '60s' } })
    const me = await page()
    const call = client.callTool('pay', { to: 'alice' })
    const approval = await me.waiting()
    expect(approval).toMatchObject({ kind: 'call', server: 'bank', tool: 'pay', rule: 'careful', payload: { to: 'alice' } })
    const answer = { yes: true, digest: approval.digest, reason: 'ordered' }
    expect(await me.post(`/approvals/${approval.id}`, answer)).toMatchObject({ status: 200, body: { yes: true, by: 'ann' } })
    expect((await call).text).toBe('pay 1')
    expect((await me.get(`/approvals/${approval.id}`)).body).toMatchObject({ answered: { yes: true, by: 'ann' } })
    const { items } = await gateway.audit.search({ by: 'ann', outcome: 'approved' })
    expect(items).toMatchObject([{ more: { approval: approval.id, reason: 'ordered' } }])
  })

  it('are answered once: page and terminal race, and the second learns who and when', async () => {
    const { page, client, gateway } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const [ann, bob] = [await page(), await page({ by: 'bob' })]
    await client.callTool('pay', {})
    const { id, digest } = await ann.waiting()
    const [one, other, terminal] = await Promise.all([
      ann.post(`/approvals/${id}`, { yes: true, digest }),
      bob.post(`/approvals/${id}`, { yes: false, digest }),
      gateway.refuse(id, 'terminal'),
    ])
    const statuses = [one.status, other.status, terminal ? 200 : 409]
    expect(statuses.filter(status => status === 200)).toHaveLength(1)
    const late = await ann.post(`/approvals/${id}`, { yes: true, digest })
    const winner = ['ann', 'bob', 'terminal'][statuses.indexOf(200)]
    expect(late).toMatchObject({
      status: 409,
      body: { code: 'ALREADY_ANSWERED', details: { by: winner, at: expect.any(Number) } },
    })
  })

  it('are not answered for another digest', async () => {
    const { page, client, gateway } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const me = await page()
    await client.callTool('pay', {})
    const { id } = await me.waiting()
    const wrong = { yes: true, digest: 'sha256:other' }
    expect(await me.post(`/approvals/${id}`, wrong)).toMatchObject({ status: 409, body: { code: 'DIGEST_MISMATCH' } })
    expect(await gateway.approvals()).toHaveLength(1)
    expect(await me.post('/approvals/nothing', wrong)).toMatchObject({ status: 404 })
  })

  it('of changed tools show the definition before and after', async () => {
    const bank = upstreamOf()
    const { page } = await consoleWorld({ servers: { bank } })
    bank.server.tool('extra', { description: 'new' }, () => 'new')
    const me = await page()
    const approval = await me.waiting()
    expect(approval).toMatchObject({ kind: 'tool', tool: 'extra', after: { name: 'extra' }, rule: 'pins' })
    expect((await me.post(`/approvals/${approval.id}`, { yes: true, digest: approval.digest })).status).toBe(200)
    await expect.poll(async () => (await me.get('/servers')).body).toMatchObject({ items: [{ tools: 4, held: 0 }] })
  })

  it('with long arguments are listed without them and shown whole by their id', async () => {
    const { page, client } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    const note = 'x'.repeat(300_000)
    await client.callTool('pay', { note })
    const me = await page()
    const { id, payload, digest, length, refuseOnly } = await me.waiting()
    expect([payload, refuseOnly, length > 300_000]).toEqual([undefined, undefined, true])
    expect((await me.waiting()).digest).toBe(digest)
    expect((await me.get(`/approvals/${id}`)).body).toMatchObject({ approval: { digest, payload: { note } } })
    expect((await me.post(`/approvals/${id}`, { yes: true, digest })).status).toBe(200)
  })

  it('are not for those who only view: neither the answer nor the arguments, unless payloads says so', async () => {
    const { page, client, gateway } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] })
    await client.callTool('pay', { secretive: 'plan-b' })
    const viewer = await page({ by: 'eve', roles: ['viewer'] })
    const { id, digest, payload } = await viewer.waiting()
    expect(payload).toBeUndefined()
    expect(JSON.stringify((await viewer.get(`/approvals/${id}`)).body)).not.toContain('plan-b')
    expect(await viewer.post(`/approvals/${id}`, { yes: true, digest })).toMatchObject({
      status: 403,
      body: { code: 'ROLE_REQUIRED', details: { role: 'approver' } },
    })
    expect((await gateway.audit.search({ by: 'eve', outcome: 'refused' })).items).toMatchObject([
      { more: { code: 'ROLE_REQUIRED' } },
    ])
    const open = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] }, { payloads: 'viewer' })
    await open.client.callTool('pay', { to: 'alice' })
    expect((await (await open.page({ roles: ['viewer'] })).waiting()).payload).toEqual({ to: 'alice' })
  })

  it('with fourEyes are not given to calls of nobody, and no is always possible', async () => {
    const { page, client } = await consoleWorld({ servers: { bank: upstreamOf() }, rules: [ask] }, { fourEyes: true })
    await client.callTool('pay', {})
    const me = await page()
    const { id, digest } = await me.waiting()
    expect(await me.post(`/approvals/${id}`, { yes: true, digest })).toMatchObject({ status: 403, body: { code: 'FOUR_EYES' } })
    expect((await me.post(`/approvals/${id}`, { yes: false, digest })).status).toBe(200)
  })
})
