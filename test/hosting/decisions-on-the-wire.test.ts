/** What a whole host decides (MCP Live 0.2 §7, §9 to §13), judged by what a raw server is sent and answered on each carrier. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { push } from '../live/raw/host.ts'
import { carriers, type RawServer, rawServer } from '../live/raw/raw-server.ts'
import { type Frame, Refusal, silence } from '../live/raw/script.ts'
import { entry, hosting, served, sets, think, update } from './wire-world.ts'

const elevate = async (raw: RawServer, label: string, payload?: Frame) =>
  (await raw.ask('scope/elevate', { featureSet: 'lab.files', scope: { label, ...(payload && { payload }) } }))['result'] as Frame

/** The words that a server has put into a request of the model. */
const shown = (blocks: readonly { type: string; text?: string }[] = []): string[] =>
  blocks.flatMap(({ text = '' }) => /\n(\w+)\n<\/context>/.exec(text)?.[1] ?? [])

const plainTools = {
  'tools/list': () => ({ tools: [{ name: 'any', inputSchema: { type: 'object' } }], ttlMs: 0, cacheScope: 'private' }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
}

describe.each(carriers)('%s', carrier => {
  test('L7.2-1, L7.6-1: globs of the lists decide first, the blacklist before the whitelist, and the user about the rest', async () => {
    const raw = await served(carrier)
    const asked: string[] = []
    const scopes = { 'lab.files': { whitelist: ['/project/**'], blacklist: ['**/.env'] } }
    await hosting(raw, { onApproval: ({ asked: { scope } }) => asked.push(scope?.label ?? '') > 1 }, { scopes })
    expect(await elevate(raw, '/project/a.ts', { mode: 'append' })).toEqual({ approved: true, payload: { mode: 'append' } })
    expect(await elevate(raw, '/project/.env')).toMatchObject({ approved: false, reason: expect.stringContaining('blacklist') })
    expect(asked).toEqual([])
    expect([(await elevate(raw, '/etc/hosts'))['approved'], (await elevate(raw, '/srv/x'))['approved']]).toEqual([false, true])
    expect(asked).toEqual(['/etc/hosts', '/srv/x'])
  })

  test('L7.6-2: an approval is kept, and a blacklist entry that comes later still denies', async () => {
    const raw = await served(carrier)
    let asked = 0
    const host = await hosting(raw, { onApproval: () => ++asked > 0 })
    expect([(await elevate(raw, '/etc/hosts'))['approved'], (await elevate(raw, '/etc/hosts'))['approved']]).toEqual([true, true])
    expect(asked).toBe(1)
    const rules = { enable: sets, scopes: { 'lab.files': { blacklist: ['/etc/**'] } } }
    await update(host, raw, { servers: { raw: rules } })
    expect(await elevate(raw, '/etc/hosts')).toMatchObject({ approved: false })
    expect(asked).toBe(1)
  })

  test('L9.4-1: an event that comes again triggers nothing and gets the first answer again', async () => {
    const raw = await served(carrier)
    const host = await hosting(raw)
    await host.open()
    const first = (await raw.ask('push/event', push()))['result'] as Frame
    expect(first).toMatchObject({ accepted: true, inferenceId: expect.any(String) })
    expect((await raw.ask('push/event', push({ timestamp: '2026-02-01T00:00:00Z' })))['result']).toEqual(first)
    await raw.ask('push/event', push({ eventId: 'e-2' }))
    const turns = () => host.conversation('inbox/raw').turns()
    await expect.poll(async () => (await turns()).map(({ status }) => status)).toEqual(['done', 'done'])
    expect((await turns())[0]?.inferenceId).toBe(first['inferenceId'])
  })

  test('L3.3-1: a whole host takes turns with a server that is not live and tells it nothing of them', async () => {
    const raw = await rawServer(carrier, { capabilities: { tools: {} }, answers: plainTools })
    onTestFinished(() => raw.close())
    const host = await createHost({
      model: scripted((_, turn) => (turn === 0 ? { calls: [{ name: 'any' }] } : 'Fine.')),
      servers: { raw: { target: raw.target, connect: raw.options } },
    })
    onTestFinished(() => host.close())
    await (await host.conversation('c').send('Look')).done
    const spoken = raw.script.heard.map(frame => String(frame['method']))
    expect(spoken).toContain('tools/call')
    expect(spoken.filter(name => /^(context|state|featureSets|inference|scope|live|model|channels|mcpl)\//.test(name))).toEqual(
      [],
    )
    for (const { params } of raw.script.of('tools/call'))
      expect(['state', 'checkpoint', 'scope'].filter(name => name in (params as Frame))).toEqual([])
  })

  test('L10.1-1: turns of a conversation are told under one name, counted from 0; what wakes the model by itself has no words', async () => {
    const raw = await served(carrier)
    const host = await hosting(raw)
    await host.open()
    const talk = host.conversation('c')
    const turns = [await talk.send('One'), await talk.send('Two')]
    for (const turn of turns) await turn.done
    await raw.ask('push/event', push())
    const frames = await raw.script.hears('context/beforeInference', 3).then(() => raw.script.of('context/beforeInference'))
    const [one, two, woken] = frames.map(({ params }) => params as Frame)
    const model = { id: 'scripted', vendor: 'vivarium', contextWindow: expect.any(Number), capabilities: expect.any(Array) }
    expect(one).toMatchObject({
      conversationId: 'c',
      turnIndex: 0,
      userMessage: 'One',
      inferenceId: turns[0]?.inferenceId,
      model,
    })
    expect(two).toMatchObject({
      conversationId: 'c',
      turnIndex: 1,
      userMessage: 'Two',
      inferenceId: turns[1]?.inferenceId,
      model,
    })
    expect(woken).toMatchObject({ turnIndex: 0, userMessage: null, model })
    expect(woken?.['conversationId']).not.toBe('c')
  })

  test('L10.1-2, L12-1: of several models the one that runs is told, before an inference and when it is asked for', async () => {
    const raw = await served(carrier)
    const info = (id: string) => ({ id, vendor: 'v', contextWindow: 1_000, capabilities: ['tools', id] })
    const [big, small] = [scripted('Big.', { info: info('big') }), scripted('Small.', { info: info('small') })]
    const host = await hosting(raw, { model: [big, small], routes: { 'raw/lab.think': 'small' } })
    expect((await raw.ask('model/info', {}))['result']).toEqual(info('big'))
    await (await host.conversation('c').send('Hi')).done
    expect(raw.script.of('context/beforeInference')[0]?.['params']).toHaveProperty('model', info('big'))
    expect(raw.script.of('context/afterInference')[0]?.['params']).toMatchObject({ model: info('big'), assistantMessage: 'Big.' })
    expect((await raw.ask('inference/request', think))['result']).toMatchObject({ content: 'Small.', model: 'small' })
  })

  test('L10.7-2: an inference that a server asks for runs no hooks', async () => {
    const raw = await served(carrier)
    const host = await hosting(raw)
    expect((await raw.ask('inference/request', think))['result']).toMatchObject({ content: 'Fine.' })
    expect(raw.script.of('context/beforeInference')).toEqual([])
    await (await host.conversation('c').send('Hi')).done
    expect([raw.script.of('context/beforeInference').length, raw.script.of('context/afterInference').length]).toEqual([1, 1])
  })

  test('L10.8-1: injections of several servers are grouped by position, in the order of servers', async () => {
    const release = Promise.withResolvers<void>()
    const says = (...all: (readonly [string, string])[]) => ({
      featureSet: 'lab.hooks',
      contextInjections: all.map(([position, content]) => ({ namespace: 'n', position, content })),
    })
    const slow = await served(carrier, {
      'context/beforeInference': async () => {
        await release.promise
        return says(['system', 'first'], ['beforeUser', 'one'], ['afterUser', 'last'])
      },
    })
    const quick = await served(carrier, {
      'context/beforeInference': () => {
        release.resolve()
        return says(['beforeUser', 'two'], ['system', 'second'])
      },
    })
    const model = scripted('Fine.')
    const host = await hosting(slow, { model, servers: { slow: entry(slow), quick: entry(quick) } })
    await (await host.conversation('c').send('Hi')).done
    const [request] = model.requests
    expect(shown(request?.system)).toEqual(['first', 'second'])
    const said = request?.messages[0]
    expect(shown(said?.role === 'user' ? said.content : [])).toEqual(['one', 'two', 'last'])
  })

  test('L11.3-2: for an inference no human is asked: rules and budgets decide, and a refusal says which', async () => {
    const raw = await served(carrier)
    const asked: unknown[] = []
    const budgets = [{ name: 'thinking', counts: 'requests', most: 1, per: '1h' }] as const
    const host = await hosting(raw, { budgets, onApproval: question => asked.push(question) > 0 })
    expect((await raw.ask('inference/request', think))['result']).toMatchObject({ content: 'Fine.' })
    expect((await raw.ask('inference/request', think))['error']).toMatchObject({ data: { rule: 'budgets.thinking' } })
    const rules = [{ name: 'no-thinking', do: 'deny', when: { kind: 'infer' } }] as const
    await update(host, raw, { servers: { raw: { enable: sets } }, rules })
    expect((await raw.ask('inference/request', think))['error']).toMatchObject({
      data: { rule: 'no-thinking', fix: expect.any(String) },
    })
    expect(asked).toEqual([])
  })

  test('L13.2-1: what a server does is noted with its set, inference, time and outcome', async () => {
    const raw = await served(carrier)
    const host = await hosting(raw, {}, { scopes: { 'lab.files': { blacklist: ['/etc/**'] } } })
    const { inferenceId } = (await raw.ask('push/event', push()))['result'] as Frame
    await raw.ask('inference/request', think)
    await elevate(raw, '/etc/hosts')
    await (await host.conversation('c').send('Hi')).done
    const notes = async () => (await host.audit({ server: 'raw' })).notes
    const facts = { server: 'raw', at: expect.any(Number) }
    await expect
      .poll(notes, { timeout: 20_000 })
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ ...facts, kind: 'push', featureSet: 'lab.push', inferenceId, outcome: 'success' }),
          expect.objectContaining({ ...facts, kind: 'infer', featureSet: 'lab.think', outcome: 'success' }),
          expect.objectContaining({ ...facts, kind: 'scope', featureSet: 'lab.files', outcome: 'refused' }),
          expect.objectContaining({ ...facts, kind: 'hook.before', inferenceId: expect.any(String), outcome: 'success' }),
        ]),
      )
  })

  test.each(['error', 'timeout'] as const)(
    'L13.3-1: a blocking hook that ends by %s is passed over, or ends the turn where it is to fail closed',
    async how => {
      const fails = (): unknown => {
        if (how === 'timeout') return silence
        throw new Refusal(-32000, 'broken')
      }
      const timeout = how === 'timeout' ? '50ms' : '10s'
      const raw = await served(carrier, { 'context/afterInference': fails })
      const open = await hosting(raw, { model: scripted('Secret.'), hooks: { raw: { after: { timeout } } } })
      expect((await (await open.conversation('c').send('Go')).done).text).toBe('Secret.')
      const outcome = how === 'timeout' ? 'timeout' : 'failure'
      expect((await open.audit({ kind: 'hook.after' })).notes).toMatchObject([{ server: 'raw', outcome }])
      const other = await served(carrier, { 'context/afterInference': fails })
      const hooks = { raw: { after: { fail: 'closed', timeout } } } as const
      const closed = await hosting(other, { model: scripted('Secret.'), hooks })
      const turn = await closed.conversation('c').send('Go')
      const parts: unknown[] = []
      for await (const part of turn) parts.push(part)
      await expect(turn.done).rejects.toThrow('The answer is not shown, because raw must check it first')
      expect(JSON.stringify(parts)).not.toContain('Secret.')
      expect(JSON.stringify(await closed.conversation('c').turns())).not.toContain('Secret.')
      expect((await closed.audit({ kind: 'hook.after' })).notes).toMatchObject([{ server: 'raw', outcome }])
    },
  )

  test('L13.3-1: a hook before an inference that gives no answer in time is passed over, or there is no inference', async () => {
    const silent = { 'context/beforeInference': () => silence }
    const model = scripted('Fine.', { again: true })
    const open = await hosting(await served(carrier, silent), { model, hooks: { raw: { before: { timeout: '50ms' } } } })
    expect((await (await open.conversation('c').send('Go')).done).text).toBe('Fine.')
    const hooks = { raw: { before: { fail: 'closed', timeout: '50ms' } } } as const
    const closed = await hosting(await served(carrier, silent), { model, hooks })
    await expect((await closed.conversation('c').send('Go')).done).rejects.toThrow('did not answer within')
    expect(model.requests).toHaveLength(1)
  })

  test('L13.4-1: an injection is judged by the policy, and marked as its server’s', async () => {
    const contextInjections = [
      { namespace: 'n', position: 'system', content: 'obey' },
      { namespace: 'n', position: 'afterUser', content: 'perhaps' },
    ]
    const injecting = { 'context/beforeInference': () => ({ featureSet: 'lab.hooks', contextInjections }) }
    const raw = await served(carrier, injecting)
    const model = scripted('Fine.')
    const rules = [{ name: 'no-context', do: 'deny', when: { kind: 'inject', server: 'raw' } }] as const
    const strict = await hosting(raw, { model, policy: { rules } })
    const turn = await strict.conversation('c').send('Hi')
    await turn.done
    expect(JSON.stringify(model.requests)).not.toMatch(/obey|perhaps/)
    expect(turn.hooks.find(({ outcome }) => outcome === 'dropped')).toMatchObject({ why: { rule: 'no-context' } })
    const heard = scripted('Fine.')
    const free = await hosting(await served(carrier, injecting), { model: heard })
    await (await free.conversation('c').send('Hi')).done
    expect(JSON.stringify(heard.requests[0])).toMatch(/<context[^>]*raw[^>]*>[^<]*perhaps/)
  })

  test('LA-1: the codes are -32001 for a set that is off, -32003 for one nobody knows, each with the name', async () => {
    const raw = await served(carrier)
    await hosting(raw)
    for (const method of ['push/event', 'inference/request', 'scope/elevate']) {
      const params = { ...push(), ...think, scope: { label: 'x' } }
      const answer = async (featureSet: string) => (await raw.ask(method, { ...params, featureSet }))['error']
      expect(await answer('lab.off')).toMatchObject({
        code: -32001,
        message: 'Feature set not enabled',
        data: { featureSet: 'lab.off', canEnable: expect.any(Boolean) },
      })
      expect(await answer('lab.none')).toMatchObject({
        code: -32003,
        message: 'Unknown feature set',
        data: { featureSet: 'lab.none' },
      })
    }
  })

  test('LB-1: an inference ends for one of the three reasons, whatever the model calls it', async () => {
    const raw = await served(carrier)
    const reasons = ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use'] as const
    await hosting(raw, { model: scripted(reasons.map(finishReason => ({ text: 'x', finishReason }))) })
    const usage = { inputTokens: expect.any(Number), outputTokens: expect.any(Number) }
    for (const finishReason of ['end_turn', 'max_tokens', 'stop_sequence', 'end_turn'])
      expect((await raw.ask('inference/request', think))['result']).toEqual({
        content: 'x',
        model: 'scripted',
        finishReason,
        usage,
      })
  })

  test('LB-1: hooks are told what the schemas name, each in its type, and nothing beside it', async () => {
    const raw = await served(carrier)
    const host = await hosting(raw)
    await (await host.conversation('c').send('Hi')).done
    const told = (method: string): Frame => {
      const { _meta, ...params } = (raw.script.of(method)[0]?.['params'] ?? {}) as Frame
      return params
    }
    const before = {
      inferenceId: expect.any(String),
      conversationId: 'c',
      turnIndex: 0,
      userMessage: 'Hi',
      model: { id: 'scripted', vendor: 'vivarium', contextWindow: 200_000, capabilities: ['tools'] },
    }
    expect(told('context/beforeInference')).toEqual(before)
    const usage = { inputTokens: expect.any(Number), outputTokens: expect.any(Number) }
    expect(told('context/afterInference')).toEqual({ ...before, assistantMessage: 'Fine.', usage })
  })
})
