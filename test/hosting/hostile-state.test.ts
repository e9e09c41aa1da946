/** State, tools and tellings of servers that mean no good, and of hosts that share a store. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Host, HostOptions } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { RawServer } from '../live/raw/raw-server.ts'
import { silence } from '../live/raw/script.ts'
import { declared, entry, hostile, opened } from './hostile.ts'

const schema = { type: 'object', properties: {} }
const meta = (featureSet: string) => ({ _meta: { 'dev.vivarium/live': { featureSet } } })
const tools = [{ name: 'note', inputSchema: schema, ...meta('notes') }]
const at = ['raw', 'notes'] as const
const call = { calls: [{ name: 'note' }] }

/** A server whose tool reports whatever comes next. */
async function reporting(reports: readonly unknown[], more: Parameters<typeof hostile>[0] = {}): Promise<RawServer> {
  const left = [...reports]
  return hostile({
    ...more,
    answers: {
      'tools/list': () => ({ tools }),
      'tools/call': () => ({ content: [{ type: 'text', text: 'Done' }], state: left.shift() }),
      'state/rollback': ({ checkpoint }) => ({ checkpoint, success: true }),
      ...more.answers,
    },
  })
}

async function told(host: Host, times: number): Promise<void> {
  for (let turn = 0; turn < times; turn++) await (await host.conversation('c').send('Go')).done
}

const model = (times: number) => scripted(Array.from({ length: times }, () => [call, 'Done.'] as const).flat())

describe('two hosts on one store', () => {
  const pair = async (reports: readonly unknown[]) => {
    const store = memoryStore()
    const raw = await reporting(reports)
    const other = await reporting(reports.slice(1))
    const hosts: HostOptions = { store }
    const first = await opened({ ...hosts, model: model(3), servers: { raw: entry(raw) } })
    const second = await opened({ ...hosts, model: model(3), servers: { raw: entry(other) } })
    return { first, second, other }
  }
  const reports = [
    { checkpoint: 'a', parent: null, data: { n: 1 } },
    { checkpoint: 'b', data: { n: 2 } },
  ]

  test('L8.4-1 a call carries the state at the head, also where the other host has moved it', async () => {
    const { first, second, other } = await pair(reports)
    // Looked at before there is anything.
    expect(await second.state.tree(...at)).toEqual([])
    await told(first, 1)
    await (await second.conversation('d').send('Go')).done
    expect(other.script.of('tools/call')[0]?.['params']).toMatchObject({ state: { n: 1 } })
    expect((await second.state.tree(...at)).map(({ checkpoint, parent }) => [checkpoint, parent])).toEqual([
      ['a', null],
      ['b', 'a'],
    ])
    expect((await first.state.before(...at)).state).toEqual({ n: 2 })
  })

  test('L8.5-1 either goes back to checkpoints that the other has made', async () => {
    const { first, second } = await pair(reports)
    expect(await second.state.tree(...at)).toEqual([])
    await told(first, 2)
    expect(await second.state.rollback(...at, 'a')).toMatchObject({ success: true })
    expect((await first.state.before(...at)).state).toEqual({ n: 1 })
  })
})

test('L8.6-2 the result of a call that was made while a rollback was under way is a branch: the next call carries the state of then', async () => {
  const [asked, agreed, called] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const reports = [
    { checkpoint: 'a', parent: null, data: { n: 1 } },
    { checkpoint: 'b', data: { n: 2 } },
  ]
  const raw = await reporting(reports, {
    answers: {
      'state/rollback': async ({ checkpoint }) => {
        asked.resolve()
        await agreed.promise
        return { checkpoint, success: true }
      },
    },
  })
  const host = await opened({ model: model(4), servers: { raw: entry(raw) } })
  await told(host, 2)
  raw.script.on('tools/call', async () => {
    await called.promise
    return { content: [], state: { checkpoint: 'c', data: { n: 3 } } }
  })
  const going = host.state.rollback(...at, 'a')
  await asked.promise
  const turn = await host.conversation('c').send('Go')
  await raw.script.hears('tools/call', 3)
  agreed.resolve()
  expect(await going).toEqual({ success: true, head: 'a' })
  called.resolve()
  await turn.done
  expect((await host.state.tree(...at)).map(({ checkpoint, parent }) => [checkpoint, parent])).toEqual([
    ['a', null],
    ['b', 'a'],
    ['c', 'b'],
  ])
  await told(host, 1)
  expect(raw.script.of('tools/call')[3]?.['params']).toMatchObject({ state: { n: 1 } })
})

describe('states that are none', () => {
  const odd: readonly (readonly [string, unknown])[] = [
    ['a checkpoint that is its own parent', { checkpoint: 'x', parent: 'x', data: {} }],
    ['a patch on itself', { checkpoint: 'y', parent: 'y', patch: [{ op: 'add', path: '/a', value: 1 }] }],
    ['a patch that is no patch', { checkpoint: 'z', parent: 'a', patch: [null, 7, { op: 'explode' }] }],
    [
      'a patch that doubles',
      { checkpoint: 'd', parent: 'a', patch: Array.from({ length: 40 }, (_, n) => ({ op: 'copy', from: '', path: `/k${n}` })) },
    ],
    ['a patch of the prototype', { checkpoint: 'p', parent: 'a', patch: [{ op: 'add', path: '/__proto__/polluted', value: 1 }] }],
    ['a name of 10,000 characters', { checkpoint: 'n'.repeat(10_000), data: {} }],
    ['9 MB of data', { checkpoint: 'big', data: 'x'.repeat(9_000_000) }],
  ]

  test.each(odd)('%s leaves the head where it was, and the call is answered', async (_, report) => {
    const raw = await reporting([{ checkpoint: 'a', parent: null, data: { n: 1 } }, report])
    const host = await opened({ model: model(2), servers: { raw: entry(raw) } })
    await told(host, 2)
    const kept = (await host.state.before(...at)).state
    expect([{ n: 1 }, {}]).toContainEqual(kept)
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
    expect((await host.conversation('c').turns()).flatMap(({ calls }) => calls.map(({ outcome }) => outcome?.status))).toEqual([
      'done',
      'done',
    ])
  })

  test('two checkpoints that are each other’s parents hold nobody up', async () => {
    const raw = await reporting([
      { checkpoint: 'a', parent: 'b', patch: [] },
      { checkpoint: 'b', parent: 'a', patch: [] },
      { checkpoint: 'c', parent: null, data: { n: 1 } },
    ])
    const host = await opened({ model: model(3), servers: { raw: entry(raw) } })
    await told(host, 3)
    expect((await host.state.before(...at)).state).toEqual({ n: 1 })
  })
})

describe('tools', () => {
  const mcpl = { ...declared, featureSets: { ...declared.featureSets, off: { description: 'Off', uses: ['tools'] } } }
  const listed = [...tools, { name: 'forbidden', inputSchema: schema, ...meta('off') }]

  test('of a feature set that is not enabled are not offered, and not called whoever tells the model to', async () => {
    const raw = await reporting([], { mcpl, answers: { 'tools/list': () => ({ tools: listed }) } })
    const obedient = scripted([{ calls: [{ name: 'forbidden' }] }, 'Done.'])
    const host = await opened({ model: obedient, servers: { raw: entry(raw, ['notes']) } })
    await told(host, 1)
    expect(obedient.requests[0]?.tools.map(({ name }) => name)).not.toContain('forbidden')
    expect(raw.script.of('tools/call')).toEqual([])
  })

  test('of a feature set that is disabled amid a turn are refused from then on', async () => {
    const raw = await reporting([], { mcpl, answers: { 'tools/list': () => ({ tools: listed }) } })
    const obedient = scripted([call, { calls: [{ name: 'forbidden' }] }, 'Done.'])
    const host = await opened({ model: obedient, servers: { raw: entry(raw) } })
    raw.script.on('tools/call', async () => {
      await host.policy.update({ servers: { raw: { enable: ['*'], disable: ['off'] } } })
      return { content: [] }
    })
    await told(host, 1)
    expect(raw.script.of('tools/call')).toHaveLength(1)
    const [turn] = await host.conversation('c').turns()
    expect(turn?.calls[1]?.outcome).toMatchObject({ status: 'refused' })
  })

  test('whose results are larger than the store takes fail, and the turn goes on', async () => {
    const image = { type: 'image', data: 'A'.repeat(9_000_000), mimeType: 'image/png' }
    const raw = await reporting([], { answers: { 'tools/call': () => ({ content: [image] }) } })
    const host = await opened({ model: model(1), servers: { raw: entry(raw) } })
    await told(host, 1)
    const [turn] = await host.conversation('c').turns()
    expect(turn?.answer).toBe('Done.')
  })
})

test('arguments, results, prompts and what users say are in no note, whatever came of them', async () => {
  const canary = 'sk-canary-4711'
  const raw = await reporting([], {
    answers: {
      'tools/call': () => ({ isError: true, content: [{ type: 'text', text: `No such key: ${canary}` }] }),
      'context/beforeInference': () => ({
        featureSet: 'hooks',
        contextInjections: [{ namespace: 'n', position: 'system', content: canary }],
      }),
      'context/afterInference': () => ({ featureSet: 'hooks', modifiedResponse: `${canary}!` }),
    },
  })
  const said = scripted([{ calls: [{ name: 'note', arguments: { key: canary } }] }, `It is ${canary}`])
  const host = await opened({ model: said, servers: { raw: entry(raw) } })
  const turn = await host.conversation('c').send(`My key is ${canary}`)
  await turn.done
  await raw.ask('push/event', {
    featureSet: 'push',
    eventId: 'e1',
    timestamp: '2026-01-23T10:30:00Z',
    payload: { content: [{ type: 'text', text: canary }] },
  })
  await raw.ask('inference/request', { featureSet: 'think', messages: [{ role: 'user', content: canary }] })
  const all = [await host.audit({ limit: 1_000 }), await host.explain(turn.inferenceId), await host.explain('e1')]
  expect(JSON.stringify(all)).not.toContain(canary)
})

test('a server that dies amid a call, or never answers it, leaves a turn that ends and says what is known', async () => {
  const raw = await reporting([], { answers: { 'tools/call': () => silence } })
  const host = await opened({ model: model(1), servers: { raw: entry(raw) } })
  const turn = await host.conversation('c').send('Go')
  await raw.script.hears('tools/call')
  await raw.close()
  await turn.done
  expect(turn.calls[0]?.outcome?.status).toBe('unknown')
})

test('what a tool says of its failure is told to the model, and is in no note', async () => {
  const canary = 'sk-canary-4711'
  const server = createServer({ name: 'keys', version: '1.0.0', log: 'silent' })
  server.tool('find', {}, (_, ctx) => {
    throw ctx.problem('RESOURCE_NOT_FOUND', `There is no key ${canary}`, { suggestion: `Use ${canary}` })
  })
  onTestFinished(() => server.close())
  const { url } = await server.listen()
  const said = scripted([{ calls: [{ name: 'find' }] }, 'No.'])
  const host = await opened({ model: said, servers: { keys: url } })
  const turn = await host.conversation('c').send('Find it')
  await turn.done
  expect(JSON.stringify(said.requests[1])).toContain(canary)
  expect((await host.audit({ kind: 'tool' })).notes).toMatchObject([{ outcome: 'failure', why: { code: 'RESOURCE_NOT_FOUND' } }])
  expect(JSON.stringify([await host.audit(), await host.explain(turn.inferenceId)])).not.toContain(canary)
})
