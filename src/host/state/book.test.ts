import { describe, expect, test } from 'vitest'
import type { StateReport } from '../../features/live/checkpoints/messages.ts'
import { memoryStore } from '../../stores/memory.ts'
import { fakeClock } from '../../testing/clock.ts'
import { type RollbackAnswer, StateBook, type StateBookOptions } from './book.ts'
import type { StateHolder } from './checkpoint-writer.ts'

type Answer = RollbackAnswer

function world(holder: StateHolder = 'host', options: Partial<StateBookOptions> = {}) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const asked: string[] = []
  const port = {
    answer: (checkpoint: string): Answer | Promise<Answer> => ({ success: true, checkpoint }),
    rolls: true,
  }
  const open = () =>
    new StateBook({
      store,
      clock,
      port: {
        holder: () => holder,
        rollsBack: () => port.rolls,
        ask: async (_server, _set, checkpoint) => {
          asked.push(checkpoint)
          return port.answer(checkpoint)
        },
      },
      ...options,
    })
  return { store, port, asked, open, book: open() }
}

const at = ['notes', 'notes.edit'] as const
const add = (path: string, value: unknown) => [{ op: 'add', path, value }]

/** Makes a call that reports. */
async function call(book: StateBook, report: StateReport) {
  return book.record(...at, report, await book.before(...at))
}

describe('what a call carries', () => {
  test('L8.4-1: where the host keeps the state, a call carries the state at the head and no checkpoint', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    await call(book, { checkpoint: 'c2', parent: 'c1', patch: add('/m', 2) })
    const sent = await book.before(...at)
    expect(sent).toMatchObject({ state: { n: 1, m: 2 }, head: 'c2' })
    expect(sent).not.toHaveProperty('checkpoint')
  })

  test('L8.4-2: the first call, with no state yet, carries no state', async () => {
    expect(Object.keys(await world().book.before(...at))).toEqual(['order'])
    expect(Object.keys(await world('server').book.before(...at))).toEqual(['order'])
  })

  test("L8.7-1: where the server keeps the state, a call carries the head's name and no state, and only lineage is stored", async () => {
    const { book, store } = world('server')
    await call(book, { checkpoint: 'c1', parent: null, data: { secret: true } })
    const sent = await book.before(...at)
    expect(sent).toMatchObject({ checkpoint: 'c1' })
    expect(sent).not.toHaveProperty('state')
    expect(JSON.stringify([...(await store.scan('')), ...(await store.read('x'))])).not.toContain('secret')
  })

  test('in dialects that do not declare who keeps it, each report decides', async () => {
    const { book } = world('either')
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    expect(await book.before(...at)).toMatchObject({ state: { n: 1 } })
    await call(book, { checkpoint: 'c2', parent: 'c1' })
    expect(await book.before(...at)).toMatchObject({ checkpoint: 'c2' })
  })

  test('a state of null is a state', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: null })
    expect(await book.before(...at)).toMatchObject({ state: null })
  })

  test('a result with neither data nor patch leaves the state as it was, at a new checkpoint', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    await call(book, { checkpoint: 'c2', parent: 'c1' })
    expect(await book.before(...at)).toMatchObject({ state: { n: 1 }, head: 'c2' })
  })
})

describe('the tree', () => {
  test('L8.2-2: checkpoints form a tree per server and feature set; a result after a rollback is a branch, and none is lost', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    await call(book, { checkpoint: 'c2', parent: 'c1', patch: add('/a', 2) })
    await book.rollback(...at, 'c1')
    await call(book, { checkpoint: 'c3', parent: 'c1', patch: add('/b', 3) })
    expect((await book.tree(...at)).map(({ checkpoint, parent, current }) => [checkpoint, parent, current])).toEqual([
      ['c1', null, false],
      ['c2', 'c1', false],
      ['c3', 'c1', true],
    ])
    expect(await book.at(...at, 'c2')).toEqual({ n: 1, a: 2 })
    expect(await book.before('notes', 'other')).not.toHaveProperty('state')
    expect(await book.before('other', 'notes.edit')).not.toHaveProperty('state')
  })

  test('L8.3-2: all six kinds of steps, the end of an array and escaped names; a step that fails fails the patch as a whole', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { list: [1], 'a/b': { '~': 1 }, x: 1, y: { z: 1 } } })
    const steps = [
      { op: 'test', path: '/a~1b/~0', value: 1 },
      { op: 'add', path: '/list/-', value: 2 },
      { op: 'remove', path: '/x' },
      { op: 'replace', path: '/a~1b/~0', value: 5 },
      { op: 'copy', from: '/y', path: '/w' },
      { op: 'move', from: '/y', path: '/v' },
    ]
    await call(book, { checkpoint: 'c2', parent: 'c1', patch: steps })
    const after = { list: [1, 2], 'a/b': { '~': 5 }, w: { z: 1 }, v: { z: 1 } }
    expect(await book.at(...at, 'c2')).toEqual(after)
    const broken = await call(book, { checkpoint: 'c3', parent: 'c2', patch: [...add('/q', 1), { op: 'remove', path: '/none' }] })
    expect(broken).toMatchObject({ mark: 'broken', current: false, whys: [{ rule: 'state.patch' }] })
    expect(await book.before(...at)).toMatchObject({ state: after, head: 'c2' })
  })

  test('L8.3-3: the state at every checkpoint can be had, in any order, also after a restart', async () => {
    const { book, open } = world()
    await call(book, { checkpoint: 'c0', parent: null, data: { n: 0 } })
    for (let n = 1; n <= 60; n++) await call(book, { checkpoint: `c${n}`, parent: `c${n - 1}`, patch: add('/n', n) })
    const again = open()
    for (const n of [60, 3, 17, 0, 59, 31]) expect(await again.at(...at, `c${n}`)).toEqual({ n })
    expect(await again.before(...at)).toMatchObject({ head: 'c60', state: { n: 60 } })
  })

  test('a diff leads from any checkpoint to any other, across branches', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { a: 1 } })
    await call(book, { checkpoint: 'c2', parent: 'c1', patch: add('/b', 2) })
    await book.rollback(...at, 'c1')
    await call(book, { checkpoint: 'c3', parent: 'c1', patch: add('/c', 3) })
    const steps = await book.diff(...at, 'c2', 'c3')
    await call(book, { checkpoint: 'c4', parent: 'c2', patch: steps })
    expect(await book.at(...at, 'c4')).toEqual({ a: 1, c: 3 })
    await expect(book.diff(...at, 'c2', 'nowhere')).rejects.toMatchObject({ code: 'CHECKPOINT_NOT_FOUND' })
  })

  test('the oldest checkpoints are forgotten, but never the head', async () => {
    const { book } = world('host', { checkpoints: 20 })
    await call(book, { checkpoint: 'first', parent: null, data: { n: 0 } })
    for (let n = 1; n <= 60; n++)
      await call(book, { checkpoint: `c${n}`, parent: n === 1 ? 'first' : `c${n - 1}`, patch: add('/n', n) })
    expect((await book.tree(...at)).length).toBeLessThanOrEqual(20)
    expect(await book.before(...at)).toMatchObject({ state: { n: 60 } })
    await expect(book.at(...at, 'first')).rejects.toMatchObject({ code: 'CHECKPOINT_NOT_FOUND' })
  })

  test('names of any kind are names, and what is none is told', async () => {
    const { book } = world()
    for (const checkpoint of ['__proto__', 'a/b', '\ud800', ' ', 'constructor'])
      expect(await call(book, { checkpoint, parent: null, data: { checkpoint } })).toMatchObject({ current: true })
    expect(await book.at(...at, '__proto__')).toEqual({ checkpoint: '__proto__' })
    for (const checkpoint of ['', 'x'.repeat(513)])
      expect(await call(book, { checkpoint, data: 1 })).toMatchObject({ current: false, whys: [{ code: 'CHECKPOINT_INVALID' }] })
  })

  test('the sets that have checkpoints are listed', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', data: 1 })
    expect(await book.sets()).toEqual([{ server: 'notes', featureSet: 'notes.edit' }])
  })
})

describe('A13', () => {
  test('A13: a parent that is not said is the head that the call was sent with', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', data: { n: 1 } })
    const sent = await book.before(...at)
    await call(book, { checkpoint: 'c2', data: { n: 2 } })
    await book.record(...at, { checkpoint: 'c3', patch: add('/late', true) }, sent)
    expect(await book.tree(...at)).toMatchObject([
      { checkpoint: 'c1', parent: null },
      { checkpoint: 'c2', parent: 'c1' },
      { checkpoint: 'c3', parent: 'c1' },
    ])
    expect(await book.at(...at, 'c3')).toEqual({ n: 1, late: true })
  })

  test('A13: a parent of null is a new root', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: 1 })
    await call(book, { checkpoint: 'c2', parent: null, data: 2 })
    expect(await book.tree(...at)).toMatchObject([{ parent: null }, { parent: null, current: true }])
  })

  test('A13: an unknown parent makes an orphan, which asks for data, and is placed when the parent comes', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    const [first, second] = [await book.before(...at), await book.before(...at)]
    const orphan = await book.record(...at, { checkpoint: 'c3', parent: 'c2', patch: add('/m', 3) }, second)
    expect(orphan).toMatchObject({ mark: 'orphan', current: false })
    expect(orphan.whys[0]).toMatchObject({ code: 'CHECKPOINT_ORPHAN', fix: expect.stringContaining('data') })
    await book.record(...at, { checkpoint: 'c2', parent: 'c1', patch: add('/n', 2) }, first)
    expect(await book.before(...at)).toMatchObject({ head: 'c3', state: { n: 2, m: 3 } })
  })

  test('A13: an orphan that brings its data is a state like others', async () => {
    const { book } = world()
    expect(await call(book, { checkpoint: 'c3', parent: 'lost', data: { n: 3 } })).toMatchObject({
      mark: 'orphan',
      current: true,
    })
    expect(await book.before(...at)).toMatchObject({ state: { n: 3 } })
  })

  test('A13: an orphan that is told again with data is no longer without a state', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c3', parent: 'lost', patch: add('/n', 1) })
    expect(await call(book, { checkpoint: 'c3', parent: 'lost', data: { n: 1 } })).toMatchObject({ current: true })
    expect(await book.tree(...at)).toHaveLength(1)
  })

  test('A13: a patch is applied to the state at its parent, not to the head', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    await call(book, { checkpoint: 'c2', parent: 'c1', patch: add('/at', 'head') })
    await call(book, { checkpoint: 'c3', parent: 'c1', patch: add('/m', 3) })
    expect(await book.at(...at, 'c3')).toEqual({ n: 1, m: 3 })
  })

  test('A13: of data and patch together the data counts, and a difference between them is told', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    const odd = await call(book, { checkpoint: 'c2', parent: 'c1', data: { n: 5 }, patch: add('/n', 2) })
    expect(odd).toMatchObject({ current: true, whys: [{ code: 'STATE_MISMATCH' }] })
    expect(await book.at(...at, 'c2')).toEqual({ n: 5 })
    expect(await call(book, { checkpoint: 'c3', parent: 'c2', data: { n: 6 }, patch: add('/n', 6) })).toMatchObject({ whys: [] })
  })

  test('A13: a patch that fails leaves a broken node and the head where it was; what builds on it is broken too', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    for (const patch of [[{ op: 'test', path: '/n', value: 2 }], [{ op: 'add', path: '/__proto__/x', value: 1 }], [null]])
      expect(await call(book, { checkpoint: 'bad', parent: 'c1', patch })).toMatchObject({ mark: 'broken', current: false })
    expect(await call(book, { checkpoint: 'c3', parent: 'bad', patch: add('/n', 3) })).toMatchObject({ mark: 'broken' })
    expect(await book.before(...at)).toMatchObject({ head: 'c1', state: { n: 1 } })
    expect((await book.tree(...at)).map(({ state }) => state)).toEqual(['kept', 'broken', 'broken'])
    expect(await call(book, { checkpoint: 'bad', parent: 'c1', data: { n: 2 } })).toMatchObject({ current: true })
  })

  test('A13: tests in patches compare values, not texts', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { a: { x: 1, y: [2] } } })
    const patch = [{ op: 'test', path: '/a', value: { y: [2], x: 1 } }, ...add('/ok', true)]
    expect(await call(book, { checkpoint: 'c2', parent: 'c1', patch })).toMatchObject({ current: true, whys: [] })
  })

  test('A13: results of calls in flight together are siblings, and the head is that of the call sent last', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    const [first, second] = [await book.before(...at), await book.before(...at)]
    await book.record(...at, { checkpoint: 'b', patch: add('/by', 'second') }, second)
    const late = await book.record(...at, { checkpoint: 'a', patch: add('/by', 'first') }, first)
    expect(late.current).toBe(false)
    expect(await book.before(...at)).toMatchObject({ head: 'b', state: { n: 1, by: 'second' } })
    expect(await book.at(...at, 'a')).toEqual({ n: 1, by: 'first' })
  })

  test('A13: a result that comes after its call was given up is recorded, but moves no head that has gone on', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    const given = await book.before(...at)
    await book.rollback(...at, 'c1')
    const late = await book.record(...at, { checkpoint: 'late', patch: add('/late', true) }, given)
    expect(late).toMatchObject({ current: false })
    expect(await book.at(...at, 'late')).toEqual({ n: 1, late: true })
    expect(await book.before(...at)).toMatchObject({ head: 'c1' })
  })

  test('A13: work on one set can be done one after the other', async () => {
    const { book } = world()
    const seen: string[] = []
    const work = (name: string) => async () => {
      seen.push(`${name} begins`)
      await Promise.resolve()
      seen.push(`${name} ends`)
    }
    await Promise.all([book.serially(...at, work('a')), book.serially(...at, work('b'))])
    expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
  })

  test('the same report twice is one checkpoint; the same name for another state is a new one, and told', async () => {
    const { book } = world()
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    await call(book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    expect(await book.tree(...at)).toHaveLength(1)
    const reused = await call(book, { checkpoint: 'c1', parent: null, data: { n: 2 } })
    expect(reused).toMatchObject({ current: true, whys: [{ code: 'CHECKPOINT_REUSED' }] })
    expect(await book.tree(...at)).toHaveLength(2)
    expect(await book.at(...at, 'c1')).toEqual({ n: 2 })
  })
})

describe('going back', () => {
  async function two(holder?: StateHolder) {
    const all = world(holder)
    await call(all.book, { checkpoint: 'c1', parent: null, data: { n: 1 } })
    await call(all.book, { checkpoint: 'c2', parent: 'c1', patch: add('/n', 2) })
    return all
  }

  test('L8.5-1: only sets that declare it are asked to roll back', async () => {
    const { book, port, asked } = await two()
    port.rolls = false
    expect(await book.rollback(...at, 'c1')).toMatchObject({ success: false, why: { code: 'ROLLBACK_NOT_OFFERED' } })
    expect(asked).toEqual([])
  })

  test.each<Answer>([
    { success: false, checkpoint: 'c1', reason: 'Checkpoint not found' },
    { success: false, checkpoint: 'c1' },
  ])('L8.6-1: where the server says no, the head does not move (%j)', async answer => {
    const { book, port } = await two()
    port.answer = () => answer
    expect(await book.rollback(...at, 'c1')).toMatchObject({ success: false, why: { code: 'ROLLBACK_REFUSED' } })
    expect(await book.before(...at)).toMatchObject({ head: 'c2', state: { n: 2 } })
  })

  test('where the host keeps the state it goes back to before the first checkpoint, for every process, and what was sent before does not lead', async () => {
    const { book, asked, open, port } = await two()
    const sent = await book.before(...at)
    expect(await book.rollback(...at, null)).toEqual({ success: true, hostOnly: true })
    expect(asked).toEqual([])
    for (const each of [book, open()]) expect(Object.keys(await each.before(...at))).toEqual(['order'])
    expect(await book.record(...at, { checkpoint: 'late', parent: 'c2', data: {} }, sent)).toMatchObject({ current: false })
    expect(await book.rollback(...at, null)).toEqual({ success: true })
    expect(await book.rollback(...at, 'c2')).toEqual({ success: true, head: 'c2' })
    expect(await book.before(...at)).toMatchObject({ state: { n: 2 } })
    port.rolls = false
    expect(await book.rollback(...at, null)).toMatchObject({ success: false, why: { code: 'ROLLBACK_NOT_OFFERED' } })
    const { book: theirs } = await two('server')
    expect(await theirs.rollback(...at, null)).toMatchObject({ success: false, why: { code: 'NO_EARLIER_STATE' } })
    expect(await theirs.before(...at)).toMatchObject({ checkpoint: 'c2' })
  })

  test('L8.6-2: after a yes the next call carries the state gone back to', async () => {
    const { book, asked, open } = await two()
    expect(await book.rollback(...at, 'c1')).toEqual({ success: true, head: 'c1' })
    expect(asked).toEqual(['c1'])
    expect(await book.before(...at)).toMatchObject({ state: { n: 1 } })
    expect(await open().before(...at)).toMatchObject({ head: 'c1', state: { n: 1 } })
  })

  test('L8.6-2: where the server keeps the state, the next call carries the checkpoint gone back to', async () => {
    const { book } = await two('server')
    await book.rollback(...at, 'c1')
    expect(await book.before(...at)).toMatchObject({ checkpoint: 'c1' })
  })

  test('L8.8-1: no server is taken to keep checkpoints for ever: its no is told, and the tree stays', async () => {
    const { book, port } = await two('server')
    port.answer = checkpoint => ({ success: false, checkpoint, reason: 'Checkpoint not found' })
    expect(await book.rollback(...at, 'c1')).toMatchObject({
      success: false,
      why: { message: expect.stringContaining('not found') },
    })
    expect(await book.tree(...at)).toHaveLength(2)
  })

  test('A14: a yes under a new name is a checkpoint like the one gone back to', async () => {
    const { book, port } = await two()
    port.answer = () => ({ success: true, checkpoint: 'seq_5' })
    expect(await book.rollback(...at, 'c1')).toEqual({ success: true, head: 'seq_5' })
    expect(await book.at(...at, 'seq_5')).toEqual({ n: 1 })
    expect((await book.tree(...at)).at(-1)).toMatchObject({ checkpoint: 'seq_5', parent: 'c1', current: true })
  })

  test('A14: a server that does not know the question does not hinder what the host keeps, and that is told', async () => {
    const { book, port } = await two()
    port.answer = checkpoint => ({ success: false, checkpoint, unsupported: true })
    expect(await book.rollback(...at, 'c1')).toEqual({ success: true, head: 'c1', hostOnly: true })
    const managed = await two('server')
    managed.port.answer = checkpoint => ({ success: false, checkpoint, unsupported: true })
    expect(await managed.book.rollback(...at, 'c1')).toMatchObject({ success: false })
  })

  test('a call that is sent while the server goes back, and is answered first, keeps the head', async () => {
    const { book, port } = await two()
    port.answer = async checkpoint => {
      await call(book, { checkpoint: 'c3', parent: 'c1', patch: add('/m', 3) })
      return { success: true, checkpoint }
    }
    expect(await book.rollback(...at, 'c1')).toEqual({ success: true, head: 'c3' })
    expect(await book.before(...at)).toMatchObject({ head: 'c3', state: { n: 1, m: 3 } })
  })

  test('what is unknown or broken is not asked for', async () => {
    const { book, asked } = await two()
    await call(book, { checkpoint: 'bad', parent: 'c2', patch: [null] })
    for (const checkpoint of ['nowhere', 'bad'])
      expect(await book.rollback(...at, checkpoint)).toMatchObject({ success: false, why: { code: 'CHECKPOINT_NOT_FOUND' } })
    expect(asked).toEqual([])
  })

  test('two processes on one store lose nothing of each other', async () => {
    const { book, open } = await two()
    const other = open()
    await call(other, { checkpoint: 'o1', parent: 'c2', patch: add('/o', 1) })
    await call(book, { checkpoint: 'b1', parent: 'c2', patch: add('/b', 1) })
    expect((await open().tree(...at)).map(({ checkpoint }) => checkpoint)).toEqual(['c1', 'c2', 'o1', 'b1'])
  })
})
