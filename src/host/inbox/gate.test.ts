import { expect, it } from 'vitest'
import { InboxGate } from './acceptance.ts'

it('so many go in at once, others wait in their order, and beyond that it is full; servers do not mind each other', async () => {
  const gate = new InboxGate({ most: 1, waiting: 2 })
  const order: string[] = []
  expect(gate.enter('a')).toBeUndefined()
  const waiting = ['first', 'second'].map(name => gate.enter('a')?.then(() => order.push(name)))
  expect([gate.isFull('a'), gate.isBusy('a'), gate.isFull('b'), gate.enter('b')]).toEqual([true, true, false, undefined])
  gate.leave('a')
  await waiting[0]
  expect(order).toEqual(['first'])
  gate.leave('a')
  await waiting[1]
  gate.leave('a')
  expect([order, gate.isBusy('a')]).toEqual([['first', 'second'], false])
})
