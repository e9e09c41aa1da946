import { expect, test } from 'vitest'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import { fakeClock } from '../../testing/clock.ts'
import { Chains } from './inbox-context.ts'

const event = (more: Partial<PushEvent> = {}): PushEvent => ({
  ...{ featureSet: 's', eventId: 'e', timestamp: '2026-01-23T10:30:00Z', content: [] },
  ...more,
})

test('an event that comes while a turn is at its server, or right after, lies one deeper than the turn', () => {
  const clock = fakeClock()
  const chains = new Chains({ window: '1s' }, clock)
  expect(chains.placeOf('a', event())).toEqual({ depth: 1, told: false, through: [] })
  const user = chains.visits('a', 'inf_user')
  expect(chains.placeOf('a', event()).depth).toBe(1)
  chains.began('inf_1', 3)
  const leave = chains.visits('a', 'inf_1')
  expect([chains.placeOf('a', event()).depth, chains.placeOf('b', event()).depth]).toEqual([4, 1])
  leave()
  user()
  clock.advance(1_000)
  expect(chains.placeOf('a', event()).depth).toBe(4)
  clock.advance(1)
  expect(chains.placeOf('a', event()).depth).toBe(1)
})

test('where a server says which inference an event came of, that counts, whatever else is under way', () => {
  const chains = new Chains({}, fakeClock())
  chains.began('inf_1', 1)
  chains.began('inf_7', 7)
  chains.visits('a', 'inf_7')
  expect(chains.placeOf('a', event({ origin: { inferenceId: 'inf_1' } }))).toEqual({ depth: 2, told: true, through: [] })
  expect(chains.placeOf('a', event({ extra: { inferenceId: 'inf_7' } }))).toEqual({ depth: 8, told: true, through: [] })
  expect(chains.placeOf('a', event({ origin: { inferenceId: 'inf_unknown' } }))).toEqual({ depth: 8, told: false, through: [] })
})

test('the servers whose events led to an event are known: those it names, and those whose turns are at its server', () => {
  const chains = new Chains({}, fakeClock())
  chains.began('inf_news', 1, ['news'])
  chains.began('inf_mail', 2, ['mail', 'a'])
  chains.visits('a', 'inf_news')
  expect(chains.placeOf('a', event()).through).toEqual(['news'])
  expect(chains.placeOf('a', event({ origin: { inferenceId: 'inf_mail' } })).through).toEqual(['mail', 'news'])
  expect(chains.placeOf('b', event()).through).toEqual([])
})

test('turns and visits are remembered in bounds', () => {
  const chains = new Chains({}, fakeClock())
  for (let n = 0; n < 10_001; n++) chains.began(`inf_${n}`, 5)
  expect(chains.placeOf('a', event({ origin: { inferenceId: 'inf_0' } })).told).toBe(false)
  expect(chains.placeOf('a', event({ origin: { inferenceId: 'inf_1' } })).told).toBe(true)
  for (let n = 0; n < 200; n++) chains.visits('a', `inf_${n < 100 ? 1 : 'user'}`)
  expect(chains.placeOf('a', event()).depth).toBe(1)
})

test('a depth that is no whole number from 1 is refused', () => {
  expect(() => new Chains({ depth: 0 }, fakeClock())).toThrow('inbox.chain.depth')
})
