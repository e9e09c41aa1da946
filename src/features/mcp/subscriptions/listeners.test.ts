import { describe, expect, it } from 'vitest'
import { type Frame, rawWire } from '../../../../test/raw-wire.ts'
import { realClock } from '../../../core/clock.ts'
import { Engine } from '../../../engine/engine.ts'
import { serverLimits } from '../../../engine/limits.ts'
import { notification, statelessRevisionIds } from '../../../engine/method.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { object, string } from '../../../jsonrpc/shape.ts'
import { SupportedRevisions } from '../../../revisions/index.ts'
import { cancellation } from '../cancellation/receiver.ts'
import type { ListenKind, Send } from './messages.ts'
import { subscriptionsServer } from './server.ts'

/** As the tasks extension has it. */
const taskChanged = notification({
  name: 'notifications/tasks',
  to: 'client',
  in: statelessRevisionIds,
  params: object({ taskId: string }),
})

function station(kind: ListenKind): { engine: Engine; subscriptions: ReturnType<typeof subscriptionsServer> } {
  const subscriptions = subscriptionsServer({
    engine: () => engine,
    clock: realClock,
    limits: serverLimits,
    offered: { tools: () => [], resources: () => [] },
    subscribers: { of: () => [], isAdmitted: () => false },
  })
  subscriptions.kind(kind)
  const engine: Engine = new Engine({
    role: 'server',
    info: { name: 'station', version: '1' },
    spoken: new SupportedRevisions(['2026-07-28']),
    limits: serverLimits,
    sides: [subscriptions.side, cancellation()],
  })
  return { engine, subscriptions }
}

describe('a kind that another feature adds to what can be listened for', () => {
  it('takes its time to grant, is acknowledged, and only then sends, under the subscription it belongs to', async () => {
    const steps: string[] = []
    let say: Send | undefined
    const kind: ListenKind = {
      member: 'taskIds',
      open: async (_, wanted, send) => {
        await Promise.resolve()
        steps.push(`open ${wanted}`)
        say = send
        return { accepted: ['mine'], start: () => steps.push('start'), close: () => steps.push('close') }
      },
    }
    const wire = await rawWire(station(kind).engine, '2026-07-28')
    wire.begin('subscriptions/listen', { notifications: { taskIds: ['mine', 'theirs'] } }, 'w')
    expect((await wire.next('notifications/subscriptions/acknowledged'))['params']).toMatchObject({
      notifications: { taskIds: ['mine'] },
    })
    say?.(taskChanged, { taskId: 'mine' })
    const { params } = await wire.next('notifications/tasks')
    expect(params).toEqual({ taskId: 'mine', _meta: { 'io.modelcontextprotocol/subscriptionId': 'w' } })
    wire.tell('notifications/cancelled', { requestId: 'w' })
    await wire.all('none')
    expect(steps).toEqual(['open mine,theirs', 'start', 'close'])
  })

  it('may refuse the whole request, which then holds nothing', async () => {
    const kind: ListenKind = { member: 'taskIds', open: () => Promise.reject(new McpError('invalid-params', 'No such task')) }
    const { engine, subscriptions } = station(kind)
    const wire = await rawWire(engine, '2026-07-28')
    expect(await wire.ask('subscriptions/listen', { notifications: { taskIds: [] } })).toMatchObject({
      error: { code: -32602, message: 'No such task' },
    })
    subscriptions.close()
    expect(wire.heard).toHaveLength(1)
  })

  it('is not asked about what nobody wished for, and sends nothing to one that left while it was asked', async () => {
    let grant: () => void = () => {}
    const asked: unknown[] = []
    const steps: string[] = []
    const kind: ListenKind = {
      member: 'taskIds',
      open: async (_, wanted) => {
        asked.push(wanted)
        await new Promise<void>(resolve => {
          grant = resolve
        })
        return { accepted: true, start: () => steps.push('start'), close: () => steps.push('close') }
      },
    }
    const wire = await rawWire(station(kind).engine, '2026-07-28')
    wire.begin('subscriptions/listen', { notifications: {} })
    expect(((await wire.next('notifications/subscriptions/acknowledged'))['params'] as Frame)['notifications']).toEqual({})
    wire.begin('subscriptions/listen', { notifications: { taskIds: ['late'] } }, 'late')
    wire.tell('notifications/cancelled', { requestId: 'late' })
    await wire.all('none')
    grant()
    await wire.all('none')
    expect(asked).toEqual([['late']])
    expect(steps).toEqual(['close'])
    expect(await wire.all('notifications/subscriptions/acknowledged')).toHaveLength(1)
  })

  it('is refused once the server is closing', async () => {
    const { engine, subscriptions } = station({ member: 'taskIds', open: () => undefined })
    const wire = await rawWire(engine, '2026-07-28')
    subscriptions.close()
    const refused = await wire.ask('subscriptions/listen', { notifications: {} })
    expect(refused).toMatchObject({ error: { message: expect.stringContaining('closing') } })
  })
})
