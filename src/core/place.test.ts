import { expect, it } from 'vitest'
import { createSeal, HandleError } from './handle.ts'
import { openPlace, type Place, sealPlace } from './place.ts'

const seal = createSeal()
const holder = { principal: 'ann', audience: 'tickets' }
const place: Place = { in: 'feed', of: 'ann/transactions', at: 42 }
const token = sealPlace(seal, place, holder, Date.now() + 60_000)

it('a place that was given away is found again', async () => {
  expect(await openPlace(seal, await token, { in: 'feed' }, holder)).toEqual(place)
  expect(await openPlace(seal, await token, { in: 'feed', of: place.of }, holder)).toEqual(place)
})

it.each([
  ['a place in something else', { in: 'state' as const }, holder],
  ['a place in another feed', { in: 'feed' as const, of: 'ann/other' }, holder],
  ['the place of another principal', { in: 'feed' as const }, { ...holder, principal: 'bob' }],
  ['a place that another server gave', { in: 'feed' as const }, { ...holder, audience: 'mail' }],
])('E14-3: %s is refused like a forgery', async (_, wanted, who) => {
  await expect(openPlace(seal, await token, wanted, who)).rejects.toThrow(HandleError)
})
