/** State through a whole host (MCP Live 0.2 §8), judged by what a raw server is sent on each carrier. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { type Carrier, carriers, rawServer } from '../live/raw/raw-server.ts'
import type { Frame } from '../live/raw/script.ts'

const at = ['raw', 'lab.notes'] as const
const tools = [{ name: 'add_note', inputSchema: { type: 'object' }, _meta: { 'dev.vivarium/live': { featureSet: 'lab.notes' } } }]

/** A host with one raw server whose calls report what they are told to. */
async function world(carrier: Carrier, facts: Frame, reports: readonly Frame[]) {
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
    model: scripted((_, turn) => (turn % 2 === 0 ? { calls: [{ name: 'add_note' }] } : 'Noted')),
    servers: { raw: { target: raw.target, connect: raw.options, live: { enable: ['lab.notes'] } } },
  })
  onTestFinished(() => host.close())
  const talk = host.conversation('c')
  const turn = async () => {
    await (await talk.send('Note it')).done
    return raw.script.of('tools/call').at(-1)?.['params'] as Frame
  }
  return { host, raw, turn }
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
})
