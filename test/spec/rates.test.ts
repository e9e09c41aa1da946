/** Token buckets (item 7): per user, else per network or connection; a refusal names limit and wait, and the wait suffices. */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/clock.ts'
import { listenHttp } from '../../src/transports/http/listen.ts'
import { headersFor, send } from './http.ts'
import { callName, enveloped, errorOf, everyRevision, type Frame, speak, type Wire } from './wire.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

type Rates = NonNullable<ServerOptions['limits']>['rates']

function make(rates: Rates): { server: Server; clock: FakeClock } {
  const clock = fakeClock()
  const server = createServer({
    name: 'rates',
    version: '1.0.0',
    revisions: everyRevision,
    clock,
    limits: rates === undefined ? {} : { rates },
  })
  closers.push(() => server.close())
  server.tool('common', {}, () => 'ok')
  server.tool('dear', { rate: { perSecond: 0.1, burst: 1 } }, () => 'ok')
  server.tool('talk', {}, (_, ctx) => {
    for (let step = 1; step <= 10; step++) {
      ctx.progress(step)
      ctx.log('error', step)
    }
    return 'ok'
  })
  server.prompt('p', { arguments: { x: { complete: () => ['a'] } } }, () => 'x')
  return { server, clock }
}

const complete = { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'x', value: '' } }

/** The refusal of a request, taken apart. */
function refusal(frame: Frame): { code: number; wait: number; message: string; data: Frame } {
  const { code, message, data } = errorOf(frame)
  return { code, message, wait: Number(data?.['retryAfterMs']), data: data ?? {} }
}

const limited = (revision: string): number => (revision === '2026-07-28' || revision === 'draft-2026-v1' ? -32603 : -32000)

describe.each(everyRevision)('tool calls at %s', revision => {
  const call = (wire: Wire, name: string): Promise<Frame> => wire.ask(callName(revision), { name })

  it('beyond the rate are refused with limit and wait; after the wait the next is served', async () => {
    const { server, clock } = make({ calls: { perSecond: 2, burst: 3 } })
    const wire = await speak(server, revision)
    for (let turn = 0; turn < 3; turn++) expect(await call(wire, 'common')).toHaveProperty('result')
    const { code, wait, message } = refusal(await call(wire, 'common'))
    expect([code, wait]).toEqual([limited(revision), 500])
    expect(message).toMatch(/tool calls.*2 per second.*\(limits\.rates\.calls\).*Retry in 500 ms/)
    clock.advance(wait / 2)
    expect(refusal(await call(wire, 'common')).wait).toBe(wait / 2)
    clock.advance(wait / 2)
    expect(await call(wire, 'common')).toHaveProperty('result')
  })

  it('have a limit of their own where a tool says so, instead of the common one', async () => {
    const { server, clock } = make({ calls: { perSecond: 1, burst: 1 } })
    const wire = await speak(server, revision)
    expect(await call(wire, 'dear')).toHaveProperty('result')
    const { wait, message } = refusal(await call(wire, 'dear'))
    expect([wait, message]).toEqual([10_000, expect.stringMatching(/calls of this tool.*0\.1 per second/)])
    expect(await call(wire, 'common')).toHaveProperty('result')
    expect(refusal(await call(wire, 'common')).wait).toBe(1_000)
    clock.advance(10_000)
    expect(await call(wire, 'dear')).toHaveProperty('result')
  })

  it('of one connection do not touch another', async () => {
    const { server } = make({ calls: { perSecond: 1, burst: 1 } })
    const [one, two] = [await speak(server, revision), await speak(server, revision)]
    await call(one, 'common')
    expect(await call(one, 'common')).toHaveProperty('error')
    expect(await call(two, 'common')).toHaveProperty('result')
  })

  it('of one principal count together, whatever connections it has', async () => {
    const { server } = make({ calls: { perSecond: 1, burst: 1 } })
    const [one, two, eve] = [
      await speak(server, revision, { principal: 'ada' }),
      await speak(server, revision, { principal: 'ada' }),
      await speak(server, revision, { principal: 'eve' }),
    ]
    await call(one, 'common')
    expect(await call(two, 'common')).toHaveProperty('error')
    expect(await call(eve, 'common')).toHaveProperty('result')
  })

  it('that are refused leave lists and reading alone', async () => {
    const { server } = make({ calls: { perSecond: 1, burst: 1 } })
    const wire = await speak(server, revision)
    await call(wire, 'common')
    expect(await call(wire, 'common')).toHaveProperty('error')
    expect(await wire.ask('tools/list')).toHaveProperty('result')
  })

  it('have no limit where the author says so', async () => {
    const { server } = make(false)
    const wire = await speak(server, revision)
    for (let turn = 0; turn < 2_500; turn++) wire.begin(callName(revision), { name: 'common' })
    await wire.quiet()
    expect(wire.heard.filter(frame => frame['error'] !== undefined && (frame['error'] as Frame)['code'] !== -32601)).toEqual([])
  })
})

describe.each(everyRevision)('completion at %s', revision => {
  it('beyond the rate is refused with limit and wait', async () => {
    const { server, clock } = make({ completions: { perSecond: 4, burst: 1 } })
    const wire = await speak(server, revision)
    expect(await wire.ask('completion/complete', complete)).toHaveProperty('result')
    const { code, wait, message } = refusal(await wire.ask('completion/complete', complete))
    expect([code, wait, message]).toEqual([
      limited(revision),
      250,
      expect.stringMatching(/completions.*\(limits\.rates\.completions\).*Retry in 250 ms/),
    ])
    clock.advance(wait)
    expect(await wire.ask('completion/complete', complete)).toHaveProperty('result')
  })
})

describe.each(everyRevision)('log and progress at %s', revision => {
  it('beyond the rate are left out; the call itself is answered', async () => {
    const { server, clock } = make({ log: { perSecond: 1, burst: 2 }, progress: { perSecond: 1, burst: 3 } })
    const wire = await speak(server, revision)
    const params = { name: 'talk', _meta: { progressToken: 't', 'io.modelcontextprotocol/logLevel': 'debug' } }
    const count = (name: RegExp): number => wire.heard.filter(frame => name.test(String(frame['method']))).length
    expect(await wire.ask(callName(revision), params)).toHaveProperty('result')
    const logs = revision === 's3' ? 0 : 2
    // Without a total the dialect has nothing to tell in percent.
    const steps = revision === 's3' ? 0 : 3
    expect([count(/message$/), count(/progress$/)]).toEqual([logs, steps])
    clock.advance(1_000)
    await wire.ask(callName(revision), params)
    expect([count(/message$/), count(/progress$/)]).toEqual([logs === 0 ? 0 : 3, steps === 0 ? 0 : 4])
  })
})

describe('the defaults', () => {
  const refused = (wire: Wire): number =>
    wire.heard.filter(frame => (frame['error'] as Frame | undefined)?.['code'] === -32000).length

  it.each([
    ['sse', 1],
    ['websocket', 1],
    ['stdio', 0],
    ['memory', 0],
  ] as const)('on %s refuse %i of 2,001 tool calls and of 101 completions at once', async (carrier, most) => {
    const { server } = make(undefined)
    const wire = await speak(server, '2025-11-25', { carrier })
    for (let turn = 0; turn < 2_001; turn++) wire.begin('tools/call', { name: 'common' })
    await wire.quiet()
    expect(refused(wire)).toBe(most)
    for (let turn = 0; turn < 101; turn++) wire.begin('completion/complete', complete)
    await wire.quiet()
    expect(refused(wire)).toBe(2 * most)
  })

  it('on a pipe still leave out log messages beyond their rate: those cost the other end', async () => {
    const { server } = make(undefined)
    const wire = await speak(server, '2025-11-25', { carrier: 'stdio' })
    for (let turn = 0; turn < 101; turn++)
      wire.begin('tools/call', { name: 'talk', _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } })
    await wire.quiet()
    expect(wire.heard.filter(frame => frame['method'] === 'notifications/message').length).toBe(1_000)
  })
})

describe('over HTTP', () => {
  it('a principal has one bucket on every socket; the refusal comes as an answer of the wire', async () => {
    const { server } = make({ calls: { perSecond: 1, burst: 1 } })
    const { url, close } = await listenHttp(server.acceptor, { identify: header => ({ id: header('authorization') ?? '' }) })
    closers.push(close)
    const params = enveloped('2026-07-28', { name: 'common' })
    const call = (who: string) =>
      send(url, {
        headers: { ...headersFor('2026-07-28', 'tools/call', { name: 'common' }), authorization: who },
        body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      })
    expect((await call('ada')).frame).toHaveProperty('result')
    expect(refusal((await call('ada')).frame)).toMatchObject({ code: -32603, wait: 1_000 })
    expect((await call('bob')).frame).toHaveProperty('result')
  })
})
