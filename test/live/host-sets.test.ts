/** The host's part in feature sets (MCP Live 0.2 §6), judged by a raw server on every carrier. */
import { describe, expect, test } from 'vitest'
import type { Selection } from '../../src/features/live/client-api.ts'
import { attach, host, mcpl, over, push, serve, turn } from './raw/host.ts'
import { carriers, type RawServer } from './raw/raw-server.ts'
import type { Frame } from './raw/script.ts'

/** The selections that the host has told, in order. */
function selections({ script, carrier }: RawServer): Frame[] {
  if (carrier !== 'http 2026-07-28') {
    const requests = script.of('featureSets/update').filter(frame => 'id' in frame)
    return requests.map(({ params }) => params as Frame)
  }
  return script.of('live/listen').map(({ params }) => (params as Frame)['policy'] as Frame)
}

const selection = (more: Partial<Selection> = {}): Selection => ({ enabled: [], disabled: [], canEnable: () => false, ...more })

describe.each(carriers)('%s', carrier => {
  test('L6.2-2: what a set uses beside the known capabilities grants nothing and harms nothing', async () => {
    const featureSets = { odd: { description: 'Odd', uses: ['pushEvents', 'telepathy', 'tools'] } }
    const { raw, diagnosed } = await host(carrier, { mcpl: { ...mcpl, contextHooks: false, featureSets } })
    expect(diagnosed).toMatchObject([{ code: 'USE_UNKNOWN', message: expect.stringContaining('telepathy') }])
    expect(await raw.ask('push/event', push({ featureSet: 'odd' }))).toHaveProperty('result.accepted', true)
    const strange = { strange: { description: 'Strange', uses: ['telepathy', 'pushEvents.all', '*'] } }
    const other = await host(carrier, { mcpl: { ...mcpl, featureSets: strange } })
    const messages = [{ role: 'user', content: 'x' }]
    for (const method of ['push/event', 'inference/request'])
      expect(await other.raw.ask(method, { ...push({ featureSet: 'strange' }), messages })).toHaveProperty('error.code', -32001)
    expect([other.pushed, other.inferred, other.live.hooks.before, other.live.hooks.after]).toEqual([[], [], false, false])
  })

  test('L6.2-3: a declaration without description or uses is reported, offered to nobody and never enabled', async () => {
    const featureSets = { ...mcpl.featureSets, mute: { uses: ['pushEvents'] }, idle: { description: 'Idle' } }
    const offered: string[][] = []
    const { raw, live, diagnosed } = await host(carrier, {
      mcpl: { ...mcpl, featureSets },
      handlers: {
        select: declared => {
          offered.push([...declared.keys()])
          return selection({ enabled: ['*'] })
        },
      },
    })
    expect(diagnosed.map(({ code, message }) => [code, message.includes('"mute"') || message.includes('"idle"')])).toEqual([
      ['DECLARATION_INVALID', true],
      ['DECLARATION_INVALID', true],
    ])
    expect(offered).toEqual([Object.keys(mcpl.featureSets)])
    expect([live.featureSets.has('mute'), live.featureSets.has('idle')]).toEqual([false, false])
    expect(selections(raw)[0]?.['disabled']).toEqual(['mute', 'idle'])
    const data = { featureSet: 'mute', canEnable: false }
    expect(await raw.ask('push/event', push({ featureSet: 'mute' }))).toMatchObject({ error: { code: -32001, data } })
  })

  test('L6.3-1: a pattern covers every declared name below it, exact names work, and disabled beats enabled', async () => {
    const { live } = await host(carrier, {
      handlers: { select: () => selection({ enabled: ['lab.*'], disabled: ['lab.off', 'lab.think'] }) },
    })
    const enabled = [...live.featureSets].filter(([, set]) => set.enabled).map(([name]) => name)
    expect(enabled).toEqual(['lab.push', 'lab.hooks', 'lab.files', 'lab.notes'])
    const set = { description: 'x', uses: ['pushEvents'] }
    const featureSets = { lab: set, 'lab.push': set, 'lab.deep.er': set, 'labs.push': set, other: set }
    const on = async (more: Partial<Selection>) => {
      const other = await host(carrier, { mcpl: { ...mcpl, featureSets }, handlers: { select: () => selection(more) } })
      return [...other.live.featureSets].filter(([, { enabled: isOn }]) => isOn).map(([name]) => name)
    }
    expect(await on({ enabled: ['lab.*'] })).toEqual(['lab.push', 'lab.deep.er'])
    expect(await on({ enabled: ['lab', 'other', 'nobody'] })).toEqual(['lab', 'other'])
    expect(await on({ enabled: ['*', 'lab.push'], disabled: ['lab.*'] })).toEqual(['lab', 'labs.push', 'other'])
  })

  test('L6.5-1: a push, an inference and an elevation without featureSet are -32602', async () => {
    const { raw, pushed, inferred } = await host(carrier)
    const { featureSet: _, ...untagged } = push()
    expect(await raw.ask('push/event', untagged)).toHaveProperty('error.code', -32602)
    expect(await raw.ask('inference/request', { messages: [{ role: 'user', content: 'x' }] })).toHaveProperty(
      'error.code',
      -32602,
    )
    expect(await raw.ask('scope/elevate', { scope: { label: 'x' } })).toHaveProperty('error.code', -32602)
    expect([pushed, inferred]).toEqual([[], []])
  })

  test('L6.5-2: hooks carry no featureSet, whether they are asked or told', async () => {
    const { signal } = new AbortController()
    for (const blocking of [true, false]) {
      const { raw, live } = await host(carrier, {
        mcpl: { ...mcpl, contextHooks: { beforeInference: true, afterInference: { blocking } } },
        answers: {
          'context/beforeInference': () => ({ featureSet: 'lab.hooks', contextInjections: [] }),
          'context/afterInference': () => ({ featureSet: 'lab.hooks' }),
        },
      })
      await live.beforeInference(turn, { signal })
      await live.afterInference(over, { signal })
      expect((await raw.script.hears('context/beforeInference'))['params']).not.toHaveProperty('featureSet')
      expect((await raw.script.hears('context/afterInference'))['params']).not.toHaveProperty('featureSet')
    }
  })

  test('L6.5-2: a hook that is answered without a featureSet contributes nothing', async () => {
    const { signal } = new AbortController()
    const { live } = await host(carrier, {
      answers: {
        'context/beforeInference': () => ({ contextInjections: [{ namespace: 'n', position: 'system', content: 'obey' }] }),
        'context/afterInference': () => ({ modifiedResponse: 'changed' }),
      },
    })
    await expect(live.beforeInference(turn, { signal })).rejects.toThrow('has no featureSet')
    await expect(live.afterInference(over, { signal })).rejects.toThrow('has no featureSet')
  })

  test('L6.6-1: a declared but disabled set is -32001 with data, and nothing comes of it', async () => {
    const elevated: unknown[] = []
    const onElevate = async (request: unknown) => {
      elevated.push(request)
      return { approved: true } as const
    }
    const { raw, pushed, inferred } = await host(carrier, { handlers: { onElevate } })
    const error = {
      code: -32001,
      message: 'Feature set not enabled',
      data: { featureSet: 'lab.off', canEnable: true },
    }
    expect(await raw.ask('push/event', push({ featureSet: 'lab.off' }))).toMatchObject({ error })
    expect(
      await raw.ask('inference/request', { featureSet: 'lab.off', messages: [{ role: 'user', content: 'x' }] }),
    ).toMatchObject({ error })
    expect(await raw.ask('scope/elevate', { featureSet: 'lab.off', scope: { label: 'x' } })).toMatchObject({ error })
    expect([pushed, inferred, elevated]).toEqual([[], [], []])
  })

  test('L6.6-2: an undeclared set is -32003', async () => {
    const { raw, pushed, inferred } = await host(carrier)
    for (const featureSet of ['nobody', '__proto__', 'LAB.PUSH', 'lab.push ', 'lab.*']) {
      const error = { code: -32003, message: 'Unknown feature set', data: { featureSet } }
      const all = { ...push({ featureSet }), messages: [{ role: 'user', content: 'x' }], scope: { label: 'x' } }
      for (const method of ['push/event', 'inference/request', 'scope/elevate'])
        expect(await raw.ask(method, all)).toMatchObject({ error })
    }
    expect([pushed, inferred]).toEqual([[], []])
  })

  test('L6.6-3: a hook answered for a disabled or unknown set contributes nothing, and that is said', async () => {
    const { raw, live, diagnosed } = await host(carrier)
    const { signal } = new AbortController()
    const contextInjections = [{ namespace: 'n', position: 'system', content: 'obey' }]
    for (const featureSet of ['lab.off', 'nobody']) {
      raw.script.on('context/beforeInference', () => ({ featureSet, contextInjections }))
      raw.script.on('context/afterInference', () => ({ featureSet, modifiedResponse: 'changed' }))
      expect(await live.beforeInference(turn, { signal })).toBe(undefined)
      expect(await live.afterInference(over, { signal })).toBe(undefined)
    }
    expect(diagnosed.map(({ code }) => code)).toEqual(Array(4).fill('HOOK_OF_DISABLED_SET'))
  })

  test('L6.6-4: canEnable is what the policy says of that set', async () => {
    const { raw } = await host(carrier, {
      handlers: { select: () => selection({ canEnable: name => name === 'lab.push' }) },
    })
    expect(await raw.ask('push/event', push())).toHaveProperty('error.data.canEnable', true)
    expect(await raw.ask('push/event', push({ featureSet: 'lab.off' }))).toHaveProperty('error.data.canEnable', false)
  })

  test('L6.7-1: an update names every declared set once, by its own name, and holds when the server knows it', async () => {
    let on = ['lab.*']
    const { raw, live, pushed } = await host(carrier, { handlers: { select: () => selection({ enabled: on }) } })
    on = ['lab.hooks', 'lab.think']
    await live.update()
    const told = selections(raw).at(-1) as { enabled: string[]; disabled: string[] }
    expect(told.enabled).toEqual(on)
    expect([...told.enabled, ...told.disabled].sort()).toEqual(Object.keys(mcpl.featureSets).sort())
    expect(await raw.ask('push/event', push())).toHaveProperty('error.code', -32001)
    on = ['lab.push']
    await live.update()
    expect(await raw.ask('push/event', push())).toHaveProperty('result.accepted', true)
    expect(pushed).toHaveLength(1)
  })

  test('L6.7-1: what is taken away holds before the server knows: a hook that is answered then contributes nothing', async () => {
    const [hooked, told] = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()]
    let on = ['lab.*']
    const { raw, live, diagnosed } = await host(carrier, {
      answers: { 'context/beforeInference': () => hooked.promise },
      handlers: { select: () => selection({ enabled: on }) },
    })
    const hooking = live.beforeInference(turn, { signal: new AbortController().signal })
    await raw.script.hears('context/beforeInference')
    on = ['lab.push']
    raw.script.on('featureSets/update', () => told.promise)
    raw.mute = true
    const updating = live.update()
    await raw.script.hears(carrier === 'http 2026-07-28' ? 'live/listen' : 'featureSets/update', 2)
    hooked.resolve({ featureSet: 'lab.hooks', contextInjections: [{ namespace: 'n', position: 'system', content: 'late' }] })
    expect(await hooking).toBe(undefined)
    expect(diagnosed.map(({ code }) => code)).toEqual(['HOOK_OF_DISABLED_SET'])
    told.resolve({ accepted: true })
    if (carrier !== 'http 2026-07-28') await updating
  })

  test('L6.7-4: removed sets are unknown at once; added ones are put to the policy, whose verdict is sent', async () => {
    const changes: string[][] = []
    const { raw, live } = await host(carrier, {
      handlers: {
        select: declared => selection({ enabled: [...declared.keys()], disabled: ['lab.new2'] }),
        onChanged: declared => changes.push([...declared.keys()]),
      },
    })
    raw.tell('featureSets/changed', {
      added: {
        'lab.new': { description: 'New', uses: ['pushEvents'] },
        'lab.new2': { description: 'New, too', uses: ['pushEvents'] },
      },
      removed: ['lab.push'],
    })
    expect(await raw.ask('push/event', push())).toHaveProperty('error.code', -32003)
    expect(await raw.ask('push/event', push({ featureSet: 'lab.new' }))).toHaveProperty('result.accepted', true)
    expect(await raw.ask('push/event', push({ featureSet: 'lab.new2' }))).toHaveProperty('error.code', -32001)
    expect(selections(raw).at(-1)).toMatchObject({
      enabled: expect.arrayContaining(['lab.new', 'lab.hooks']),
      disabled: ['lab.new2'],
    })
    expect(changes).toEqual([[...live.featureSets.keys()]])
  })

  test('L7.2-2: configured scopes are told with the selection', async () => {
    const scopes = { 'lab.files': { whitelist: ['/project/**'], blacklist: ['**/.env'] } }
    const { raw } = await host(carrier, { handlers: { select: () => selection({ enabled: ['lab.*'], scopes }) } })
    expect(selections(raw)[0]).toMatchObject({ scopes })
  })

  test('a policy that throws makes connecting fail, and says why', async () => {
    const raw = await serve(carrier)
    const failing = attach(raw, {
      handlers: {
        select: () => {
          throw new Error('the policy is broken')
        },
      },
    })
    await expect(failing).rejects.toThrow('the policy is broken')
  })
})
