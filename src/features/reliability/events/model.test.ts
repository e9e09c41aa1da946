import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { eras } from '../../../../test/spec/consent.ts'
import { type Subscriber, subscriber } from '../../../../test/spec/eventing.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { createServer } from '../../../server/index.ts'
import { filterFault, matchesFilter } from './filter.ts'

const scalar = fc.oneof(fc.string({ maxLength: 3 }), fc.integer({ min: 0, max: 3 }), fc.boolean(), fc.constant(null))
const name = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor')
const payload: fc.Arbitrary<Params> = fc.letrec(tie => ({
  object: fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  value: fc.oneof({ maxDepth: 2 }, scalar, fc.array(scalar, { minLength: 1, maxLength: 3 }), tie('object')),
})).object as fc.Arbitrary<Params>

test('E15-1: a filter made of parts of a payload lets it through, and with one other value no longer', () => {
  fc.assert(
    fc.property(payload, fc.nat(), (whole, seed) => {
      const fields = Object.entries(whole).filter((_, at) => (seed >> at) % 2 === 0)
      const filter = Object.fromEntries(fields.map(([field, value]) => [field, Array.isArray(value) ? value[0] : value]))
      expect(matchesFilter(filter, whole)).toBe(true)
      for (const [field] of fields) expect(matchesFilter({ ...filter, [field]: 'nothing like it' }, whole)).toBe(false)
      expect(matchesFilter({ ...filter, d: null }, whole)).toBe(true)
    }),
  )
})

test('E15-1: one of a list is enough, on either side', () => {
  fc.assert(
    fc.property(fc.array(scalar, { minLength: 1, maxLength: 5 }), fc.array(scalar, { maxLength: 5 }), (wanted, held) => {
      expect(matchesFilter({ a: wanted }, { a: held })).toBe(wanted.some(one => held.includes(one)))
    }),
  )
})

test('E15-2: no filter that a client can send makes the check fail or run away', () => {
  fc.assert(
    fc.property(fc.object({ maxDepth: 8, maxKeys: 20 }), filter => {
      const fault = filterFault(filter as Params, [undefined])
      expect(fault === undefined || fault.startsWith('filter: ')).toBe(true)
    }),
  )
})

const ended: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ended.splice(0)) await end()
})

const act = fc.oneof(
  fc.record({
    emit: fc.constantFrom('opened', 'closed'),
    project: fc.constantFrom('a', 'b'),
    times: fc.integer({ min: 1, max: 4 }),
  }),
  fc.constant('disconnect' as const),
  fc.constant('resume' as const),
  fc.constant('settle' as const),
)

test.each(eras)(
  'E15-3, E15-6: at %s, however emitting, disconnecting and resuming interleave, each event that agrees comes once and in order',
  async revision => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 16 }), async acts => {
        const server = createServer({ name: 'model', version: '1.0.0', log: 'silent' })
        ended.push(() => server.close())
        const schema = jsonSchema<{ n: number; project: string }>({ type: 'object' })
        const events = {
          opened: server.event('opened', { payload: schema }),
          closed: server.event('closed', { payload: schema }),
        }
        const wish = { events: ['opened'], filter: { project: 'a' } }
        let current: Subscriber | undefined = await subscriber(server, revision, wish)
        let cursor = current.response.cursor
        let n = 0
        const expected: number[] = []
        const got: number[] = []
        const leave = async (): Promise<void> => {
          for (const event of current?.events() ?? []) {
            expect([event.previous_cursor, event.truncated]).toEqual([cursor, undefined])
            got.push(event.payload?.['n'] as number)
            cursor = event.cursor
          }
          await current?.wire.close()
          current = undefined
        }
        const resume = async (): Promise<void> => {
          current ??= await subscriber(server, revision, { ...wish, cursor })
        }
        for (const one of acts) {
          if (one === 'disconnect') await leave()
          else if (one === 'resume') await resume()
          else if (one === 'settle') await current?.wire.quiet()
          else
            for (let i = 0; i < one.times; i++) {
              if (one.emit === 'opened' && one.project === 'a') expected.push(n)
              await events[one.emit].emit({ n: n++, project: one.project })
            }
        }
        await resume()
        await expect.poll(() => got.length + (current?.events().length ?? 0)).toBe(expected.length)
        await leave()
        expect(got).toEqual(expected)
      }),
      { numRuns: 25 },
    )
  },
)
