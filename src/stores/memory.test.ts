import { expect, test } from 'vitest'
import { storeContract } from '../../test/stores/contract.ts'
import { memoryStore } from './memory.ts'
import { put } from './store.ts'

storeContract('memory', async () => {
  let now = 1_000_000
  const store = memoryStore({ now: () => now })
  return {
    store,
    advance: async ms => {
      now += ms
    },
    close: () => store.close(),
  }
})

test('a full store refuses what would grow it, keeps what it has, and takes again once something is over', async () => {
  let now = 0
  const store = memoryStore({ now: () => now, bytes: 4096 })
  await store.commit([put('a', 'x'.repeat(1500), { ttl: 10 })])
  await expect(store.commit([put('b', 'x'.repeat(1500))])).rejects.toThrow(/bytes are in use\. Raise its limit/)
  expect(await store.get('b')).toBeUndefined()
  now = 10
  expect(await store.commit([put('b', 'x'.repeat(1500))])).toMatchObject({ ok: true })
})

test('entries whose time is over are let go of without anybody asking for them', async () => {
  let now = 0
  const store = memoryStore({ now: () => now, bytes: 400_000 })
  for (let round = 0; round < 20; round++) {
    await store.commit(Array.from({ length: 500 }, (_, i) => put(`${round}/${i}`, 'x', { ttl: 5 })))
    now += 10
  }
  expect(await store.scan('')).toEqual([])
})
