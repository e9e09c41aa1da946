import { afterEach, describe, expect, it } from 'vitest'
import { confirmation, consentWorld, eras, metaIn, places, problems } from '../../../../test/spec/consent.ts'
import { type Frame, type PeerOptions, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import { type StoreKind, storeKinds } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import type { Server } from '../../../server/index.ts'

const world = consentWorld()
let ran: unknown[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const input = jsonSchema({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })

function tracker(kind: StoreKind, options = {}): Server {
  const server = world.serve(kind, options)
  server.tool('delete_ticket', { input, confirm: { message: 'Delete {id} for good?', risk: 'destructive' } }, args => {
    ran.push(args)
    return 'deleted'
  })
  return server
}

const call = (args: Frame = { id: 'T-1' }, more: Frame = {}) => ({ name: 'delete_ticket', arguments: args, ...more })
const knows = { extensions: { [confirmation]: {}, [problems]: {} } }
const asks = { ...knows, elicitation: { form: {}, url: {} } }
const yes = { action: 'accept', content: { confirm: true } }

/** Calls, and answers what is asked for it, on either wire. */
async function answer(wire: Wire, params: Frame, given: Frame): Promise<{ asked: Frame | undefined; retry: Frame; last: Frame }> {
  const first = await wire.ask('tools/call', params)
  const result = (first['result'] ?? {}) as Frame
  const questions = Object.entries((result['inputRequests'] ?? {}) as Record<string, Frame>)
  const asked = questions[0]?.[1]['params'] as Frame | undefined
  const inputResponses = Object.fromEntries(questions.map(([key]) => [key, given]))
  const retry = { ...params, inputResponses, requestState: result['requestState'] }
  if (questions.length > 0) return { asked, retry, last: await wire.ask('tools/call', retry) }
  const pushed = wire.heard.find(frame => frame['method'] === 'elicitation/create')
  return { asked: pushed?.['params'] as Frame | undefined, retry, last: first }
}

const withAnswer = (revision: RevisionId, given: Frame, more: PeerOptions = {}): PeerOptions => ({
  capabilities: asks,
  ...more,
  ...(revision === '2026-07-28' ? {} : { answers: { 'elicitation/create': () => given } }),
})

const codeOf = (frame: Frame): unknown => metaIn(frame, problems)['code']

/** Calls without a way to be asked; gives the token of the refusal. */
async function tokenFor(wire: Wire, params: Frame = call()): Promise<unknown> {
  return metaIn(await wire.ask('tools/call', params), confirmation)['confirmation_token']
}

const bearing = (token: unknown, args?: Frame, more: Frame = { user_confirmed: true }) =>
  call(args, { _meta: { [confirmation]: { confirmation_token: token, ...more } } })

describe.each(places)('at %s on %s', (revision, kind) => {
  it('E6-2: an accepted question lets the call through, with the full text asked', async () => {
    const wire = await speak(tracker(kind), revision, withAnswer(revision, yes))
    const { asked, last } = await answer(wire, call(), yes)
    expect(asked).toMatchObject({
      message: 'tracker: delete_ticket. Delete T-1 for good?',
      requestedSchema: { properties: { confirm: { type: 'boolean' } }, required: ['confirm'] },
    })
    expect(textOf(last)).toBe('deleted')
    expect(ran).toEqual([{ id: 'T-1' }])
  })

  it.each<[string, Frame]>([
    ['declines', { action: 'decline' }],
    ['cancels', { action: 'cancel' }],
    ['leaves the box empty', { action: 'accept', content: { confirm: false } }],
  ])('E6-5: a user who %s is told so as a permanent refusal, and nothing runs', async (_, given) => {
    const wire = await speak(tracker(kind), revision, withAnswer(revision, given))
    const { last } = await answer(wire, call(), given)
    expect(resultOf(last)['isError']).toBe(true)
    expect(metaIn(last, problems)).toMatchObject({ code: 'CONFIRMATION_DECLINED', category: 'permanent' })
    expect(ran).toEqual([])
  })

  it('E6-2: without a way to ask and without the extension the call is refused', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: { extensions: { [problems]: {} } } })
    const refused = await wire.ask('tools/call', call())
    expect(resultOf(refused)['isError']).toBe(true)
    expect(metaIn(refused, problems)).toMatchObject({ code: 'CONFIRMATION_REQUIRED', category: 'auth_required' })
    expect(metaIn(refused, confirmation)).toEqual({})
    expect(ran).toEqual([])
  })

  it('E6-4: a peer with the extension alone gets a token, good once', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: knows })
    const refused = await wire.ask('tools/call', call())
    expect(resultOf(refused)['isError']).toBe(true)
    expect(metaIn(refused, confirmation)).toEqual({
      status: 'confirmation_required',
      confirmation_message: 'tracker: delete_ticket. Delete T-1 for good?',
      risk_level: 'destructive',
      confirmation_token: expect.any(String),
    })
    const token = metaIn(refused, confirmation)['confirmation_token']
    expect(textOf(await wire.ask('tools/call', bearing(token)))).toBe('deleted')
    expect(codeOf(await wire.ask('tools/call', bearing(token)))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toHaveLength(1)
  })

  it('E6-4: a token ends after 300 seconds', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: knows })
    const [early, late] = [await tokenFor(wire), await tokenFor(wire)]
    await world.clock.forward(299_000)
    expect(textOf(await wire.ask('tools/call', bearing(early)))).toBe('deleted')
    await world.clock.forward(2_000)
    expect(codeOf(await wire.ask('tools/call', bearing(late)))).toBe('CONFIRMATION_REQUIRED')
  })

  it('E6-4: the second use of a token is an answer again where the call is a repetition under its key', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: knows })
    const token = await tokenFor(wire)
    const keyed = call(undefined, {
      _meta: {
        [confirmation]: { confirmation_token: token, user_confirmed: true },
        'dev.vivarium/idempotency': { idempotency_key: 'op-1' },
      },
    })
    expect(textOf(await wire.ask('tools/call', keyed))).toBe('deleted')
    expect(textOf(await wire.ask('tools/call', keyed))).toBe('deleted')
    expect(ran).toHaveLength(1)
  })

  it('E6-3: a token is good for its arguments alone, in whatever order they are written', async () => {
    const server = world.serve(kind)
    server.tool('move', { input: jsonSchema({ type: 'object' }), confirm: true }, args => ran.push(args) && 'moved')
    const wire = await speak(server, revision, { capabilities: knows })
    const move = (args: Frame, token?: unknown) => ({
      name: 'move',
      arguments: args,
      ...(token === undefined ? {} : { _meta: { [confirmation]: { confirmation_token: token, user_confirmed: true } } }),
    })
    const token = await tokenFor(wire, move({ a: 1, b: 2 }))
    expect(codeOf(await wire.ask('tools/call', move({ a: 1, b: 3 }, token)))).toBe('CONFIRMATION_REQUIRED')
    expect(textOf(await wire.ask('tools/call', move({ b: 2, a: 1 }, token)))).toBe('moved')
  })

  it('E6-3: another principal cannot use a token', async () => {
    const server = tracker(kind)
    const ada = await speak(server, revision, { capabilities: knows, principal: 'ada' })
    const eve = await speak(server, revision, { capabilities: knows, principal: 'eve' })
    const token = await tokenFor(ada)
    expect(codeOf(await eve.ask('tools/call', bearing(token)))).toBe('CONFIRMATION_REQUIRED')
    expect(textOf(await ada.ask('tools/call', bearing(token)))).toBe('deleted')
  })

  it('X4 E6-3: a change of the definition kills the tokens of a tool', async () => {
    const server = world.serve(kind)
    const tool = server.tool('wipe', { confirm: { message: 'Wipe?' } }, () => ran.push('wipe') && 'wiped')
    const wire = await speak(server, revision, { capabilities: knows })
    const refused = await wire.ask('tools/call', { name: 'wipe' })
    const token = metaIn(refused, confirmation)['confirmation_token']
    tool.update({ description: 'Wipes the backups too' })
    const again = { name: 'wipe', _meta: { [confirmation]: { confirmation_token: token, user_confirmed: true } } }
    expect(codeOf(await wire.ask('tools/call', again))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([])
  })

  it('E6-2: the word of the client without a token, or with a made up one, counts for nothing', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: knows })
    for (const said of [{ user_confirmed: true }, { user_confirmed: true, confirmation_token: 'AAAA' }]) {
      const refused = await wire.ask('tools/call', call(undefined, { _meta: { [confirmation]: said } }))
      expect(codeOf(refused)).toBe('CONFIRMATION_REQUIRED')
    }
    const token = await tokenFor(wire)
    expect(codeOf(await wire.ask('tools/call', bearing(token, undefined, {})))).toBe('CONFIRMATION_REQUIRED')
    expect(codeOf(await wire.ask('tools/call', bearing(token, undefined, { user_confirmed: false })))).toBe(
      'CONFIRMATION_DECLINED',
    )
    expect(ran).toEqual([])
  })

  it('E6-10: what a model writes among the arguments confirms nothing', async () => {
    const wire = await speak(tracker(kind), revision, { capabilities: knows })
    const token = await tokenFor(wire)
    const args = { id: 'T-1', user_confirmed: true, confirmation_token: token, [confirmation]: { user_confirmed: true } }
    expect(codeOf(await wire.ask('tools/call', call(args)))).toBe('CONFIRMATION_REQUIRED')
    expect(JSON.stringify(resultOf(await wire.ask('tools/list'))['tools'])).not.toContain('user_confirmed')
    expect(ran).toEqual([])
  })

  it('E6-8: one approval covers a list of calls, each once, and no other', async () => {
    const server = tracker(kind)
    const ids = ['T-1', 'T-2']
    server.tool('plan', {}, async (_, ctx) => {
      await ctx.allowCalls('delete_ticket', { calls: ids.map(id => ({ id })), ttl: '5m' })
      return 'planned'
    })
    const wire = await speak(server, revision, { capabilities: knows })
    await wire.ask('tools/call', { name: 'plan' })
    for (const id of ids) expect(textOf(await wire.ask('tools/call', call({ id })))).toBe('deleted')
    for (const id of [...ids, 'T-3']) expect(codeOf(await wire.ask('tools/call', call({ id })))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([{ id: 'T-1' }, { id: 'T-2' }])
  })

  it('E6-8: one approval covers a number of calls until it ends', async () => {
    const server = tracker(kind)
    server.tool('trust', {}, async (_, ctx) => {
      await ctx.allowCalls('delete_ticket', { uses: 2, ttl: '1m' })
      return 'trusted'
    })
    const wire = await speak(server, revision, { capabilities: knows })
    await wire.ask('tools/call', { name: 'trust' })
    const codes = []
    for (const id of ['A', 'B', 'C']) codes.push(codeOf(await wire.ask('tools/call', call({ id }))))
    expect(codes).toEqual([undefined, undefined, 'CONFIRMATION_REQUIRED'])
    await wire.ask('tools/call', { name: 'trust' })
    await world.clock.forward(61_000)
    expect(codeOf(await wire.ask('tools/call', call({ id: 'D' })))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toHaveLength(2)
  })

  it('E6-8: what one principal approved does not cover the calls of another', async () => {
    const server = tracker(kind)
    server.tool('trust', {}, async (_, ctx) => {
      await ctx.allowCalls('delete_ticket', { uses: 2 })
      return 'trusted'
    })
    const ada = await speak(server, revision, { capabilities: knows, principal: 'ada' })
    const eve = await speak(server, revision, { capabilities: knows, principal: 'eve' })
    await ada.ask('tools/call', { name: 'trust' })
    expect(codeOf(await eve.ask('tools/call', call()))).toBe('CONFIRMATION_REQUIRED')
    expect(textOf(await ada.ask('tools/call', call()))).toBe('deleted')
  })

  it('E6-9: with a page as the channel only the page can approve', async () => {
    const server = world.serve(kind)
    const pages: string[] = []
    const url = ({ id }: { id: string }) => {
      pages.push(id)
      return `https://tracker.example/approve?id=${id}`
    }
    server.tool('wipe', { confirm: { message: 'Wipe?', channel: 'url', url } }, () => ran.push('wipe') && 'wiped')
    const opened = { action: 'accept' }
    const wire = await speak(server, revision, withAnswer(revision, opened))
    const { asked, last } = await answer(wire, { name: 'wipe' }, opened)
    expect(asked).toMatchObject({ mode: 'url', url: expect.stringContaining('https://tracker.example/approve') })
    expect(codeOf(last)).toBe('CONFIRMATION_REQUIRED')
    expect(metaIn(last, confirmation)).toEqual({})
    expect(ran).toEqual([])
    const id = pages[0] ?? ''
    expect(await server.confirmations.find(id)).toEqual({ tool: 'wipe', message: 'tracker: wipe. Wipe?', risk: 'destructive' })
    expect([await server.confirmations.approve(id), await server.confirmations.approve(id)]).toEqual([true, false])
    expect(textOf(await wire.ask('tools/call', { name: 'wipe' }))).toBe('wiped')
    expect(codeOf((await answer(wire, { name: 'wipe' }, opened)).last)).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual(['wipe'])
  })

  it('X1: what was done under a key is given again without asking anew', async () => {
    const wire = await speak(tracker(kind), revision, withAnswer(revision, yes))
    const keyed = call(undefined, { _meta: { 'dev.vivarium/idempotency': { idempotency_key: 'op-1' } } })
    expect(textOf((await answer(wire, keyed, yes)).last)).toBe('deleted')
    const questions = wire.heard.length
    expect(textOf(await wire.ask('tools/call', keyed))).toBe('deleted')
    expect(wire.heard.length).toBe(questions + 1)
    expect(ran).toHaveLength(1)
  })
})

describe('where questions travel in results', () => {
  it.each(storeKinds)('E6-4: on %s the state of an agreed call lets it in once', async kind => {
    const wire = await speak(tracker(kind), '2026-07-28', { capabilities: asks })
    const { last, retry } = await answer(wire, call(), yes)
    expect(textOf(last)).toBe('deleted')
    expect(codeOf(await wire.ask('tools/call', retry))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toHaveLength(1)
  })

  it('E6-4: an answer that comes after 300 seconds is asked for again', async () => {
    const wire = await speak(tracker('memory'), '2026-07-28', { capabilities: asks })
    const first = resultOf(await wire.ask('tools/call', call()))
    await world.clock.forward(301_000)
    const inputResponses = Object.fromEntries(Object.keys(first['inputRequests'] as Frame).map(key => [key, yes]))
    const late = await wire.ask('tools/call', call(undefined, { inputResponses, requestState: first['requestState'] }))
    expect(resultOf(late)['resultType']).toBe('input_required')
    expect(ran).toEqual([])
  })

  it('X4: an answer that comes after the tool has changed is asked for again', async () => {
    const server = world.serve('memory')
    const tool = server.tool('wipe', { confirm: true }, () => ran.push('wipe') && 'wiped')
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    const first = resultOf(await wire.ask('tools/call', { name: 'wipe' }))
    tool.update({ description: 'Wipes the backups too' })
    const inputResponses = Object.fromEntries(Object.keys(first['inputRequests'] as Frame).map(key => [key, yes]))
    const retry = await wire.ask('tools/call', { name: 'wipe', inputResponses, requestState: first['requestState'] })
    expect(resultOf(retry)['resultType']).toBe('input_required')
    expect(ran).toEqual([])
  })

  it('E6-2: an answer to what was never asked is none', async () => {
    const wire = await speak(tracker('memory'), '2026-07-28', { capabilities: asks })
    const ahead = await wire.ask('tools/call', call(undefined, { inputResponses: { confirm: yes, 'confirm-1': yes } }))
    expect(resultOf(ahead)['resultType']).toBe('input_required')
    expect(ran).toEqual([])
  })

  it('a handler that asks more itself is not confirmed anew, and its last state lets it in once', async () => {
    const server = world.serve('memory')
    server.tool('ask_more', { confirm: true }, async (_, ctx) => {
      const sure = await ctx.confirm('Really?')
      ran.push(sure)
      return 'done'
    })
    const wire = await speak(server, '2026-07-28', { capabilities: asks })
    const { last } = await answer(wire, { name: 'ask_more' }, yes)
    const { inputRequests, requestState } = resultOf(last)
    expect(JSON.stringify(inputRequests)).toContain('Really?')
    const inputResponses = Object.fromEntries(Object.keys(inputRequests as Frame).map(key => [key, yes]))
    const retry = { name: 'ask_more', inputResponses, requestState }
    expect(textOf(await wire.ask('tools/call', retry))).toBe('done')
    expect(codeOf(await wire.ask('tools/call', retry))).toBe('CONFIRMATION_REQUIRED')
    expect(ran).toEqual([true])
  })
})

it('X4: a pushed question about a tool that changes meanwhile confirms nothing', async () => {
  const server = world.serve('memory')
  const tool = server.tool('wipe', { confirm: true }, () => ran.push('wipe') && 'wiped')
  const change = () => {
    tool.update({ description: 'Wipes the backups too' })
    return yes
  }
  const wire = await speak(server, '2025-11-25', { capabilities: asks, answers: { 'elicitation/create': change } })
  expect(codeOf(await wire.ask('tools/call', { name: 'wipe' }))).toBe('CONFIRMATION_REQUIRED')
  expect(ran).toEqual([])
})

describe.each(eras)('what a tool says of itself at %s', revision => {
  it('E6-7: its worst risk stands in the list, and the hint follows from it', async () => {
    const server = world.serve('memory')
    server.tool('a', { confirm: true }, () => '')
    server.tool('b', { confirm: { message: 'B?', risk: 'reversible' } }, () => '')
    server.tool('c', {}, () => '')
    const wire = await speak(server, revision)
    const tools = resultOf(await wire.ask('tools/list'))['tools'] as Frame[]
    expect(tools.map(tool => (tool['_meta'] as Frame | undefined)?.[confirmation])).toEqual([
      { requires_confirmation: true, confirmation_message: 'Allow this call?', risk_level: 'destructive' },
      { requires_confirmation: true, confirmation_message: 'B?', risk_level: 'reversible' },
      undefined,
    ])
    expect(tools.map(tool => tool['annotations'])).toEqual([{ destructiveHint: true }, { destructiveHint: false }, undefined])
  })

  it('E6-7: arguments may lower the risk that is shown, never raise it, and the gate stays', async () => {
    const server = world.serve('memory')
    const riskOf = ({ how }: Frame) => {
      if (how === 'throw') throw new Error('no')
      return how as 'safe'
    }
    const input = jsonSchema({ type: 'object' })
    server.tool('move', { input, confirm: { risk: 'reversible', riskOf } }, () => ran.push('move') && 'moved')
    const wire = await speak(server, revision, { capabilities: knows })
    const shown = []
    for (const how of ['safe', 'destructive', 'nonsense', 'throw']) {
      const refused = await wire.ask('tools/call', { name: 'move', arguments: { how } })
      shown.push(metaIn(refused, confirmation)['risk_level'])
    }
    expect(shown).toEqual(['safe', 'reversible', 'reversible', 'reversible'])
    expect(ran).toEqual([])
  })

  it('E6-6: arguments are shown as data, unknown placeholders as they are, and always server and tool', async () => {
    const server = world.serve('memory')
    const message = 'Send {text} to {who.name} {nobody} {__proto__} {list}?'
    server.tool('send', { input: jsonSchema({ type: 'object' }), confirm: { message } }, () => '')
    const wire = await speak(server, revision, { capabilities: knows })
    const text = '<img src=x> [a](https://x) `b`\n{list}\u202e\u200b'
    const refused = await wire.ask('tools/call', { name: 'send', arguments: { text, list: [1, 'a'] } })
    expect(metaIn(refused, confirmation)['confirmation_message']).toBe(
      `tracker: send. Send ‹img src=x› (a)(https://x) 'b'\ufffd{list}\ufffd\ufffd to {who.name} {nobody} {__proto__} (1,"a")?`,
    )
  })
})

it('what makes no sense is refused when the tool is made', () => {
  const server = world.serve('memory')
  const make = (confirm: unknown) => () => server.tool('x', { confirm: confirm as true }, () => '')
  expect(make({ risk: 'huge' })).toThrow('risk is "huge"; give one of safe, reversible, destructive')
  expect(make({ channel: 'mail' })).toThrow("give 'url'")
  expect(make({ channel: 'url' })).toThrow("set channel: 'url' and url together")
  expect(make({ mesage: 'x' })).toThrow('has no option "mesage"')
})
