import { expect, it } from 'vitest'
import { createJournal } from '../../../core/journal/journal.ts'
import { type Port, Ports } from '../../../engine/ports.ts'
import { memoryStore } from '../../../stores/index.ts'
import { fakeClock } from '../../../testing/index.ts'
import { eventsPort } from '../events/messages.ts'
import { TransactionsRuntime } from './runtime.ts'

it('E5-15: a rollback that was asked for happens, also where a sweep is just finding that it is not due', async () => {
  const clock = fakeClock()
  const journal = createJournal({ store: memoryStore({ now: clock.now }), clock })
  const ports = new Ports()
  ports.provide(eventsPort as Port<unknown>, { announcing: async () => [] })
  const parts = {
    clock,
    trace: () => {},
    timeoutMs: 1000,
    maxTimeoutMs: 1000,
    retentionMs: 1000,
    port: ports.get.bind(ports),
    grants: () => Promise.reject(new Error('Nothing was granted')),
    revert: async () => ({ ops: [] }),
    engine: () => {
      throw new Error('Nothing was done, so nothing is taken back')
    },
  }
  const runtime = new TransactionsRuntime(parts, journal)
  await runtime.units.begin('ann', 't', { timeoutMs: 1000 })
  const sweep = runtime.rollBack('ann', 't', 'The transaction timed out', () => false)
  const asked = runtime.rollBack('ann', 't', 'The rollback was requested')
  expect((await sweep).unit.status).toBe('open')
  expect((await asked).unit).toMatchObject({ status: 'rolled_back', reason: 'The rollback was requested' })
  runtime.close()
  journal.close()
})
