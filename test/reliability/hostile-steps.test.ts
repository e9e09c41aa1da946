/** Transactions against odd clients: ids that run into each other, records that cannot be written, tasks, a crowd that begins at once. */
import { afterEach, describe, expect, it } from 'vitest'
import { jsonSchema } from '../../src/core/schema/index.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
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

function serve(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({
    name: 'odd',
    version: '1',
    log: 'silent',
    store: 'memory:',
    limits: { rates: false },
    ...options,
  })
  servers.push(server)
  return server
}

type FakeClock = ReturnType<typeof fakeClock>

/** Lets so many seconds pass, and what is due in each happen. */
async function passing(clock: FakeClock, seconds: number): Promise<void> {
  for (let at = 0; at < seconds * 2; at++) {
    clock.advance(500)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** Waits while time passes. */
async function answered<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let over = false
  const ended = work.finally(() => {
    over = true
  })
  for (let seconds = 0; !over && seconds < 600; seconds++) await passing(clock, 1)
  return ended
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

  it('E5-13: the inverse is that of the tool, whatever its caller says of one', async () => {
    const world = newWorld()
    const server = tracker(world, { store: 'memory:' })
    servers.push(server)
    const wire = await speak(server, revision, { capabilities })
    await begin(wire, 't')
    const own = { tool: 'mail', target: 'mail', parameters: { to: 'eve' }, arguments: { to: 'eve' } }
    const said = { compensation: own, inverse: own, undo: own }
    const step = (name: string, args: Frame) =>
      wire.ask('tools/call', {
        name,
        arguments: args,
        ...said,
        _meta: { [transactions]: { transaction_id: 't', ...said }, ...said },
      })
    expect(resultOf(await step('create', { title: 'a' }))['isError']).toBeUndefined()
    // Nor does a tool that has none get one so.
    expect(resultOf(await step('mail', { to: 'ann' }))['isError']).toBe(true)
    expect((await rollBack(wire, 't'))['status']).toBe('rolled_back')
    expect(world.log).toEqual(['create T-1', 'delete T-1'])
  })

  it('E5-11: an id is not begun again after its rollback either', async () => {
    const server = tracker(newWorld(), { store: 'memory:' })
    servers.push(server)
    const wire = await speak(server, revision, { capabilities })
    await begin(wire, 't')
    await rollBack(wire, 't')
    expect(errorOf(await begin(wire, 't'))).toMatchObject({ code: -31000, data: { code: 'TRANSACTION_CONFLICT' } })
  })

  it('E5-18: a commit is refused where a step has an unknown end, and the transaction stays open for its rollback', async () => {
    const server = serve()
    const undone: string[] = []
    server.tool('undo', { input }, () => undone.push('undo') && 'undone')
    const stopped = (signal: AbortSignal) => new Promise(resolve => signal.addEventListener('abort', resolve))
    server.tool('do', { input, timeout: 10, undo: { tool: 'undo' } }, async (_, ctx) => void (await stopped(ctx.signal)))
    const wire = await speak(server, revision, { capabilities })
    await begin(wire, 't')
    await wire.ask('tools/call', { name: 'do', arguments: {}, _meta: within('t') })
    for (let turn = 0; turn < 2; turn++)
      expect(errorOf(await wire.ask('transaction/commit', { transaction_id: 't' })).data).toMatchObject({
        code: 'TRANSACTION_CONFLICT',
        category: 'permanent',
      })
    expect(resultOf(await wire.ask('transaction/get', { transaction_id: 't' }))).toMatchObject({
      status: 'begun',
      steps: [{ status: 'indeterminate' }],
    })
    expect([(await rollBack(wire, 't'))['status'], undone]).toEqual(['rolled_back', ['undo']])
  })

  it('E5-15: rollbacks that are asked for at once give one report, and each step goes back once; a commit beside them does not win too', async () => {
    const world = newWorld()
    const server = tracker(world, { store: 'memory:' })
    servers.push(server)
    const [one, two] = [await speak(server, revision, { capabilities }), await speak(server, revision, { capabilities })]
    await begin(one, 't')
    for (const title of ['a', 'b']) await one.ask('tools/call', { name: 'create', arguments: { title }, _meta: within('t') })
    const reports = await Promise.all([rollBack(one, 't'), rollBack(two, 't'), rollBack(one, 't')])
    expect(new Set(reports.map(({ status, steps_compensated }) => JSON.stringify([status, steps_compensated]))).size).toBe(1)
    expect(world.log).toEqual(['create T-1', 'create T-2', 'delete T-2', 'delete T-1'])
    await begin(one, 'u')
    await one.ask('tools/call', { name: 'create', arguments: { title: 'c' }, _meta: within('u') })
    const ends = await Promise.all(['commit', 'rollback'].map(how => two.ask(`transaction/${how}`, { transaction_id: 'u' })))
    expect(ends.filter(frame => frame['result'] !== undefined)).toHaveLength(1)
    const committed = ends[0]?.['result'] !== undefined
    expect(world.tickets.size).toBe(committed ? 1 : 0)
  })

  it('E5-14: what takes back is not held up by the rate of its tool', async () => {
    const server = serve({ limits: {} })
    const log: string[] = []
    server.tool('undo', { input, rate: { perSecond: 0.001, burst: 1 } }, () => log.push('undo') && 'undone')
    server.tool('do', { input, undo: { tool: 'undo' } }, () => log.push('do') && 'done')
    const wire = await speak(server, revision, { capabilities, principal: 'ann', carrier: 'websocket' })
    await begin(wire, 't')
    for (let step = 0; step < 3; step++) await wire.ask('tools/call', { name: 'do', arguments: {}, _meta: within('t') })
    expect((await rollBack(wire, 't'))['status']).toBe('rolled_back')
    expect(log).toEqual(['do', 'do', 'do', 'undo', 'undo', 'undo'])
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

  it('E5-12: what names no transaction is refused, also under a key that is known', async () => {
    const server = tracker(newWorld(), { store: 'memory:' })
    servers.push(server)
    const wire = await speak(server, revision, { capabilities })
    const create = (transaction: unknown) =>
      wire.ask('tools/call', {
        name: 'create',
        arguments: { title: 'a' },
        _meta: { [idempotency]: { idempotency_key: 'k' }, ...(transaction === undefined ? {} : { [transactions]: transaction }) },
      })
    expect(resultOf(await create(undefined))['isError']).toBeUndefined()
    for (const odd of [{ transaction_id: 'no id' }, { transaction_id: 7 }, {}, 'text', { transaction_id: 't', step_id: '' }])
      expect(errorOf(await create(odd)).code).toBe(-32602)
  })

  it('E5-18: a step that has become a task is waited for by a commit, which passes when it is done', async () => {
    const { wire, gate, log, step } = await withTask(serve())
    expect(errorOf(await wire.ask('transaction/commit', { transaction_id: 't' })).data).toMatchObject({
      code: 'TRANSACTION_CONFLICT',
      category: 'transient',
    })
    gate.resolve()
    await expect.poll(async () => (await step())['status']).toBe('ok')
    expect(resultOf(await wire.ask('transaction/commit', { transaction_id: 't' }))['status']).toBe('committed')
    expect(log).toEqual(['effect'])
  })

  it('E5-13: what a task gives completes the inverse of the step that it is', async () => {
    const { wire, gate, log, step } = await withTask(serve(), 'done 7')
    gate.resolve()
    await expect.poll(async () => (await step())['status']).toBe('ok')
    expect((await rollBack(wire, 't'))['status']).toBe('rolled_back')
    expect(log).toEqual(['effect', 'undo done 7'])
  })

  it('E5-16: a task that does not stop when it is told to is taken back after its end, not before', async () => {
    const clock = fakeClock()
    const { wire, gate, log } = await withTask(serve({ clock }), 'done', clock)
    const rolling = rollBack(wire, 't')
    await passing(clock, 25)
    expect(log).toEqual([])
    gate.resolve()
    const report = await answered(clock, rolling)
    expect([report['status'], log]).toEqual(['rolled_back', ['effect', 'undo done']])
  })

  it('E5-16: who asks for a rollback is not kept waiting for a task, and gets the report later', async () => {
    const clock = fakeClock()
    const { wire, gate, log } = await withTask(serve({ clock }), 'done', clock)
    const first = wire.ask('transaction/rollback', { transaction_id: 't' })
    await passing(clock, 31)
    expect(errorOf(await first).data).toMatchObject({ code: 'SERVER_UNAVAILABLE', category: 'transient' })
    gate.resolve()
    const report = await answered(clock, rollBack(wire, 't'))
    expect([report['status'], log]).toEqual(['rolled_back', ['effect', 'undo done']])
  })

  it('E5-16: a task that never stops is reported as it stands, and taken back should it end after all', async () => {
    const clock = fakeClock()
    const { wire, gate, log } = await withTask(serve({ clock }), 'done', clock)
    const first = wire.ask('transaction/rollback', { transaction_id: 't' })
    await passing(clock, 31)
    await first
    await passing(clock, 280)
    const given = await answered(clock, rollBack(wire, 't'))
    expect(given).toMatchObject({
      status: 'partially_rolled_back',
      steps_compensated: [{ status: 'compensation_failed', error: { code: 'OPERATION_TIMEOUT' } }],
    })
    gate.resolve()
    await expect.poll(async () => (await answered(clock, rollBack(wire, 't')))['status']).toBe('rolled_back')
    expect(log).toEqual(['effect', 'undo done'])
  })

  it('E5-12: a task that is cancelled before it begins is a step that did nothing', async () => {
    const clock = fakeClock()
    const { wire, log, step, taskId } = await withTask(serve({ clock }), 'done', clock, false)
    await wire.ask('tasks/cancel', { taskId })
    clock.advance(1)
    await expect.poll(async () => (await step())['status']).toBe('failed')
    expect(resultOf(await wire.ask('transaction/commit', { transaction_id: 't' }))['status']).toBe('committed')
    expect(log).toEqual([])
  })

  /** A step that is a task, which has its effect when the gate is opened, whatever it is told. */
  async function withTask(server: Server, gives = 'done', clock?: FakeClock, enters = true) {
    const log: string[] = []
    const gate = Promise.withResolvers<void>()
    const entered = Promise.withResolvers<void>()
    server.tool('undo', { input: jsonSchema<Frame>({ type: 'object' }) }, ({ what }) => {
      log.push(`undo ${what}`)
      return 'undone'
    })
    const undo = { tool: 'undo', arguments: ({ result }: { result: unknown }) => ({ what: result }) }
    server.tool('do', { input, task: 'optional', undo: undo as never }, async () => {
      entered.resolve()
      await gate.promise
      log.push('effect')
      return gives
    })
    const wire = await speak(server, revision, { capabilities: { ...capabilities, tasks: {} } })
    await begin(wire, 't')
    const task = revision === '2025-11-25' ? { task: {} } : {}
    const made = resultOf(await wire.ask('tools/call', { name: 'do', arguments: {}, ...task, _meta: within('t') }))
    const { taskId } = (made['task'] ?? made) as Frame
    if (enters) {
      if (clock !== undefined) await passing(clock, 1)
      await entered.promise
    }
    const step = async (): Promise<Frame> => {
      const { steps } = resultOf(await wire.ask('transaction/get', { transaction_id: 't' })) as { steps: Frame[] }
      return steps[0] as Frame
    }
    return { wire, log, gate, step, taskId }
  }

  it('X10: of transactions that are begun at once no more are opened than one caller may have', async () => {
    const server = tracker(newWorld(), { store: 'memory:', transactions: { perOwner: 5 } })
    servers.push(server)
    const wire = await speak(server, revision, { capabilities })
    const begun = await Promise.all(Array.from({ length: 20 }, (_, index) => begin(wire, `t${index}`)))
    expect(begun.filter(frame => frame['result'] !== undefined)).toHaveLength(5)
    const refused = begun.filter(frame => frame['error'] !== undefined).map(frame => errorOf(frame).data?.['code'])
    expect(new Set(refused)).toEqual(new Set(['QUOTA_EXHAUSTED']))
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
