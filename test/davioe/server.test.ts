import { afterEach, describe, expect, test } from 'vitest'
import { connectInMemory } from '../../src/testing/index.ts'
import { confirmation, consentWorld, metaIn, problems } from '../spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, type Wire } from '../spec/wire.ts'
import { ticketServer } from './tickets.ts'

const world = consentWorld()
afterEach(() => world.close())

const transactions = 'dev.vivarium/transactions'
const idempotency = 'dev.vivarium/idempotency'

/** The requests of that implementation's script, by their numbers there: what lies beside the arguments comes last. */
async function begin() {
  const held = ['read:tickets', 'write:tickets']
  const shop = ticketServer(options => world.serve('memory', options))
  const wire = await speak(shop.server, '2025-11-25', { principal: 'ada', scopes: held })
  const call = (name: string, args: Frame = {}, beside: Frame = {}) =>
    wire.ask('tools/call', { name, arguments: args, ...beside })
  return { ...shop, wire, call, held }
}

const value = (frame: Frame): Frame => resultOf(frame)['structuredContent'] as Frame
const replayed = (frame: Frame): unknown => metaIn(frame, idempotency)['was_replay']
const problemOf = (frame: Frame): Frame => {
  expect(resultOf(frame)['isError']).toBe(true)
  return metaIn(frame, problems)
}

describe('the script of the other implementation, played to a server with its profile and the facade', () => {
  test('requests 6 and 7: what is allowed is decided here, and an unknown tool is no matter of rights', async () => {
    const { call } = await begin()
    const checked = value(await call('check_permissions', { tool: 'delete_ticket', scopes_held: ['delete:tickets'] }))
    expect(checked).toMatchObject({ allowed: false, missing_scopes: ['delete:tickets'] })
    expect(errorOf(await call('nonexistent_tool')).code).toBe(-32602)
  })

  test('requests 8 and 9: a search finds, and a hint beside it keeps nothing from being done', async () => {
    const { call } = await begin()
    const hinted = await call('search_tickets', {}, { intent: 'Find the newest' })
    expect(value(hinted)).toMatchObject({ total_count: 3 })
    expect(value(await call('search_tickets', { status: 'open' }))).toMatchObject({ total_count: 1 })
  })

  test('requests 10 to 12: a key beside the arguments is honoured; for another call it is a conflict', async () => {
    const { call, tickets } = await begin()
    const first = await call('create_ticket', { title: 'A' }, { idempotency_key: 'k1' })
    const again = await call('create_ticket', { title: 'A' }, { idempotency_key: 'k1' })
    expect([replayed(first), replayed(again), value(again)]).toEqual([false, true, value(first)])
    const other = await call('create_ticket', { title: 'DIFFERENT' }, { idempotency_key: 'k1' })
    expect(problemOf(other)['code']).toBe('IDEMPOTENCY_CONFLICT')
    expect(tickets.size).toBe(4)
  })

  test('requests 13 and 14: a key in _meta without a prefix is one too', async () => {
    const { call, tickets } = await begin()
    await call('create_ticket', { title: 'B' }, { _meta: { idempotency_key: 'k2' } })
    expect(replayed(await call('create_ticket', { title: 'B' }, { _meta: { idempotency_key: 'k2' } }))).toBe(true)
    expect(tickets.size).toBe(4)
  })

  test('requests 15 and 16: a key that can be none, and a title that is missing, are refused', async () => {
    const { call, tickets } = await begin()
    expect(errorOf(await call('create_ticket', { title: 'x' }, { idempotency_key: 'has space!' })).code).toBe(-32602)
    expect(problemOf(await call('create_ticket', {}))['code']).toBe('INVALID_INPUT')
    expect(tickets.size).toBe(3)
  })

  test('requests 18 to 26: a transaction by tools; a step of one that is unknown does nothing', async () => {
    const { call, tickets, deleted } = await begin()
    const transaction_id = 'tx-1'
    expect(value(await call('begin_transaction', { transaction_id }))).toMatchObject({ status: 'begun', transaction_id })
    expect(problemOf(await call('begin_transaction', { transaction_id }))['code']).toBe('TRANSACTION_CONFLICT')
    const steps = [
      await call('create_ticket', { title: 's1' }, { transaction_id }),
      await call('create_ticket', { title: 's2' }, { transaction_id }),
    ]
    const made = steps.map(step => (value(step)['ticket'] as Frame)['id'])
    expect(metaIn(steps[0] as Frame, transactions)).toMatchObject({
      transaction_id,
      compensation: { tool: 'withdraw_ticket', parameters: { ticket_id: made[0] } },
    })
    const orphan = await call('create_ticket', { title: 'orphan' }, { transaction_id: 'tx-unknown' })
    expect([problemOf(orphan)['code'], tickets.size]).toEqual(['RESOURCE_NOT_FOUND', 5])
    const report = value(await call('rollback_transaction', { transaction_id, reason: 'test' }))
    expect(report).toMatchObject({
      status: 'rolled_back',
      steps_compensated: [{ status: 'compensated' }, { status: 'compensated' }],
    })
    expect([deleted, tickets.size]).toEqual([made.toReversed(), 3])
    // Asked again it says the same, and does nothing more.
    expect(value(await call('rollback_transaction', { transaction_id }))).toEqual(report)
    expect(deleted).toHaveLength(2)
    await call('begin_transaction', { transaction_id: 'tx-2' })
    const committed = value(await call('commit_transaction', { transaction_id: 'tx-2' }))
    expect(committed).toMatchObject({ status: 'committed', transaction_id: 'tx-2', steps_completed: 0 })
  })

  test('requests 27 to 30: without the scope, and without a token of this server, nothing is deleted', async () => {
    const { call, tickets, held } = await begin()
    const forbidden = errorOf(await call('delete_ticket', { ticket_id: 'PROJ-2' }))
    expect(forbidden.data?.[problems]).toMatchObject({
      code: 'SCOPE_INSUFFICIENT',
      category: 'auth_required',
      details: { missing_scopes: ['delete:tickets'] },
    })
    held.push('delete:tickets')
    const asked = await call('delete_ticket', { ticket_id: 'PROJ-1' })
    expect(metaIn(asked, confirmation)).toMatchObject({
      status: 'confirmation_required',
      confirmation_message: expect.stringContaining('for good'),
      risk_level: 'destructive',
    })
    const claimed = await call('delete_ticket', { ticket_id: 'PROJ-1' }, { user_confirmed: true })
    expect([problemOf(claimed)['code'], tickets.size]).toEqual(['CONFIRMATION_REQUIRED', 3])
    const yes = (frame: Frame) => ({
      confirmation_token: metaIn(frame, confirmation)['confirmation_token'],
      user_confirmed: true,
    })
    expect(value(await call('delete_ticket', { ticket_id: 'PROJ-1' }, yes(asked)))).toMatchObject({ deleted: true })
    const missing = await call(
      'delete_ticket',
      { ticket_id: 'PROJ-1' },
      yes(await call('delete_ticket', { ticket_id: 'PROJ-1' })),
    )
    expect([problemOf(missing)['code'], tickets.size]).toEqual(['RESOURCE_NOT_FOUND', 2])
  })

  test('requests 31 and 32: a state that is none of ours is refused, however it looks', async () => {
    const { call } = await begin()
    for (const session_state of ['%%%not-base64', 'eyJmb3JnZWQiOnRydWV9'])
      expect(problemOf(await call('search_tickets', {}, { session_state }))['code']).toBe('STATE_INVALID')
  })

  test('CONF-002, 003, 005, 006 and 007 pass; CONF-004 is the other way round', async () => {
    const { call, wire } = await begin()
    expect(value(await call('check_permissions', { tool: 'search_tickets' }))['allowed']).toBe(true)
    expect(value(await call('check_permissions', { tool: 'delete_ticket' }))['allowed']).toBe(false)
    expect(errorOf(await call('nonexistent_tool')).code).toBe(-32602)
    expect(resultOf(await wire.ask('tools/list'))['tools']).toBeInstanceOf(Array)
    expect(errorOf(await wire.ask('nonexistent/method')).code).toBe(-32601)
    wire.say('this is no JSON{{{')
    expect(errorOf(await wire.next(({ error }) => error !== undefined)).code).toBe(-32700)
  })
})

describe('C7: the profile takes both spellings, and answers in the common one', () => {
  const call = (wire: Wire, beside: Frame) =>
    wire.ask('tools/call', { name: 'create_ticket', arguments: { title: 'A' }, ...beside })

  test('two spellings with different values are refused, with the same value they are one', async () => {
    const { wire, tickets } = await begin()
    const differing = [
      { idempotency_key: 'a', _meta: { idempotency_key: 'b' } },
      { idempotency_key: 'a', _meta: { [idempotency]: { idempotency_key: 'b' } } },
      { transaction_id: 'a', _meta: { transaction_id: 'b' } },
    ]
    for (const beside of differing) expect(errorOf(await call(wire, beside)).code).toBe(-32602)
    expect(tickets.size).toBe(3)
    const same = { idempotency_key: 'a', _meta: { idempotency_key: 'a', [idempotency]: { idempotency_key: 'a' } } }
    expect(metaIn(await call(wire, same), idempotency)).toMatchObject({ idempotency_key: 'a' })
  })

  test('without the profile what lies beside the arguments means nothing', async () => {
    const { server, tickets } = ticketServer(options => world.serve('memory', { ...options, profile: undefined as never }))
    const wire = await speak(server, '2025-11-25')
    for (let times = 0; times < 2; times++) expect(resultOf(await call(wire, { idempotency_key: 'k1' }))['_meta']).toBeUndefined()
    expect(tickets.size).toBe(5)
  })

  test('on the stateless wire it is the same', async () => {
    const { server, tickets } = ticketServer(options => world.serve('memory', options))
    const wire = await speak(server, '2026-07-28')
    const answers = [await call(wire, { idempotency_key: 'k1' }), await call(wire, { idempotency_key: 'k1' })]
    expect([answers.map(replayed), tickets.size]).toEqual([[false, true], 4])
  })

  test('a client and a server that both have the profile understand each other', async () => {
    const { server, tickets } = ticketServer(options => world.serve('memory', options))
    const mcp = await connectInMemory(server, { profile: 'davioe', onConfirm: () => true })
    const tx = await mcp.transaction()
    await tx.callTool('create_ticket', { title: 'A' })
    expect([(await tx.rollback()).status, tickets.size]).toEqual(['rolled_back', 3])
    expect((await mcp.callTool('delete_ticket', { ticket_id: 'PROJ-1' })).structured).toMatchObject({ deleted: true })
    expect((await mcp.permissions.check('delete_ticket')).allowed).toBe(true)
    await mcp.close()
  })
})
