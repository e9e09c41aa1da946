/** The host's part in scopes and state (MCP Live 0.2 §7, §8), as far as one connection decides it, judged by a raw server. */
import { describe, expect, test } from 'vitest'
import { host, mcpl } from './raw/host.ts'
import { carriers } from './raw/raw-server.ts'
import { type Frame, Refusal } from './raw/script.ts'

const tools = [
  { name: 'add_note', inputSchema: { type: 'object' }, _meta: { 'dev.vivarium/live': { featureSet: 'lab.notes' } } },
  { name: 'edit', inputSchema: { type: 'object' }, featureSet: 'lab.files' },
  { name: 'plain', inputSchema: { type: 'object' } },
]
const said = (more: Frame = {}) => ({ content: [{ type: 'text', text: 'ok' }], ...more })
const answers = { 'tools/list': () => ({ tools, ttlMs: 0, cacheScope: 'private' }), 'tools/call': () => said() }
const meta = (frame: Frame | undefined): unknown => {
  const params = frame?.['params'] as { _meta?: Frame } | undefined
  return params?._meta?.['dev.vivarium/live']
}

describe.each(carriers)('%s', carrier => {
  test('L7.3-1: an elevation needs a scope with a label', async () => {
    const { raw } = await host(carrier)
    for (const scope of [undefined, {}, { label: 7 }, { label: 'x', payload: 'y' }]) {
      expect(await raw.ask('scope/elevate', { featureSet: 'lab.files', scope })).toHaveProperty('error.code', -32602)
    }
  })

  test('L7.5-1: approval gives the payload back, denial a reason', async () => {
    const asked: unknown[] = []
    const { raw } = await host(carrier, {
      handlers: {
        onElevate: async request => {
          asked.push(request)
          return request.scope.label === '/etc/hosts' ? { approved: true } : { approved: false, reason: 'on the blacklist' }
        },
      },
    })
    const payload = { path: '/etc/hosts', mode: 'append' }
    const yes = await raw.ask('scope/elevate', { featureSet: 'lab.files', scope: { label: '/etc/hosts', payload } })
    expect(yes['result']).toEqual({ approved: true, payload })
    const no = await raw.ask('scope/elevate', { featureSet: 'lab.files', scope: { label: '/etc/shadow', payload } })
    expect(no['result']).toEqual({ approved: false, reason: 'on the blacklist' })
    expect(asked[0]).toEqual({ featureSet: 'lab.files', scope: { label: '/etc/hosts', payload } })
  })

  test('L7.6-3: elevation on a disabled or unknown set is refused unseen; on an unscoped set the host decides', async () => {
    const asked: string[] = []
    const { raw } = await host(carrier, {
      handlers: {
        onElevate: async ({ featureSet }) => {
          asked.push(featureSet)
          return { approved: false, reason: 'the set is not scoped' }
        },
      },
    })
    const scope = { label: 'x' }
    expect(await raw.ask('scope/elevate', { featureSet: 'lab.off', scope })).toHaveProperty('error.code', -32001)
    expect(await raw.ask('scope/elevate', { featureSet: 'nobody', scope })).toHaveProperty('error.code', -32003)
    expect(await raw.ask('scope/elevate', { featureSet: 'lab.push', scope })).toHaveProperty('result.approved', false)
    expect(asked).toEqual(['lab.push'])
  })

  test('L7.7-1, A12: a scoped call carries its scope, with a copy in _meta', async () => {
    const { raw, client } = await host(carrier, { answers })
    const scope = { label: '/project/a.ts', payload: { path: '/project/a.ts' } }
    await client.callTool('edit', { text: 'x' }, { live: { scope } })
    const [call] = raw.script.of('tools/call')
    expect(call?.['params']).toMatchObject({ name: 'edit', arguments: { text: 'x' }, scope })
    expect(meta(call)).toMatchObject({ scope })
  })

  test('L8.2-1: what a result says of state is given with its outcome; a parent that is not said is not made up', async () => {
    const { raw, client } = await host(carrier, { answers })
    const states: [unknown, unknown][] = [
      [{ state: { checkpoint: 'c-2', parent: 'c-1', data: { a: 1 } } }, { checkpoint: 'c-2', parent: 'c-1', data: { a: 1 } }],
      [{ state: { checkpoint: 'c-1', parent: null, patch: [] } }, { checkpoint: 'c-1', parent: null, patch: [] }],
      [{ state: { checkpoint: 'seq_3' } }, { checkpoint: 'seq_3' }],
      [{ _meta: { 'dev.vivarium/live': { state: { checkpoint: 'c-9', parent: null } } } }, { checkpoint: 'c-9', parent: null }],
      [{ state: { parent: 'c-1' } }, undefined],
      [{}, undefined],
    ]
    for (const [answer, report] of states) {
      raw.script.on('tools/call', () => said(answer as Frame))
      expect((await client.callTool('add_note', {})).live).toEqual(report)
    }
  })

  test('L8.4-1: host state goes along as state, with no checkpoint, and its copy says where it stood', async () => {
    const { raw, client } = await host(carrier, { answers })
    await client.callTool('add_note', {}, { live: { state: { notes: [1] }, parent: 'c-1', checkpoint: 'c-1' } })
    const [call] = raw.script.of('tools/call')
    expect(call?.['params']).toMatchObject({ state: { notes: [1] } })
    expect(call?.['params']).not.toHaveProperty('checkpoint')
    expect(meta(call)).toMatchObject({ state: { notes: [1] }, parent: 'c-1' })
  })

  test('L8.4-2: with no state yet there is no member for it; a state of null is one', async () => {
    const { raw, client } = await host(carrier, { answers })
    await client.callTool('add_note', {}, { live: {} })
    await client.callTool('add_note', {}, { live: { state: null } })
    const [first, second] = raw.script.of('tools/call')
    expect(first?.['params']).not.toHaveProperty('state')
    expect(second?.['params']).toHaveProperty('state', null)
  })

  test('L8.5-1: only sets with rollback are asked to roll back', async () => {
    const { raw, live } = await host(carrier)
    for (const set of ['lab.files', 'lab.push', 'nobody']) {
      expect(await live.rollback(set, 'c-1')).toMatchObject({ success: false, checkpoint: 'c-1', reason: expect.any(String) })
    }
    expect(raw.script.of('state/rollback')).toEqual([])
  })

  test('L8.6-1: a rollback says whether it was done, and why not', async () => {
    const { raw, live } = await host(carrier, {
      answers: { 'state/rollback': ({ checkpoint }) => ({ checkpoint, success: false, reason: 'mail cannot be unsent' }) },
    })
    expect(await live.rollback('lab.notes', 'c-1')).toEqual({
      success: false,
      checkpoint: 'c-1',
      reason: 'mail cannot be unsent',
    })
    raw.script.on('state/rollback', ({ checkpoint }) => ({ checkpoint, success: true }))
    expect(await live.rollback('lab.notes', 'c-1')).toEqual({ success: true, checkpoint: 'c-1' })
    expect(raw.script.of('state/rollback')[0]?.['params']).toMatchObject({ featureSet: 'lab.notes', checkpoint: 'c-1' })
  })

  test('L8.7-1: server state goes along as the checkpoint of the head, with no state', async () => {
    const { raw, client } = await host(carrier, { answers })
    await client.callTool('add_note', {}, { live: { checkpoint: 'c-4' } })
    const [call] = raw.script.of('tools/call')
    expect(call?.['params']).toHaveProperty('checkpoint', 'c-4')
    expect(call?.['params']).not.toHaveProperty('state')
    expect(meta(call)).toMatchObject({ checkpoint: 'c-4' })
  })

  test('L8.8-1: a checkpoint that the server no longer has is told as missing', async () => {
    const { live } = await host(carrier, {
      answers: {
        'state/rollback': ({ checkpoint }) => {
          const code = carrier === 'http 2026-07-28' ? -31005 : -32005
          throw new Refusal(code, 'Checkpoint not found', { checkpoint })
        },
      },
    })
    expect(await live.rollback('lab.notes', 'old')).toMatchObject({ success: false, checkpoint: 'old', missing: true })
  })

  test('A11: a tool belongs to the set that it names, else to the only one that keeps state', async () => {
    const { client } = await host(carrier, { answers })
    for await (const _ of client.tools());
    expect(['add_note', 'edit', 'plain', 'unlisted'].map(name => client.toolSet(name))).toEqual([
      'lab.notes',
      'lab.files',
      'lab.notes',
      'lab.notes',
    ])
    const { rollback: _, hostState: __, ...stateless } = mcpl.featureSets['lab.notes']
    const several = { ...mcpl.featureSets, 'lab.git': { description: 'Git', uses: ['tools'], rollback: true } }
    const unsure = await host(carrier, { answers, mcpl: { ...mcpl, featureSets: several } })
    expect(unsure.client.toolSet('plain')).toBe(undefined)
    const none = await host(carrier, {
      answers,
      mcpl: { ...mcpl, featureSets: { ...mcpl.featureSets, 'lab.notes': stateless } },
    })
    expect(none.client.toolSet('plain')).toBe(undefined)
  })
})
