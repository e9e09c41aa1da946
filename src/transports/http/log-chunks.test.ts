import fc from 'fast-check'
import { expect, it } from 'vitest'
import { pack, Unpacker } from './log-records.ts'

const frames = fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { maxLength: 20 })

it('events come out of chunks as they went in, however short a chunk is, and no character is cut in two', () => {
  fc.assert(
    fc.property(frames, fc.integer({ min: 2, max: 50 }), (texts, most) => {
      const events = texts.map((frame, index) => ({ number: index + 1, frame }))
      const chunks = pack(events, most)
      const unpacker = new Unpacker()
      expect(chunks.flatMap(({ text }) => unpacker.take(text))).toEqual(events)
      for (const { text } of chunks) {
        expect(text.length - text.indexOf('\n') - 1).toBeLessThanOrEqual(most)
        expect(text.isWellFormed()).toBe(true)
      }
    }),
  )
})

it('an event whose beginning was trimmed away is left out, and what follows it is not', () => {
  const chunks = pack(
    [
      { number: 1, frame: 'x'.repeat(30) },
      { number: 2, frame: 'y' },
    ],
    20,
  )
  expect(chunks).toHaveLength(2)
  expect(new Unpacker().take(chunks[1]?.text ?? '')).toEqual([{ number: 2, frame: 'y' }])
})
