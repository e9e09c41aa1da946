import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { put } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import type { Note } from './host-audit.ts'
import { HostAuditLog } from './host-audit.ts'

function world(options: Partial<ConstructorParameters<typeof HostAuditLog>[0]> = {}) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  return { clock, store, audit: new HostAuditLog({ store, clock, ...options }) }
}

const push: Note = {
  server: 'memory',
  featureSet: 'memory.push',
  eventId: 'e1',
  inferenceId: 'i1',
  kind: 'push',
  outcome: 'success',
}
const limit = { code: 'RATE_LIMITED', rule: 'policy.rate', message: 'Too many events', fix: 'Raise policy.rate for memory' }

test('L13.2-1: a note of an operation has its server, feature set, inference, time and outcome', async () => {
  const { audit, clock } = world()
  await audit.note(push)
  await audit.note({ ...push, kind: 'hook.before', outcome: 'timeout', ms: 5_000 })
  await audit.note({ ...push, kind: 'tool', outcome: 'failure' })
  expect((await audit.query()).notes).toEqual([
    { ...push, at: clock.now() },
    { ...push, kind: 'hook.before', outcome: 'timeout', ms: 5_000, at: clock.now() },
    { ...push, kind: 'tool', outcome: 'failure', at: clock.now() },
  ])
})

test('a refusal is told with its code, rule and fix', async () => {
  const { audit } = world()
  await audit.note({ ...push, outcome: 'refused', why: limit })
  expect((await audit.query({ outcome: 'refused' })).notes).toMatchObject([{ why: limit }])
})

test('a note stands in the commit of what it tells, or not at all', async () => {
  const { audit, store } = world()
  await store.commit([put('taken', '')])
  await store.commit([put('taken', '', { ifAbsent: true }), ...audit.ops(push)])
  expect((await audit.query()).notes).toEqual([])
  await store.commit([put('free', '', { ifAbsent: true }), ...audit.ops(push)])
  expect((await audit.query()).notes).toHaveLength(1)
})

test('notes are found by server, feature set, inference, kind, outcome and time, as a filter over all would find them', async () => {
  const some = <T>(...values: T[]) => fc.constantFrom(...values)
  const note = fc.record({
    server: some('a', 'b'),
    featureSet: some('x', 'y', undefined),
    inferenceId: some('1', '2', undefined),
    kind: some('push', 'tool'),
    outcome: some('success', 'refused') as fc.Arbitrary<Note['outcome']>,
    later: some(0, 0, 1_000, 60_000),
  })
  const maybe = <T>(...values: T[]) => some(undefined, ...values)
  const question = fc.record({
    server: maybe('a', 'b'),
    featureSet: maybe('x'),
    inferenceId: maybe('1', '2'),
    kind: maybe('push'),
    outcome: maybe('refused') as fc.Arbitrary<Note['outcome'] | undefined>,
    since: maybe(0, 50_000, 100_000),
    until: maybe(90_000, 200_000),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(note, { maxLength: 40 }), question, async (notes, asked) => {
      const { audit, clock } = world()
      const start = clock.now()
      const all: (Note & { at: number })[] = []
      for (const { later, ...each } of notes) {
        clock.advance(later)
        await audit.note(each)
        all.push({ ...each, at: clock.now() })
      }
      const { since, until, ...same } = asked
      const expected = all.filter(
        each =>
          Object.entries(same).every(([name, value]) => value === undefined || each[name as keyof Note] === value) &&
          (since === undefined || each.at >= start + since) &&
          (until === undefined || each.at < start + until),
      )
      const found = await audit.query({
        ...(JSON.parse(JSON.stringify(same)) as object),
        ...(since !== undefined && { since: start + since }),
        ...(until !== undefined && { until: start + until }),
      })
      expect(found.notes).toEqual(JSON.parse(JSON.stringify(expected)))
    }),
    { numRuns: 60 },
  )
})

test('a long answer comes in pages', async () => {
  const { audit } = world()
  for (let i = 0; i < 7; i++) await audit.note({ ...push, detail: `${i}` })
  const first = await audit.query({ limit: 5 })
  const second = await audit.query({ limit: 5, ...(first.next !== undefined && { after: first.next }) })
  expect([...first.notes, ...second.notes].map(({ detail }) => detail)).toEqual(['0', '1', '2', '3', '4', '5', '6'])
  expect(second.next).toBeUndefined()
})

test('an explanation joins an event, the inference it led to, and what that did', async () => {
  const { audit, clock } = world()
  await audit.note(push)
  clock.advance(5)
  await audit.note({ server: 'tools', inferenceId: 'i1', kind: 'tool', outcome: 'refused', why: limit, detail: 'delete' })
  await audit.note({ server: 'other', inferenceId: 'i2', kind: 'tool', outcome: 'success' })
  await audit.note({ server: 'memory', inferenceId: 'i3', cause: 'i1', kind: 'infer', outcome: 'success' })
  const byEvent = await audit.explain('e1')
  expect(byEvent.notes.map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual([
    'push success',
    'tool refused',
    'infer success',
  ])
  expect(byEvent.notes[1]?.why).toEqual(limit)
  expect((await audit.explain('i1')).notes).toEqual(byEvent.notes)
  expect((await audit.explain('unknown')).notes).toEqual([])
})

test('of two servers that use one event id, the one asked for is explained', async () => {
  const { audit } = world()
  await audit.note({ server: 'a', eventId: 'e', kind: 'push', outcome: 'refused', why: limit })
  await audit.note({ server: 'b', eventId: 'e', kind: 'push', outcome: 'success' })
  expect((await audit.explain('e', { server: 'b' })).notes).toMatchObject([{ server: 'b' }])
  expect((await audit.explain('e')).notes).toHaveLength(2)
})

test('ids of any length and letters are explained', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 300 }), async id => {
      const { audit } = world()
      await audit.note({ server: 's', eventId: `x${id}`, kind: 'push', outcome: 'success' })
      expect((await audit.explain(`x${id}`)).notes).toHaveLength(1)
    }),
    { numRuns: 50 },
  )
})

test('the chain over all notes proves that none was changed', async () => {
  const { audit } = world()
  await Promise.all(Array.from({ length: 300 }, () => audit.note(push)))
  expect(await audit.verify()).toMatchObject({ ok: true, lines: 300 })
  await audit.close()
})

test('what keeps notes from being written is told, and stops nobody', async () => {
  const told: unknown[] = []
  const { store, clock } = world()
  const audit = new HostAuditLog({ store, clock, failed: error => told.push(error) })
  await store.close()
  await audit.note(push)
  expect(told).toHaveLength(1)
})
