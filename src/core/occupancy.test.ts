import { expect, it } from 'vitest'
import { callerAccount } from './accounts.ts'
import { Occupancy } from './occupancy.ts'

const from = (remoteAddress: string) => callerAccount({ carrier: 'http', connection: { remoteAddress } })

/** Takes places from one address after the other until each is refused; gives how many it got. */
function fill(places: Occupancy, addresses: readonly string[]): number {
  const before = places.held
  for (const address of addresses) {
    const account = from(address)
    while (places.refusal(account) === undefined) places.enter(account)
  }
  return places.held - before
}

/** All networks that a customer with 56 or 48 bits of IPv6 can choose from. */
const networksOf56 = Array.from({ length: 256 }, (_, n) => `2001:db8:1:${n.toString(16)}::1`)
const networksOf48 = Array.from({ length: 256 }, (_, n) => `2001:db8:1:${(n * 256).toString(16)}::1`)

it('one customer with 56 bits of IPv6 has the share of one network, however many parts of it are used', () => {
  expect(fill(new Occupancy(1_000), networksOf56)).toBe(fill(new Occupancy(1_000), ['192.0.2.1']))
})

it('one with 48 bits has at most three times as much as it leaves to others who did not sign in', () => {
  const places = new Occupancy(1_000)
  expect(fill(places, networksOf48)).toBeLessThanOrEqual(563)
  expect(fill(places, ['192.0.2.1'])).toBeGreaterThan(50)
  expect(fill(places, ['2001:db8:2::1'])).toBeGreaterThan(20)
})

it('whoever has many networks of one site takes nothing from who holds less, and gives way to them', () => {
  const places = new Occupancy(1_000)
  fill(places, networksOf48)
  places.enter(from('192.0.2.1'))
  const unused = from('2001:db8:1:ff00::1')
  expect(places.of(unused)).toBe(0)
  expect(places.yields(from('192.0.2.1'), unused)).toBe(false)
  expect(places.yields(from('2001:db8:1::1'), from('192.0.2.1'))).toBe(true)
})

it('what is left is counted off, also of its site', () => {
  const places = new Occupancy(100)
  for (const address of ['2001:db8:1::1', '2001:db8:1:ff00::1']) places.enter(from(address))
  expect(places.weight(from('2001:db8:1::1'))).toBe(2)
  for (const address of ['2001:db8:1::1', '2001:db8:1:ff00::1']) places.leave(from(address))
  expect([places.held, places.weight(from('2001:db8:1::1'))]).toEqual([0, 0])
})
