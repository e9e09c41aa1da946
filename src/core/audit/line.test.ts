/** A line is put together by hand, for speed: what is read back says the same facts, whatever the texts are. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { clip } from '../../jsonrpc/limits.ts'
import { type AuditFacts, linkOf, readLine, writeLine } from './line.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ maxLength: 700 }),
  fc.constantFrom('"', '\\', '\u2028', '__proto__'),
)
const facts = fc.record({
  event: fc.constantFrom('call_settled' as const, 'grant_given' as const, 'noted' as const),
  correlation: fc.option(text, { nil: undefined }),
  owner: text,
  target: text,
  outcome: fc.option(text, { nil: undefined }),
  more: fc.option(
    fc.dictionary(
      text,
      fc.oneof(text, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(undefined)),
    ),
    { nil: undefined },
  ),
})

it('a line is read back as the facts that were written, with long texts clipped and nothing for what is undefined', () => {
  fc.assert(
    fc.property(facts, fc.nat(), (given, at) => {
      const read = readLine({ position: 7, value: writeLine(given, at) })
      expect(read).toEqual({ ...kept(given), at, position: 7 })
    }),
  )
})

/** What a reader is owed, by the plain way: as an object that JSON has written and read. */
function kept({ more, ...given }: AuditFacts): object {
  const small = more && Object.entries(more).map(([name, value]) => [name, typeof value === 'string' ? clip(value, 512) : value])
  const all = { ...given, target: clip(given.target, 512), more: small && Object.fromEntries(small) }
  return JSON.parse(JSON.stringify(all)) as object
}

it('a line of another program is refused, and no link is made of one', () => {
  expect(() => readLine({ position: 1, value: '{"at":"yesterday"}' })).toThrow('does not have the expected form')
  expect(linkOf('{"hash":"x","upto":1.5,"at":2}')).toBeUndefined()
  expect(linkOf('not JSON')).toBeUndefined()
})
