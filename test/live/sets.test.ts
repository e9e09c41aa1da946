/** What a live server declares, obeys and announces, judged by its frames alone (MCP Live 0.2 §3–§6). */
import { afterEach, describe, expect, it } from 'vitest'
import { createServer } from '../../src/server/index.ts'
import type { Frame } from '../spec/wire.ts'
import type { Carrier } from './pipes.ts'
import { everySet, given, places, type RawHost, type RawHostOptions, rawHost, turn } from './raw-host.ts'

const open: RawHost[] = []
afterEach(async () => {
  for (const host of open.splice(0)) await host.close()
})

async function hosted(carrier: Carrier, options?: RawHostOptions): Promise<RawHost> {
  const host = await rawHost(carrier, options)
  open.push(host)
  return host
}

const errorOf = (frame: Frame): Frame => (frame['error'] ?? {}) as Frame

describe.each(places)('a live server on %s', place => {
  const stateless = place === 'stateless'

  it('L3.1-1: declares MCP Live 0.2 under experimental.mcpl, whatever revision of MCP was agreed on', async () => {
    const host = await hosted(place)
    expect(host.declared).toMatchObject({ version: '0.2' })
    expect((host.capabilities['experimental'] as Frame)['mcpl']).toEqual(host.declared)
  })

  it.runIf(!stateless)(
    'L3.1-1: which revision of MCP is agreed on does not depend on MCP Live, and it is declared in each',
    async () => {
      const old = place === 'http' ? '2025-03-26' : '2024-11-05'
      // On pipes each host has a process of its own.
      const more = place === 'stdio' ? [] : ['2025-11-25', '2025-06-18', '1999-12-31']
      for (const protocolVersion of [old, ...more]) {
        const hellos = [{ version: '0.2' }, false] as const
        const hosts = await Promise.all(hellos.map(mcpl => hosted(place, { mcpl, hello: { protocolVersion }, select: false })))
        const agreed = hosts.map(({ frames }) => (frames[0]?.['result'] as Frame | undefined)?.['protocolVersion'])
        const expected = protocolVersion === '1999-12-31' ? '2025-11-25' : protocolVersion
        expect(agreed).toEqual([expected, expected])
        for (const { capabilities } of hosts) expect(capabilities).toMatchObject({ experimental: { mcpl: { version: '0.2' } } })
      }
    },
  )

  it('L3.2-1: a host that announced nothing is sent nothing of it, and is served as any other', async () => {
    const host = await hosted(place, { mcpl: false })
    const pushed = await host.call('push', { content: 'unheard' })
    expect(given(pushed)).toHaveProperty('eventId')
    expect(given(await host.call('infer', { messages: 'hello?' }))).toMatchObject({ isError: true })
    expect(given(await host.call('commit', { message: 'one' }))).toEqual({ on: null, commits: 1 })
    expect(given(await host.call('add_note', { text: 'a' }))).toEqual({ count: 1 })
    expect(given(await host.call('edit', { path: '/a' }))).toMatchObject({ isError: true })
    expect(given(await host.call('model'))).toMatchObject({ isError: true })
    await host.call('sets', { add: 'late.set' })
    for (const method of ['context/beforeInference', 'context/afterInference', 'featureSets/update'])
      expect([method, errorOf(await host.ask(method, turn('x', { assistantMessage: 'y' })))['code']]).toEqual([method, -32601])
    await host.quiet()
    // Whatever it says by itself is MCP's own.
    expect(host.said.filter(({ method }) => !method.startsWith('notifications/'))).toEqual([])
    expect(host.frames.filter(({ method }) => String(method ?? '').startsWith('live/'))).toEqual([])
    expect(((await host.ask('tools/list'))['result'] as { tools: unknown[] }).tools.length).toBeGreaterThan(5)
    expect((await host.ask('resources/list'))['result']).toHaveProperty('resources')
  })

  it('L3.2-1: what was pushed meanwhile can be read by a plain host as a resource', async () => {
    const host = await hosted(place, { mcpl: false })
    await host.call('push', { content: 'unheard', eventId: 'e1', timestamp: '2026-01-02T03:04:05Z' })
    const read = (await host.ask('resources/read', { uri: 'live://events/pending' }))['result'] as {
      contents: { text: string }[]
    }
    expect(JSON.parse(read.contents[0]?.text ?? '')).toEqual({
      events: [
        {
          featureSet: 'memory.proactive',
          eventId: 'e1',
          timestamp: '2026-01-02T03:04:05Z',
          content: [{ type: 'text', text: 'unheard' }],
        },
      ],
      more: 0,
    })
  })

  it('L4-1: each of its requests has an id of its own, and each of the host gets one answer under its id', async () => {
    const host = await hosted(place)
    const pushing = [
      host.call('push', { content: 'a', wait: true }),
      host.call('push', { content: 'b', wait: true, origin: { b: 1 } }),
    ]
    const [one, two] = [await host.next('push/event'), await host.next('push/event')]
    expect(one.id).not.toBe(two.id)
    await two.answer({ accepted: true, inferenceId: 'second' })
    await one.answer({ accepted: true, inferenceId: 'first' })
    const answers = (await Promise.all(pushing)).map(frame => (given(frame)['answer'] as Frame)['inferenceId'])
    expect(answers.toSorted()).toEqual(['first', 'second'])
    const asked = [
      host.begin('context/beforeInference', turn('x')),
      host.begin('context/beforeInference', { userMessage: 'Not a turn' }),
      host.begin('context/afterInference', turn('x', { assistantMessage: 'y' })),
      host.begin('state/rollback', { featureSet: 'git.commit', checkpoint: 'none' }),
      host.begin('push/event', {}),
    ]
    const outcomes = (await Promise.all(asked.map(({ answer }) => answer))).map(frame => Object.keys(frame).toSorted().join(' '))
    expect(outcomes).toEqual([
      'id jsonrpc result',
      'error id jsonrpc',
      'id jsonrpc result',
      'error id jsonrpc',
      'error id jsonrpc',
    ])
    await host.quiet()
    for (const { id } of asked)
      expect(host.frames.filter(frame => frame['id'] === id && frame['method'] === undefined)).toHaveLength(1)
  })

  it('L4.1-1: what it says to the host are requests, and changes of its sets a notification', async () => {
    const host = await hosted(place)
    host.begin('tools/call', { name: 'push', arguments: { content: 'a' } })
    host.begin('tools/call', { name: 'infer', arguments: { messages: 'a' } })
    host.begin('tools/call', { name: 'model', arguments: {} })
    host.begin('tools/call', { name: 'edit', arguments: { path: '/etc/hosts' } })
    for (const method of ['push/event', 'inference/request', 'model/info', 'scope/elevate'])
      expect([method, (await host.next(method)).id]).toEqual([method, expect.anything()])
    await host.call('sets', { add: 'late.set' })
    expect((await host.next('featureSets/changed')).id).toBeUndefined()
  })

  it('L4.1-2: it answers hooks and rollbacks, and hears updates and chunks without a word', async () => {
    const host = await hosted(place)
    expect(await host.ask('context/beforeInference', turn('x'))).toHaveProperty('result')
    expect(await host.ask('context/afterInference', turn('x', { assistantMessage: 'y' }))).toHaveProperty('result')
    expect(await host.ask('state/rollback', { featureSet: 'git.commit', checkpoint: 'none' })).toHaveProperty('error')
    if (stateless) {
      // Where a host only asks, what it would tell there are requests whose answers say nothing new (A17).
      expect(await host.ask('context/afterInference', turn('x', { assistantMessage: 'y' }))).toHaveProperty('result')
    } else {
      const before = host.frames.length
      host.tell('featureSets/update', { disabled: ['memory.silent'] })
      host.tell('inference/chunk', { requestId: 99, index: 0, delta: 'x' })
      host.tell('context/afterInference', turn('x', { assistantMessage: 'y', usage: { inputTokens: 1, outputTokens: 1 } }))
      await host.quiet()
      expect(host.frames.length).toBe(before + 1)
    }
  })

  it('L4.1-3: a method of the other direction is not found as a request, and ignored as a notification', async () => {
    const host = await hosted(place)
    const own = ['push/event', 'inference/request', 'model/info', 'scope/elevate', 'featureSets/changed']
    for (const method of own) expect([method, errorOf(await host.ask(method, {}))['code']]).toEqual([method, -32601])
    const before = host.frames.length
    if (!stateless) for (const method of own) host.tell(method, { added: {}, removed: ['memory.proactive'] })
    await host.quiet()
    expect(host.frames.length).toBe(before + 1)
    host.begin('tools/call', { name: 'push', arguments: { content: 'still there' } })
    await host.next('push/event')
  })

  it('L5.1-1: its capabilities are what its sets use, under the keys of §5.1', async () => {
    const shown = async (variant: 'told' | 'blocking' | 'bare'): Promise<Frame> => {
      const { featureSets, ...capabilities } = (await hosted(place, { variant })).declared
      expect(Object.keys(featureSets as Frame)).toEqual(variant === 'bare' ? ['memory.proactive'] : everySet)
      return capabilities
    }
    const all = { version: '0.2', pushEvents: true, inferenceRequest: { streaming: true }, modelInfo: true }
    const hooks = (blocking: boolean) => ({ contextHooks: { beforeInference: true, afterInference: { blocking } } })
    expect(await shown('told')).toEqual({ ...all, ...hooks(false) })
    expect(await shown('blocking')).toEqual({ ...all, ...hooks(true) })
    expect(await shown('bare')).toEqual({ version: '0.2', pushEvents: true, modelInfo: true })
  })

  it('L6.2-1, L6.2-2: each set is declared with its description and with what it uses', async () => {
    const { declared } = await hosted(place)
    const sets = declared['featureSets'] as Record<string, { description: string; uses: string[] }>
    expect(Object.keys(sets)).toEqual(everySet)
    for (const { description, uses } of Object.values(sets)) {
      expect(description).toMatch(/./)
      for (const use of uses)
        expect([
          'pushEvents',
          'contextHooks.beforeInference',
          'contextHooks.afterInference',
          'inferenceRequest',
          'tools',
        ]).toContain(use)
    }
    expect(sets['memory.retrieval']?.uses).toEqual(['contextHooks.beforeInference'])
    expect(sets['memory.proactive']?.uses).toEqual(['pushEvents'])
    expect(sets['files.edit']?.uses).toEqual(['tools'])
  })

  it('L6.2-2: what a set did not declare its author cannot do, and is told how to declare it', async () => {
    const host = await hosted(place)
    const push = given(await host.call('push', { set: 'silent', content: 'x' }))
    expect(push['text']).toMatch(/"memory.silent" does not declare that it uses pushEvents.*uses: \['pushEvents'\]/)
    const infer = given(await host.call('infer', { set: 'silent', messages: 'x' }))
    expect(infer['text']).toMatch(/does not declare that it uses inferenceRequest/)
    expect(host.said).toEqual([])
  })

  it('L6.4-1: before the host has selected anything, nothing is said', async () => {
    const host = await hosted(place, { select: false })
    await host.call('push', { content: 'early', eventId: 'early' })
    expect(given(await host.call('infer', { messages: 'x' }))['text']).toMatch(/"memory.consolidation" is not enabled/)
    expect(await host.ask('context/beforeInference', turn('x'))).toMatchObject({ result: { contextInjections: [] } })
    await host.quiet()
    expect(host.said).toEqual([])
    await host.select({ enabled: ['memory.proactive'], disabled: [] })
    expect((await host.next('push/event')).params['eventId']).toBe('early')
  })

  it('L6.5-1: pushes, inferences and elevations name their set', async () => {
    const host = await hosted(place)
    host.begin('tools/call', { name: 'push', arguments: { content: 'a' } })
    host.begin('tools/call', { name: 'infer', arguments: { messages: 'a' } })
    host.begin('tools/call', { name: 'edit', arguments: { path: '/etc/hosts' } })
    expect((await host.next('push/event')).params['featureSet']).toBe('memory.proactive')
    expect((await host.next('inference/request')).params['featureSet']).toBe('memory.consolidation')
    expect((await host.next('scope/elevate')).params['featureSet']).toBe('files.edit')
  })

  it('L6.5-2: the result of a hook names its set', async () => {
    const host = await hosted(place, { variant: 'blocking' })
    expect(await host.ask('context/beforeInference', turn('x'))).toMatchObject({ result: { featureSet: 'memory.retrieval' } })
    const after = await host.ask('context/afterInference', turn('x', { assistantMessage: 'y' }))
    expect(after).toMatchObject({ result: { featureSet: 'memory.extraction' } })
  })

  it('L6.7-1: an update changes what it names; a set in both lists ends disabled', async () => {
    const host = await hosted(place, { select: { enabled: ['memory.consolidation'], disabled: [] } })
    await host.select(
      stateless
        ? { enabled: ['memory.consolidation', 'memory.proactive', 'memory.retrieval'], disabled: ['memory.retrieval'] }
        : { enabled: ['memory.proactive', 'memory.retrieval'], disabled: ['memory.retrieval'] },
    )
    expect(await host.ask('context/beforeInference', turn('x'))).toMatchObject({ result: { contextInjections: [] } })
    host.begin('tools/call', { name: 'infer', arguments: { messages: 'still on' } })
    await host.next('inference/request')
    host.begin('tools/call', { name: 'push', arguments: { content: 'now on' } })
    await host.next('push/event')
  })

  it('L6.7-2: what a set had to say is dropped when it was disabled meanwhile, hooks in flight included', async () => {
    const host = await hosted(place, { variant: 'blocking' })
    const before = host.begin('context/beforeInference', turn('wait'))
    const after = host.begin('context/afterInference', turn('x', { assistantMessage: 'wait' }))
    await expect.poll(async () => (given(await host.call('heard'))['heard'] as unknown[]).length).toBe(2)
    const rest = everySet.filter(name => !['memory.retrieval', 'memory.extraction'].includes(name))
    await host.select({ enabled: rest, disabled: ['memory.retrieval', 'memory.extraction'] })
    await host.call('release')
    expect(await before.answer).toMatchObject({ result: { contextInjections: [] } })
    expect((await after.answer)['result']).not.toHaveProperty('modifiedResponse')
    await host.select({ enabled: [], disabled: everySet })
    expect(given(await host.call('infer', { messages: 'x' }))['text']).toMatch(/Enable "memory.consolidation" for this server/)
    await host.call('push', { content: 'x' })
    const secret = turn('sk-1', { assistantMessage: 'sk-1' })
    expect(await host.ask('context/beforeInference', secret)).toMatchObject({ result: { contextInjections: [] } })
    expect((await host.ask('context/afterInference', secret))['result']).not.toHaveProperty('modifiedResponse')
    await host.quiet()
    expect(host.said).toEqual([])
    // Hooks of sets that are off do not even see what was said.
    expect(given(await host.call('heard'))['heard']).toHaveLength(2)
  })

  it('L6.7-2: an inference that waits for its time is not asked for once its set is disabled', async () => {
    const host = await hosted(place)
    const inferring = host.call('infer', { messages: 'x' })
    const first = await host.next('inference/request')
    const rest = everySet.filter(name => name !== 'memory.consolidation')
    await host.select({ enabled: rest, disabled: ['memory.consolidation'] })
    await first.refuse(-32600, 'Busy', { reason: 'hook_in_progress' })
    expect(given(await inferring)['text']).toMatch(/"memory.consolidation" is not enabled/)
    expect(host.said.map(({ method }) => method)).toEqual(['inference/request'])
  })

  it('L6.7-2: what a hook has begun to ask for is not asked for once its set is disabled', async () => {
    const host = await hosted(place)
    const waiting = host.begin('context/beforeInference', turn('wait'))
    await expect.poll(async () => (given(await host.call('heard'))['heard'] as unknown[]).length).toBe(1)
    const inferring = host.call('infer', { messages: 'x' })
    const rest = everySet.filter(name => name !== 'memory.consolidation')
    await host.select({ enabled: rest, disabled: ['memory.consolidation'] })
    await host.call('release')
    await waiting.answer
    expect(given(await inferring)['text']).toMatch(/"memory.consolidation" is not enabled/)
    expect(host.said).toEqual([])
  })

  it('L6.7-3: what waits behind an event of its origin, or to be sent again, is not sent once its set is disabled', async () => {
    const host = await hosted(place)
    for (const eventId of ['first', 'second']) await host.call('push', { content: eventId, eventId })
    await host.call('push', { content: 'other', eventId: 'again', origin: { other: true } })
    const [one, two] = [await host.next('push/event'), await host.next('push/event')]
    const [first, again] = one.params['eventId'] === 'first' ? [one, two] : [two, one]
    const rest = everySet.filter(name => name !== 'memory.proactive')
    await host.select({ enabled: rest, disabled: ['memory.proactive'] })
    await first.answer({ accepted: true })
    await again.answer({ accepted: false, reason: 'rate', retryAfterMs: 1 })
    await host.quiet()
    await host.call('heard')
    expect(host.said).toHaveLength(2)
    await host.select({ enabled: everySet, disabled: [] })
    const later = [await host.next('push/event'), await host.next('push/event')]
    expect(later.map(({ params }) => params['eventId']).toSorted()).toEqual(['again', 'second'])
  })

  it('L6.7-3: what was queued of a set that was disabled is not sent, and goes out when it is enabled again', async () => {
    const host = await hosted(place, { select: { enabled: [], disabled: everySet } })
    await host.call('push', { content: 'queued', eventId: 'q' })
    await host.select({ enabled: everySet.filter(name => name !== 'memory.proactive'), disabled: ['memory.proactive'] })
    await host.quiet()
    expect(host.said).toEqual([])
    await host.select({ enabled: ['memory.proactive'], disabled: [] })
    expect((await host.next('push/event')).params['eventId']).toBe('q')
  })

  it('A3: what changes is told by name, also to hosts that read a list in the hello', async () => {
    const host = await hosted(place, { mcpl: { version: '0.2', scopedAccess: true } })
    expect(host.declared['featureSets']).toBeInstanceOf(Array)
    await host.call('sets', { add: 'late.set' })
    expect((await host.next('featureSets/changed')).params).toEqual({
      added: { 'late.set': { description: 'Came later', uses: ['pushEvents'] } },
      removed: [],
    })
  })

  it('L6.7-4: what is added and removed is announced, and what was removed can no longer be used', async () => {
    const host = await hosted(place)
    await host.call('sets', { add: 'late.set', remove: 'memory.proactive' })
    expect((await host.next('featureSets/changed')).params).toEqual({
      added: { 'late.set': { description: 'Came later', uses: ['pushEvents'] } },
      removed: ['memory.proactive'],
    })
    expect(given(await host.call('push', { content: 'x' }))['text']).toMatch(/"memory.proactive" was removed/)
  })

  it('a tool of a set that the host has disabled is refused with its set', async () => {
    const host = await hosted(place, { select: { enabled: [], disabled: ['git.commit'] } })
    const refused = await host.call('commit', { message: 'x' })
    expect(errorOf(refused)).toMatchObject({ code: stateless ? -31001 : -32001, data: { featureSet: 'git.commit' } })
    expect(given(await host.call('commit', { message: 'x' }))).not.toHaveProperty('commits')
  })

  it('A11: a tool names its set in its _meta', async () => {
    const host = await hosted(place)
    const { tools } = (await host.ask('tools/list'))['result'] as { tools: { name: string; _meta?: Frame }[] }
    const named = Object.fromEntries(tools.map(({ name, _meta }) => [name, _meta?.['dev.vivarium/live']]))
    expect(named).toMatchObject({ edit: { featureSet: 'files.edit' }, commit: { featureSet: 'git.commit' }, push: undefined })
  })

  it('A21: a request that grants capabilities says all there is, and is answered with a receipt', async () => {
    const host = await hosted(place, { select: false })
    const enabled = ['memory.proactive', 'memory.consolidation']
    const receipt = await host.ask('featureSets/update', {
      effectiveCapabilities: ['tools', 'pushEvents'],
      enabled,
      disabled: [],
    })
    expect(receipt['result']).toMatchObject({
      accepted: true,
      unavailableFeatures: [
        { featureSet: 'memory.consolidation', missingCapabilities: ['inferenceRequest'], effect: 'disabled' },
      ],
    })
    const both = { effectiveCapabilities: ['tools'], deniedCapabilities: ['tools'] }
    expect(errorOf(await host.ask('featureSets/update', both))['code']).toBe(-32602)
    if (stateless) return
    host.begin('tools/call', { name: 'push', arguments: { content: 'granted' } })
    await host.next('push/event')
    await host.ask('featureSets/update', { effectiveCapabilities: ['inferenceRequest'], enabled: ['memory.consolidation'] })
    expect(given(await host.call('push', { content: 'x', eventId: 'off' }))).toHaveProperty('eventId')
    await host.quiet()
    expect(host.said.filter(({ params }) => params['eventId'] === 'off')).toEqual([])
  })
})

describe('dialects of hosts', () => {
  it('A1: a selection in the handshake holds, inside capabilities or beside them', async () => {
    const mcpl = { version: '0.2', featureSets: { enabled: ['memory.*'], disabled: ['memory.proactive'] } }
    for (const options of [{ mcpl }, { mcpl: false as const, hello: { experimental: { mcpl } } }]) {
      const host = await hosted('websocket', { ...options, select: false })
      expect(await host.ask('context/beforeInference', turn('x'))).toMatchObject({ result: { contextInjections: [{}, {}] } })
      await host.call('push', { content: 'x' })
      await host.quiet()
      expect(host.said).toEqual([])
    }
  })

  it('A3: hosts of the first cores read feature sets as an array, others by name', async () => {
    const shapes = [
      [{ mcpl: { version: '0.2' } }, false],
      [{ mcpl: { version: '0.4', scopedAccess: true } }, true],
      [{ mcpl: { version: '0.4', channels: true }, clientInfo: { name: 'mcpl-harness-ui', version: '1' } }, true],
      [{ mcpl: { version: '0.4', channels: true } }, false],
      [{ server: { live: { featureSets: 'array' as const } } }, true],
    ] as const
    for (const [options, array] of shapes) {
      const host = await hosted('http', { ...options, select: false })
      expect([options, Array.isArray(host.declared['featureSets'])]).toEqual([options, array])
      if (array) expect(host.declared['featureSets']).toContainEqual(expect.objectContaining({ name: 'memory.retrieval' }))
    }
  })

  it('A4: hosts from 0.5 on are told paths that they know, and obey-only requests', async () => {
    const host = await hosted('websocket', { mcpl: { version: '0.5' }, select: false })
    expect(host.declared).toMatchObject({
      version: '0.5',
      contextHooks: { beforeInference: { observe: true, inject: { system: true, beforeUser: true } } },
      inferenceLifecycle: true,
    })
    const sets = host.declared['featureSets'] as Record<string, { uses: string[] }>
    expect(sets['memory.retrieval']?.uses).toEqual([
      'contextHooks.beforeInference.observe',
      'contextHooks.beforeInference.inject.system',
      'contextHooks.beforeInference.inject.beforeUser',
    ])
    expect(sets['memory.extraction']?.uses).toEqual(['inferenceLifecycle'])
    host.tell('featureSets/update', { enabled: ['memory.proactive'], disabled: [] })
    await host.call('push', { content: 'x', eventId: 'p' })
    await host.quiet()
    expect(host.said).toEqual([])
    await host.ask('featureSets/update', { effectiveCapabilities: ['pushEvents'], enabled: ['memory.proactive'] })
    await host.next('push/event')
    const manifest = (await host.ask('mcpl/manifest'))['result'] as Frame
    expect(manifest).toMatchObject({ version: '0.5', revision: expect.any(String) })
    await host.call('sets', { add: 'late.set' })
    const told = await host.next('mcpl/manifestChanged')
    expect(told.params['revision']).not.toBe(manifest['revision'])
  })
})

describe('authors', () => {
  const server = () => createServer({ name: 'a', version: '1', log: 'silent' })

  it('learn at once what is wrong with a declaration', () => {
    const a = server()
    a.featureSet('a.b', { description: 'x' })
    expect(() => a.featureSet('a.b', { description: 'x' })).toThrow(/already.*another name/)
    expect(() => a.featureSet('a b', { description: 'x' })).toThrow(/not a valid name of a feature set/)
    expect(() => a.featureSet('c', { description: '' })).toThrow(/needs a description/)
    expect(() => a.featureSet('c', { description: 'x', hoststate: true } as never)).toThrow(/has no option "hoststate"/)
  })

  it('who push or infer while nobody is there learn what is missing', async () => {
    await using a = server()
    const set = a.featureSet('a.b', { description: 'x', uses: ['pushEvents', 'inferenceRequest'] })
    await expect(set.infer({ messages: 'x' })).rejects.toMatchObject({ code: 'HOST_MISSING' })
    const parts = (async () => {
      for await (const _ of set.infer({ messages: 'x' }));
    })()
    await expect(parts).rejects.toMatchObject({ code: 'HOST_MISSING' })
    await expect(set.push({ content: { type: 'image' } as never })).rejects.toThrow(/an image needs data/)
    await expect(set.push({ content: 'x', timestamp: 'yesterday' })).rejects.toThrow(/ISO 8601/)
    await expect(set.push({ content: 'x'.repeat(1_100_000) })).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
    expect(await set.push({ content: 'x', eventId: 'e' })).toMatchObject({ eventId: 'e' })
  })
})
