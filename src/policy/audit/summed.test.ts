import { expect, test } from 'vitest'
import { why } from '../../core/suggestion.ts'
import { fakeClock } from '../../testing/clock.ts'
import { SummedNotes } from './denials.ts'
import type { Note } from './host-audit.ts'

const tooMany = why('RATE_LIMITED', 'inbox.rate', 'It sends too much', 'Send less')
const refusal = (eventId: string, server = 'loud'): Note => {
  return { server, featureSet: 'loud.events', eventId, kind: 'push', outcome: 'refused', why: tooMany }
}

function world() {
  const clock = fakeClock()
  const written: Note[] = []
  return { clock, written, notes: new SummedNotes({ clock, note: note => written.push(note), whole: 2 }) }
}

test('so many refusals a second are written as they are, and of the rest their number', () => {
  const { clock, written, notes } = world()
  for (let n = 0; n < 10; n++) notes.note(refusal(`e${n}`))
  expect(written.map(({ eventId }) => eventId)).toEqual(['e0', 'e1'])
  clock.advance(1_000)
  expect(written.slice(2)).toEqual([
    { ...refusal(''), eventId: undefined, detail: 'and 8 more of the same kind within one second', why: tooMany },
  ])
  notes.note(refusal('later'))
  expect(written.at(-1)?.eventId).toBe('later')
})

test('what one server is refused takes no room from another', () => {
  const { written, notes } = world()
  for (let n = 0; n < 10; n++) notes.note(refusal(`e${n}`))
  notes.note(refusal('mine', 'quiet'))
  expect(written.at(-1)).toMatchObject({ server: 'quiet', eventId: 'mine' })
})

test('what was left to tell is told at the end, once', () => {
  const { clock, written, notes } = world()
  for (let n = 0; n < 3; n++) notes.note(refusal(`e${n}`))
  notes.close()
  expect(written.at(-1)?.detail).toBe('and 1 more of the same kind within one second')
  clock.advance(2_000)
  expect(written).toHaveLength(3)
})
