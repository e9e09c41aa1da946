/** Which feature set a tool belongs to, as a whole host finds it out: for its state, and for what it may do. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHost } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer, jsonSchema } from '../../src/server/index.ts'
import { type Carrier, carriers, rawServer } from '../live/raw/raw-server.ts'
import type { Frame } from '../live/raw/script.ts'

const loose = jsonSchema<{ text: string }>({ type: 'object' })
const listed = (...names: string[]) => names.map(name => ({ name, inputSchema: { type: 'object' } }))
const stateful = { description: 'x', uses: ['tools'], rollback: true, hostState: true }

/** A host that calls the named tools, one a turn, of a server that says of no tool whose it is. */
async function hosted(carrier: Carrier, sets: readonly string[], script: readonly string[], call: (params: Frame) => Frame) {
  const raw = await rawServer(carrier, {
    mcpl: { version: '0.2', featureSets: Object.fromEntries(sets.map(name => [name, stateful])) },
    answers: {
      'tools/list': () => ({ tools: listed('add_note', 'add_file'), ttlMs: 0, cacheScope: 'private' }),
      'tools/call': call,
    },
  })
  onTestFinished(() => raw.close())
  const asked: Frame[] = []
  const host = await createHost({
    model: scripted((_, at) => (at % 2 === 0 ? { calls: [{ name: script[at / 2] ?? '' }] } : 'Done')),
    servers: { raw: { target: raw.target, connect: raw.options, live: { enable: ['*'] } } },
    policy: { rules: [{ name: 'asked', when: { kind: 'tool' }, do: 'ask' }] },
    onApproval: ({ asked: about }) => {
      asked.push({ ...about })
      return true
    },
  })
  onTestFinished(() => host.close())
  for (const _ of script) await (await host.conversation('c').send('Go on')).done
  return { host, asked, sent: raw.script.of('tools/call').map(frame => frame['params'] as Frame) }
}

/** Keeps what it was given and adds one; which set it is of only its results could tell. */
const growing =
  (named: boolean) =>
  ({ name, state }: Frame): Frame => {
    const before = (state as { items: string[] } | undefined)?.items ?? []
    const data = { items: [...before, `${String(name)} ${before.length}`] }
    const featureSet = name === 'add_note' ? 'lab.notes' : 'lab.files'
    const checkpoint = `${String(name)}-${before.length}`
    return { content: [], state: { checkpoint, data, ...(named && { featureSet }) } }
  }

describe.each(carriers)('%s', carrier => {
  test('A11: state that nobody says the set of is kept for its tool, so that nothing of it is lost or given to another', async () => {
    const script = ['add_note', 'add_file', 'add_note', 'add_file']
    const { host, sent } = await hosted(carrier, ['lab.notes', 'lab.files'], script, growing(false))
    expect(sent.map(({ state }) => state)).toEqual([undefined, undefined, { items: ['add_note 0'] }, { items: ['add_file 0'] }])
    expect(sent.map(params => 'checkpoint' in params)).toEqual([false, false, false, false])
    const { notes } = await host.audit({ kind: 'state' })
    expect(notes.map(({ why }) => why?.code)).toEqual(['TOOL_WITHOUT_SET', 'TOOL_WITHOUT_SET'])
  })

  test('A11: what a result says of its set is learned from it', async () => {
    const { host, sent } = await hosted(carrier, ['lab.notes', 'lab.files'], ['add_note', 'add_note'], growing(true))
    expect(sent.map(({ state }) => state)).toEqual([undefined, { items: ['add_note 0'] }])
    expect(await host.state.sets()).toEqual([{ server: 'raw', featureSet: 'lab.notes' }])
  })

  test('a set that is only guessed is good for state, and permits nothing', async () => {
    const { asked, sent } = await hosted(carrier, ['lab.notes'], ['add_note', 'add_note'], growing(false))
    expect(sent.at(-1)).toHaveProperty('state', { items: ['add_note 0'] })
    expect(asked.filter(({ kind }) => kind === 'tool')).toHaveLength(1)
    for (const about of asked) expect(about).not.toHaveProperty('featureSet')
  })
})

test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const)(
  'at %s notes of a server with two stateful sets are all there',
  async revision => {
    const server = createServer({ name: 'notes', version: '1.0.0', log: 'silent' })
    onTestFinished(() => server.close())
    for (const name of ['notes', 'files'])
      server
        .featureSet(name, { description: 'x', hostState: true, rollback: true })
        .tool(`add_to_${name}`, { input: loose }, async ({ text }, ctx) => {
          const before = (await ctx.state.get<string[]>()) ?? []
          await ctx.state.set([...before, text])
          return 'added'
        })
    const { url } = await server.listen()
    const script = ['add_to_notes', 'add_to_files', 'add_to_notes']
    const host = await createHost({
      model: scripted((_, at) =>
        at % 2 === 0 ? { calls: [{ name: script[at / 2] ?? '', arguments: { text: `text ${at / 2}` } }] } : 'Done',
      ),
      servers: { notes: { target: url, connect: { revisions: [revision] }, live: { enable: ['*'] } } },
      policy: { rules: [{ name: 'all', when: { kind: 'tool' }, do: 'allow' }] },
    })
    onTestFinished(() => host.close())
    for (const _ of script) await (await host.conversation('c').send('Go on')).done
    const { data } = (await host.state.report('notes', 'notes')) ?? {}
    expect([data, await host.state.sets()]).toEqual([
      ['text 0', 'text 2'],
      expect.arrayContaining([
        { server: 'notes', featureSet: 'notes' },
        { server: 'notes', featureSet: 'files' },
      ]),
    ])
  },
)
