/** How long the server keeps something for a caller is the server's to say: whoever asks for more gets the longest there is. */
import { afterEach, describe, expect, it } from 'vitest'
import { endOfLife, lifetimeMs, lifetimeOfSeconds } from '../../src/core/clock.ts'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { call as keyed, replayOf } from '../reliability/keyed-world.ts'
import { type Frame, resultOf, speak, textOf, type Wire } from '../spec/wire.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

const ids = ['idempotency', 'transactions', 'permissions', 'problem', 'events', 'state']
const extensions = Object.fromEntries(ids.map(id => [`dev.vivarium/${id}`, {}]))
const tooLong = 1_000_000_000

function made(options: Partial<ServerOptions> = {}) {
  const clock = fakeClock()
  const server = createServer({ name: 'times', version: '1.0.0', log: 'silent', clock, ...options })
  servers.push(server)
  let runs = 0
  server.tool('do', { undo: { tool: 'undo' }, task: 'optional' }, () => `done ${++runs}`)
  server.tool('undo', { idempotent: true }, () => 'undone')
  server.tool('scoped', { scopes: ['write'] }, () => 'allowed')
  server.event('happened', {})
  const wire = (revision: RevisionId = '2026-07-28', principal = 'ann'): Promise<Wire> =>
    speak(server, revision, { principal, capabilities: { extensions } })
  return { server, clock, wire }
}

/** Seconds from now on the clock of the test. */
const secondsUntil = (time: unknown, now: number): number => (Date.parse(String(time)) - now) / 1000

describe('what a caller asks for is never longer than the server allows', () => {
  it('E5-7: an idempotency key is remembered for the longest at most, which the result tells', async () => {
    const { clock, wire } = made({ idempotency: { maxTtl: '1h' } })
    const ann = await wire()
    const ask = () => ann.ask('tools/call', keyed('do', 'k', {}, { idempotency_ttl_seconds: tooLong }))
    expect(replayOf(await ask())['idempotency_ttl_seconds']).toBe(3_600)
    clock.advance(3_599_999)
    expect(textOf(await ask())).toBe('done 1')
    clock.advance(1)
    expect(textOf(await ask())).toBe('done 2')
  })

  it('E5-7: a result tells of no time where the caller got what it asked for', async () => {
    const { wire } = made({ idempotency: { maxTtl: '1h' } })
    const ann = await wire()
    const answers = [keyed('do', 'a', {}, { idempotency_ttl_seconds: 60 }), keyed('do', 'b')].map(each =>
      ann.ask('tools/call', each),
    )
    for (const answer of await Promise.all(answers)) expect(replayOf(answer)).not.toHaveProperty('idempotency_ttl_seconds')
  })

  it('E5-16: a transaction waits for the longest at most, which its beginning tells', async () => {
    const { wire } = made({ transactions: { maxTimeout: '10m' } })
    const begun = await (await wire()).ask('transaction/begin', { transaction_id: 't', timeout_seconds: tooLong })
    expect(resultOf(begun)['timeout_seconds']).toBe(600)
  })

  it('E4-5: a grant lasts for the longest at most, which it tells', async () => {
    const { clock, wire } = made({ permissions: { grant: ({ scopes }) => scopes, ttl: '30m' } })
    const asked = { requested_scopes: ['write'], ttl_seconds: tooLong }
    const { session } = resultOf(await (await wire()).ask('permissions/negotiate', asked)) as { session: Frame }
    expect(secondsUntil(session['expires_at'], clock.now())).toBe(1_800)
  })

  it('E15-5: a subscription lasts for the longest at most, which its answer tells', async () => {
    const { clock, wire } = made({ events: { ttl: '20m' } })
    const ann = await wire('2025-11-25')
    const response = resultOf(await ann.ask('event/subscribe', { events: ['happened'], ttl_seconds: tooLong }))
    expect(secondsUntil(response['expires_at'], clock.now())).toBe(1_200)
  })

  it('E15-9: so does one that is polled for', async () => {
    const { clock, wire } = made({ events: { ttl: '20m' } })
    const asked = { subscription_id: 's', events: ['happened'], delivery: 'poll', ttl_seconds: tooLong }
    const response = resultOf(await (await wire('2025-11-25')).ask('event/subscribe', asked))
    expect(secondsUntil(response['expires_at'], clock.now())).toBe(1_200)
  })

  it('a task is kept for the longest at most, which it tells', async () => {
    const { wire } = made()
    const asked = { name: 'do', arguments: {}, task: { ttl: Number.MAX_SAFE_INTEGER } }
    const { task } = resultOf(await (await wire('2025-11-25')).ask('tools/call', asked)) as { task: Frame }
    expect(task['ttl']).toBeLessThanOrEqual(86_400_000)
  })
})

describe('one clamp for all of them', () => {
  it('gives what was asked for, the default where nothing was, and never more than the most', () => {
    expect(lifetimeMs(500, { mostMs: 1_000 })).toBe(500)
    expect(lifetimeMs(undefined, { mostMs: 1_000, defaultMs: 300 })).toBe(300)
    expect(lifetimeMs(undefined, { mostMs: 1_000, defaultMs: 3_000 })).toBe(1_000)
    for (const asked of [1_001, Number.MAX_VALUE, Number.POSITIVE_INFINITY, Number.NaN])
      expect(lifetimeMs(asked, { mostMs: 1_000 })).toBe(1_000)
    expect(lifetimeOfSeconds(Number.MAX_VALUE, { mostMs: 1_000 })).toBe(1_000)
    expect(lifetimeMs(-1, { mostMs: 1_000 })).toBe(0)
  })

  it('ends with what ends first, such as the token of the caller', () => {
    expect(endOfLife(100, 1_000, undefined, 400)).toBe(400)
    expect(endOfLife(100, 1_000, undefined, 4_000)).toBe(1_100)
  })
})
