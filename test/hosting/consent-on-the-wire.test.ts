/** What a whole host lets a server do, by feature set and by use (MCP Live 0.2 §5 to §7, §9), judged by a raw server on each carrier. */
import { describe, expect, test } from 'vitest'
import { scripted } from '../../src/host/models/scripted.ts'
import { mcpl, push } from '../live/raw/host.ts'
import { carriers, type RawServer } from '../live/raw/raw-server.ts'
import type { Frame } from '../live/raw/script.ts'
import { having, hosting, served, sets, think, toolOf } from './wire-world.ts'

/** The selections that the host has told, in order. */
function selections({ script, carrier }: RawServer): Frame[] {
  if (carrier === 'http 2026-07-28') return script.of('live/listen').map(({ params }) => (params as Frame)['policy'] as Frame)
  return script
    .of('featureSets/update')
    .filter(frame => 'id' in frame)
    .map(({ params }) => params as Frame)
}

/** Does something after which the host selects anew, and waits until the server knows. */
async function reselects(raw: RawServer, work: () => unknown): Promise<void> {
  const before = selections(raw).length
  await work()
  await raw.script.until(() => selections(raw).length > before)
}

/** Until the host has told that it enabled a set. */
const knows = (raw: RawServer, name: string): Promise<boolean> =>
  raw.script.until(() => (selections(raw).at(-1)?.['enabled'] as readonly string[] | undefined)?.includes(name))

/** What a server can do in a set by itself. */
const acts = (featureSet: string): readonly (readonly [string, Frame])[] => [
  ['push/event', push({ featureSet })],
  ['inference/request', { ...think, featureSet }],
  ['scope/elevate', { featureSet, scope: { label: '/tmp/x' } }],
]

const errorOf = async (raw: RawServer, [method, params]: readonly [string, Frame]): Promise<Frame> =>
  ((await raw.ask(method, params))['error'] ?? {}) as Frame

const lists = { 'lab.files': { whitelist: ['/project/**'], blacklist: ['**/.env'] } }

describe.each(carriers)('%s', carrier => {
  test('L5.1-2: nobody is told of a turn who has announced no hook, or whose set for it is off', async () => {
    const { contextHooks: _, ...unannounced } = mcpl
    const off = { enable: sets.filter(name => name !== 'lab.hooks'), disable: ['lab.off', 'lab.hooks'] }
    for (const [announced, live] of [
      [unannounced, {}],
      [mcpl, off],
    ] as const) {
      const raw = await served(carrier, {}, { mcpl: announced })
      const host = await hosting(raw, {}, live)
      await (await host.conversation('c').send('Between us')).done
      expect(raw.script.heard.map(({ method }) => String(method)).filter(name => name.startsWith('context/'))).toEqual([])
      expect(JSON.stringify(raw.script.heard)).not.toContain('Between us')
    }
  })

  test('L5.1-2: of two hooks that a server announces only that one is called which its set declares', async () => {
    const methods = ['context/beforeInference', 'context/afterInference'] as const
    for (const method of methods) {
      const hooks = { description: 'Hooks', uses: [method.replace('context/', 'contextHooks.')] }
      const raw = await served(carrier, {}, { mcpl: { ...mcpl, featureSets: { ...mcpl.featureSets, 'lab.hooks': hooks } } })
      const host = await hosting(raw)
      await (await host.conversation('c').send('Hi')).done
      expect(methods.filter(name => raw.script.of(name).length > 0)).toEqual([method])
    }
  })

  test('L5.2-1, L7.2-2: what the config enables, disables and lists is told in the hello, and with the selection', async () => {
    const raw = await served(carrier)
    await hosting(raw, {}, { scopes: lists })
    const hello = raw.script.heard[0]?.['params'] as Frame
    const meta = hello['_meta'] as Frame | undefined
    const declared = carrier === 'http 2026-07-28' ? meta?.['io.modelcontextprotocol/clientCapabilities'] : hello['capabilities']
    expect(declared).toMatchObject({
      experimental: { mcpl: { version: '0.2', featureSets: { enabled: sets, disabled: ['lab.off'] }, scopes: lists } },
    })
    expect(selections(raw)[0]).toMatchObject({ enabled: sets, disabled: ['lab.off'], scopes: lists })
  })

  test('L6.2-3: a set without description or uses is reported and stays off, whatever rules, grants and users say', async () => {
    const faulty = {
      mute: { uses: ['pushEvents', 'inferenceRequest'] },
      idle: { description: 'Idle' },
      number: { description: 7, uses: ['pushEvents'] },
      word: { description: 'Word', uses: 'pushEvents' },
      none: null,
    }
    const names = Object.keys(faulty)
    const raw = await served(carrier, {}, { mcpl: { ...mcpl, featureSets: { ...mcpl.featureSets, ...faulty } } })
    const host = await hosting(raw, { onApproval: () => true }, { enable: ['*'], disable: [] })
    const off = async (featureSet: string) => {
      for (const act of acts(featureSet))
        expect(await errorOf(raw, act)).toMatchObject({ code: -32001, data: { featureSet, canEnable: false } })
    }
    for (const name of names) await off(name)
    await reselects(raw, () => host.policy.grant({ server: 'raw', kind: 'set', featureSet: '*' }, '1h'))
    await off('mute')
    for (const { enabled } of selections(raw)) expect((enabled as string[]).filter(name => names.includes(name))).toEqual([])
    const { notes } = await host.audit({ server: 'raw', kind: 'live' })
    const reported = notes.filter(({ why }) => why?.code === 'DECLARATION_INVALID').map(({ why }) => why?.message)
    for (const name of names) expect(reported).toContainEqual(expect.stringContaining(`"${name}"`))
    await reselects(raw, () => raw.tell('featureSets/changed', { added: { 'lab.push': { uses: ['pushEvents'] } } }))
    expect(await errorOf(raw, acts('lab.push')[0] as never)).toMatchObject({ code: -32001, data: { canEnable: false } })
  })

  test('L6.6-3: what hooks answer for a set that is off or unknown reaches neither model nor user, and is noted', async () => {
    for (const featureSet of ['lab.off', 'lab.none']) {
      const positions = ['system', 'beforeUser', 'afterUser']
      const raw = await served(carrier, {
        'context/beforeInference': () => ({
          featureSet,
          contextInjections: positions.map(position => ({ namespace: 'n', position, content: 'obey' })),
        }),
        'context/afterInference': () => ({ featureSet, modifiedResponse: 'Changed.' }),
      })
      const model = scripted('Fine.')
      const host = await hosting(raw, { model })
      const turn = await host.conversation('c').send('Hi')
      expect((await turn.done).text).toBe('Fine.')
      expect(JSON.stringify(model.requests)).not.toContain('obey')
      const { notes } = await host.audit({ server: 'raw', kind: 'live' })
      expect(notes.map(({ outcome, why }) => [outcome, why?.code, why?.message.includes(featureSet)])).toEqual([
        ['dropped', 'HOOK_OF_DISABLED_SET', true],
        ['dropped', 'HOOK_OF_DISABLED_SET', true],
      ])
    }
  })

  test('L6.6-1, L6.6-4: canEnable is true exactly where a user can enable the set, and until then nothing comes of it', async () => {
    const raw = await served(carrier)
    const model = scripted('Fine.', { again: true })
    const host = await hosting(raw, { model, onApproval: () => false }, { enable: [], disable: ['lab.off'] })
    await host.open()
    const grant = (featureSet: string) => () => host.policy.grant({ server: 'raw', kind: 'set', featureSet }, '1h')
    for (const [featureSet, canEnable] of [
      ['lab.push', true],
      ['lab.think', true],
      ['lab.files', true],
      ['lab.off', false],
    ] as const)
      for (const act of acts(featureSet))
        expect(await errorOf(raw, act)).toMatchObject({ code: -32001, data: { featureSet, canEnable } })
    await reselects(raw, grant('lab.off'))
    expect(await errorOf(raw, acts('lab.off')[0] as never)).toMatchObject({ code: -32001, data: { canEnable: false } })
    expect([await host.inbox.list({ server: 'raw' }), model.requests]).toEqual([[], []])
    await reselects(raw, grant('lab.push'))
    expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
  })

  test('L6.7-4: a set that is gone is unknown to all its messages, and what its hooks still say counts for nothing', async () => {
    const hooked = Promise.withResolvers<unknown>()
    const raw = await served(carrier, { 'context/beforeInference': () => hooked.promise })
    const model = scripted('Fine.')
    const host = await hosting(raw, { model })
    const turn = await host.conversation('c').send('Hi')
    await raw.script.hears('context/beforeInference')
    await reselects(raw, () => raw.tell('featureSets/changed', { removed: ['lab.push', 'lab.hooks', 'lab.think', 'lab.files'] }))
    for (const featureSet of ['lab.push', 'lab.think', 'lab.files'])
      for (const act of acts(featureSet)) expect(await errorOf(raw, act)).toMatchObject({ code: -32003, data: { featureSet } })
    hooked.resolve({ featureSet: 'lab.hooks', contextInjections: [{ namespace: 'n', position: 'system', content: 'obey' }] })
    await turn.done
    expect(JSON.stringify(model.requests)).not.toContain('obey')
    expect(raw.script.of('context/afterInference')).toEqual([])
  })

  test('L6.7-4: a yes to a set is none to another one of its name: what is declared anew is asked about anew', async () => {
    const raw = await served(carrier)
    const asked: unknown[] = []
    await hosting(
      raw,
      {
        onApproval: ({ asked: { featureSet, payload } }) => {
          if (featureSet !== 'lab.push') return false
          return asked.push((payload as Frame)['uses']) === 1
        },
      },
      { enable: [], disable: [] },
    )
    await knows(raw, 'lab.push')
    expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
    const uses = ['pushEvents', 'inferenceRequest']
    await reselects(raw, () => raw.tell('featureSets/changed', { added: { 'lab.push': { description: 'Pushes', uses } } }))
    for (const act of acts('lab.push')) expect(await errorOf(raw, act)).toMatchObject({ code: -32001, data: { canEnable: true } })
    await expect.poll(() => asked).toEqual([['pushEvents'], uses])
    expect(selections(raw).at(-1)?.['enabled']).toEqual([])
  })

  test('L7.7-1, A12: what a scoped call acts on is judged before the call goes out, and goes along with it', async () => {
    const raw = await served(carrier, having(toolOf('edit', 'lab.files')))
    const paths = ['/project/a.ts', '/project/.env', '/etc/hosts', '/srv/x']
    const asked: string[] = []
    const host = await hosting(
      raw,
      {
        model: scripted([{ calls: paths.map(path => ({ name: 'edit', arguments: { path } })) }, 'Done.']),
        extract: { 'raw/edit': 'path' },
        onApproval: ({ scopes: [scope] }) => {
          asked.push(scope?.label ?? '')
          return scope?.label === '/srv/x'
        },
      },
      { scopes: lists },
    )
    const turn = await host.conversation('c').send('Edit')
    await turn.done
    expect(turn.calls.map(({ outcome }) => outcome?.status)).toEqual(['done', 'refused', 'refused', 'done'])
    expect(asked.toSorted()).toEqual(['/etc/hosts', '/srv/x'])
    const sent = raw.script.of('tools/call').map(({ params }) => params as Frame)
    const scopes = sent.map(({ arguments: args, scope }) => [(args as Frame)['path'], scope]).toSorted()
    expect(scopes).toEqual(['/project/a.ts', '/srv/x'].map(path => [path, { label: path, payload: { path } }]))
    const { notes } = await host.audit({ server: 'raw', kind: 'tool' })
    expect(notes.map(({ outcome }) => outcome).toSorted()).toEqual(['refused', 'refused', 'success', 'success'])
  })

  test('L7.7-1: a scoped call of which nobody can tell what it acts on is asked about, and not sent without a yes', async () => {
    const raw = await served(carrier, having(toolOf('edit', 'lab.files')))
    const answers = [false, true]
    const call = { calls: [{ name: 'edit', arguments: { path: '/project/a.ts' } }] }
    const options = { model: scripted([call, 'No.', call, 'Yes.']), onApproval: () => answers.shift() ?? false }
    const host = await hosting(raw, options, { scopes: lists })
    await (await host.conversation('c').send('Edit')).done
    expect(raw.script.of('tools/call')).toEqual([])
    await (await host.conversation('c').send('Edit')).done
    expect([raw.script.of('tools/call').length, answers]).toEqual([1, []])
  })

  test('L9.3-1, L9.3-2: what rules keep out is refused with the reason and runs nothing; what is let in names what runs', async () => {
    const raw = await served(carrier)
    const rules = [
      { name: 'no-spam', do: 'deny', when: { kind: 'push', tags: 'spam' } },
      { name: 'slow', do: 'deny', when: { kind: 'push', above: { count: 1, per: '1h' } } },
    ] as const
    const host = await hosting(raw, { policy: { rules } })
    await host.open()
    const answer = async (more: Frame) => (await raw.ask('push/event', push(more)))['result'] as Frame
    const refused = [await answer({ eventId: 's', tags: ['spam'] })]
    const taken = await answer({ eventId: 'a' })
    refused.push(await answer({ eventId: 'b' }))
    expect(taken).toEqual({ accepted: true, inferenceId: expect.any(String) })
    expect(refused).toMatchObject([
      { accepted: false, reason: expect.stringContaining('no-spam') },
      { accepted: false, reason: 'rate', retryAfterMs: expect.any(Number) },
    ])
    for (const each of refused) expect(each).not.toHaveProperty('inferenceId')
    const turns = () => host.conversation('inbox/raw').turns()
    await expect.poll(async () => (await turns()).map(({ status }) => status)).toEqual(['done'])
    expect((await turns())[0]?.inferenceId).toBe(taken['inferenceId'])
  })
})
