/** Tools that change or go while something of theirs is out: a token, a task, a step that may have to be taken back. */
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { eras, metaIn, permissions, problems } from '../spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, textOf, type Wire } from '../spec/wire.ts'

const transactions = 'dev.vivarium/transactions'
const idempotency = 'dev.vivarium/idempotency'
const tasks = 'io.modelcontextprotocol/tasks'
const known = [idempotency, transactions, problems, permissions, tasks]
const capabilities = { extensions: Object.fromEntries(known.map(id => [id, {}])), tasks: {} }
const named = z.object({ id: z.string() })

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function serve(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'changing',
    version: '1',
    log: 'silent',
    store: 'memory:',
    limits: { rates: false },
    ...options,
  })
  servers.push(server)
  return server
}

describe.each(eras)('at %s', revision => {
  const open = (server: Server): Promise<Wire> => speak(server, revision, { capabilities })
  const call = (wire: Wire, name: string, id: string, meta?: Frame, more: Frame = {}) =>
    wire.ask('tools/call', { name, arguments: { id }, ...more, ...(meta === undefined ? {} : { _meta: meta }) })
  const within = (transaction_id: string): Frame => ({ [transactions]: { transaction_id } })
  const rollBack = async (wire: Wire, transaction_id: string) =>
    resultOf(await wire.ask('transaction/rollback', { transaction_id }))

  it('E5-14: a step whose inverse has gone is reported, and the others are taken back', async () => {
    const server = serve()
    const log: string[] = []
    const undo = server.tool('undo', { input: named }, ({ id }) => log.push(id) && 'undone')
    server.tool('other', { input: named }, ({ id }) => log.push(`other ${id}`) && 'undone')
    server.tool('do', { input: named, undo: { tool: 'undo' } }, () => 'done')
    server.tool('make', { input: named, undo: { tool: 'other' } }, () => 'done')
    const wire = await open(server)
    await wire.ask('transaction/begin', { transaction_id: 't' })
    await call(wire, 'make', 'a', within('t'))
    await call(wire, 'do', 'b', within('t'))
    undo.remove()
    expect(await rollBack(wire, 't')).toMatchObject({
      status: 'partially_rolled_back',
      steps_compensated: [
        { step_id: '2', status: 'compensation_failed', error: { message: expect.stringContaining('undo') } },
        { step_id: '1', status: 'compensated' },
      ],
    })
    expect(log).toEqual(['other a'])
  })

  it('E5-13, E5-17: a step is taken back as it was written down, whatever its tools became since', async () => {
    const server = serve()
    const log: string[] = []
    const undo = server.tool('undo', { input: named }, ({ id }) => log.push(`undo ${id}`) && 'undone')
    server.tool('other', { input: named }, () => log.push('other') && 'undone')
    const tool = server.tool('do', { input: named, undo: { tool: 'undo' } }, () => 'done')
    const wire = await open(server)
    await wire.ask('transaction/begin', { transaction_id: 't' })
    await call(wire, 'do', 'a', within('t'))
    tool.update({ undo: { tool: 'other' } })
    undo.update({ confirm: { message: 'Really?' } })
    expect((await rollBack(wire, 't'))['status']).toBe('rolled_back')
    tool.remove()
    expect(log).toEqual(['undo a'])
    expect(errorOf(await call(wire, 'do', 'a', within('t'))).code).toBe(-32602)
  })

  it('E5-9: what was done under a key is not given again when its tool has gone, or needs more than its caller has', async () => {
    const server = serve({ permissions: { grant: ({ scopes }) => scopes } })
    const tool = server.tool('do', { input: named }, () => 'a secret')
    const wire = await open(server)
    const key = { [idempotency]: { idempotency_key: 'k' } }
    expect(textOf(await call(wire, 'do', 'a', key))).toBe('a secret')
    tool.update({ scopes: ['secrets'] })
    expect(metaIn(await call(wire, 'do', 'a', key), problems)['code']).toBe('SCOPE_INSUFFICIENT')
    tool.remove()
    expect(errorOf(await call(wire, 'do', 'a', key)).code).toBe(-32602)
  })

  it('E4-6: a tool that needs more while it runs keeps its result from who has less', async () => {
    const server = serve({ permissions: { grant: ({ scopes }) => scopes } })
    const gate = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    const tool = server.tool('do', { input: named, scopes: ['some'] }, async () => {
      entered.resolve()
      await gate.promise
      return 'a secret'
    })
    const wire = await open(server)
    const { session } = resultOf(await wire.ask('permissions/negotiate', { requested_scopes: ['some'] })) as { session: Frame }
    const called = call(wire, 'do', 'a', { [permissions]: { session_token: session['token'] } })
    await entered.promise
    tool.update({ scopes: ['some', 'secrets'] })
    gate.resolve()
    expect(metaIn(await called, problems)).toMatchObject({ code: 'SCOPE_INSUFFICIENT', details: { executed: true } })
  })

  it('a task goes on when its tool has gone, and its step can be committed', async () => {
    const server = serve()
    const gate = Promise.withResolvers<void>()
    server.tool('undo', { input: named }, () => 'undone')
    const tool = server.tool('do', { input: named, task: 'optional', undo: { tool: 'undo' } }, async () => {
      await gate.promise
      return 'done'
    })
    const wire = await open(server)
    await wire.ask('transaction/begin', { transaction_id: 't' })
    const made = resultOf(await call(wire, 'do', 'a', within('t'), revision === '2025-11-25' ? { task: {} } : {}))
    const { taskId } = (made['task'] ?? made) as Frame
    tool.remove()
    gate.resolve()
    await expect.poll(async () => resultOf(await wire.ask('tasks/get', { taskId }))['status']).toBe('completed')
    expect(resultOf(await wire.ask('transaction/commit', { transaction_id: 't' }))['status']).toBe('committed')
  })
})
