import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Client } from '../../src/client/index.ts'
import type { Exchange } from '../../src/engine/exchange.ts'
import { ParkedCalls } from '../../src/gateway/bridge/parked-calls.ts'
import { CallTurns } from '../../src/gateway/bridge/turns.ts'
import type { UpstreamCall } from '../../src/gateway/bridge/upstream-call.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../src/gateway/index.ts'
import { SlotShares } from '../../src/gateway/shares.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { testIssuer } from '../auth/issuer.ts'
import { type Behind, behind, clientNamed, clientOf, gatewayOf, tokensOf } from './tenants.ts'

/** `ask` waits for an answer of its caller, `wait` until it is let go; `quick` does not wait. Says how many of them run. */
function bank(options = {}) {
  const made: Behind = behind('bank', { revisions: ['2025-11-25'], ...options })
  const running = { count: 0 }
  let letGo = (): void => {}
  const free = new Promise<void>(resolve => {
    letGo = resolve
  })
  const within = async (work: Promise<unknown>): Promise<string> => {
    running.count++
    await work.catch(() => {})
    running.count--
    return 'done'
  }
  made.server.tool('ask', {}, (_, ctx) => within(ctx.elicit({ message: 'Sure?', schema: z.object({ yes: z.boolean() }) })))
  made.server.tool('wait', {}, () => within(free))
  made.server.tool('quick', {}, () => 'quick')
  made.server.resource('note://{id}', { name: 'note' }, () => 'a note')
  return { ...made, running, letGo }
}

const two: GatewayOptions = { auth: { tokens: tokensOf('flooding', 'other') }, clients: { flooding: {}, other: {} } }

async function tenants(bankServer: Behind, options: GatewayOptions = {}): Promise<readonly [Client, Client, Gateway]> {
  const gateway = await gatewayOf({ bank: bankServer }, { ...two, ...options })
  const { url } = await gateway.listen()
  const never = { onElicit: () => new Promise<never>(() => {}), limits: { rates: { elicit: false } } } as const
  return [await clientNamed(url, 'flooding', never), await clientNamed(url, 'other'), gateway]
}

/** So many calls, of which nobody waits for the end; gives the refusals as they come. */
function flood(client: Client, tool: string, count: number): string[] {
  const refused: string[] = []
  for (let i = 0; i < count; i++)
    void client.callTool(tool).then(
      ({ problem }) => problem !== undefined && refused.push(problem.message),
      () => {},
    )
  return refused
}

const share = 'You have 32 open calls at the server "bank", which is your share of the limit (shares.calls: 64 for all clients)'

it('calls that wait for answers and are withdrawn give their places back', async () => {
  const desk = new ParkedCalls({ clock: fakeClock(), askMs: 60_000 })
  const caller = { principal: { id: 'flooding' }, carrier: 'http', connection: {} }
  const park = async (): Promise<unknown> =>
    desk.park({ name: desk.name(), first: { caller }, stop: () => {} } as unknown as UpstreamCall)
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 5_000; i++) await park()
    await expect(park()).rejects.toThrow('which is your share')
    desk.withdraw(() => true)
  }
  await desk.close()
})

it('a client whose 64 calls wait for answers has half of them refused, and others are served', async () => {
  const server = bank()
  const { url } = await server.server.listen()
  // Over HTTP each call has its own stream, so that its questions are known to be its own.
  const [flooding, other] = await tenants({ ...server, target: url })
  const refused = flood(flooding, 'ask', 64)
  await expect.poll(() => refused.length).toBe(32)
  expect(new Set(refused)).toEqual(new Set([share]))
  await expect.poll(() => server.running.count).toBe(32)
  expect((await other.callTool('quick')).text).toBe('quick')
})

it('calls that take long count in the same way, and their places are free when they have ended', async () => {
  const server = bank()
  const [flooding, other] = await tenants(server)
  const refused = flood(flooding, 'wait', 40)
  await expect.poll(() => refused.length).toBe(8)
  expect((await other.callTool('quick')).text).toBe('quick')
  server.letGo()
  await expect.poll(() => server.running.count).toBe(0)
  expect((await flooding.callTool('quick')).text).toBe('quick')
})

it('reads, prompts and completions count as calls', async () => {
  const server = bank()
  server.server.resource('slow://1', { name: 'slow' }, () => new Promise<string>(() => {}))
  const [flooding, other] = await tenants(server, { shares: { calls: 4 } })
  const failed: string[] = []
  for (let i = 0; i < 4; i++) void flooding.readResource('slow://1').catch(error => failed.push(String(error)))
  await expect.poll(() => failed.length).toBe(2)
  expect(failed[0]).toContain('shares.calls')
  expect((await other.readResource('note://1')).contents).toHaveLength(1)
})

it('a call that was cancelled keeps its place as long as its server may work on it', async () => {
  const server = bank()
  const [flooding, other] = await tenants(server, { shares: { calls: 4 } })
  const stop = new AbortController()
  const cancelled = [1, 2].map(() => flooding.callTool('wait', {}, { signal: stop.signal }).catch(() => 'cancelled'))
  await expect.poll(() => server.running.count).toBe(2)
  stop.abort()
  await Promise.all(cancelled)
  expect((await flooding.callTool('quick')).problem?.code).toBe('RATE_LIMIT_EXCEEDED')
  expect((await other.callTool('quick')).text).toBe('quick')
})

it('many quick calls at once are no flood: all of them are done', async () => {
  const server = bank()
  const [one] = await tenants(server, { shares: { calls: 8 } })
  const answers = await Promise.all(Array.from({ length: 40 }, () => one.callTool('quick')))
  expect(new Set(answers.map(({ text }) => text))).toEqual(new Set(['quick']))
})

it('a user has one share, however many OAuth clients it registers', async () => {
  const [server, issuer] = [bank(), await testIssuer()]
  onTestFinished(() => issuer.close())
  const gateway = await gatewayOf({ bank: server }, { auth: { issuer: issuer.url }, shares: { calls: 4 } })
  const { url } = await gateway.listen()
  const clientWith = (sub: string, client_id: string): Promise<Client> =>
    clientNamed(url, sub, { headers: { authorization: `Bearer ${issuer.token(url, { sub, client_id })}` } })
  const refused: string[][] = []
  for (const id of ['one', 'two', 'three']) refused.push(flood(await clientWith('flooding', id), 'wait', 2))
  await expect.poll(() => refused.flat().length).toBe(4)
  expect((await (await clientWith('other', 'one')).callTool('quick')).text).toBe('quick')
  server.letGo()
})

it('callers over the network without a token share as one, so that many connections bring no more', async () => {
  const server = bank()
  const gateway = await gatewayOf({ bank: server }, { shares: { calls: 8 } })
  const { url } = await gateway.listen()
  const { connect } = await import('../../src/client/index.ts')
  const clients = await Promise.all([1, 2, 3].map(() => connect(url)))
  const refused = clients.map(client => flood(client, 'wait', 3))
  await expect.poll(() => refused.flat().length).toBe(5)
  expect((await (await clientOf(gateway)).callTool('quick')).text).toBe('quick')
  for (const client of clients) await client.close()
})

it('a client that watches all that a server takes is refused beyond its share, and others watch', async () => {
  const server = bank()
  const [flooding, other] = await tenants(server, { shares: { subscriptions: 8 } })
  const seen: string[] = []
  const watch = async (client: Client, uri: string): Promise<void> => {
    for await (const each of client.resourceUpdates(uri)) seen.push(each)
  }
  const failed: string[] = []
  for (let i = 0; i < 6; i++) void watch(flooding, `note://${i}`).catch(error => failed.push(String(error)))
  await expect.poll(() => failed.length).toBeGreaterThan(0)
  expect(failed[0]).toMatch(
    /You subscribe to \d resources of the server "bank", which is your share of the limit \(shares\.subscriptions: 8 for all clients\)/,
  )
  void watch(other, 'note://other').catch(error => failed.push(`other ${error}`))
  await expect
    .poll(() => {
      server.server.resourceUpdated('note://other')
      return seen.includes('note://other')
    })
    .toBe(true)
  expect(failed.filter(each => each.startsWith('other'))).toEqual([])
})

it('what several watch counts once, and goes on for the others when one of them stops', async () => {
  const server = bank()
  const [one, other] = await tenants(server, { shares: { subscriptions: 2 } })
  const seen: string[] = []
  const stop = new AbortController()
  const first = (async () => {
    for await (const _ of one.resourceUpdates('note://1', { signal: stop.signal })) seen.push('one')
  })()
  void (async () => {
    for await (const _ of other.resourceUpdates('note://1')) seen.push('other')
  })().catch(error => seen.push(String(error)))
  const update = (): string[] => {
    server.server.resourceUpdated('note://1')
    return seen
  }
  await expect.poll(() => new Set(update())).toEqual(new Set(['one', 'other']))
  stop.abort()
  await first
  seen.length = 0
  await expect.poll(() => update().length).toBeGreaterThan(0)
  expect(new Set(seen)).toEqual(new Set(['other']))
})

describe('on a pipe whose server works for one caller at a time', () => {
  it('a question that is not answered is given up after a minute where others wait', async () => {
    const clock = fakeClock()
    const server = bank()
    const gateway = await createGateway({ log: 'silent', clock, limits: { rates: false }, servers: { bank: server.target } })
    const ready = gateway.ready()
    await expect
      .poll(() => {
        clock.advance(50)
        return gateway.names().length
      })
      .toBeGreaterThan(0)
    await ready
    const asked: unknown[] = []
    const onElicit = (request: unknown) => {
      asked.push(request)
      return new Promise<never>(() => {})
    }
    const soon =
      (told: () => unknown): (() => unknown) =>
      () => {
        clock.advance(10)
        return told()
      }
    const [silent, other] = [await clientOf(gateway, { onElicit }), await clientOf(gateway, { onElicit })]
    // Its client never answers, so that it never comes to an end there.
    void silent.callTool('ask').catch(() => {})
    await expect.poll(soon(() => asked.length)).toBe(1)
    // Whose question it is nobody can know: from now on they take turns.
    const refused = await Promise.race([other.callTool('ask'), moving(clock)])
    expect(refused).toMatchObject({ text: 'done' })
    const waits = other.callTool('quick').catch(String)
    await expect
      .poll(() => {
        clock.advance(5_000)
        return server.running.count
      })
      .toBe(0)
    await waits
    expect((await other.callTool('quick')).text).toBe('quick')
    await gateway.close()
  })
})

it('whoever leaves questions unanswered again and again keeps others waiting for half as long each time', async () => {
  const clock = fakeClock()
  const call = (id: string) => {
    const caller = { principal: { id }, carrier: 'http', connection: {} }
    return { conversation: { id }, caller, signal: new AbortController().signal } as unknown as Exchange
  }
  const [silent, other] = [call('silent'), call('other')]
  let gave = false
  const giveWay = (owner: object): void => {
    gave = true
    turns.leave(owner)
  }
  const turns = new CallTurns({ upstream: 'bank', clock, waiting: 64, giveWay })
  turns.begin([])
  /** Nobody waits for ever: who is told to come again does so. */
  const insist = (): Promise<void> => turns.enter(other)?.catch(insist) ?? Promise.resolve()
  const held = async (): Promise<number> => {
    gave = false
    expect(turns.enter(silent)).toBe(undefined)
    const began = clock.now()
    const served = insist()
    while (!gave) {
      clock.advance(500)
      await new Promise(setImmediate)
    }
    const took = clock.now() - began
    await served
    turns.leave(other.conversation)
    return took
  }
  expect([await held(), await held(), await held(), await held()]).toEqual([60_000, 30_000, 15_000, 7_500])
})

/** Time goes on; never settles. */
function moving(clock: ReturnType<typeof fakeClock>): Promise<never> {
  const timer = setInterval(() => clock.advance(100), 1)
  onTestFinished(() => clearInterval(timer))
  return new Promise<never>(() => {})
}

it('one has at most as much as it leaves free, so that there is room for the next one', () => {
  const shares = new SlotShares(64)
  const most = (who: string): number => {
    while (shares.take(who)) {}
    return shares.of(who)
  }
  expect(['a', 'b', 'c', 'd', 'e', 'f'].map(most)).toEqual([32, 16, 8, 4, 2, 1])
  for (let i = 0; i < 32; i++) shares.leave('a')
  expect(most('g')).toBe(17)
})

it('shares that are mistaken keep the gateway from starting', async () => {
  await expect(createGateway({ servers: {}, shares: { calls: 1 } })).rejects.toThrow(
    'shares.calls must be a whole number of at least 2, not 1',
  )
  await expect(createGateway({ servers: {}, shares: { call: 4 } as never })).rejects.toThrow('shares.call is not known')
})
