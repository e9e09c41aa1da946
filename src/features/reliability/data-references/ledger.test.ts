import { expect, it } from 'vitest'
import { until } from '../../../../test/until.ts'
import { memoryBlobs, memoryStore } from '../../../stores/index.ts'
import { fakeClock } from '../../../testing/index.ts'
import { Ledger } from './ledger.ts'

function world(most = 10) {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const blobs = memoryBlobs()
  const ledger = new Ledger({ store, blobs, clock, trace: () => undefined, most, bytes: 1_000 })
  // The first look, for what an earlier life has left.
  clock.advance(0)
  const keep = async (id: string, text: string, ms: number): Promise<string> => {
    const { digest, size } = await blobs.put(new Blob([text]).stream())
    const kept = { id, digest, size, mime: 'text/plain', name: id, owner: 'me', account: 'me', expires: clock.now() + ms }
    await ledger.add(kept, async () => undefined)
    return digest
  }
  const has = async (digest: string): Promise<boolean> => (await blobs.get(digest)) !== undefined
  return { clock, ledger, keep, has }
}

it('a content goes when the last reference to it is over, and not before', async () => {
  const { clock, ledger, keep, has } = world()
  const digest = await keep('short', 'same', 1_000)
  expect(await keep('long', 'same', 200_000)).toBe(digest)
  const other = await keep('other', 'another', 1_000)
  clock.advance(60_000)
  await until(async () => expect(await has(other)).toBe(false))
  expect([await ledger.find('short'), (await ledger.find('long'))?.id, await has(digest)]).toEqual([undefined, 'long', true])
  await until(async () => {
    clock.advance(60_000)
    expect(await has(digest)).toBe(false)
  })
  ledger.close()
})

it('there are never more than the most, and what was refused leaves no content', async () => {
  const { ledger, keep } = world(1)
  await keep('one', 'first', 1_000)
  await expect(keep('two', 'second', 1_000)).rejects.toMatchObject({ code: 'QUOTA_EXHAUSTED' })
  expect(await ledger.find('two')).toBeUndefined()
  expect((await ledger.find('one'))?.name).toBe('one')
  ledger.close()
})
