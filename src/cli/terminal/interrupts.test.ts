import { expect, test } from 'vitest'
import { createInterrupts } from './reader.ts'

function interrupts(open: { question?: boolean; typed?: boolean; turn?: boolean }) {
  const done: string[] = []
  const clock = { now: 0 }
  const take = (name: string, is: boolean | undefined) => () => {
    if (is === true) done.push(name)
    return is === true
  }
  const parts = {
    now: () => clock.now,
    refuse: take('no', open.question),
    cancel: take('stop', open.turn),
    clear: take('clear', open.typed),
  }
  return { done, clock, ...createInterrupts({ ...parts, tell: () => done.push('tell'), end: () => done.push('end') }) }
}

test('a question is refused and a half typed line forgotten, as often as it takes', () => {
  for (const [open, does] of [
    [{ question: true, turn: true }, 'no'],
    [{ typed: true }, 'clear'],
  ] as const) {
    const { interrupt, done } = interrupts(open)
    interrupt()
    interrupt()
    expect(done).toEqual([does, does])
  }
})

test('the second one within two seconds ends, a later one begins anew', () => {
  const { interrupt, done, clock } = interrupts({ turn: true })
  interrupt()
  clock.now = 2_000
  interrupt()
  clock.now = 3_999
  interrupt()
  expect(done).toEqual(['stop', 'stop', 'end'])
})

test('whoever typed something in between has not meant the end', () => {
  const { interrupt, reset, done } = interrupts({})
  interrupt()
  reset()
  interrupt()
  expect(done).toEqual(['tell', 'tell'])
})
