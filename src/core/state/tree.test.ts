import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { put } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { StateTree } from './tree.ts'

function tree(versions?: number) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  return { store, state: new StateTree({ store, clock, ...(versions !== undefined && { versions }) }) }
}

const set = (path: string, value: unknown) => ({ kind: 'patch' as const, body: [{ op: 'add', path, value }] })

test('a state that was never written has no version', async () => {
  const { state } = tree()
  expect(await state.head('s')).toBe(0)
  expect(await state.read('s', 0)).toBeUndefined()
  expect(await state.read('s', 1)).toBeUndefined()
})

test('what was written is read back at its version, whole or patched', async () => {
  const { state } = tree()
  const one = await state.write('s', { kind: 'data', body: { a: 1 } })
  const two = await state.write('s', set('/b', 2))
  expect((await state.read('s', one))?.value).toEqual({ a: 1 })
  expect((await state.read('s', two))?.value).toEqual({ a: 1, b: 2 })
  expect(await state.head('s')).toBe(two)
})

test('opaque state is kept as it is and cannot be patched', async () => {
  const { state } = tree()
  const id = await state.write('s', { kind: 'opaque', body: 'AAEC' })
  expect((await state.read('s', id))?.value).toBe('AAEC')
  await expect(state.write('s', set('/a', 1))).rejects.toMatchObject({ code: 'STATE_INVALID' })
})

test('a write on a version that is no longer the head is a conflict, or a branch where that is wanted', async () => {
  const { state } = tree()
  const one = await state.write('s', { kind: 'data', body: {} })
  const two = await state.write('s', set('/a', 2), { parent: one })
  await expect(state.write('s', set('/a', 3), { parent: one })).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  const three = await state.write('s', set('/a', 3), { parent: one, branch: true })
  expect((await state.read('s', two))?.value).toEqual({ a: 2 })
  expect((await state.read('s', three))?.value).toEqual({ a: 3 })
})

test('of two who write on the same version at once one wins, and the other is told', async () => {
  const { state } = tree()
  const one = await state.write('s', { kind: 'data', body: {} })
  const writes = await Promise.allSettled([1, 2].map(value => state.write('s', set('/a', value), { parent: one })))
  expect(writes.map(write => write.status).sort()).toEqual(['fulfilled', 'rejected'])
})

test('those who write on whatever is the head lose nothing', async () => {
  const { state } = tree()
  await state.write('s', { kind: 'data', body: [] })
  await Promise.all(Array.from({ length: 15 }, (_, i) => state.write('s', set('/-', i))))
  expect(new Set((await state.read('s', await state.head('s')))?.value as number[])).toEqual(
    new Set(Array.from({ length: 15 }, (_, i) => i)),
  )
})

test('a rollback moves the head, keeps every version, and what follows is a branch', async () => {
  const { state } = tree()
  const one = await state.write('s', { kind: 'data', body: { n: 1 } })
  const two = await state.write('s', set('/n', 2))
  await state.rollback('s', one)
  const three = await state.write('s', set('/m', 3))
  expect((await state.read('s', three))?.value).toEqual({ n: 1, m: 3 })
  expect((await state.ancestors('s', three)).map(version => version.id)).toEqual([three, one])
  await state.rollback('s', two)
  expect((await state.read('s', await state.head('s')))?.value).toEqual({ n: 2 })
  await expect(state.rollback('s', 99)).rejects.toMatchObject({ code: 'STATE_INVALID' })
})

test('a patch that cannot be applied writes nothing', async () => {
  const { state } = tree()
  const one = await state.write('s', { kind: 'data', body: {} })
  await expect(state.write('s', { kind: 'patch', body: [{ op: 'remove', path: '/none' }] })).rejects.toMatchObject({
    code: 'STATE_INVALID',
  })
  expect(await state.head('s')).toBe(one)
})

test('what is written with a version is written with it or not at all', async () => {
  const { state, store } = tree()
  await store.commit([put('taken', '')])
  const refused = state.write('s', { kind: 'data', body: 1 }, { also: [put('taken', '', { ifAbsent: true })] })
  await expect(refused).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
  expect(await state.head('s')).toBe(0)
})

test('old versions are forgotten, and those that rested on them are read as before', async () => {
  const { state, store } = tree(20)
  await state.write('s', { kind: 'data', body: { n: 0 } })
  for (let n = 1; n <= 60; n++) await state.write('s', set('/n', n))
  const kept = await store.scan('state/s/at/')
  expect(kept.length).toBeLessThanOrEqual(20)
  for (let id = 61; id > 61 - kept.length; id--) expect((await state.read('s', id))?.value).toEqual({ n: id - 1 })
  expect(await state.read('s', 1)).toBeUndefined()
  await expect(state.rollback('s', 1)).rejects.toMatchObject({ code: 'STATE_INVALID' })
  expect([await state.has('s', 1), await state.has('s', 61), await state.has('s', 62)]).toEqual([false, true, false])
})

test('the difference of two versions leads from one to the other', async () => {
  const { state } = tree()
  const one = await state.write('s', { kind: 'data', body: { a: [1, 2] } })
  const two = await state.write('s', { kind: 'data', body: { a: [2], b: {} } })
  const steps = await state.difference('s', one, two)
  const three = await state.write('s', { kind: 'patch', body: steps }, { parent: one, branch: true })
  expect((await state.read('s', three))?.value).toEqual({ a: [2], b: {} })
})

test('any history of writes, branches and rollbacks reads as a table of whole states would', async () => {
  const step = fc.oneof(
    fc.record({ act: fc.constant('data' as const), value: fc.integer() }),
    fc.record({ act: fc.constant('patch' as const), value: fc.integer(), name: fc.constantFrom('a', 'b', 'c') }),
    fc.record({ act: fc.constant('rollback' as const), to: fc.nat(40) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const { state } = tree()
      const model = new Map<number, Record<string, unknown>>()
      let head = 0
      for (const each of steps) {
        if (each.act === 'rollback') {
          if (!model.has(each.to)) continue
          await state.rollback('s', each.to)
          head = each.to
        } else if (each.act === 'data') {
          head = await state.write('s', { kind: 'data', body: { a: each.value } })
          model.set(head, { a: each.value })
        } else if (head > 0) {
          const value = { ...model.get(head), [each.name]: each.value }
          head = await state.write('s', set(`/${each.name}`, each.value))
          model.set(head, value)
        }
      }
      expect(await state.head('s')).toBe(head)
      for (const [id, value] of model) expect((await state.read('s', id))?.value).toEqual(value)
    }),
    { numRuns: 60 },
  )
})
