import { expect, it, onTestFinished } from 'vitest'
import { mortal } from '../../../test/mortal-store.ts'
import { memoryStore } from '../../stores/index.ts'
import { fakeClock } from '../../testing/clock.ts'
import { NotificationOwner } from './events.ts'

function pair() {
  const clock = fakeClock()
  const store = memoryStore({ now: clock.now })
  const told: string[] = []
  const made = [0, 1].map(i => {
    const cut = mortal(store)
    const owner = new NotificationOwner({ store: cut.store, clock, failed: () => {} })
    const hear = (what: string): void => owner.heard('a', what, () => told.push(`${i} ${what}`))
    onTestFinished(() => owner.close())
    return { owner, hear, die: cut.die, revive: cut.revive }
  })
  const [one, two] = made as [(typeof made)[0], (typeof made)[0]]
  const hear = (what: string): void => {
    one.hear(what)
    two.hear(what)
  }
  return { clock, told, one, two, hear }
}

/** Time goes on, and what falls due is done. */
async function later(clock: { advance(ms: number): void }, ms: number): Promise<void> {
  for (let gone = 0; gone < ms; gone += 500) {
    clock.advance(500)
    for (let i = 0; i < 20; i++) await new Promise(resolve => setImmediate(resolve))
  }
}

it('of two that hear the same one tells it, also what it heard before it was settled who does', async () => {
  const { clock, told, one, two, hear } = pair()
  one.owner.begin('a')
  one.hear('early')
  await later(clock, 500)
  two.owner.begin('a')
  await later(clock, 500)
  hear('x')
  hear('y')
  expect(told).toEqual(['0 early', '0 x', '0 y'])
})

it('the other takes over when one lets go, and nothing is told twice', async () => {
  const { clock, told, one, two, hear } = pair()
  one.owner.begin('a')
  await later(clock, 500)
  two.owner.begin('a')
  await later(clock, 500)
  hear('x')
  one.owner.end('a')
  await later(clock, 1_500)
  hear('y')
  expect(told).toEqual(['0 x', '1 y'])
})

it('the other takes over within 5 s when one dies, and tells what was said meanwhile', async () => {
  const { clock, told, one, two } = pair()
  one.owner.begin('a')
  await later(clock, 500)
  two.owner.begin('a')
  await later(clock, 10_000)
  two.hear('long ago')
  one.hear('long ago')
  await later(clock, 10_000)
  one.die()
  two.hear('meanwhile')
  await later(clock, 5_000)
  expect(told).toEqual(['0 long ago', '1 meanwhile'])
  two.hear('x')
  expect(told.at(-1)).toBe('1 x')
})

it('who was taken for dead and is not falls silent', async () => {
  const { clock, told, one, two, hear } = pair()
  one.owner.begin('a')
  await later(clock, 500)
  two.owner.begin('a')
  await later(clock, 500)
  one.die()
  await later(clock, 6_000)
  one.revive()
  two.owner.begin('b')
  await later(clock, 1_000)
  hear('x')
  expect(told).toEqual(['1 x'])
})
