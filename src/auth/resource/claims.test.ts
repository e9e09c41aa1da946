import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toPrincipal } from './jwt.ts'

const part = fc.string({ unit: 'binary', maxLength: 8 })
const triple = fc.record({ issuer: part, subject: part, client: fc.option(part, { nil: undefined }) })

describe("a principal's key", () => {
  it('is the same for the same issuer, subject and client, and for nothing else', () => {
    fc.assert(
      fc.property(triple, triple, (one, other) => {
        const same = one.issuer === other.issuer && one.subject === other.subject && one.client === other.client
        expect(toPrincipal(one).id === toPrincipal(other).id).toBe(same)
        expect(toPrincipal(one).id).toBe(toPrincipal({ ...one }).id)
      }),
    )
  })

  it('does not confuse a client that is missing with one of that name, nor where a part ends', () => {
    const ids = [
      toPrincipal({ issuer: 'i', subject: 's' }),
      toPrincipal({ issuer: 'i', subject: 's', client: 'null' }),
      toPrincipal({ issuer: 'i', subject: 's', client: '' }),
      toPrincipal({ issuer: 'i","s', subject: '', client: '' }),
    ].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
