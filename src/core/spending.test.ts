import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { type StoreKind, storeKinds, storesUnderTest } from '../../test/stores-under-test.ts'
import { put, type Store } from '../stores/store.ts'
import { createSeal, type OpenedHandle, UsedHandles } from './handle.ts'

const stores = storesUnderTest()
const opened: Store[] = []
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
})

async function world(kind: StoreKind) {
  const clock = stores.clock()
  const store = await stores.open(kind, clock)
  opened.push(store)
  const seal = createSeal({ clock })
  const open = async (data: unknown = 1, ms = 300_000): Promise<OpenedHandle> =>
    seal.read(await seal.seal({ kind: 'confirmation', expiresAt: clock.now() + ms, data }), { kind: 'confirmation' })
  return { clock, store, open, start: () => new UsedHandles({ store, clock }) }
}

describe.each(storeKinds)('uses on %s', kind => {
  test('E6-4: of many who come with a single-use handle at once, in two processes, one may use it', async () => {
    const { open, start } = await world(kind)
    const [handle, one, two] = [await open(), start(), start()]
    const used = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two).spend(handle)))
    expect(used.filter(Boolean)).toHaveLength(1)
    expect([await one.isSpent(handle), await two.spend(handle)]).toEqual([true, false])
  })

  test('two handles over the same content are two', async () => {
    const { open, start } = await world(kind)
    const spending = start()
    expect([await spending.spend(await open('same')), await spending.spend(await open('same'))]).toEqual([true, true])
  })

  test('E6-4, X10: a use is remembered as long as the handle is valid, and then forgotten', async () => {
    const { clock, store, open, start } = await world(kind)
    const [handle, spending] = [await open(), start()]
    await spending.spend(handle)
    await clock.advance(299_999)
    expect(await spending.spend(handle)).toBe(false)
    expect(await store.scan('spent/')).toHaveLength(1)
    await clock.advance(60_001)
    expect(await store.scan('spent/')).toHaveLength(0)
    expect(await spending.spend(handle)).toBe(false)
  })

  test('E6-4: a process whose clock is ahead does not make a handle good for another use', async () => {
    const { clock, store, open, start } = await world(kind)
    const handle = await open()
    const ahead = new UsedHandles({ store, clock: { ...clock, now: () => clock.now() + 30_000 } })
    expect(await ahead.spend(handle)).toBe(true)
    await clock.advance(280_000)
    expect(await start().spend(handle)).toBe(false)
  })

  test('what is written with a use is written with it or not at all', async () => {
    const { store, open, start } = await world(kind)
    const [handle, spending] = [await open(), start()]
    expect(await spending.spend(handle, 1, [put('effect', 'one')])).toBe(true)
    expect(await spending.spend(handle, 1, [put('effect', 'two')])).toBe(false)
    expect(await store.get('effect')).toMatchObject({ value: 'one' })
  })
})

test('E6-8: a handle is good for exactly as many uses as it says, whoever counts them', async () => {
  const { open, start } = await world('memory')
  const processes = [start(), start()]
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.array(fc.nat(1), { maxLength: 10 }), async (uses, comers) => {
      const handle = await open()
      const used = await Promise.all(comers.map(at => (processes[at] as UsedHandles).spend(handle, uses)))
      expect(used.filter(Boolean)).toHaveLength(Math.min(uses, comers.length))
    }),
    { numRuns: 50 },
  )
})
