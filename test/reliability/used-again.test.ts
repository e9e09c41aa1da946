/** What was answered or forgotten and comes again: a token after a no, the id of a transaction after its time. */
import { afterEach, describe, expect, it } from 'vitest'
import { jsonSchema } from '../../src/core/schema/index.ts'
import { confirmation, consentWorld, eras, metaIn, problems } from '../spec/consent.ts'
import { type Frame, resultOf, speak, textOf } from '../spec/wire.ts'

const transactions = 'dev.vivarium/transactions'
const state = 'dev.vivarium/state'
const known = [transactions, state, problems, confirmation]
const capabilities = { extensions: Object.fromEntries(known.map(id => [id, {}])) }
const input = jsonSchema({ type: 'object' })

const world = consentWorld()
afterEach(() => world.close())

describe.each(eras)('at %s', revision => {
  it('E6-4: a token with which the user has said no is used up: no yes comes of it', async () => {
    let runs = 0
    const server = world.serve('memory')
    server.tool('wipe', { confirm: true }, () => `wiped ${++runs}`)
    const wire = await speak(server, revision, { capabilities })
    const call = (_meta: Frame = {}) => wire.ask('tools/call', { name: 'wipe', arguments: {}, _meta })
    const { confirmation_token } = metaIn(await call(), confirmation)
    const answer = (user_confirmed: boolean) => call({ [confirmation]: { confirmation_token, user_confirmed } })
    expect(metaIn(await answer(false), problems)['code']).toBe('CONFIRMATION_DECLINED')
    expect(metaIn(await answer(true), problems)['code']).toBe('CONFIRMATION_REQUIRED')
    expect(runs).toBe(0)
  })

  it('E5-11: under the id of a transaction that is forgotten another one is taken back by itself, with the state that it wrote', async () => {
    const log: string[] = []
    const server = world.serve('memory', { transactions: { retention: '1h' } })
    server.tool('undo', { input }, () => `${log.push('undo')}`)
    server.tool('do', { input, undo: { tool: 'undo' } }, async (_, ctx) => {
      log.push('do')
      await ctx.state.set({ done: log.length })
      return 'done'
    })
    server.tool('read', { input }, async (_, ctx) => {
      const now = await ctx.state.get()
      if (now === undefined) await ctx.state.set('new')
      return JSON.stringify(now ?? 'new')
    })
    const wire = await speak(server, revision, { capabilities, principal: 'ann' })
    const call = (name: string, session_state?: unknown, more: Frame = {}) =>
      wire.ask('tools/call', {
        name,
        arguments: {},
        _meta: { [state]: session_state === undefined ? {} : { session_state }, ...more },
      })
    const stateOf = (frame: Frame) => metaIn(frame, state)['session_state']
    const first = stateOf(await call('read'))
    const ask = (method: string) => wire.ask(`transaction/${method}`, { transaction_id: 't' })
    const step = { [transactions]: { transaction_id: 't' } }
    await ask('begin')
    await call('do', first, step)
    await ask('rollback')
    await world.clock.forward(2 * 3_600_000)
    await ask('begin')
    const second = stateOf(await call('do', first, step))
    expect(textOf(await call('read', second))).toBe('{"done":3}')
    expect(resultOf(await ask('rollback'))['steps_compensated']).toMatchObject([{ step_id: '1' }])
    expect(log).toEqual(['do', 'undo', 'do', 'undo'])
  })
})

it('E14-8: the state before a transaction is found again however many transactions wrote before it', async () => {
  const server = world.serve('memory', { limits: { rates: false } })
  server.tool('undo', { input }, () => 'undone')
  server.tool('do', { input, undo: { tool: 'undo' } }, async (args, ctx) => {
    await ctx.state.set(args)
    return 'done'
  })
  server.tool('read', { input }, async (_, ctx) => JSON.stringify(await ctx.state.get()))
  const wire = await speak(server, '2025-11-25', { capabilities: { extensions: { [transactions]: {} } }, principal: 'ann' })
  const ask = (method: string, transaction_id: string) => wire.ask(`transaction/${method}`, { transaction_id })
  const write = async (turn: number): Promise<string> => {
    await ask('begin', `t${turn}`)
    await wire.ask('tools/call', { name: 'do', arguments: { turn }, _meta: { [transactions]: { transaction_id: `t${turn}` } } })
    return `t${turn}`
  }
  for (let turn = 1; turn <= 1_002; turn++) await ask('commit', await write(turn))
  await ask('rollback', await write(1_003))
  expect(textOf(await wire.ask('tools/call', { name: 'read', arguments: {} }))).toBe('{"turn":1002}')
})
