import { afterEach, describe, expect, it } from 'vitest'
import { confirmation, consentWorld, metaIn, places, problems } from '../../../../test/spec/consent.ts'
import { errorOf, type Frame, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import { createServer, type Server, type ServerOptions } from '../../../server/index.ts'

const world = consentWorld()
let ran: string[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const operational = 'dev.vivarium/operational'
const idempotency = 'dev.vivarium/idempotency'
const transactions = 'dev.vivarium/transactions'
const knows = {
  extensions: { [operational]: {}, [problems]: {}, [idempotency]: {}, [transactions]: {}, [confirmation]: {} },
}
const words = jsonSchema<{ words?: number }>({ type: 'object', properties: { words: { type: 'integer' } } })
const done = (name: string): string => {
  ran.push(name)
  return name
}

function shop(kind: StoreKind, options: Partial<ServerOptions> = {}): Server {
  const server = world.serve(kind, { cost: { unitLabel: 'credits' }, ...options })
  server.tool('search', { cost: { category: 'metered', estimatedUnits: 3 }, latency: 'seconds' }, () => done('search'))
  server.tool('plain', {}, () => done('plain'))
  server.tool('look', { cost: { category: 'free' }, latency: 'instant' }, () => done('look'))
  server.tool(
    'translate',
    { input: words, cost: { category: 'metered', estimatedUnits: 100, unitsFor: args => Number(args['words'] ?? 0) / 10 } },
    ({ words = 0 }, ctx) => {
      ctx.cost.add(words / 20)
      return done('translate')
    },
  )
  server.tool('print', { cost: { category: 'requires_approval', estimatedUnits: 40 } }, () => done('print'))
  server.tool('refuse', { cost: { category: 'metered', estimatedUnits: 3 } }, (_, ctx) => {
    throw ctx.problem('RESOURCE_NOT_FOUND', 'There is none such')
  })
  server.tool('break', { cost: { category: 'metered', estimatedUnits: 3 } }, () => {
    throw new Error('broken')
  })
  return server
}

const call = (wire: Wire, name: string, more: Frame = {}, args?: Frame): Promise<Frame> =>
  wire.ask('tools/call', { name, ...(args === undefined ? {} : { arguments: args }), _meta: more })
const atMost = (units: unknown): Frame => ({ [operational]: { max_units: units } })
const usage = (frame: Frame): Frame => metaIn(frame, operational)
const code = (frame: Frame): unknown => metaIn(frame, problems)['code']

describe.each(places)('what calls cost at %s on %s', (revision, kind) => {
  const open = (server: Server, more: Frame = knows): Promise<Wire> => speak(server, revision, { capabilities: more })

  it('E3-7: a list tells what is known of a tool to everybody, and of an unknown cost nothing', async () => {
    const wire = await open(shop(kind), {})
    const listed = resultOf(await wire.ask('tools/list'))['tools'] as readonly Frame[]
    const said = Object.fromEntries(listed.map(({ name, _meta }) => [name, (_meta as Frame | undefined)?.[operational]]))
    expect(said).toMatchObject({
      search: { cost: { category: 'metered', estimated_units: 3, unit_label: 'credits' }, latency: 'seconds' },
      look: { cost: { category: 'free' }, latency: 'instant' },
      plain: undefined,
    })
  })

  it('E3-7: of a tool that says nothing of its cost no call fits a budget', async () => {
    const wire = await open(shop(kind))
    expect(code(await call(wire, 'plain', atMost(1000)))).toBe('BUDGET_EXCEEDED')
    expect(textOf(await call(wire, 'look', atMost(0)))).toBe('look')
    expect(ran).toEqual(['look'])
  })

  it('E3-7: the manifest says the same of each tool, and that intents are heard', async () => {
    const server = shop(kind, { manifest: true, intent: {} })
    const wire = await open(server, { extensions: { 'dev.vivarium/manifest': {} } })
    const { tools, supported_extensions } = resultOf(await wire.ask('manifest/get'))['manifest'] as Record<string, Frame[]>
    const entry = (name: string) => tools?.find(tool => tool['name'] === name)
    expect(entry('search')).toMatchObject({ cost: { category: 'metered', estimated_units: 3 }, latency: 'seconds' })
    expect(entry('print')).toMatchObject({ cost: { category: 'requires_approval' }, requires_confirmation: true })
    expect(entry('plain')).not.toHaveProperty('cost')
    expect(supported_extensions).toContain('intent_hints')
  })

  it('E3-1: a tool that needs approval does not run before the user agreed to its cost', async () => {
    const wire = await open(shop(kind))
    const refused = await call(wire, 'print')
    expect([code(refused), ran]).toEqual(['CONFIRMATION_REQUIRED', []])
    const offer = metaIn(refused, confirmation)
    expect(offer['confirmation_message']).toContain('costs 40 credits')
    const yes = { confirmation_token: offer['confirmation_token'], user_confirmed: true }
    const agreed = await call(wire, 'print', { [confirmation]: yes })
    expect([textOf(agreed), usage(agreed)['units_used'], ran]).toEqual(['print', 40, ['print']])
  })

  it('E3-2: a call whose estimate is above its budget is refused before it runs; one that fits runs', async () => {
    const wire = await open(shop(kind))
    const refused = await call(wire, 'search', atMost(2.5))
    expect(metaIn(refused, problems)).toMatchObject({ code: 'BUDGET_EXCEEDED', details: { units: 3, max_units: 2.5 } })
    expect([resultOf(refused)['isError'], ran]).toEqual([true, []])
    expect(textOf(await call(wire, 'search', atMost(3)))).toBe('search')
    expect(code(await call(wire, 'translate', atMost(9), { words: 100 }))).toBe('BUDGET_EXCEEDED')
    expect(textOf(await call(wire, 'translate', atMost(10), { words: 100 }))).toBe('translate')
  })

  it('E3-2: a bound that is none is refused as such', async () => {
    const wire = await open(shop(kind))
    for (const said of [atMost(-1), atMost('3'), { [operational]: 3 }, { [operational]: { deadline_ms: 0 } }])
      expect(errorOf(await call(wire, 'search', said)).code).toBe(-32602)
    expect(ran).toEqual([])
  })

  it('E3-3: a call that ran says what it cost, by its own count where it has one; a repetition costs nothing', async () => {
    const wire = await open(shop(kind))
    const once = { [idempotency]: { idempotency_key: 'k1' } }
    const first = usage(await call(wire, 'search', once))
    expect(first).toEqual({ units_used: 3, unit_label: 'credits', duration_ms: expect.any(Number) })
    expect(usage(await call(wire, 'search', once))).toMatchObject({ units_used: 0, unit_label: 'credits' })
    expect(ran).toEqual(['search'])
    expect(usage(await call(wire, 'translate', {}, { words: 100 }))['units_used']).toBe(5)
  })

  it('E3-3: whoever did not declare the extension is told nothing of it', async () => {
    const wire = await open(shop(kind), { extensions: { [problems]: {} } })
    expect(usage(await call(wire, 'search'))).toEqual({})
    expect(ran).toEqual(['search'])
  })

  it('E3-3: the time that a caller allows ends the call, and what nobody knows the end of costs what was expected', async () => {
    const server = shop(kind)
    server.tool('sleep', { cost: { category: 'metered', estimatedUnits: 2 } }, (_, ctx) => {
      return new Promise<string>(resolve => ctx.signal.addEventListener('abort', () => resolve('woken')))
    })
    const wire = await open(server)
    const late = await call(wire, 'sleep', { [operational]: { deadline_ms: 20 } })
    expect([code(late), usage(late)['units_used']]).toEqual(['OPERATION_TIMEOUT', 2])
  })

  it('E3-4: what is left falls once for each call that ran, and never below nothing', async () => {
    const server = shop(kind, { cost: { quota: { units: 7, per: '1d' } } })
    const wire = await open(server)
    const left = async (name: string, args?: Frame) => usage(await call(wire, name, {}, args))['quota'] as Frame
    expect((await left('search'))['remaining']).toBe(4)
    expect((await left('translate', { words: 0 }))['remaining']).toBe(4)
    const { remaining, resets_at } = await left('search')
    expect([remaining, Date.parse(String(resets_at)) % 86_400_000]).toEqual([1, 0])
    // What was spent beyond the estimate was spent; there is no less than nothing.
    server.tool('dear', { cost: { category: 'metered', estimatedUnits: 1 } }, (_, ctx) => ctx.cost.add(50))
    expect((await left('dear'))['remaining']).toBe(0)
    expect(code(await call(wire, 'search'))).toBe('QUOTA_EXHAUSTED')
  })

  it('E3-4, E3-8: a quota of calls counts those that ran: not repetitions, refusals, or what another caller does', async () => {
    const server = shop(kind)
    server.tool('scarce', { quota: { calls: 2, per: '1h' }, input: words }, () => done('scarce'))
    const [ann, bob] = await Promise.all(
      ['ann', 'bob'].map(principal => speak(server, revision, { capabilities: knows, principal })),
    )
    if (ann === undefined || bob === undefined) throw new Error('nobody came')
    const once = { [idempotency]: { idempotency_key: 'k1' } }
    expect(usage(await call(ann, 'scarce', once))['quota']).toMatchObject({ remaining: 1 })
    await call(ann, 'scarce', once)
    expect(resultOf(await call(ann, 'scarce', {}, { words: 'many' }))['isError']).toBe(true)
    expect(usage(await call(ann, 'scarce'))['quota']).toMatchObject({ remaining: 0 })
    expect(code(await call(ann, 'scarce'))).toBe('QUOTA_EXHAUSTED')
    expect(usage(await call(bob, 'scarce'))['quota']).toMatchObject({ remaining: 1 })
    expect(ran).toEqual(['scarce', 'scarce', 'scarce'])
  })

  it('E3-4: a call that was on its way before the first tool had a quota counts for it', async () => {
    const server = world.serve(kind)
    const tool = server.tool('scarce', {}, () => done('scarce'))
    const [entered, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    server.use(async (incoming, next) => {
      if (incoming.method === 'tools/call') {
        entered.resolve()
        await gate.promise
      }
      return next(incoming)
    })
    const wire = await open(server)
    const first = call(wire, 'scarce')
    await entered.promise
    tool.update({ quota: { calls: 1, per: '1d' } })
    gate.resolve()
    expect(textOf(await first)).toBe('scarce')
    expect(code(await call(wire, 'scarce'))).toBe('QUOTA_EXHAUSTED')
  })

  it('E3-4: of calls that come at once no more run than there is quota for', async () => {
    const server = shop(kind)
    server.tool('scarce', { quota: { calls: 2, per: '1d' } }, async () => {
      await new Promise(setImmediate)
      return done('scarce')
    })
    const wire = await open(server)
    const answers = await Promise.all(Array.from({ length: 6 }, () => call(wire, 'scarce')))
    const left = answers.filter(answer => code(answer) === undefined).map(answer => usage(answer)['quota'] as Frame)
    expect(left.map(({ remaining }) => Number(remaining) >= 0)).toEqual([true, true])
    expect(answers.filter(answer => code(answer) === 'QUOTA_EXHAUSTED')).toHaveLength(4)
    expect(ran).toEqual(['scarce', 'scarce'])
  })

  it('E3-5: a used up quota says how long to wait, rounded up, and is whole again then', async () => {
    const server = shop(kind)
    server.tool('scarce', { quota: { calls: 1, per: '1h' } }, () => done('scarce'))
    const wire = await open(server)
    await call(wire, 'scarce')
    const before = world.clock.now()
    const refused = metaIn(await call(wire, 'scarce'), problems)
    const seconds = Number(refused['retry_after_seconds'])
    expect(refused).toMatchObject({ code: 'QUOTA_EXHAUSTED', category: 'rate_limited' })
    const wait = 3_600_000 - (before % 3_600_000)
    expect([Math.ceil(wait / 1000), Math.ceil(wait / 1000) - 1]).toContain(seconds)
    await world.clock.forward(wait)
    expect(textOf(await call(wire, 'scarce'))).toBe('scarce')
  })

  it('E3-5: too many calls at once are RATE_LIMIT_EXCEEDED, with the wait', async () => {
    const server = shop(kind)
    server.tool('rare', { rate: { perSecond: 0.25, burst: 1 } }, () => done('rare'))
    const wire = await open(server)
    await call(wire, 'rare')
    const told = errorOf(await call(wire, 'rare')).data?.[problems]
    expect(told).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', category: 'rate_limited', retry_after_seconds: 4 })
  })

  it('E3-5: whoever knows no extension is refused in words', async () => {
    const server = shop(kind)
    server.tool('scarce', { quota: { calls: 1, per: '1h' } }, () => done('scarce'))
    const wire = await open(server, {})
    await call(wire, 'scarce')
    const refused = resultOf(await call(wire, 'scarce'))
    expect([refused['isError'], ran]).toEqual([true, ['scarce']])
    expect(JSON.stringify(refused['content'])).toContain('quota is used up')
  })

  it('E3-8: what is refused costs nothing, wherever it was refused; what broke costs what was expected', async () => {
    const server = shop(kind, { cost: { quota: { units: 10, per: '1d' } } })
    const wire = await open(server)
    await call(wire, 'search', atMost(1))
    await call(wire, 'translate', {}, { words: 'many' })
    await call(wire, 'print')
    const refused = usage(await call(wire, 'refuse'))
    expect([refused['units_used'], (refused['quota'] as Frame)['remaining']]).toEqual([0, 10])
    expect(usage(await call(wire, 'break'))).toMatchObject({ units_used: 3, quota: { remaining: 7 } })
  })

  it('E3-8: what was reserved for a call that is refused after that is given back', async () => {
    const server = shop(kind)
    const budget = await server.budgets.give({ units: 10 }, 'ann')
    const wire = await speak(server, revision, { capabilities: knows, principal: 'ann' })
    const refused = await call(wire, 'search', { [transactions]: { transaction_id: 'unknown' } })
    expect([resultOf(refused)['isError'], ran, await server.budgets.left(budget, 'ann')]).toEqual([true, [], 10])
  })

  it('X9: a budget is reserved while calls run, and settled when they have', async () => {
    const server = shop(kind)
    const budget = await server.budgets.give({ units: 10, tools: 's*', ttl: '1h' }, 'ann')
    let go = (): void => {}
    server.tool('slow', { cost: { category: 'metered', estimatedUnits: 8 } }, async (_, ctx) => {
      await new Promise<void>(resolve => {
        go = resolve
        ran.push('slow')
      })
      ctx.cost.add(1)
    })
    const wire = await speak(server, revision, { capabilities: knows, principal: 'ann' })
    const slow = call(wire, 'slow')
    await expect.poll(() => ran).toEqual(['slow'])
    expect(await server.budgets.left(budget, 'ann')).toBe(2)
    expect(code(await call(wire, 'search'))).toBe('BUDGET_EXCEEDED')
    go()
    expect(usage(await slow)['units_used']).toBe(1)
    expect(await server.budgets.left(budget, 'ann')).toBe(9)
    expect(textOf(await call(wire, 'search'))).toBe('search')
    expect(await server.budgets.left(budget, 'ann')).toBe(6)
    expect(await server.budgets.revoke(budget, 'ann')).toBe(true)
    expect(await server.budgets.left(budget, 'ann')).toBeUndefined()
  })

  it.each([
    [true, 10],
    [false, 7],
  ])('X9: what is taken back is given back only where the tool says so (refundable: %s)', async (refundable, left) => {
    const server = world.serve(kind)
    const cost = { category: 'metered', estimatedUnits: 3, refundable } as const
    server.tool('book', { cost, undo: { tool: 'cancel', arguments: () => ({}) } }, () => done('book'))
    server.tool('cancel', { cost: { category: 'metered', estimatedUnits: 5 } }, () => done('cancel'))
    const budget = await server.budgets.give({ units: 10 }, 'ann')
    const wire = await speak(server, revision, { capabilities: knows, principal: 'ann' })
    await wire.ask('transaction/begin', { transaction_id: 't1' })
    expect(usage(await call(wire, 'book', { [transactions]: { transaction_id: 't1' } }))['units_used']).toBe(3)
    expect(await server.budgets.left(budget, 'ann')).toBe(7)
    await wire.ask('transaction/rollback', { transaction_id: 't1' })
    // Taking back is the runtime's own doing, and costs its caller nothing.
    expect(ran).toEqual(['book', 'cancel'])
    expect(await server.budgets.left(budget, 'ann')).toBe(left)
  })

  it('a call that asks in between pays for each time that it spent something, and reports all of it', async () => {
    const server = world.serve(kind)
    const budget = await server.budgets.give({ units: 10 }, 'ann')
    server.tool('quote', { cost: { category: 'metered' } }, async (_, ctx) => {
      ctx.cost.add(2)
      await ctx.confirm('Shall it be bought?')
      return done('quote')
    })
    const yes = { action: 'accept', content: { confirm: true } }
    const capabilities = { ...knows, elicitation: {} }
    const answers = { 'elicitation/create': () => yes }
    const wire = await speak(server, revision, { capabilities, principal: 'ann', answers })
    let frame = await call(wire, 'quote')
    const { requestState } = resultOf(frame)
    const inputRequests = (resultOf(frame)['inputRequests'] ?? {}) as Frame
    const rounds = Object.keys(inputRequests).length + 1
    if (rounds > 1) {
      const inputResponses = Object.fromEntries(Object.keys(inputRequests).map(key => [key, yes]))
      frame = await wire.ask('tools/call', { name: 'quote', inputResponses, requestState, _meta: {} })
    }
    expect([textOf(frame), usage(frame)['units_used']]).toEqual(['quote', 2 * rounds])
    expect(await server.budgets.left(budget, 'ann')).toBe(10 - 2 * rounds)
  })
})

describe('what an author says of costs', () => {
  const server = createServer({ name: 's', version: '1.0.0' })
  it.each<[string, object]>([
    ['a category', { cost: { category: 'cheap' } }],
    ['units', { cost: { category: 'metered', estimatedUnits: -1 } }],
    ['what is free', { cost: { category: 'free', estimatedUnits: 1 } }],
    ['a latency', { latency: 'hours' }],
    ['a quota', { quota: { calls: 1, units: 1, per: '1d' } }],
    ['a quota', { quota: { per: '1d' } }],
    ['a quota', { quota: { calls: 0, per: '1d' } }],
    ['a period', { quota: { calls: 1, per: 'day' } }],
  ])('is refused where %s makes no sense: %j', (_, options) => {
    expect(() => server.tool('x', options as never, () => 'x')).toThrow(TypeError)
  })

  it('is needed before anything can be counted', async () => {
    const free = createServer({ name: 's', version: '1.0.0', log: 'silent' })
    free.tool('x', {}, (_, ctx) => {
      expect(() => ctx.cost).toThrow('Give the tool the option cost')
      return 'fine'
    })
    expect(textOf(await (await speak(free, '2026-07-28')).ask('tools/call', { name: 'x' }))).toBe('fine')
    await free.close()
  })
})
