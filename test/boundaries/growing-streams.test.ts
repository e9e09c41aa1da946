/** Streams that grow while they run: what is kept of them counts for their account with each event, and only its own gives way. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { fakeClock } from 'vivarium/testing'
import { ProcessLeases } from '../../src/core/journal/process-leases.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { FetchResponseStream } from '../../src/transports/http/fetch.ts'
import { type HttpLimits, httpLimits } from '../../src/transports/http/limits.ts'
import { storeLogs } from '../../src/transports/http/store-logs.ts'
import { Stream } from '../../src/transports/http/stream.ts'
import { Streams } from '../../src/transports/http/streams.ts'
import { codeOf } from '../reliability/keyed-world.ts'
import { chunksOf, call as streamed, worldsPerTest } from '../reliability/stream-world.ts'
import { textOf } from '../spec/wire.ts'

const worlds = worldsPerTest()
const clock = fakeClock()

/** Event streams of one listener, with their logs in memory or on a store. */
function open(kind: 'in memory' | 'on a store', limits: Partial<HttpLimits>): Streams {
  const store = memoryStore({ now: clock.now })
  const runners = new ProcessLeases({ store, clock, id: 'here' })
  const failed = (error: unknown): void => expect(error).toBeUndefined()
  const shared = (all: HttpLimits) =>
    storeLogs({ store: async () => store, runners: async () => runners, clock, limits: { ...httpLimits, ...all }, failed })
  const streams = new Streams({ limits, clock, ...(kind === 'on a store' && { shared }) })
  onTestFinished(async () => {
    streams.close()
    await streams.shared?.close()
    runners.close()
  })
  return streams
}

/** Opens a stream of that account which is kept in a session. */
function begin(streams: Streams, account: string, session: string): Stream {
  const tenant = { account, key: account, limit: undefined, expiresAt: undefined }
  const stream = new Stream(streams, new FetchResponseStream(1_000, tenant, clock), false)
  stream.keep(session)
  return stream
}

async function grow(streams: Streams, stream: Stream, events: number): Promise<void> {
  for (let n = 0; n < events; n++) {
    stream.send(`"${'x'.repeat(98)}"`, false)
    await streams.shared?.read(stream.session as string, stream.id, 0)
  }
}

const kept = async (streams: Streams, { session = '', id }: Stream): Promise<number> =>
  (await streams.logs.read(session, id, 0)).length

describe.each(['in memory', 'on a store'] as const)('logs %s', kind => {
  it('of an account with many sessions give way, and not the largest session, whose account holds less', async () => {
    const streams = open(kind, { logTotal: 4_000 })
    const bobs = begin(streams, '=bob', 'bob')
    await grow(streams, bobs, 8)
    const adas = Array.from({ length: 12 }, (_, n) => begin(streams, '=ada', `ada ${n}`))
    for (const stream of adas) await grow(streams, stream, 4)
    expect(await kept(streams, bobs)).toBe(8)
    const rest = await Promise.all(adas.map(stream => kept(streams, stream)))
    expect(rest.reduce((sum, events) => sum + events)).toBeLessThan(40)
  })

  it('of one network of strangers give way before those of another, however many streams are open', async () => {
    const streams = open(kind, { logTotal: 4_000 })
    const victim = begin(streams, '@203.0.113.9', 'victim')
    const floods = Array.from({ length: 10 }, (_, n) => begin(streams, '@198.51.100.7', `flood ${n}`))
    for (let round = 0; round < 6; round++) for (const stream of [victim, ...floods]) await grow(streams, stream, 1)
    expect(await kept(streams, victim)).toBe(6)
  })

  it('of sessions that are over count no more', async () => {
    const streams = open(kind, { logTotal: 4_000 })
    for (let n = 0; n < 20; n++) {
      await grow(streams, begin(streams, '=ada', `ada ${n}`), 4)
      streams.forget(`ada ${n}`)
    }
    const bobs = begin(streams, '=bob', 'bob')
    await grow(streams, bobs, 10)
    expect(await kept(streams, bobs)).toBe(10)
  })
})

describe('chunks of streams that can be gone on with', () => {
  /** A store on which all streams together may keep 64 Ki characters, and one account 24 Ki. */
  const small = () => memoryStore({ bytes: 1024 * 1024 })

  it('E8-10: are kept up to the share of their account while they grow; its own oldest go, and what comes later can be gone on with', async () => {
    const { server, speak } = worlds({ store: small(), limits: { rates: false } })
    server.tool('large', {}, async function* () {
      for (let n = 0; n < 40; n++) yield 'x'.repeat(1_000)
    })
    const ada = await speak('2026-07-28', { principal: 'ada' })
    await ada.ask('tools/call', streamed('large'))
    const [early, late] = [chunksOf(ada.heard)[0], chunksOf(ada.heard)[30]]
    expect(codeOf(await ada.ask('tools/call', streamed('large', {}, 'q', early)))).toBe('CHECKPOINT_NOT_FOUND')
    expect(textOf(await ada.ask('tools/call', streamed('large', {}, 'r', late)))).toHaveLength(40_000)
  })

  it('E8-10: of many streams that run at once leave room for those of others, whose chunks all stay', async () => {
    const { server, speak } = worlds({ store: small(), limits: { rates: false } })
    const held = Promise.withResolvers<void>()
    server.tool('flood', {}, async function* () {
      for (let n = 0; n < 4; n++) yield 'x'.repeat(15_000)
      await held.promise
    })
    server.tool('modest', {}, async function* () {
      for (let n = 0; n < 10; n++) yield 'x'.repeat(1_000)
    })
    const ada = await speak('2026-07-28', { principal: 'ada' })
    const floods = Array.from({ length: 8 }, () => ada.ask('tools/call', streamed('flood')))
    await expect.poll(() => chunksOf(ada.heard).length).toBe(32)
    const bob = await speak('2026-07-28', { principal: 'bob' })
    await bob.ask('tools/call', streamed('modest'))
    const [first] = chunksOf(bob.heard)
    expect(first?.checkpoint_token).toBeDefined()
    expect(textOf(await bob.ask('tools/call', streamed('modest', {}, 'q', first)))).toHaveLength(10_000)
    held.resolve()
    // What was said to whoever was there is whole.
    for (const answer of await Promise.all(floods)) expect(textOf(answer)).toHaveLength(60_000)
  })
})
