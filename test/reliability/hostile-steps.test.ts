/** Transactions against odd clients: ids that run into each other, records that cannot be written, tasks, a crowd that begins at once. */
import { afterEach, describe, expect, it } from 'vitest'
import { jsonSchema } from '../../src/core/schema/index.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { confirmation, eras, metaIn, permissions, problems } from '../spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, type Wire } from '../spec/wire.ts'
import { newWorld, tracker } from './tracker.ts'

const idempotency = 'dev.vivarium/idempotency'
const transactions = 'dev.vivarium/transactions'
const state = 'dev.vivarium/state'
const tasks = 'io.modelcontextprotocol/tasks'
const known = [idempotency, transactions, state, problems, confirmation, permissions, tasks]
const capabilities = { extensions: Object.fromEntries(known.map(id => [id, {}])) }
const input = jsonSchema({ type: 'object' })

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function serve(): Server {
  const server = createServer({ name: 'odd', version: '1', log: 'silent', store: 'memory:', limits: { rates: false } })
  servers.push(server)
  return server
}

const begin = (wire: Wire, transaction_id: string) => wire.ask('transaction/begin', { transaction_id })
const rollBack = async (wire: Wire, transaction_id: string) =>
  resultOf(await wire.ask('transaction/rollback', { transaction_id }))
const within = (transaction_id: string, step_id?: string): Frame => ({
  [transactions]: { transaction_id, ...(step_id === undefined ? {} : { step_id }) },
})

describe.each(eras)('at %s', revision => {
  it('E5-17: a step whose names run together like those of another is taken back all the same', async () => {
    const world = newWorld()
    const server = tracker(world, { store: 'memory:' })
    servers.push(server)
    const wire = await speak(server, revision, { capabilities })
    const rename = (_meta: Frame) =>
      wire.ask('tools/call', { name: 'rename', arguments: { id: 'A', title: 'new', before: 'old' }, _meta })
    await begin(wire, 'a')
    await rename(within('a', 'b-1'))
    await rollBack(wire, 'a')
    await begin(wire, 'a-b')
    await rename(within('a-b', '1'))
    expect((await rollBack(wire, 'a-b'))['status']).toBe('rolled_back')
    expect(world.tickets.get('A')).toBe('old')
  })

  it('E5-6: a step that was done, but whose record could not be written, is not done again under its key', async () => {
    let runs = 0
    const server = serve()
    server.tool('undo', { input }, () => 'undone')
    const undo = { tool: 'undo', arguments: ({ result }: { result: unknown }) => result && { big: 'x'.repeat(9_000_000) } }
    server.tool('do', { input, undo: undo as never }, () => `done ${++runs}`)
    const wire = await speak(server, revision, { capabilities })
    await begin(wire, 't')
    const call = { name: 'do', arguments: {}, _meta: { [idempotency]: { idempotency_key: 'k' }, ...within('t') } }
    expect(resultOf(await wire.ask('tools/call', call))['isError']).toBe(true)
    const again = await wire.ask('tools/call', call)
    expect([runs, resultOf(again)['isError'], metaIn(again, idempotency)['was_replay']]).toEqual([1, true, true])
  })

  it('E5-16: a step that has become a task is told to stop, and taken back when it has', async () => {
    const log: string[] = []
    const server = serve()
    server.tool('undo', { input }, () => {
      log.push('undo')
      return 'undone'
    })
    const entered = Promise.withResolvers<void>()
    server.tool('do', { input, task: 'optional', undo: { tool: 'undo' } }, async (_, { signal }) => {
      const stopped = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
      entered.resolve()
      await stopped
      log.push('effect')
      return 'done'
    })
    const wire = await speak(server, revision, { capabilities: { ...capabilities, tasks: {} } })
    await begin(wire, 't')
    const task = revision === '2025-11-25' ? { task: {} } : {}
    await wire.ask('tools/call', { name: 'do', arguments: {}, ...task, _meta: within('t') })
    await entered.promise
    expect((await rollBack(wire, 't'))['status']).toBe('rolled_back')
    expect(log).toEqual(['effect', 'undo'])
  })

  it('X10: of transactions that are begun at once no more are opened than one caller may have', async () => {
    const server = tracker(newWorld(), { store: 'memory:', transactions: { perOwner: 5 } })
    servers.push(server)
    const wire = await speak(server, revision, { capabilities })
    const begun = await Promise.all(Array.from({ length: 20 }, (_, index) => begin(wire, `t${index}`)))
    expect(begun.filter(frame => frame['result'] !== undefined)).toHaveLength(5)
    const refused = begun.filter(frame => frame['error'] !== undefined).map(frame => errorOf(frame).data?.['code'])
    expect(new Set(refused)).toEqual(new Set(['SERVER_UNAVAILABLE']))
    const open = begun.findIndex(frame => frame['result'] !== undefined)
    await rollBack(wire, `t${open}`)
    expect(resultOf(await begin(wire, 'one-more'))['status']).toBe('begun')
  })

  it.each(['', 'a b', 'ключ', 'x'.repeat(129), '../x'])(
    'E5-8: asking after "%s", which is no key, is refused as such',
    async key => {
      const wire = await speak(serve(), revision, { capabilities })
      expect(errorOf(await wire.ask('idempotency/get', { idempotency_key: key })).code).toBe(-32602)
    },
  )
})
