/** State through a whole host (MCP Live 0.2 §8), judged by what a raw server is sent on each carrier. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ConnectOptions } from '../../src/client/api.ts'
import { createHost, type HostOptions } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { type Carrier, carriers, rawServer } from '../live/raw/raw-server.ts'
import { type Answer, type Frame, Refusal, silence } from '../live/raw/script.ts'

const at = ['raw', 'lab.notes'] as const
const tools = [{ name: 'add_note', inputSchema: { type: 'object' }, _meta: { 'dev.vivarium/live': { featureSet: 'lab.notes' } } }]

/** A host with one raw server whose calls report what they are told to. */
async function world(
  carrier: Carrier,
  facts: Frame,
  reports: readonly Frame[],
  connect: ConnectOptions = {},
  limits: HostOptions['limits'] = {},
) {
  const rest = [...reports]
  const raw = await rawServer(carrier, {
    mcpl: { version: '0.2', featureSets: { 'lab.notes': { description: 'Notes', uses: ['tools'], ...facts } } },
    answers: {
      'tools/list': () => ({ tools, ttlMs: 0, cacheScope: 'private' }),
      'tools/call': () => ({ content: [{ type: 'text', text: 'ok' }], state: rest.shift() }),
      'state/rollback': ({ checkpoint }) => ({ checkpoint, success: true }),
    },
  })
  onTestFinished(() => raw.close())
  const host = await createHost({
    limits,
    model: scripted((_, turn) => (turn % 2 === 0 ? { calls: [{ name: 'add_note' }] } : 'Noted')),
    servers: { raw: { target: raw.target, connect: { ...raw.options, ...connect }, live: { enable: ['lab.notes'] } } },
  })
  onTestFinished(() => host.close())
  const talk = host.conversation('c')
  const turn = async () => {
    await (await talk.send('Note it')).done
    return raw.script.of('tools/call').at(-1)?.['params'] as Frame
  }
  return { host, raw, talk, turn }
}

describe.each(carriers)('%s', carrier => {
  test('L8.4-1, L8.4-2, L8.6-2: calls carry the state at the head, the first none, and after a rollback the one gone back to', async () => {
    const { host, raw, turn } = await world(carrier, { rollback: true, hostState: true }, [
      { checkpoint: 'c1', parent: null, data: { notes: ['a'] } },
      { checkpoint: 'c2', parent: 'c1', patch: [{ op: 'add', path: '/notes/-', value: 'b' }] },
      { checkpoint: 'c3', parent: 'c2', patch: [{ op: 'add', path: '/notes/-', value: 'c' }] },
      { checkpoint: 'c4', parent: 'c1', patch: [{ op: 'add', path: '/notes/-', value: 'd' }] },
    ])
    const first = await turn()
    expect([first, 'state' in first, 'checkpoint' in first]).toEqual([first, false, false])
    expect(await turn()).toHaveProperty('state', { notes: ['a'] })
    const third = await turn()
    expect(third).toHaveProperty('state', { notes: ['a', 'b'] })
    expect(third).not.toHaveProperty('checkpoint')
    expect(await host.state.rollback(...at, 'c1')).toEqual({ success: true, head: 'c1' })
    expect(raw.script.of('state/rollback')[0]?.['params']).toMatchObject({ featureSet: 'lab.notes', checkpoint: 'c1' })
    expect(await turn()).toHaveProperty('state', { notes: ['a'] })
    expect((await host.state.tree(...at)).map(({ checkpoint, parent }) => [checkpoint, parent])).toEqual([
      ['c1', null],
      ['c2', 'c1'],
      ['c3', 'c2'],
      ['c4', 'c1'],
    ])
    expect(await host.state.at(...at, 'c3')).toEqual({ notes: ['a', 'b', 'c'] })
  })

  test('T4: a checkpoint of a server that keeps its state, on one that nobody told of, is no orphan and can be gone back to', async () => {
    const { host, raw, turn } = await world(carrier, { rollback: true }, [{ checkpoint: 'c9', parent: 'c7' }])
    const update = { featureSet: 'lab.notes', checkpoint: 'c7', parent: 'c6' }
    expect(await raw.ask('state/update', update)).toHaveProperty('result.accepted', true)
    expect(await turn()).toHaveProperty('checkpoint', 'c7')
    expect((await host.state.tree(...at)).map(({ checkpoint, state }) => [checkpoint, state])).toEqual([
      ['c7', 'server'],
      ['c9', 'server'],
    ])
    expect(await host.state.rollback(...at, 'c7')).toEqual({ success: true, head: 'c7' })
    expect((await host.audit({ kind: 'state' })).notes.filter(({ outcome }) => outcome !== 'success')).toEqual([])
  })

  test('L8.2-2, L8.3-3: a result after a rollback is a branch, no node is lost, and the state at each can be had', async () => {
    const { host, turn } = await world(carrier, { rollback: true, hostState: true }, [
      { checkpoint: 'c1', parent: null, data: { n: 1 } },
      { checkpoint: 'c2', parent: 'c1', patch: [{ op: 'replace', path: '/n', value: 2 }] },
      { checkpoint: 'c3', parent: 'c1', patch: [{ op: 'replace', path: '/n', value: 3 }] },
      { checkpoint: 'r1', parent: null, data: { n: 4 } },
    ])
    for (let call = 0; call < 2; call++) await turn()
    await host.state.rollback(...at, 'c1')
    for (let call = 0; call < 2; call++) await turn()
    const tree = await host.state.tree(...at)
    expect(tree.map(({ checkpoint, parent }) => [checkpoint, parent])).toEqual([
      ['c1', null],
      ['c2', 'c1'],
      ['c3', 'c1'],
      ['r1', null],
    ])
    const states = await Promise.all(tree.map(({ checkpoint }) => host.state.at(...at, checkpoint)))
    expect(states).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }])
  })

  test('L8.3-2: all six operations, `-` and escaped names are applied; one that fails fails the whole patch', async () => {
    const { host, raw, turn } = await world(carrier, { rollback: true, hostState: true }, [
      { checkpoint: 'c1', parent: null, data: { list: [1], 'a/b': { '~': 'old' }, spare: true } },
      {
        checkpoint: 'c2',
        parent: 'c1',
        patch: [
          { op: 'test', path: '/list', value: [1] },
          { op: 'add', path: '/list/-', value: 2 },
          { op: 'replace', path: '/a~1b/~0', value: 'new' },
          { op: 'copy', from: '/list', path: '/copied' },
          { op: 'move', from: '/copied', path: '/moved' },
          { op: 'remove', path: '/spare' },
        ],
      },
      {
        checkpoint: 'c3',
        parent: 'c2',
        patch: [
          { op: 'add', path: '/list/-', value: 3 },
          { op: 'test', path: '/moved', value: 'something else' },
        ],
      },
    ])
    const whole = { list: [1, 2], 'a/b': { '~': 'new' }, moved: [1, 2] }
    for (let call = 0; call < 3; call++) await turn()
    expect(await host.state.at(...at, 'c2')).toEqual(whole)
    expect(await turn()).toHaveProperty('state', whole)
    expect(raw.script.of('tools/call')).toHaveLength(4)
  })

  test('the very first call on a state can be undone: the next one carries none again, and nothing is lost', async () => {
    const { host, raw, talk, turn } = await world(carrier, { rollback: true, hostState: true }, [
      { checkpoint: 'c1', parent: null, data: { notes: ['a'] } },
      { checkpoint: 'c2', parent: null, data: { notes: ['b'] } },
    ])
    await turn()
    const [first] = await talk.turns()
    expect(await first?.undo()).toMatchObject({ complete: true, steps: [{ outcome: 'undone', by: 'rollback' }] })
    expect(raw.script.of('state/rollback')).toEqual([])
    const next = await turn()
    expect([next, 'state' in next, 'checkpoint' in next]).toEqual([next, false, false])
    expect((await host.state.tree(...at)).map(({ checkpoint, current }) => [checkpoint, current])).toEqual([
      ['c1', false],
      ['c2', true],
    ])
  })

  test('a server that keeps its state itself cannot be asked for what was before its first checkpoint, and that is told', async () => {
    const { talk, turn } = await world(carrier, { rollback: true }, [{ checkpoint: 's1', parent: null }])
    await turn()
    const [first] = await talk.turns()
    expect(await first?.undo()).toMatchObject({
      complete: false,
      steps: [{ outcome: 'stays', why: { code: 'NO_EARLIER_STATE', fix: expect.stringContaining('manually') } }],
    })
    expect(await turn()).toHaveProperty('checkpoint', 's1')
  })

  test('L8.7-1: where the server keeps its state, calls carry the name of the head and nothing else', async () => {
    const { turn } = await world(carrier, { rollback: true }, [
      { checkpoint: 's1', parent: null },
      { checkpoint: 's2', parent: 's1' },
    ])
    expect(await turn()).not.toHaveProperty('checkpoint')
    expect(await turn()).toHaveProperty('checkpoint', 's1')
    const third = await turn()
    expect(third).toHaveProperty('checkpoint', 's2')
    expect(third).not.toHaveProperty('state')
  })

  /** Ways in which a server does not go back: what it does, and the outcome that is noted. */
  const refusals: readonly (readonly [how: string, answer: Answer, outcome: string])[] = [
    ['says no', ({ checkpoint }) => ({ checkpoint, success: false, reason: 'mail cannot be unsent' }), 'failure'],
    ['says neither yes nor no', ({ checkpoint }) => ({ checkpoint, success: 'yes' }), 'failure'],
    [
      'no longer has the checkpoint',
      ({ checkpoint }) => {
        throw new Refusal(carrier === 'http 2026-07-28' ? -31005 : -32005, 'Checkpoint not found', { checkpoint })
      },
      'failure',
    ],
    [
      'fails',
      () => {
        throw new Refusal(-32603, 'the disk is full')
      },
      'failure',
    ],
    ['gives no answer', () => silence, 'timeout'],
  ]

  test.each(refusals)(
    'L8.6-1, L8.8-1: where the server %s the head does not move, no node is lost, and it is noted',
    async (_, answer, outcome) => {
      const { host, raw, turn } = await world(
        carrier,
        { rollback: true, hostState: true },
        [
          { checkpoint: 'c1', parent: null, data: { n: 1 } },
          { checkpoint: 'c2', parent: 'c1', data: { n: 2 } },
        ],
        { timeout: '400ms', startTimeout: '15s' },
      )
      for (let call = 0; call < 2; call++) await turn()
      raw.script.on('state/rollback', answer)
      const said = await host.state.rollback(...at, 'c1').catch((error: unknown) => ({ success: false, error }))
      expect(said.success).toBe(false)
      expect(await turn()).toHaveProperty('state', { n: 2 })
      expect((await host.state.tree(...at)).map(({ checkpoint, current }) => [checkpoint, current])).toEqual([
        ['c1', false],
        ['c2', true],
      ])
      expect((await host.audit({ kind: 'rollback' })).notes).toMatchObject([
        { server: 'raw', featureSet: 'lab.notes', outcome, detail: 'c1', why: { fix: expect.any(String) } },
      ])
    },
  )

  test('L8.5-1: a set without rollback is not asked to go back, and one whose set is off neither', async () => {
    const { host, raw, turn } = await world(carrier, { hostState: true }, [
      { checkpoint: 'c1', parent: null, data: { n: 1 } },
      { checkpoint: 'c2', parent: 'c1', data: { n: 2 } },
    ])
    for (let call = 0; call < 2; call++) await turn()
    expect(await host.state.rollback(...at, 'c1')).toMatchObject({ success: false, why: { code: 'ROLLBACK_NOT_OFFERED' } })
    expect(await turn()).toHaveProperty('state', { n: 2 })
    const other = await world(carrier, { rollback: true, hostState: true }, [{ checkpoint: 'c1', parent: null, data: { n: 1 } }])
    await other.turn()
    await other.host.policy.update({ servers: { raw: { disable: ['lab.notes'] } } })
    expect(await other.host.state.rollback(...at, 'c1')).toMatchObject({ success: false })
    expect([raw.script.of('state/rollback'), other.raw.script.of('state/rollback')]).toEqual([[], []])
    expect((await host.audit({ kind: 'rollback' })).notes).toMatchObject([{ outcome: 'refused' }])
  })

  test('L8.6-2: where the server keeps its state, the next call carries the checkpoint gone back to', async () => {
    const { host, turn } = await world(carrier, { rollback: true }, [
      { checkpoint: 's1', parent: null },
      { checkpoint: 's2', parent: 's1' },
    ])
    for (let call = 0; call < 2; call++) await turn()
    expect(await host.state.rollback(...at, 's1')).toEqual({ success: true, head: 's1' })
    const next = await turn()
    expect(next).toHaveProperty('checkpoint', 's1')
    expect(next).not.toHaveProperty('state')
    expect((await host.audit({ kind: 'rollback' })).notes).toMatchObject([{ featureSet: 'lab.notes', outcome: 'success' }])
  })

  const piped = carrier === 'stdio' || carrier === 'websocket'

  // Over HTTP nothing comes once the exchange of a call has been let go.
  test.runIf(piped)(
    'A13: a result that comes after its call was given up is recorded, and the next call carries what it left',
    async () => {
      const late = Promise.withResolvers<void>()
      const reports = [{ checkpoint: 'c1', parent: null, data: { n: 1 } }]
      const { host, raw, turn } = await world(carrier, { rollback: true, hostState: true }, reports, {}, { callMs: 300 })
      await turn()
      raw.script.on('tools/call', async () => {
        await late.promise
        return { content: [], state: { checkpoint: 'c2', parent: 'c1', data: { n: 2 } } }
      })
      await turn()
      expect((await host.conversation('c').turns())[1]?.calls[0]?.outcome?.status).toBe('unknown')
      late.resolve()
      await expect.poll(async () => (await host.state.tree(...at)).length).toBe(2)
      expect(await turn()).toHaveProperty('state', { n: 2 })
      const { notes } = await host.audit({ kind: 'state' })
      expect(notes).toMatchObject([{ server: 'raw', featureSet: 'lab.notes', outcome: 'success', detail: 'add_note' }])
    },
  )
})
