import { afterEach, describe, expect, it } from 'vitest'
import { confirmation, consentWorld, metaIn, places, problems } from '../../../../test/spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Server, ServerOptions } from '../../../server/index.ts'

const world = consentWorld()
let tickets: string[] = []
afterEach(async () => {
  tickets = []
  await world.close()
})

const titled = jsonSchema<{ title: string }>({
  type: 'object',
  properties: { title: { type: 'string' } },
  required: ['title'],
  additionalProperties: false,
})

function tracker(kind: StoreKind, options: Partial<ServerOptions> = { facade: true }): Server {
  const server = world.serve(kind, options)
  const undo = { tool: 'delete', arguments: ({ args }: { args: { title: string } }) => args }
  server.tool('create', { input: titled, undo }, ({ title }) => {
    if (title === 'bad') throw new Error('There is no room')
    tickets.push(title)
    return { created: title }
  })
  server.tool('delete', { input: titled, idempotent: true }, ({ title }) => {
    tickets = tickets.filter(one => one !== title)
    return 'gone'
  })
  const payment = jsonSchema<{ transaction_id: string }>({
    type: 'object',
    properties: { transaction_id: { type: 'string' } },
    required: ['transaction_id'],
  })
  server.tool('refund', { input: payment }, args => JSON.stringify(args))
  server.tool('count', { annotations: { readOnlyHint: true } }, () => `${tickets.length}`)
  return server
}

const call = async (wire: Wire, name: string, args: Frame = {}, meta?: Frame): Promise<Frame> =>
  wire.ask('tools/call', { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) })
const structured = (frame: Frame): Frame => resultOf(frame)['structuredContent'] as Frame
const problemIn = (frame: Frame): Frame => {
  expect(resultOf(frame)['isError']).toBe(true)
  return structured(frame)['error'] as Frame
}
async function listed(wire: Wire): Promise<ReadonlyMap<string, Frame>> {
  const { tools } = resultOf(await wire.ask('tools/list')) as { tools: Frame[] }
  return new Map(tools.map(tool => [String(tool['name']), tool]))
}
const argumentsOf = (tool: Frame = {}): string[] => {
  const { properties = {} } = tool['inputSchema'] as { properties?: Frame }
  return Object.keys(properties)
}

describe.each(places)('the facade at %s on %s', (revision, kind) => {
  it('lists the methods of what the server offers as tools, and their keys as arguments of the tools that can use them', async () => {
    const wire = await speak(tracker(kind), revision)
    const tools = await listed(wire)
    expect([...tools.keys()].sort()).toEqual([
      ...['begin_transaction', 'commit_transaction', 'count', 'create', 'delete', 'get_call_status', 'get_transaction', 'refund'],
      'rollback_transaction',
    ])
    expect(argumentsOf(tools.get('create'))).toEqual(['title', 'transaction_id', 'idempotency_key'])
    expect(argumentsOf(tools.get('count'))).toEqual([])
  })

  it('E9-1: gives the reference behind a link to whom it was given, and to nobody else', async () => {
    const references = { url: 'http://127.0.0.1:9/mcp', inlineBytes: 0 }
    const server = tracker(kind, { facade: ['references'], references })
    server.tool('export', {}, (_, ctx) => ctx.reference('id,title', { mime: 'text/csv', name: 'tickets.csv' }))
    const wire = await speak(server, revision)
    expect([...(await listed(wire)).keys()]).toContain('export_result_ref')
    const [link] = resultOf(await call(wire, 'export'))['content'] as [Frame]
    expect(JSON.stringify(link)).not.toContain('signature')
    const id = String(link['uri']).slice('ref:'.length)
    for (const ref_id of [id, link['uri']]) {
      const reference = structured(await call(wire, 'export_result_ref', { ref_id }))
      expect(reference).toMatchObject({ ref_id: id, origin_server: 'tracker', mime_type: 'text/csv', size_bytes: 8 })
      expect(reference['access_url']).toMatch(/^http:\/\/127\.0\.0\.1:9\/mcp\/references\/.+\?signature=/)
      const answer = await server.fetch(new Request(String(reference['access_url'])))
      expect([answer.status, await answer.text()]).toEqual([200, 'id,title'])
    }
    for (const ref_id of ['nobody', `${id}/../${id}`, ''])
      expect(problemIn(await call(wire, 'export_result_ref', { ref_id }))['code']).toBe('RESOURCE_NOT_FOUND')
    const other = await speak(server, revision, { principal: 'another' })
    expect(problemIn(await call(other, 'export_result_ref', { ref_id: id }))['code']).toBe('RESOURCE_NOT_FOUND')
    // Clients that declare nothing have the tool alone.
    expect((await wire.ask('references/get', { ref_id: id }))['error']).toBeDefined()
  })

  it('is off by default: no tool is listed, and a tool that takes no other arguments refuses them', async () => {
    const wire = await speak(tracker(kind, {}), revision)
    const tools = await listed(wire)
    expect([...tools.keys()]).toEqual(['create', 'delete', 'refund', 'count'])
    expect(argumentsOf(tools.get('create'))).toEqual(['title'])
    expect(errorOf(await call(wire, 'begin_transaction')).code).toBe(-32602)
    expect(resultOf(await call(wire, 'create', { title: 'a', transaction_id: 't' }))['isError']).toBe(true)
    expect(tickets).toEqual([])
  })

  it('an argument that a tool has itself stays its own, under the same name', async () => {
    const wire = await speak(tracker(kind), revision)
    expect(argumentsOf((await listed(wire)).get('refund'))).toEqual(['transaction_id', 'idempotency_key'])
    expect(textOf(await call(wire, 'refund', { transaction_id: 'p-7', idempotency_key: 'k' }))).toBe('{"transaction_id":"p-7"}')
  })

  it('a tool that takes whatever it is given gets all of it', async () => {
    const server = tracker(kind)
    const schemas = [
      { type: 'object' },
      { type: 'object', properties: {}, additionalProperties: true },
      { type: 'object', properties: {}, patternProperties: { _id$: {} }, additionalProperties: false },
      { type: 'object', properties: {}, anyOf: [{ required: ['transaction_id'] }, {}] },
    ]
    for (const [at, schema] of schemas.entries())
      server.tool(`open${at}`, { input: jsonSchema<Frame>(schema) }, args => JSON.stringify(args))
    const wire = await speak(server, revision)
    await listed(wire)
    for (const at of schemas.keys())
      expect(textOf(await call(wire, `open${at}`, { transaction_id: 'p-7' }))).toBe('{"transaction_id":"p-7"}')
  })

  it('what takes a step back gets all that it was promised', async () => {
    const server = tracker(kind)
    const input = jsonSchema<Frame>({ type: 'object', properties: { title: {} } })
    const seen: Frame[] = []
    const undo = { tool: 'unmake', arguments: () => ({ title: 'a', idempotency_key: 'mine' }) }
    server.tool('make', { input: titled, undo }, () => 'made')
    server.tool('unmake', { input }, args => void seen.push(args))
    const wire = await speak(server, revision)
    const { transaction_id } = structured(await call(wire, 'begin_transaction'))
    await call(wire, 'make', { title: 'a', transaction_id })
    const report = structured(await call(wire, 'rollback_transaction', { transaction_id }))
    expect([report['status'], seen]).toEqual(['rolled_back', [{ title: 'a', idempotency_key: 'mine' }]])
  })

  it('carries a transaction from its beginning to its rollback', async () => {
    const wire = await speak(tracker(kind), revision)
    const { transaction_id } = structured(await call(wire, 'begin_transaction'))
    for (const title of ['a', 'b'])
      expect(structured(await call(wire, 'create', { title, transaction_id }))).toEqual({ created: title })
    expect(structured(await call(wire, 'get_transaction', { transaction_id }))['steps']).toHaveLength(2)
    expect(tickets).toEqual(['a', 'b'])
    const report = structured(await call(wire, 'rollback_transaction', { transaction_id, reason: 'changed my mind' }))
    expect(report).toMatchObject({ status: 'rolled_back', steps_compensated: [{ step_id: '2' }, { step_id: '1' }] })
    expect(tickets).toEqual([])
    const late = await call(wire, 'create', { title: 'c', transaction_id })
    expect(problemIn(late)['code']).toBe('TRANSACTION_CONFLICT')
    expect(tickets).toEqual([])
  })

  it('a commit keeps what was done', async () => {
    const wire = await speak(tracker(kind), revision)
    const transaction_id = 'mine'
    await call(wire, 'begin_transaction', { transaction_id })
    expect(problemIn(await call(wire, 'begin_transaction', { transaction_id }))['code']).toBe('TRANSACTION_CONFLICT')
    await call(wire, 'create', { title: 'a', transaction_id })
    expect(structured(await call(wire, 'commit_transaction', { transaction_id }))).toMatchObject({ steps_completed: 1 })
    expect(tickets).toEqual(['a'])
  })

  it('tells of a problem in words and as structured content, and of bad arguments like of any other', async () => {
    const wire = await speak(tracker(kind), revision)
    const unknown = await call(wire, 'commit_transaction', { transaction_id: 'none' })
    expect(problemIn(unknown)).toMatchObject({ code: 'RESOURCE_NOT_FOUND', category: 'permanent' })
    expect(textOf(unknown)).toContain('transaction')
    expect(problemIn(await call(wire, 'commit_transaction', { transaction_id: 'no id' }))['code']).toBe('INVALID_INPUT')
    expect(problemIn(await call(wire, 'create', { title: 'a', transaction_id: 7 }))['code']).toBe('INVALID_INPUT')
    expect(problemIn(await call(wire, 'create', { title: 'a', idempotency_key: 'no key' }))['code']).toBe('INVALID_INPUT')
    const failing = await call(wire, 'create', { title: 'bad', idempotency_key: 'k' })
    expect(problemIn(failing)).toMatchObject({ code: 'SERVER_ERROR', message: 'There is no room' })
    expect(tickets).toEqual([])
  })

  it('a key as an argument does a call once, and outside of what is compared', async () => {
    const wire = await speak(tracker(kind), revision)
    for (let times = 0; times < 2; times++) await call(wire, 'create', { title: 'a', idempotency_key: 'k' })
    expect(tickets).toEqual(['a'])
    expect(problemIn(await call(wire, 'create', { title: 'b', idempotency_key: 'k' }))['code']).toBe('IDEMPOTENCY_CONFLICT')
    expect(structured(await call(wire, 'get_call_status', { idempotency_key: 'k' }))).toMatchObject({ status: 'done' })
  })

  it('an argument and `_meta` that say different things are refused, and nothing runs', async () => {
    const wire = await speak(tracker(kind), revision)
    const meta = { 'dev.vivarium/idempotency': { idempotency_key: 'other' } }
    const refused = await call(wire, 'create', { title: 'a', idempotency_key: 'k' }, meta)
    expect(problemIn(refused)['code']).toBe('INVALID_INPUT')
    expect(tickets).toEqual([])
  })

  it('a transaction is nobody else’s, whoever asks through the facade', async () => {
    const server = tracker(kind)
    const ada = await speak(server, revision, { principal: 'ada' })
    const bob = await speak(server, revision, { principal: 'bob' })
    const { transaction_id } = structured(await call(ada, 'begin_transaction'))
    expect(problemIn(await call(bob, 'get_transaction', { transaction_id }))['code']).toBe('RESOURCE_NOT_FOUND')
    expect(problemIn(await call(bob, 'create', { title: 'a', transaction_id }))['code']).toBe('RESOURCE_NOT_FOUND')
    expect(tickets).toEqual([])
  })

  it('permissions are checked and negotiated, and what was granted goes as an argument', async () => {
    const grant = ({ scopes }: { scopes: readonly string[] }) => scopes.filter(scope => scope !== 'admin')
    const server = world.serve(kind, { facade: ['permissions'], permissions: { grant } })
    server.tool('close', { scopes: ['write'] }, () => 'closed')
    const wire = await speak(server, revision)
    expect(argumentsOf((await listed(wire)).get('close'))).toEqual(['session_token'])
    const before = structured(await call(wire, 'check_permissions', { tool: 'close', scopes_held: ['write'] }))
    expect(before).toMatchObject({ allowed: false, missing_scopes: ['write'] })
    expect(resultOf(await call(wire, 'close'))['isError']).toBe(true)
    const asked = { requested_scopes: ['write', 'admin'], justification: 'to clean up' }
    const granted = structured(await call(wire, 'negotiate_scopes', asked))
    expect(granted).toMatchObject({ granted_scopes: ['write'], denied_scopes: [{ scope: 'admin' }] })
    const session_token = (granted['session'] as Frame)['token']
    expect(structured(await call(wire, 'check_permissions', { tool: 'close', session_token }))).toEqual({ allowed: true })
    expect(textOf(await call(wire, 'close', { session_token }))).toBe('closed')
    const other = await speak(server, revision, { principal: 'bob' })
    expect(problemIn(await call(other, 'close', { session_token }))['code']).toBe('SCOPE_INSUFFICIENT')
  })

  it('E15-9: events are subscribed to, polled for and let go, and nothing is pushed to who has no ear for it', async () => {
    const server = world.serve(kind, { facade: true, events: { pollEvery: '2s', perCaller: 2 } })
    const wire = await speak(server, revision)
    expect((await listed(wire)).has('poll_events')).toBe(false)
    const happened = server.event('happened', { payload: jsonSchema({ type: 'object', properties: { n: {}, odd: {} } }) })
    expect([...(await listed(wire)).keys()]).toEqual(
      expect.arrayContaining(['subscribe_events', 'poll_events', 'unsubscribe_events']),
    )
    const refused = structured(await call(wire, 'subscribe_events', { events: ['nonsense'] }))
    expect(refused).toMatchObject({ status: 'denied', supported_events: ['happened'] })
    const wish = { events: ['happened'], filter: { odd: true } }
    const { subscription_id, ...told } = structured(await call(wire, 'subscribe_events', wish))
    expect(told).toMatchObject({ status: 'active', supported: false, poll_interval_seconds: 2 })
    for (let n = 1; n <= 4; n++) await happened.emit({ n, odd: n % 2 === 1 })
    const polled = async (args: Frame): Promise<unknown[]> => {
      const { events } = structured(await call(wire, 'poll_events', args)) as { events: { payload: Frame }[] }
      return events.map(({ payload }) => payload['n'])
    }
    const first = structured(await call(wire, 'poll_events', { subscription_id, limit: 2 }))
    expect(first).toMatchObject({ events: [{ payload: { n: 1 } }], more: true })
    expect(await polled({ subscription_id, cursor: first['cursor'] })).toEqual([3])
    expect(await polled({ events: ['happened'], cursor: told['cursor'] })).toEqual([1, 2, 3, 4])
    const other = await speak(server, revision, { principal: 'bob' })
    expect(problemIn(await call(other, 'poll_events', { subscription_id }))['code']).toBe('INVALID_INPUT')
    for (let i = 0; i < 2; i++)
      expect(structured(await call(wire, 'unsubscribe_events', { subscription_id }))).toMatchObject({ status: 'cancelled' })
    expect(problemIn(await call(wire, 'poll_events', { subscription_id }))['message']).toContain('Give params.events')
    expect(wire.heard.some(({ method }) => method === 'notifications/event')).toBe(false)
  })

  it('E15-8, E15-12: who polls has so many subscriptions and no more, and one thing under one id', async () => {
    const server = world.serve(kind, { facade: ['events'], events: { perCaller: 2 } })
    server.event('happened', {})
    const wire = await speak(server, revision)
    const wish = { events: ['happened'], subscription_id: 'mine/1' }
    const asked = async (args: Frame) => structured(await call(wire, 'subscribe_events', args))
    expect(await asked(wish)).toMatchObject({ status: 'active' })
    expect(await asked(wish)).toMatchObject({ status: 'active' })
    expect(await asked({ ...wish, filter: { a: 1 } })).toMatchObject({ status: 'denied' })
    expect(await asked({ ...wish, subscription_id: 'mine/2' })).toMatchObject({ status: 'active' })
    expect(await asked({ ...wish, subscription_id: 'mine/3' })).toMatchObject({
      status: 'denied',
      reason: expect.stringContaining('events.perCaller'),
    })
    await world.clock.forward(3_700_000)
    expect(problemIn(await call(wire, 'poll_events', { subscription_id: 'mine/1' }))['code']).toBe('INVALID_INPUT')
    expect(await asked({ ...wish, subscription_id: 'mine/3' })).toMatchObject({ status: 'active' })
  })

  it('E4-3: events with scopes are heard through the facade with what was negotiated there, and not without', async () => {
    const grant = ({ scopes }: { scopes: readonly string[] }) => scopes
    const server = world.serve(kind, { facade: true, permissions: { grant } })
    const audited = server.event('audited', { scopes: ['audit'] })
    const wire = await speak(server, revision)
    const wish = { events: ['audited'] }
    expect(structured(await call(wire, 'subscribe_events', wish))).toMatchObject({ status: 'denied' })
    const { session } = structured(await call(wire, 'negotiate_scopes', { requested_scopes: ['audit'] })) as { session: Frame }
    const session_token = session['token']
    const { subscription_id } = structured(await call(wire, 'subscribe_events', { ...wish, session_token }))
    await audited.emit({ n: 1 })
    expect(structured(await call(wire, 'poll_events', { subscription_id, session_token }))['events']).toHaveLength(1)
    expect(problemIn(await call(wire, 'poll_events', { subscription_id }))['message']).toContain('audit')
  })

  it('E6-10: a refusal offers its token to the host of every client, and no argument of the model’s is one', async () => {
    const server = world.serve(kind, { facade: true })
    server.tool('wipe', { input: titled, confirm: { message: 'Wipe {title}?' } }, ({ title }) => `wiped ${title}`)
    const wire = await speak(server, revision)
    const refused = await call(wire, 'wipe', { title: 'a' })
    const { confirmation_token, status } = metaIn(refused, confirmation)
    expect(status).toBe('confirmation_required')
    expect(textOf(refused)).not.toContain(confirmation_token)
    const argued = await call(wire, 'wipe', { title: 'a', confirmation_token, user_confirmed: true })
    expect(resultOf(argued)['isError']).toBe(true)
    const said = { [confirmation]: { confirmation_token, user_confirmed: true } }
    expect(textOf(await call(wire, 'wipe', { title: 'a' }, said))).toBe('wiped a')
  })

  it('what an author offers under such a name is the author’s, and later tools are dressed as well', async () => {
    const server = world.serve(kind, { facade: true })
    server.tool('get_transaction', { description: 'Of the bank' }, () => 'from the bank')
    const wire = await speak(server, revision)
    expect([...(await listed(wire)).keys()]).toEqual(['get_transaction', 'get_call_status'])
    server.tool('create', { input: titled, undo: { tool: 'create' } }, () => 'done')
    const tools = await listed(wire)
    expect(argumentsOf(tools.get('create'))).toEqual(['title', 'transaction_id', 'idempotency_key'])
    expect(argumentsOf(tools.get('get_transaction'))).toEqual(['transaction_id', 'idempotency_key'])
    expect(tools.has('begin_transaction')).toBe(true)
    expect(textOf(await call(wire, 'get_transaction'))).toBe('from the bank')
  })

  it('a client that declares problems gets them where it looks for them, too', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: { extensions: { [problems]: {} } } })
    const refused = await call(wire, 'commit_transaction', { transaction_id: 'none' })
    expect(metaIn(refused, problems)).toEqual(problemIn(refused))
  })
})

it('a part that there is none of is a mistake, told at once', () => {
  expect(() => world.serve('memory', { facade: ['telepathy' as never] })).toThrow(/facade has no part "telepathy"/)
  expect(() => world.serve('memory', { profile: 'other' as never })).toThrow(/profile is "other"/)
})
