/** What a whole host decides (MCP Live 0.2 §7, §9 to §13), judged by what a raw server is sent and answered on each carrier. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHost, type Host, type HostOptions, type PolicyRules } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { mcpl, push } from '../live/raw/host.ts'
import { type Carrier, carriers, type RawOptions, type RawServer, rawServer } from '../live/raw/raw-server.ts'
import { type Frame, Refusal } from '../live/raw/script.ts'

const sets = ['lab.push', 'lab.hooks', 'lab.think', 'lab.files', 'lab.notes']
const messages = [{ role: 'user', content: 'Sum it up' }]
const think = { featureSet: 'lab.think', messages }

async function served(carrier: Carrier, answers: RawOptions['answers'] = {}): Promise<RawServer> {
  const none = { featureSet: 'lab.hooks', contextInjections: [] }
  const hooks = { 'context/beforeInference': () => none, 'context/afterInference': () => ({ featureSet: 'lab.hooks' }) }
  const raw = await rawServer(carrier, { mcpl, answers: { ...hooks, ...answers } })
  onTestFinished(() => raw.close())
  return raw
}

const entry = ({ target, options }: RawServer, live: Frame = {}) => ({
  target,
  connect: options,
  live: { enable: sets, disable: ['lab.off'], ...live },
})

async function hosting(raw: RawServer, options: HostOptions = {}, live?: Frame) {
  const host = await createHost({ model: scripted('Fine.', { again: true }), servers: { raw: entry(raw, live) }, ...options })
  onTestFinished(() => host.close())
  return host
}

const elevate = async (raw: RawServer, label: string, payload?: Frame) =>
  (await raw.ask('scope/elevate', { featureSet: 'lab.files', scope: { label, ...(payload && { payload }) } }))['result'] as Frame

/** Without a session the host listens anew with what holds now; this server sends nothing twice. */
async function update(host: Host, raw: RawServer, rules: PolicyRules): Promise<void> {
  const listened = raw.script.of('live/listen').length
  await host.policy.update(rules)
  if (listened > 0) await raw.script.hears('live/listen', listened + 1)
}

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
    await expect.poll(async () => (await turns()).map(({ status }) => status), { timeout: 20_000 }).toEqual(['done', 'done'])
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

  test('L13.3-1: a blocking hook that fails is passed over, or ends the turn where it is to fail closed', async () => {
    const fails = (): never => {
      throw new Refusal(-32000, 'broken')
    }
    const raw = await served(carrier, { 'context/afterInference': fails })
    const open = await hosting(raw, { model: scripted('Secret.') })
    expect((await (await open.conversation('c').send('Go')).done).text).toBe('Secret.')
    const other = await served(carrier, { 'context/afterInference': fails })
    const closed = await hosting(other, { model: scripted('Secret.'), hooks: { raw: { after: { fail: 'closed' } } } })
    const turn = await closed.conversation('c').send('Go')
    const parts: unknown[] = []
    for await (const part of turn) parts.push(part)
    await expect(turn.done).rejects.toThrow('The answer is not shown, because raw must look at it first')
    expect(JSON.stringify(parts)).not.toContain('Secret.')
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
    const heard: unknown[] = []
    for (const _ of reasons) heard.push(((await raw.ask('inference/request', think))['result'] as Frame)['finishReason'])
    expect(heard).toEqual(['end_turn', 'max_tokens', 'stop_sequence', 'end_turn'])
  })
})
