import { expect, it } from 'vitest'
import type { Clock } from './clock.ts'
import { createDeadlines } from './deadlines.ts'

/** A clock moved by hand that says how many timers stand and how many there have ever been. */
function handClock() {
  let now = 0
  let made = 0
  const timers = new Map<number, { at: number; fn: () => void }>()
  const clock: Clock = {
    now: () => now,
    setTimeout(fn, ms) {
      const id = ++made
      timers.set(id, { at: now + ms, fn })
      return () => timers.delete(id)
    },
  }
  const advance = (ms: number) => {
    for (const end = now + ms; ; ) {
      const [next] = [...timers].sort((a, b) => a[1].at - b[1].at)
      if (next === undefined || next[1].at > end) {
        now = end
        return
      }
      timers.delete(next[0])
      now = next[1].at
      next[1].fn()
    }
  }
  return { clock, advance, standing: () => timers.size, made: () => made }
}

it('a deadline fires once, at its time or within one sweep after it', () => {
  const { clock, advance } = handClock()
  const fired: number[] = []
  createDeadlines({ clock, every: 250 }).add(1_001, () => fired.push(clock.now()))
  advance(1_000)
  expect(fired).toEqual([])
  advance(10_000)
  expect(fired).toHaveLength(1)
  expect(fired[0]).toBeLessThanOrEqual(1_251)
})

it('a deadline sooner than the next sweep is met to the millisecond', () => {
  const { clock, advance } = handClock()
  const deadlines = createDeadlines({ clock })
  const fired: number[] = []
  deadlines.add(60_000, () => fired.push(-1))
  deadlines.add(20, () => fired.push(clock.now()))
  advance(30)
  expect(fired).toEqual([20])
})

it('a deadline a little after a sweep is met too, and does not wait for the next', () => {
  const { clock, advance } = handClock()
  const fired: number[] = []
  const deadlines = createDeadlines({ clock, every: 250 })
  for (const ms of [300, 305, 60_000]) deadlines.add(clock.now() + ms, () => fired.push(ms))
  advance(299)
  expect(fired).toEqual([])
  advance(11)
  expect(fired).toEqual([300, 305])
})

it('a cancelled deadline does not fire, also when another cancels it in the same sweep', () => {
  const { clock, advance } = handClock()
  const deadlines = createDeadlines({ clock })
  const fired: string[] = []
  const second = { deadline: deadlines.add(1_000, () => fired.push('never')) }
  deadlines.cancel(second.deadline)
  deadlines.add(100, () => deadlines.cancel(second.deadline))
  second.deadline = deadlines.add(100, () => fired.push('second'))
  advance(5_000)
  expect(fired).toEqual([])
  expect(deadlines.size).toBe(0)
})

it('a deadline that is moved fires at its new time only', () => {
  const { clock, advance } = handClock()
  const fired: number[] = []
  const deadline = createDeadlines({ clock, every: 250 }).add(500, () => fired.push(clock.now()))
  advance(400)
  deadline.at = 1_000
  advance(599)
  expect(fired).toEqual([])
  advance(300)
  expect(fired).toHaveLength(1)
})

it('a thousand deadlines stand under one timer', () => {
  const { clock, standing, made } = handClock()
  const deadlines = createDeadlines({ clock })
  for (let count = 0; count < 1_000; count++) deadlines.add(60_000, () => {})
  expect([standing(), made()]).toEqual([1, 1])
})

it('calls that come one after the other share a timer, and none stands when nothing is pending', () => {
  const { clock, advance, standing, made } = handClock()
  const deadlines = createDeadlines({ clock })
  for (let count = 0; count < 100; count++) deadlines.cancel(deadlines.add(60_000, () => {}))
  expect(made()).toBe(1)
  advance(250)
  expect(standing()).toBe(0)
})

it('one that throws does not take the others with it', () => {
  const { clock, advance } = handClock()
  const deadlines = createDeadlines({ clock })
  const fired: string[] = []
  deadlines.add(10, () => {
    throw new Error('broken')
  })
  deadlines.add(10, () => fired.push('second'))
  expect(() => advance(10)).toThrow('broken')
  advance(250)
  expect(fired).toEqual(['second'])
})

it('the timer keeps the process alive while a deadline is awaited, and only then', () => {
  const held: boolean[] = []
  const clock: Clock = {
    now: () => 0,
    setTimeout(_fn, _ms, background = false) {
      held.push(!background)
      return Object.assign(() => {}, { hold: (alive: boolean) => void held.push(alive) })
    },
  }
  const deadlines = createDeadlines({ clock })
  deadlines.add(60_000, () => {})
  const one = deadlines.add(60_000, () => {}, true)
  const other = deadlines.add(60_000, () => {}, true)
  deadlines.cancel(one)
  expect(held).toEqual([false, true])
  deadlines.cancel(other)
  deadlines.cancel(other)
  expect(held).toEqual([false, true, false])
})
