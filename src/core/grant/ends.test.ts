import { afterEach, expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { fakeClock } from '../../testing/clock.ts'
import { type GrantEndReason, GrantEnds } from './ends.ts'
import type { GrantTerms } from './grant.ts'
import { Grants } from './grants.ts'

const terms: GrantTerms = { effect: 'permit', action: 'read', resource: '*', source: 'test' }
const opened: GrantEnds[] = []
afterEach(() => {
  for (const ends of opened.splice(0)) ends.close()
})

/** Two processes on one store. */
function world(given?: (store: Store) => Store) {
  const clock = fakeClock()
  const memory = memoryStore({ now: clock.now })
  const store = given?.(memory) ?? memory
  let ids = 0
  const grants = new Grants({ store, clock, id: () => `g${++ids}` })
  const ends = new GrantEnds({ grants, clock })
  opened.push(ends)
  const elsewhere = new Grants({ store: memory, clock, id: () => `h${++ids}` })
  return { clock, grants, ends, elsewhere }
}

const settled = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
}

test('X5: who has something under a grant hears of its end once, and why', async () => {
  const { clock, grants, ends, elsewhere } = world()
  const heard: string[] = []
  const lasting = await grants.issue('ann', terms, 60_000)
  const brief = await grants.issue('ann', terms, 5_000)
  const idle = await grants.issue('ann', { ...terms, idleMs: 3_000 }, 60_000)
  for (const { id } of [lasting, brief, idle])
    for (const by of ['a', 'b']) ends.on('ann', id, why => heard.push(`${id} ${by} ${why}`))
  await settled()
  expect(heard).toEqual([])
  clock.advance(3_000)
  await settled()
  expect(heard.splice(0)).toEqual([`${idle.id} a idle`, `${idle.id} b idle`])
  clock.advance(2_000)
  await settled()
  expect(heard.splice(0)).toEqual([`${brief.id} a expired`, `${brief.id} b expired`])
  await elsewhere.revoke('ann', lasting.id)
  await settled()
  expect(heard).toEqual([`${lasting.id} a revoked`, `${lasting.id} b revoked`])
})

test('X5: a grant that expired before anybody looked at it has expired, and one that was revoked was revoked', async () => {
  const { clock, grants, ends, elsewhere } = world()
  const brief = await grants.issue('ann', terms, 5_000)
  const taken = await grants.issue('ann', terms, 60_000)
  clock.advance(5_000)
  await elsewhere.revoke('ann', taken.id)
  const heard: string[] = []
  for (const { id } of [brief, taken]) ends.on('ann', id, why => heard.push(`${id} ${why}`))
  await settled()
  expect(heard).toEqual([`${brief.id} expired`, `${taken.id} revoked`])
})

test('X5: a record that its store drops a little before its time, by another clock, has expired', async () => {
  const { clock, grants } = world()
  const grant = await grants.issue('ann', terms, 60_000)
  clock.advance(60_000)
  expect(await grants.lifeOf('ann', grant.id, clock.now() + 5)).toEqual({ over: 'expired' })
  expect(await grants.lifeOf('ann', grant.id, clock.now() + 3_600_000)).toEqual({ over: 'revoked' })
})

test('X5: use keeps a grant from ending idle, and who let go hears nothing', async () => {
  const { clock, grants, ends } = world()
  const heard: GrantEndReason[] = []
  const grant = await grants.issue('ann', { ...terms, idleMs: 3_000 }, 60_000)
  ends.on('ann', grant.id, why => heard.push(why))
  const release = ends.on('ann', grant.id, () => heard.push('revoked'))
  await settled()
  release()
  clock.advance(2_000)
  const decision = await grants.decide({ owner: 'ann', action: 'read', resource: 'x', presented: [grant.id] })
  expect(decision.kind === 'allow' && (await grants.use(decision.uses))).toBe(true)
  clock.advance(2_000)
  await settled()
  expect(heard).toEqual([])
  clock.advance(1_000)
  await settled()
  expect(heard).toEqual(['idle'])
})

test('X5: an end is noticed in time where every hint gets lost, and one that came before it was asked for at once', async () => {
  const deaf = (store: Store): Store => ({
    ...{ get: k => store.get(k), scan: (p, o) => store.scan(p, o), commit: ops => store.commit(ops), close: () => store.close() },
    read: (log, options) => store.read(log, options),
    watch: () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }) }),
  })
  const { clock, grants, ends, elsewhere } = world(deaf)
  const heard: GrantEndReason[] = []
  const grant = await grants.issue('ann', terms, 60_000)
  ends.on('ann', grant.id, why => heard.push(why))
  await settled()
  await elsewhere.revoke('ann', grant.id)
  await settled()
  expect(heard).toEqual([])
  clock.advance(1_000)
  await settled()
  expect(heard).toEqual(['revoked'])
  ends.on('ann', grant.id, why => heard.push(why))
  await settled()
  expect(heard).toEqual(['revoked', 'revoked'])
})

test('X5: a grant that is revoked between two looks at it was revoked, not left unused', async () => {
  let between: (() => Promise<unknown>) | undefined
  const { grants, elsewhere } = world(store => {
    const get = async (key: string) => {
      const found = await store.get(key)
      const act = found === undefined ? undefined : between
      if (act !== undefined) between = undefined
      await act?.()
      return found
    }
    return {
      get,
      scan: (prefix, options) => store.scan(prefix, options),
      read: (log, options) => store.read(log, options),
      commit: ops => store.commit(ops),
      watch: (prefixes, signal) => store.watch(prefixes, signal),
      close: () => store.close(),
    }
  })
  const grant = await grants.issue('ann', { ...terms, idleMs: 3_000 }, 60_000)
  between = () => elsewhere.revoke('ann', grant.id)
  expect(await grants.lifeOf('ann', grant.id, grant.expires)).toEqual({ over: 'revoked' })
})
