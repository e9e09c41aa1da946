import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../../test/tasks/raw-peer.ts'
import { memoryStore } from '../../../stores/memory.ts'
import { type TableLimits, type TaskRecord, tableLimits } from './record.ts'
import { memoryTasks, storeTasks, type TaskTable } from './table.ts'

const clock = new ManualClock()

function record(id: string, more: Partial<TaskRecord> = {}): TaskRecord {
  return {
    id,
    owner: 'ann',
    revision: '2025-11-25',
    status: 'working',
    createdAt: clock.now(),
    updatedAt: clock.now(),
    ttlMs: 60_000,
    pollMs: 1_000,
    questions: {},
    bytes: 0,
    ...more,
  }
}

const memory = (limits?: TableLimits): TaskTable => memoryTasks(clock, limits)
const onStore = (limits?: TableLimits): TaskTable => {
  const store = memoryStore({ now: clock.now })
  return storeTasks({ open: async () => store, clock, ...(limits === undefined ? {} : { limits }) })
}

describe.each([
  ['in memory', memory],
  ['on a store', onStore],
])('the table of tasks %s', (_, open) => {
  it('gives back what was added until its time is over, and is without it at once then (rev D §1.6)', async () => {
    const table = open()
    await table.add(record('a', { ttlMs: 1_000 }))
    expect(await table.get('a')).toMatchObject({ id: 'a' })
    clock.advance(999)
    expect(await table.get('a')).toMatchObject({ id: 'a' })
    clock.advance(1)
    expect(await table.get('a')).toBeUndefined()
  })

  it('never changes a task that has ended (rev D §1.6)', async () => {
    const table = open()
    await table.add(record('a'))
    expect(await table.change('a', before => ({ ...before, status: 'cancelled' }))).toMatchObject({ status: 'cancelled' })
    expect(await table.change('a', before => ({ ...before, status: 'completed' }))).toBeUndefined()
    expect(await table.get('a')).toMatchObject({ status: 'cancelled' })
  })

  it('leaves a record that the change does not want to touch', async () => {
    const table = open()
    await table.add(record('a'))
    expect(await table.change('a', () => undefined)).toBeUndefined()
    expect(await table.change('nobody', before => before)).toBeUndefined()
  })

  it('refuses a task too many instead of forgetting one, and says so', async () => {
    const table = open({ ...tableLimits, tasks: 2 })
    await table.add(record('a'))
    await table.add(record('b', { ttlMs: 10 }))
    await expect((async () => table.add(record('c')))()).rejects.toThrow('2 tasks are kept, which is the limit')
    clock.advance(10)
    await table.add(record('c'))
    expect(await table.get('a')).toBeDefined()
  })

  it('counts the tasks of each principal by themselves', async () => {
    const table = open({ ...tableLimits, tasksPerPrincipal: 1 })
    await table.add(record('a'))
    await table.add(record('b', { owner: 'bob' }))
    await table.add(record('c', { owner: undefined }))
    await table.add(record('d', { owner: undefined }))
    await expect((async () => table.add(record('e')))()).rejects.toThrow('1 of your tasks are kept')
  })

  it('refuses results that together take too much, and has the room again when they are gone', async () => {
    const table = open({ ...tableLimits, bytes: 100 })
    await table.add(record('a'))
    await table.add(record('b'))
    const done = (before: TaskRecord): TaskRecord => ({ ...before, status: 'completed', bytes: 60 })
    await table.change('a', done)
    await expect((async () => table.change('b', done))()).rejects.toThrow('which is the limit')
    await table.delete('a')
    expect(await table.change('b', done)).toMatchObject({ status: 'completed' })
  })

  it('lists the tasks of one principal on one wire in pages that stay good while tasks come and go', async () => {
    const table = open()
    for (const id of ['a', 'b', 'c']) await table.add(record(id))
    await table.add(record('x', { owner: 'bob' }))
    await table.add(record('y', { revision: 'draft-2026-v1' }))
    const first = await table.list('ann', '2025-11-25', { limit: 2 })
    expect(first.records.map(({ id }) => id)).toEqual(['a', 'b'])
    await table.delete('b')
    const second = await table.list('ann', '2025-11-25', { limit: 2, after: first.next })
    expect(second.records.map(({ id }) => id)).toEqual(['c'])
    expect(second.next).toBeUndefined()
  })
})
