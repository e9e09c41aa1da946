/** How long servers behind a gateway may take, for a call and for their start, and what callers are told when that is over. */
import { expect, it, onTestFinished } from 'vitest'
import { createGateway } from '../../src/gateway/index.ts'
import type { Connection } from '../../src/jsonrpc/connection.ts'
import { createServer, type Server } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/clock.ts'
import { memoryPair } from '../../src/testing/index.ts'
import { inMemory, openGateway } from './open.ts'

function slowServer(): { readonly server: Server; readonly runs: () => number } {
  const server = createServer({ name: 'slow', version: '1.0.0', log: 'silent' })
  onTestFinished(() => server.close())
  let runs = 0
  server.tool('pay', {}, (_, ctx) => {
    runs++
    return new Promise<string>((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('stopped'))))
  })
  return { server, runs: () => runs }
}

it.each(['2025-06-18', '2026-07-28'] as const)(
  'a call that takes too long is told as that at %s, also where the client makes it again under its key',
  async revision => {
    const { server, runs } = slowServer()
    const opened = await openGateway({ slow: { target: inMemory(server), timeoutMs: 100 } })
    const client = await opened.client(revision)
    const { problem } = await client.callTool('pay', {}, { idempotencyKey: 'pay-once-and-for-all-0001' })
    expect(problem).toMatchObject({ code: 'OPERATION_TIMEOUT', message: expect.stringContaining('100 ms') })
    expect(runs()).toBe(1)
    const later = await client.callTool('pay', {}, { idempotencyKey: 'pay-once-and-for-all-0001' })
    expect(later.problem).toMatchObject({ code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('100 ms') })
  },
)

/** A server that says nothing before it is let. */
function holding(server: Server): {
  readonly target: () => Connection
  readonly release: () => void
  readonly asked: Promise<void>
} {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const target = (): Connection => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return {
      carrier: here.carrier,
      start: sink => here.start({ ...sink, frame: (text, ...more) => void released.then(() => sink.frame(text, ...more)) }),
      send: (...frame) => {
        ask()
        return here.send(...frame)
      },
      close: () => here.close(),
    }
  }
  return { target, release, asked }
}

it('the timeout of an entry does not bound its start', async () => {
  const clock = fakeClock()
  const { target, release, asked } = holding(slowServer().server)
  const gateway = await createGateway({
    log: 'silent',
    clock,
    servers: { slow: { target, timeoutMs: 100, connect: { revisions: ['2025-06-18'] } } },
  })
  onTestFinished(() => gateway.close())
  await asked
  clock.advance(5_000)
  expect(gateway.upstreams()).toMatchObject([{ status: 'connecting' }])
  release()
  await gateway.ready()
  expect(gateway.upstreams()).toMatchObject([{ status: 'up', tools: 1 }])
})

it('startTimeout does, and why it is down names it', async () => {
  const clock = fakeClock()
  const { target, asked } = holding(slowServer().server)
  const gateway = await createGateway({
    log: 'silent',
    clock,
    servers: { slow: { target, startTimeoutMs: 2_000, connect: { revisions: ['2025-06-18'] } } },
  })
  onTestFinished(() => gateway.close())
  await asked
  clock.advance(1_999)
  expect(gateway.upstreams()).toMatchObject([{ status: 'connecting' }])
  clock.advance(1)
  await gateway.ready()
  expect(gateway.upstreams()).toMatchObject([
    { status: 'down', why: { code: 'SERVER_DOWN', message: expect.stringMatching(/did not start within 2 s \(startTimeout/) } },
  ])
})
