import { afterEach, describe, expect, it } from 'vitest'
import { turn } from '../../test/live/raw-host.ts'
import { type Frame, resultOf, sessionRevisions, speak, textOf, type Wire } from '../../test/spec/wire.ts'
import { memoryStore } from '../stores/memory.ts'
import { createServer, jsonSchema, type Server, type ServerOptions } from './index.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

function serve(options: Partial<ServerOptions> = {}): Server {
  const server = createServer({ name: 'lively', version: '1.0.0', log: 'silent', ...options })
  servers.push(server)
  return server
}

const model = { id: 'm', vendor: 'v', contextWindow: 1, capabilities: [] }
const usage = { inputTokens: 1, outputTokens: 1 }

/** A host in memory that has everything enabled and answers whatever it is asked. */
async function host(server: Server, principal?: string): Promise<Wire> {
  const wire = await speak(server, '2025-11-25', {
    capabilities: { experimental: { mcpl: { version: '0.2' } } },
    answers: {
      'push/event': () => ({ accepted: true, inferenceId: principal ?? 'i' }),
      'inference/request': () => ({ content: `${principal ?? ''}thought`, model: 'm', finishReason: 'end_turn', usage }),
      'model/info': () => ({ ...model, id: principal ?? 'm' }),
      'scope/elevate': ({ scope }) => ({ approved: (scope as Frame)['label'] !== 'no', reason: 'because' }),
    },
    ...(principal === undefined ? {} : { principal }),
  })
  wire.tell('featureSets/update', { enabled: ['*'], disabled: [] })
  return wire
}

const loose = jsonSchema<Record<string, unknown>>({ type: 'object' })
const sent = (wire: Wire, method: string): readonly Frame[] => wire.heard.filter(frame => frame['method'] === method)

describe('hooks of several sets', () => {
  it('are merged into one answer that says which set each part is of', async () => {
    const server = serve()
    server.featureSet('a', { description: 'x' }).beforeInference(() => undefined)
    server.featureSet('b', { description: 'x' }).beforeInference(() => 'from b')
    server.featureSet('c', { description: 'x' }).beforeInference(() => ({ content: 'from c', metadata: { n: 1 } }))
    server.featureSet('d', { description: 'x' }).beforeInference(() => Promise.reject(new Error('broken')))
    const wire = await host(server)
    expect(resultOf(await wire.ask('context/beforeInference', turn('x')))).toEqual({
      featureSet: 'b',
      contextInjections: [
        { namespace: 'b', position: 'beforeUser', content: [{ type: 'text', text: 'from b' }] },
        {
          namespace: 'c',
          position: 'beforeUser',
          content: [{ type: 'text', text: 'from c' }],
          metadata: { n: 1, featureSet: 'c' },
        },
      ],
    })
  })

  it('are chained where they change the reply: each sees what the one before it made of it', async () => {
    const server = serve()
    const after = (name: string, sign: string) =>
      server
        .featureSet(name, { description: 'x' })
        .afterInference(({ assistantMessage }) => assistantMessage + sign, { blocking: true })
    after('a', '!')
    after('b', '?')
    const heard: string[] = []
    server.featureSet('c', { description: 'x' }).afterInference(({ assistantMessage }) => void heard.push(assistantMessage))
    const wire = await host(server)
    const result = resultOf(await wire.ask('context/afterInference', turn('x', { assistantMessage: 'yes' })))
    expect([result, heard]).toEqual([{ featureSet: 'b', modifiedResponse: 'yes!?' }, ['yes!?']])
  })

  it('that say where they inject something wrong fail, and the host learns that they did', async () => {
    const server = serve()
    server.featureSet('a', { description: 'x' }).beforeInference(() => ({ content: 'x', position: 'top' as never }))
    const wire = await host(server)
    expect(await wire.ask('context/beforeInference', turn('x'))).toHaveProperty('error')
  })
})

describe('tools of sets', () => {
  it('may yield parts, ask the host that calls, and be updated without leaving their set', async () => {
    const server = serve()
    const set = server.featureSet('a.b', { description: 'x', uses: ['inferenceRequest'], scoped: true })
    set.tool('parts', {}, async function* (_, ctx) {
      yield (await ctx.modelInfo()).id
      yield (await ctx.infer({ messages: 'x' })).content
    })
    const other = set.tool('other', { description: 'old', meta: { mine: 1 } }, () => 'x')
    other.update({ description: 'new', meta: { mine: 2 } })
    const [alice, bob] = [await host(server, 'alice'), await host(server, 'bob')]
    expect(textOf(await alice.ask('tools/call', { name: 'parts' }))).toBe('alicealicethought')
    expect(sent(bob, 'inference/request')).toEqual([])
    const { tools } = resultOf(await alice.ask('tools/list')) as unknown as { tools: Frame[] }
    expect(tools.find(({ name }) => name === 'other')).toMatchObject({
      description: 'new',
      _meta: { mine: 2, 'dev.vivarium/live': { featureSet: 'a.b' } },
    })
  })

  it.each(sessionRevisions.filter(id => id !== 's3'))(
    'A11: say at %s which set they belong to where peers look for it, and only to hosts that are live',
    async revision => {
      const server = serve()
      server.featureSet('a.b', { description: 'x' }).tool('act', { meta: { mine: 1 } }, () => 'x')
      server.tool('plain', {}, () => 'x')
      const listed = async (capabilities: Frame): Promise<readonly Frame[]> => {
        const wire = await speak(server, revision, { capabilities })
        return (resultOf(await wire.ask('tools/list')) as unknown as { tools: Frame[] }).tools
      }
      const [act, plain] = await listed({ experimental: { mcpl: { version: '0.2' } } })
      const setOf = (tool: Frame | undefined): unknown =>
        tool?.['featureSet'] ?? (tool?.['_meta'] as Frame | undefined)?.['featureSet']
      expect([act?.['name'], setOf(act), setOf(plain)]).toEqual(['act', 'a.b', undefined])
      expect(setOf((await listed({}))[0])).toBeUndefined()
    },
  )

  it('that ask for a scope of a set without any are told to declare it', async () => {
    const server = serve()
    server.featureSet('a', { description: 'x' }).tool('act', {}, async (_, ctx) => ctx.scope('x'))
    const wire = await host(server)
    expect(textOf(await wire.ask('tools/call', { name: 'act' }))).toMatch(/does not declare that it uses scopes.*scoped: true/)
  })

  it('of a scoped set that never ask leave a trace for their author', async () => {
    const traced: string[] = []
    const server = serve({ onTrace: event => void traced.push(event) })
    server.featureSet('a', { description: 'x', scoped: true }).tool('act', {}, () => 'done')
    await (await host(server)).ask('tools/call', { name: 'act' })
    expect(traced).toContain('scope-not-asked')
  })

  it('report the same checkpoint when a call is repeated under its key', async () => {
    const server = serve({ store: 'memory:' })
    server
      .featureSet('a', { description: 'x', hostState: true, rollback: true })
      .tool('add', { input: loose }, async ({ n }, ctx) => {
        await ctx.state.set({ n })
        return 'added'
      })
    const wire = await host(server)
    const call = () =>
      wire.ask('tools/call', {
        name: 'add',
        arguments: { n: 1 },
        _meta: { 'dev.vivarium/idempotency': { idempotency_key: 'key-0001' } },
      })
    const [first, again] = [resultOf(await call()), resultOf(await call())]
    expect(first['state']).toMatchObject({ data: { n: 1 } })
    expect(again['state']).toEqual(first['state'])
  })

  it('that fail report no state', async () => {
    const server = serve()
    server.featureSet('a', { description: 'x', hostState: true }).tool('fail', {}, async (_, ctx) => {
      await ctx.state.set({ n: 1 })
      throw new Error('no')
    })
    const wire = await host(server)
    expect(resultOf(await wire.ask('tools/call', { name: 'fail' }))).not.toHaveProperty('state')
  })

  it('know the checkpoints that any process on their store has given out, and no others', async () => {
    const store = memoryStore()
    const make = (): Server => {
      const server = serve({ store })
      const notes = server.featureSet('notes', { description: 'x', hostState: true, rollback: true })
      notes.tool('add', {}, async (_, ctx) => ctx.state.set({}))
      return server
    }
    const one = await host(make())
    const { checkpoint } = resultOf(await one.ask('tools/call', { name: 'add' }))['state'] as Frame
    const forged = `${String(checkpoint).slice(0, -1)}${String(checkpoint).endsWith('A') ? 'B' : 'A'}`
    for (const wire of [one, await host(make())]) {
      const back = (id: unknown) => wire.ask('state/rollback', { featureSet: 'notes', checkpoint: id })
      expect(resultOf(await back(checkpoint))).toEqual({ checkpoint, success: true })
      expect(await back(forged)).toMatchObject({ error: { code: -32005 } })
    }
    const elsewhere = serve()
    elsewhere.featureSet('notes', { description: 'x', hostState: true, rollback: true })
    const unknown = await (await host(elsewhere)).ask('state/rollback', { featureSet: 'notes', checkpoint })
    expect(unknown).toMatchObject({ error: { code: -32005 } })
  })
})

describe('outside of calls', () => {
  it('a scope is asked for of the host that came last, and what is denied throws', async () => {
    const server = serve()
    const set = server.featureSet('a', { description: 'x', scoped: true })
    const wire = await host(server)
    await wire.quiet()
    expect(await set.scope('yes', { n: 1 })).toEqual({ n: 1 })
    await expect(set.scope('no')).rejects.toMatchObject({ code: 'SCOPE_DENIED', message: expect.stringContaining('because') })
  })

  it('events for one principal reach its hosts alone', async () => {
    const server = serve()
    const set = server.featureSet('a', { description: 'x', uses: ['pushEvents'] })
    const [alice, bob] = [await host(server, 'alice'), await host(server, 'bob')]
    const { answered } = await set.push({ content: 'x', to: 'bob' })
    expect(await answered).toEqual({ accepted: true, inferenceId: 'bob' })
    await alice.quiet()
    expect([sent(alice, 'push/event').length, sent(bob, 'push/event').length]).toEqual([0, 1])
  })

  it('a set whose hook comes later is announced with it', async () => {
    const server = serve()
    const set = server.featureSet('a', { description: 'x' })
    const wire = await host(server)
    await wire.quiet()
    set.beforeInference(() => 'late')
    const changed = await wire.next(({ method }) => method === 'featureSets/changed')
    expect(changed['params']).toEqual({ added: { a: { description: 'x', uses: ['contextHooks.beforeInference'] } }, removed: [] })
    expect(resultOf(await wire.ask('context/beforeInference', turn('x')))).toMatchObject({ contextInjections: [{}] })
  })
})
