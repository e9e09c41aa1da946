import { describe, expect, it, onTestFinished } from 'vitest'
import { createServer, type RevisionId } from '../server/index.ts'
import { memoryStore } from '../stores/index.ts'
import { connectInMemory, fakeClock } from '../testing/index.ts'
import { saga } from './index.ts'

describe.each<RevisionId>(['2025-11-25', '2026-07-28'])('a step of a saga at %s', revision => {
  it('E5-20: that comes after others have taken the saga back is taken back too, and says so', async () => {
    const clock = fakeClock()
    const store = memoryStore({ now: clock.now })
    const log: string[] = []
    const entered = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const server = createServer({ name: 'slow', version: '1.0.0', log: 'silent' })
    server.tool('put', {}, async () => {
      entered.resolve()
      await gate.promise
      log.push('put')
      return 'done'
    })
    server.tool('take', {}, () => void log.push('take'))
    const slow = await connectInMemory(server, { revision, retry: false })
    onTestFinished(async () => {
      await slow.close()
      await server.close()
      await store.close()
    })
    // Its timers stand still, so that it is taken for dead.
    const trip = await saga({ store, clients: { slow }, clock: { now: clock.now, setTimeout: () => () => {} } })
    const step = trip.step(slow, 'put', {}, { undo: { tool: 'take' } })
    await entered.promise
    clock.advance(6_001)
    expect(await saga.resume({ store, clients: { slow }, clock })).toMatchObject([{ status: 'rolled_back' }])
    gate.resolve()
    await expect(step).rejects.toMatchObject({ code: 'TRANSACTION_CONFLICT' })
    expect(log).toEqual(['take', 'put', 'take'])
  })

  it('E5-20: that cannot be taken back is listed for somebody to look at, with its saga', async () => {
    const store = memoryStore()
    const server = createServer({ name: 'one', version: '1.0.0', log: 'silent' })
    server.tool('put', {}, () => 'done')
    const one = await connectInMemory(server, { revision, retry: false })
    onTestFinished(async () => {
      await one.close()
      await server.close()
      await store.close()
    })
    const whole = await saga({ store, clients: { one } })
    await whole.step(one, 'put')
    await whole.commit()
    const trip = await saga({ store, clients: { one } })
    await trip.step(one, 'put')
    expect(await saga.stuck({ store })).toEqual([])
    const report = await trip.rollback()
    expect(report).toMatchObject({ status: 'partially_rolled_back', steps: [{ status: 'compensation_failed' }] })
    expect(await saga.stuck({ store })).toEqual([report])
  })
})
