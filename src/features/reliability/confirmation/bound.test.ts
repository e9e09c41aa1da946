/** What a yes is bound to, and how often it counts: another tool, other arguments, another caller, many at once, a tool that changed. */
import { afterEach, describe, expect, it } from 'vitest'
import { confirmation, consentWorld, metaIn, places, problems } from '../../../../test/spec/consent.ts'
import { type Frame, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import { type StoreKind, storeKinds } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { Context, Server } from '../../../server/index.ts'
import type { ConfirmFacts } from './server.ts'

const world = consentWorld()
let ran: string[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const input = jsonSchema<{ id?: string }>({ type: 'object', properties: { id: { type: 'string' } } })
const knows = { extensions: { [confirmation]: {}, [problems]: {} } }
const asks = { ...knows, elicitation: { form: {}, url: {} } }
const yes = { action: 'accept', content: { confirm: true } }

/** Two tools that are alike but for their names. */
function make(kind: StoreKind, confirm: ConfirmFacts | true = true) {
  const server: Server = world.serve(kind)
  const add = (name: string) =>
    server.tool(name, { input, confirm }, ({ id }) => {
      ran.push(`${name} ${id}`)
      return 'done'
    })
  return { server, wipe: add('wipe'), keep: add('keep') }
}

const call = (name: string, id: string, more: Frame = {}): Frame => ({ name, arguments: { id }, ...more })
const bearing = (token: unknown): Frame => ({
  _meta: { [confirmation]: { confirmation_token: token, user_confirmed: true } },
})
const codeOf = (frame: Frame): unknown => metaIn(frame, problems)['code']

async function tokenFor(wire: Wire, params: Frame): Promise<unknown> {
  return metaIn(await wire.ask('tools/call', params), confirmation)['confirmation_token']
}

/** How many of these answers are of calls that ran; the others must be refusals for want of a yes. */
function done(answers: readonly Frame[]): number {
  const codes = answers.map(codeOf)
  expect(codes.filter(code => code !== undefined && code !== 'CONFIRMATION_REQUIRED')).toEqual([])
  return codes.filter(code => code === undefined).length
}

/** Offers a tool by which the user behind the caller agrees to calls of `wipe`. */
function trusting(server: Server, approved: Parameters<Context['allowCalls']>[1]): void {
  server.tool('trust', {}, async (_, ctx) => {
    await ctx.allowCalls('wipe', approved)
    return 'trusted'
  })
}

describe.each(places)('a yes at %s on %s', (revision, kind) => {
  it('E6-3: for one tool is none for another, be the arguments the same', async () => {
    const wire = await speak(make(kind).server, revision, { capabilities: knows })
    const token = await tokenFor(wire, call('wipe', 'a'))
    expect(codeOf(await wire.ask('tools/call', call('keep', 'a', bearing(token))))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
    expect(textOf(await wire.ask('tools/call', call('wipe', 'a', bearing(token))))).toBe('done')
  })

  it.each<[string, Frame]>([
    ['accepted without a word', { action: 'accept' }],
    ['an empty form', { action: 'accept', content: {} }],
    ['a word in place of the box', { action: 'accept', content: { confirm: 'true' } }],
    ['a number in its place', { action: 'accept', content: { confirm: 1 } }],
    ['another box', { action: 'accept', content: { confirmed: true } }],
    ['a list', { action: 'accept', content: [true] }],
    ['no action', { content: { confirm: true } }],
    ['an unknown action', { action: 'yes', content: { confirm: true } }],
  ])('E6-2: is none by an answer that does not say so: %s', async (_, given) => {
    const wire = await speak(make(kind).server, revision, {
      capabilities: asks,
      ...(revision === '2025-11-25' ? { answers: { 'elicitation/create': () => given } } : {}),
    })
    let last = await wire.ask('tools/call', call('wipe', 'a'))
    const { inputRequests, requestState } = (last['result'] ?? {}) as Frame
    if (inputRequests !== undefined) {
      const inputResponses = Object.fromEntries(Object.keys(inputRequests as Frame).map(key => [key, given]))
      last = await wire.ask('tools/call', call('wipe', 'a', { inputResponses, requestState }))
    }
    const { isError, resultType } = (last['result'] ?? {}) as Frame
    expect(last['error'] !== undefined || isError === true || resultType === 'input_required').toBe(true)
    expect(ran).toEqual([])
  })

  it('E6-2: is needed by a call that was on its way before the first tool asked for one', async () => {
    const server: Server = world.serve(kind)
    const wipe = server.tool('wipe', { input }, () => ran.push('wipe') && 'done')
    const [entered, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    server.use(async (incoming, next) => {
      if (incoming.method === 'tools/call') {
        entered.resolve()
        await gate.promise
      }
      return next(incoming)
    })
    const wire = await speak(server, revision, { capabilities: knows })
    const answer = wire.ask('tools/call', call('wipe', 'a'))
    await entered.promise
    wipe.update({ confirm: true })
    gate.resolve()
    expect(codeOf(await answer)).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
  })

  it('E6-4: by a token counts once, also where it is brought many times at once', async () => {
    const { server } = make(kind)
    const open = () => speak(server, revision, { capabilities: knows, principal: 'ann' })
    const [one, two] = [await open(), await open()]
    const token = await tokenFor(one, call('wipe', 'a'))
    const wires = [one, two, one, two, one]
    expect(done(await Promise.all(wires.map(wire => wire.ask('tools/call', call('wipe', 'a', bearing(token))))))).toBe(1)
    expect(ran).toEqual(['wipe a'])
  })

  it('E6-8: for so many calls is counted down by each, also where they come at once', async () => {
    const { server } = make(kind)
    trusting(server, { uses: 2, ttl: '5m' })
    const wire = await speak(server, revision, { capabilities: knows })
    await wire.ask('tools/call', { name: 'trust' })
    const calls = ['a', 'b', 'c', 'd', 'e'].map(id => wire.ask('tools/call', call('wipe', id)))
    expect(done(await Promise.all(calls))).toBe(2)
    expect(ran).toHaveLength(2)
  })

  it('E6-8: for a list of calls counts once for each of them, also where they come at once', async () => {
    const { server } = make(kind)
    trusting(server, { calls: [{ id: 'a' }, { id: 'b' }] })
    const wire = await speak(server, revision, { capabilities: knows })
    await wire.ask('tools/call', { name: 'trust' })
    const calls = ['a', 'a', 'b', 'b', 'c'].map(id => wire.ask('tools/call', call('wipe', id)))
    expect(done(await Promise.all(calls))).toBe(2)
    expect(ran.toSorted()).toEqual(['wipe a', 'wipe b'])
  })

  it('E6-9: on a page is for the call that is shown there; what is said on the wire is none', async () => {
    const pages: string[] = []
    const url = ({ id }: { id: string }) => `https://tracker.example/approve?id=${pages.push(id) && id}`
    const { server } = make(kind, { message: 'Wipe {id}?', channel: 'url', url })
    const wire = await speak(server, revision, {
      capabilities: asks,
      ...(revision === '2025-11-25' ? { answers: { 'elicitation/create': () => yes } } : {}),
    })
    const ask = async (id: string, more: Frame = {}): Promise<Frame> => {
      const first = await wire.ask('tools/call', call('wipe', id, more))
      const { inputRequests, requestState } = resultOf(first)
      if (inputRequests === undefined) return first
      const inputResponses = Object.fromEntries(Object.keys(inputRequests as Frame).map(key => [key, yes]))
      return wire.ask('tools/call', call('wipe', id, { ...more, inputResponses, requestState }))
    }
    // A form that says yes, and a token that none was given for.
    for (const more of [{}, bearing('AAAA'), bearing(undefined)])
      expect(codeOf(await ask('a', more))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
    expect(await server.confirmations.approve(pages[0] ?? '')).toBe(true)
    expect(codeOf(await ask('b'))).toBe('CONFIRMATION_REQUIRED')
    expect(textOf(await ask('a'))).toBe('done')
    expect(ran).toEqual(['wipe a'])
  })

  it('X4: that stands in line, or was given for a list, is over when the tool becomes another one', async () => {
    const { server, wipe } = make(kind, { message: 'Wipe {id}?', channel: 'queue' })
    trusting(server, { calls: [{ id: 'listed' }] })
    const wire = await speak(server, revision, { capabilities: asks })
    await wire.ask('tools/call', call('wipe', 'queued'))
    await wire.ask('tools/call', { name: 'trust' })
    const [waits] = await server.confirmations.waiting()
    wipe.update({ description: 'Wipes the backups too' })
    await server.confirmations.approve(waits?.id ?? '')
    for (const id of ['queued', 'listed'])
      expect(codeOf(await wire.ask('tools/call', call('wipe', id)))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
  })

  it('X4: on a page that was opened before the tool became another one is none', async () => {
    const pages: string[] = []
    const url = ({ id }: { id: string }) => `https://tracker.example/approve?id=${pages.push(id) && id}`
    const { server, wipe } = make(kind, { channel: 'url', url })
    const wire = await speak(server, revision, { capabilities: knows })
    await wire.ask('tools/call', call('wipe', 'a'))
    expect(pages).toHaveLength(1)
    wipe.update({ description: 'Wipes the backups too' })
    await server.confirmations.approve(pages[0] ?? '')
    expect(codeOf(await wire.ask('tools/call', call('wipe', 'a')))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
  })
})

describe.each(storeKinds)('where questions travel in results, on %s', kind => {
  it('E6-3: the state of a question is good for its call alone: another tool, other arguments, another caller are asked anew', async () => {
    const { server } = make(kind)
    const open = (principal: string) => speak(server, '2026-07-28', { capabilities: asks, principal })
    const [ann, bob] = [await open('ann'), await open('bob')]
    const { inputRequests, requestState } = resultOf(await ann.ask('tools/call', call('wipe', 'a')))
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as Frame).map(key => [key, yes]))
    const answered = { inputResponses, requestState }
    for (const [wire, params] of [
      [ann, call('keep', 'a', answered)],
      [ann, call('wipe', 'b', answered)],
      [bob, call('wipe', 'a', answered)],
    ] as const) {
      const frame = await wire.ask('tools/call', params)
      const result = frame['result'] as Frame | undefined
      // Asked anew, or refused: never run.
      expect(result === undefined || result['resultType'] === 'input_required' || result['isError'] === true).toBe(true)
    }
    expect(ran).toEqual([])
    expect(textOf(await ann.ask('tools/call', call('wipe', 'a', answered)))).toBe('done')
    expect(ran).toEqual(['wipe a'])
  })
})
