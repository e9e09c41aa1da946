import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import { fakeClock } from '../../testing/clock.ts'
import { StateBook } from './book.ts'

const at = ['s', 'set'] as const

const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ act: fc.constant('data' as const), value: fc.integer() }) },
  {
    weight: 6,
    arbitrary: fc.record({ act: fc.constant('patch' as const), name: fc.constantFrom('a', 'b', 'c'), value: fc.integer() }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('broken' as const) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('rollback' as const), to: fc.nat(40) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('restart' as const) }) },
)

test('L8.3-3: any history of calls, branches, rollbacks and restarts reads as a table of whole states would', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      const clock = fakeClock()
      const store = memoryStore({ now: clock.now })
      const port = {
        holder: () => 'host' as const,
        rollsBack: () => true,
        ask: async (_: string, __: string, checkpoint: string) => ({ success: true, checkpoint }),
      }
      let book = new StateBook({ store, clock, port })
      const model = new Map<string, Record<string, unknown>>()
      let head: string | undefined
      for (const [index, each] of steps.entries()) {
        const id = `c${index}`
        if (each.act === 'restart') book = new StateBook({ store, clock, port })
        else if (each.act === 'rollback') {
          const known = model.has(`c${each.to}`)
          expect((await book.rollback(...at, `c${each.to}`)).success).toBe(known)
          if (known) head = `c${each.to}`
        } else if (each.act === 'data') {
          const data = { a: each.value }
          await book.record(...at, { checkpoint: id, parent: head ?? null, data }, await book.before(...at))
          model.set(id, data)
          head = id
        } else if (head !== undefined) {
          const broken = each.act === 'broken'
          const patch = broken ? [{ op: 'remove', path: '/none' }] : [{ op: 'add', path: `/${each.name}`, value: each.value }]
          await book.record(...at, { checkpoint: id, patch }, await book.before(...at))
          if (!broken) model.set(id, { ...model.get(head), [each.name]: each.value })
          if (!broken) head = id
        }
      }
      const sent = await book.before(...at)
      expect([sent.head, sent.state]).toEqual([head, head === undefined ? undefined : model.get(head)])
      for (const [id, state] of model) expect(await book.at(...at, id)).toEqual(state)
    }),
    { numRuns: 40 },
  )
})
