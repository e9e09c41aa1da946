/**
 * States that a server reports by itself while it is called (T4): undoing the turn returns them to what they were before it, and where
 * that cannot be, the report of the undo says which one stays, and why.
 */
import { describe, expect, test } from 'vitest'
import { type Host, type ScriptedModel, scripted } from '../../src/host/index.ts'
import type { RawServer } from '../live/raw/raw-server.ts'
import type { Answer, Frame } from '../live/raw/script.ts'
import { entry, hostile, opened } from './hostile.ts'

const sets = {
  'doc.write': { description: 'Writes', uses: ['tools'] },
  'doc.print': { description: 'Prints', uses: ['tools'] },
  'doc.watch': { description: 'Reports the document', uses: ['stateUpdate'], rollback: true },
  'doc.fixed': { description: 'Reports what cannot go back', uses: ['stateUpdate'] },
}
const toolOf = (name: string, featureSet: string) => {
  return { name, inputSchema: { type: 'object' }, _meta: { 'dev.vivarium/live': { featureSet } } }
}
const tools = [toolOf('edit', 'doc.write'), toolOf('print', 'doc.print')]
const said = { content: [{ type: 'text', text: 'Edited' }] }
const once = (answer = 'Done.') => scripted([{ calls: [{ name: 'edit' }] }, answer])

/** A document: its tool reports states before it answers. */
async function document(call: Answer): Promise<RawServer> {
  return hostile({
    mcpl: { version: '0.4', stateUpdate: true, featureSets: sets },
    answers: {
      'tools/list': () => ({ tools, ttlMs: 0, cacheScope: 'private' }),
      'tools/call': call,
      'state/rollback': ({ checkpoint }) => ({ checkpoint, success: true }),
    },
  })
}

async function talking(raw: RawServer, model: ScriptedModel = once()): Promise<Host> {
  const rules = [{ name: 'tools', when: { kind: 'tool' as const }, do: 'allow' as const }]
  const host = await opened({ model, servers: { raw: entry(raw) }, policy: { rules } })
  await expect.poll(() => host.server('raw')?.live?.featureSets.get('doc.watch')?.enabled).toBe(true)
  return host
}

const update = (featureSet: string, checkpoint: string, more: Frame = {}) => ({ featureSet, checkpoint, parent: null, ...more })

async function turn(host: Host, say = 'edit') {
  const begun = await host.conversation(say).send(say)
  await begun.done
  return begun
}

describe('undoing a turn during which a server reported a state', () => {
  test('T4: the state is what it was before the turn, and the call that it came with is undone by that', async () => {
    const raw: RawServer = await document(async () => {
      for (const [n, parent] of [
        ['2', 'w1'],
        ['3', 'w2'],
      ])
        await raw.ask('state/update', update('doc.watch', `w${n}`, { parent, data: { n } }))
      return said
    })
    const host = await talking(raw)
    await raw.ask('state/update', update('doc.watch', 'w1', { data: { n: '1' } }))
    const report = await (await turn(host)).undo()
    expect(report).toMatchObject({
      complete: true,
      steps: [
        { server: 'raw', featureSet: 'doc.watch', outcome: 'undone', by: 'rollback' },
        { tool: 'edit', outcome: 'undone', by: 'rollback' },
      ],
    })
    expect(raw.script.of('state/rollback').map(({ params }) => params)).toMatchObject([
      { featureSet: 'doc.watch', checkpoint: 'w1' },
    ])
    expect(await host.state.report('raw', 'doc.watch')).toMatchObject({ checkpoint: 'w1', data: { n: '1' } })
    const notes = (await host.audit({ kind: 'undo' })).notes
    expect(notes).toMatchObject([
      { featureSet: 'doc.watch', outcome: 'success' },
      { outcome: 'success', detail: 'edit' },
    ])
  })

  test('a state that cannot go back, or had none before, is named as what stays', async () => {
    const raw: RawServer = await document(async () => {
      await raw.ask('state/update', update('doc.fixed', 'f2'))
      await raw.ask('state/update', update('doc.watch', 'w1'))
      return said
    })
    const host = await talking(raw)
    await raw.ask('state/update', update('doc.fixed', 'f1'))
    const { complete, steps } = await (await turn(host)).undo()
    expect(complete).toBe(false)
    expect(steps.map(({ featureSet, tool, outcome, why }) => [tool ?? featureSet, outcome, why?.code])).toEqual([
      ['doc.watch', 'stays', 'NO_EARLIER_STATE'],
      ['doc.fixed', 'stays', 'ROLLBACK_NOT_OFFERED'],
      ['edit', 'stays', 'ROLLBACK_NOT_OFFERED'],
    ])
    expect(raw.script.of('state/rollback')).toEqual([])
  })

  test('a call that failed after it had reported is nothing to undo, and its state is', async () => {
    const raw: RawServer = await document(async () => {
      await raw.ask('state/update', update('doc.watch', 'w2', { parent: 'w1' }))
      return { content: [{ type: 'text', text: 'Out of ink' }], isError: true }
    })
    const host = await talking(raw)
    await raw.ask('state/update', update('doc.watch', 'w1'))
    const { steps } = await (await turn(host)).undo()
    expect(steps).toMatchObject([
      { tool: 'edit', outcome: 'nothing' },
      { featureSet: 'doc.watch', outcome: 'undone', by: 'rollback' },
    ])
    expect(await host.state.report('raw', 'doc.watch')).toMatchObject({ checkpoint: 'w1' })
  })

  test('what its result says of the same checkpoint is one state, and set back once', async () => {
    const raw: RawServer = await document(async () => {
      await raw.ask('state/update', update('doc.fixed', 'c2', { parent: 'c1' }))
      return { ...said, state: { checkpoint: 'c2', parent: 'c1' } }
    })
    const host = await talking(raw)
    const { steps } = await (await turn(host)).undo()
    expect(steps).toHaveLength(1)
  })

  test('where two turns were at the server, nobody knows whose it is: it stays, and that is said', async () => {
    const both = Promise.withResolvers<void>()
    let [calls, told]: [number, Promise<unknown> | undefined] = [0, undefined]
    const raw: RawServer = await document(async () => {
      if (++calls === 2) both.resolve()
      await both.promise
      told ??= raw.ask('state/update', update('doc.watch', 'w2', { parent: 'w1' }))
      await told
      return said
    })
    // Calls on one state follow each other; these are on two.
    const model = scripted(({ messages }) => {
      const last = messages.at(-1)
      return last?.role === 'tool' ? 'Done.' : { calls: [{ name: JSON.stringify(last).includes('print') ? 'print' : 'edit' }] }
    })
    const host = await talking(raw, model)
    await raw.ask('state/update', update('doc.watch', 'w1'))
    const [one] = await Promise.all([turn(host, 'edit'), turn(host, 'print')])
    expect(await one.undo()).toMatchObject({ complete: false, steps: [{ why: { code: 'STATE_SHARED' } }, { outcome: 'stays' }] })
    expect(raw.script.of('state/rollback')).toEqual([])
  })

  test('what it reports outside of calls belongs to no turn', async () => {
    const raw = await document(() => said)
    const host = await talking(raw)
    const made = await turn(host)
    await raw.ask('state/update', update('doc.watch', 'w1'))
    expect((await made.undo()).steps).toMatchObject([{ tool: 'edit', outcome: 'stays', why: { code: 'NO_WAY_BACK' } }])
  })
})
