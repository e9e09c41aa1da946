import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { ProcessLeases } from './process-leases.ts'
import { abandon, findUnattendedUnits, type RollbackOptions, rollback } from './rollback.ts'
import type { Step, UndoOutcome } from './unit.ts'
import { Units } from './units.ts'

const inverse = { target: 'delete' }

/** Processes on one store. What the inverses did is kept outside, as the world keeps it, once per key. */
function world() {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const taken: string[] = []
  let processes = 0
  const start = (through: Store = store, fail: (step: Step) => UndoOutcome | undefined = () => undefined) => {
    const runners = new ProcessLeases({ store: through, clock, id: `process-${++processes}` })
    const units = new Units({ store: through, clock, runners })
    const options: RollbackOptions = {
      units,
      async compensate(_owner, unit, step) {
        const failure = fail(step)
        if (failure !== undefined) return failure
        const key = `compensate-${unit.id}-${step.id}`
        if (!taken.includes(key)) taken.push(key)
        return { status: 'undone' }
      },
      settled: (owner, unit, step) => abandon(units, owner, unit, step),
    }
    return { units, options, undo: (id: string) => rollback(options, 'ann', id, 'it was asked for') }
  }
  return { clock, store, taken, start }
}

async function steps(units: Units, id: string, count: number): Promise<void> {
  for (let i = 1; i <= count; i++) {
    const step = await units.enrol('ann', id, { id: `s${i}`, target: 'create', key: `k${i}`, inverse })
    await step.done({ id: i })
  }
}

test('E5-11: an id is begun once, also after its end', async () => {
  const { units, undo } = world().start()
  await units.begin('ann', 't', { timeoutMs: 1000 })
  const again = () => units.begin('ann', 't', { timeoutMs: 1000 })
  await expect(again()).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  await undo('t')
  await expect(again()).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  await units.begin('bob', 't', { timeoutMs: 1000 })
})

test('E5-12: a step in an unknown or ended transaction is refused, and leaves no record', async () => {
  const { units } = world().start()
  const enrol = (id: string) => units.enrol('ann', id, { target: 'create', key: 'k', inverse })
  await expect(enrol('none')).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  await units.begin('ann', 't', { timeoutMs: 1000 })
  await units.commit('ann', 't')
  await expect(enrol('t')).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  expect(await units.stepsOf('ann', 't')).toEqual([])
})

test('E5-13: the record of a step names its inverse before the effect, and its parameters after', async () => {
  const { units } = world().start()
  await units.begin('ann', 't', { timeoutMs: 1000 })
  const step = await units.enrol('ann', 't', { target: 'create', key: 'k', inverse })
  expect(await units.stepsOf('ann', 't')).toMatchObject([{ id: '1', status: 'running', inverse: { target: 'delete' } }])
  await step.done({ id: 7 })
  expect(await units.stepsOf('ann', 't')).toMatchObject([{ status: 'ok', inverse: { target: 'delete', parameters: { id: 7 } } }])
})

test('E5-13: what cannot be undone takes part only where the transaction allows it, and is reported', async () => {
  const { units, undo } = world().start()
  const mail = { target: 'mail', key: 'k', inverse: undefined }
  await units.begin('ann', 'strict', { timeoutMs: 1000 })
  await expect(units.enrol('ann', 'strict', mail)).rejects.toMatchObject({ category: 'invalid_input' })
  await units.begin('ann', 'lax', { timeoutMs: 1000, irreversible: true })
  await (await units.enrol('ann', 'lax', mail)).done(undefined)
  expect(await undo('lax')).toMatchObject({
    unit: { status: 'partially_rolled_back' },
    steps: [{ status: 'compensation_failed', failure: { code: 'UNSUPPORTED' } }],
  })
})

test('E5-14: what was done is taken back in the reverse order; what failed is left alone', async () => {
  const { start, taken } = world()
  const { units, undo } = start()
  await units.begin('ann', 't', { timeoutMs: 1000 })
  await steps(units, 't', 3)
  await (await units.enrol('ann', 't', { id: 's4', target: 'create', key: 'k4', inverse })).failed({ code: 'X', message: 'no' })
  const report = await undo('t')
  expect(taken).toEqual(['compensate-t-s3', 'compensate-t-s2', 'compensate-t-s1'])
  expect(report?.unit).toMatchObject({ status: 'rolled_back', reason: 'it was asked for' })
  expect(report?.steps.map(step => step.status)).toEqual(['compensated', 'compensated', 'compensated', 'failed'])
})

test('E5-14: a compensation that fails does not stop the others, and the report names it', async () => {
  const { start, taken } = world()
  const { units, undo } = start(undefined, step =>
    step.id === 's2' ? { status: 'failed', code: 'RESOURCE_NOT_FOUND', message: 'gone' } : undefined,
  )
  await units.begin('ann', 't', { timeoutMs: 1000 })
  await steps(units, 't', 3)
  const report = await undo('t')
  expect(taken).toEqual(['compensate-t-s3', 'compensate-t-s1'])
  expect(report?.unit.status).toBe('partially_rolled_back')
  expect(report?.steps[1]).toMatchObject({ status: 'compensation_failed', failure: { message: 'gone' } })
})

test('E5-14: a failure that may pass is tried again', async () => {
  const { start, clock } = world()
  let failures = 2
  const { units, undo } = start(undefined, () =>
    failures-- > 0 ? { status: 'failed', code: 'SERVER_UNAVAILABLE', message: 'busy', category: 'transient' } : undefined,
  )
  await units.begin('ann', 't', { timeoutMs: 1000 })
  await steps(units, 't', 1)
  const report = undo('t')
  for (let i = 0; i < 50; i++) {
    await new Promise(resolve => setImmediate(resolve))
    clock.advance(100)
  }
  expect((await report)?.unit.status).toBe('rolled_back')
})

test('E5-15: commit and rollback said again give the same report', async () => {
  const { units, undo } = world().start()
  await units.begin('ann', 'a', { timeoutMs: 1000 })
  await steps(units, 'a', 2)
  expect(await undo('a')).toEqual(await undo('a'))
  await units.begin('ann', 'b', { timeoutMs: 1000 })
  expect(await units.commit('ann', 'b')).toEqual(await units.commit('ann', 'b'))
  await expect(undo('b')).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
  await expect(units.commit('ann', 'a')).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
})

test('E5-16: a transaction that nobody touches for its timeout is found, and one that is touched is not', async () => {
  const { start, clock } = world()
  const { units } = start()
  await units.begin('ann', 't', { timeoutMs: 1000 })
  clock.advance(900)
  await steps(units, 't', 1)
  clock.advance(900)
  expect(await findUnattendedUnits(units)).toEqual([])
  clock.advance(100)
  expect(await findUnattendedUnits(units)).toMatchObject([{ owner: 'ann', unit: { id: 't' } }])
})

test('E5-18: a transaction with a step that runs or has an unknown end is not committed', async () => {
  const { units } = world().start()
  await units.begin('ann', 't', { timeoutMs: 1000 })
  const step = await units.enrol('ann', 't', { target: 'create', key: 'k', inverse })
  await expect(units.commit('ann', 't')).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT', category: 'transient' })
  await step.lost()
  await expect(units.commit('ann', 't')).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT', category: 'permanent' })
})

test('E5-19: whichever write a process dies at, another ends the rollback, and every step is taken back once', async () => {
  for (let writes = 0; ; writes++) {
    const { start, store, taken, clock } = world()
    const first = start(dyingAfter(store, writes + 9))
    await first.units.begin('ann', 't', { timeoutMs: 60_000 })
    await steps(first.units, 't', 2)
    await (await first.units.enrol('ann', 't', { id: 's3', target: 'create', key: 'k3', inverse })).step
    const survived = await first.undo('t').then(
      () => true,
      () => false,
    )
    clock.advance(6_001)
    const second = start()
    if (!survived && (await second.units.get('ann', 't'))?.unit.status === 'rolling_back')
      expect(await findUnattendedUnits(second.units)).toMatchObject([{ unit: { id: 't' } }])
    const report = await second.undo('t')
    expect(report?.unit.status).toBe('rolled_back')
    expect(taken).toEqual(['compensate-t-s3', 'compensate-t-s2', 'compensate-t-s1'])
    expect(await findUnattendedUnits(second.units)).toEqual([])
    if (survived) break
  }
})

test('E5-19: while one process rolls back, another leaves it alone', async () => {
  const { start } = world()
  const gate = Promise.withResolvers<void>()
  const one = start()
  const slow: RollbackOptions = {
    ...one.options,
    compensate: async () => {
      await gate.promise
      return { status: 'undone' }
    },
  }
  await one.units.begin('ann', 't', { timeoutMs: 1000 })
  await steps(one.units, 't', 1)
  const running = rollback(slow, 'ann', 't', 'slowly')
  const two = start()
  await new Promise(resolve => setImmediate(resolve))
  expect(await two.undo('t')).toBeUndefined()
  gate.resolve()
  expect((await running)?.unit.status).toBe('rolled_back')
})

test('E5-19: who loses the lease in the midst of a rollback leaves the rest to whoever has it', async () => {
  const { start, store, taken } = world()
  const one = start()
  await one.units.begin('ann', 't', { timeoutMs: 1000 })
  await steps(one.units, 't', 2)
  const two = start()
  let theirs: ReturnType<typeof two.undo> | undefined
  const silent: RollbackOptions = {
    ...one.options,
    compensate: async (owner, unit, step) => {
      // As if nothing had run here for longer than the lease lasts.
      for (const { key } of await store.scan('unit-lease/')) await store.commit([{ op: 'delete', key }])
      theirs ??= two.undo('t')
      return one.options.compensate(owner, unit, step)
    },
  }
  expect(await rollback(silent, 'ann', 't', 'slowly')).toBeUndefined()
  expect((await theirs)?.unit.status).toBe('rolled_back')
  expect(taken).toEqual(['compensate-t-s2', 'compensate-t-s1'])
})

test('many steps may begin at once, and each has an order of its own', async () => {
  const { units } = world().start()
  await units.begin('ann', 't', { timeoutMs: 1000 })
  await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const step = await units.enrol('ann', 't', { target: 'create', key: `k${i}`, inverse })
      await step.done(undefined)
    }),
  )
  expect((await units.stepsOf('ann', 't')).map(step => step.order)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
  await units.commit('ann', 't')
})

test('whatever fails, the report has every step, and says truly what was taken back', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('ok', 'failed', 'lost', 'stubborn'), { maxLength: 12 }), async fates => {
      const { start, taken } = world()
      const { units, undo } = start(undefined, step =>
        fates[step.order - 1] === 'stubborn' ? { status: 'failed', code: 'X', message: 'no' } : undefined,
      )
      await units.begin('ann', 't', { timeoutMs: 1000 })
      for (const [i, fate] of fates.entries()) {
        const step = await units.enrol('ann', 't', { target: 'create', key: `k${i}`, inverse })
        if (fate === 'failed') await step.failed({ code: 'X', message: 'no' })
        else await (fate === 'lost' ? step.lost() : step.done({ i }))
      }
      const report = await undo('t')
      const wanted = { ok: 'compensated', lost: 'compensated', failed: 'failed', stubborn: 'compensation_failed' }
      expect(report?.steps.map(step => step.status)).toEqual(fates.map(fate => wanted[fate]))
      expect(taken).toHaveLength(fates.filter(fate => fate === 'ok' || fate === 'lost').length)
      expect(report?.unit.status).toBe(fates.includes('stubborn') ? 'partially_rolled_back' : 'rolled_back')
    }),
    { numRuns: 60 },
  )
})

/** A process that dies at a write: it and all that follow never happen. */
function dyingAfter(store: Store, writes: number): Store {
  let left = writes
  return {
    get: key => store.get(key),
    scan: (prefix, options) => store.scan(prefix, options),
    read: (log, options) => store.read(log, options),
    commit: async ops => {
      if (left-- <= 0) throw new Error('killed')
      return store.commit(ops)
    },
    watch: (prefixes, signal) => store.watch(prefixes, signal),
    close: () => store.close(),
  }
}
