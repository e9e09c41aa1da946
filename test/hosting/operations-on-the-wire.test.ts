/** L13.2-1: every operation of MCP Live, in either direction, is an entry of the audit, whatever came of it. Judged by a raw server. */
import { describe, expect, test } from 'vitest'
import type { Host, Noted, NoteOutcome } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { push } from '../live/raw/host.ts'
import { carriers, type RawServer } from '../live/raw/raw-server.ts'
import { type Frame, Refusal, silence } from '../live/raw/script.ts'
import { until } from '../until.ts'
import { having, hosting, served, think, toolOf } from './wire-world.ts'

/** Entries of one kind, in their order. */
const entries = async (host: Host, kind: string) => (await host.audit({ server: 'raw', kind })).notes

/** One of them, once it is there: some are written after the server has its answer. */
const entry = (host: Host, kind: string, fits: (noted: Noted) => boolean): Promise<Noted> =>
  until(async () => {
    const found = (await entries(host, kind)).find(fits)
    if (found === undefined) throw new Error(`There is no such entry of ${kind}`)
    return found
  })

const noted = (kind: string, outcome: NoteOutcome, featureSet: string | undefined) => ({
  server: 'raw',
  kind,
  outcome,
  at: expect.any(Number),
  ...(featureSet !== undefined && { featureSet }),
})

const stating = {
  ...having(toolOf('add_note', 'lab.notes')),
  'tools/call': () => ({ content: [], state: { checkpoint: 'c1', parent: null, data: { n: 1 } } }),
  'state/rollback': ({ checkpoint }: Frame) => ({ checkpoint, success: true }),
}

describe.each(carriers)('%s', carrier => {
  test('L13.2-1: each operation is an entry with server, set, time and outcome, and the inference that it belongs to', async () => {
    const raw = await served(carrier, stating)
    const model = scripted(({ tools, messages }) =>
      tools.length > 0 && messages.length === 1 ? { calls: [{ name: 'add_note' }] } : 'Fine.',
    )
    const host = await hosting(raw, { model }, { scopes: { 'lab.files': { whitelist: ['/src/**'] } } })
    await raw.ask('push/event', push())
    await raw.ask('inference/request', think)
    await raw.ask('scope/elevate', { featureSet: 'lab.files', scope: { label: '/src/a.ts' } })
    await raw.ask('model/info', {})
    await raw.ask('state/update', { featureSet: 'lab.notes', checkpoint: 'c0', parent: null, data: { n: 0 } })
    await raw.ask('state/get', { featureSet: 'lab.notes' })
    const turn = await host.conversation('c').send('Note it')
    await turn.done
    await host.state.rollback('raw', 'lab.notes', 'c0')
    const added = { 'lab.new': { description: 'New', uses: ['pushEvents'] } }
    raw.tell('featureSets/changed', { added, removed: ['lab.think'] })
    const { inferenceId } = turn
    const kinds: readonly (readonly [kind: string, featureSet?: string, inferenceId?: string])[] = [
      ['push', 'lab.push'],
      ['infer', 'lab.think'],
      ['scope', 'lab.files'],
      ['model'],
      ['state', 'lab.notes'],
      ['state.get', 'lab.notes'],
      ['hook.before', 'lab.hooks', inferenceId],
      ['tool', 'lab.notes', inferenceId],
      ['hook.after', 'lab.hooks', inferenceId],
      ['rollback', 'lab.notes'],
      ['set', 'lab.push'],
    ]
    for (const [kind, featureSet, of] of kinds) {
      const found = await entry(host, kind, ({ outcome }) => outcome === 'success')
      expect(found).toMatchObject({ ...noted(kind, 'success', featureSet), ...(of !== undefined && { inferenceId: of }) })
    }
    expect(await entry(host, 'set', ({ featureSet }) => featureSet === 'lab.new')).toMatchObject({ outcome: 'refused' })
    const gone = await entry(host, 'set', ({ featureSet, detail }) => featureSet === 'lab.think' && detail === 'gone')
    expect(gone).toMatchObject(noted('set', 'success', 'lab.think'))
  })

  test('L13.2-1: hooks that fail, take too long or are stopped are entries with that outcome and the inference', async () => {
    const fails = (): never => {
      throw new Refusal(-32000, 'broken')
    }
    for (const [hook, answer, outcome, code] of [
      ['before', fails, 'failure', 'HOOK_FAILED'],
      ['before', () => silence, 'timeout', 'HOOK_TIMEOUT'],
      ['after', fails, 'failure', 'HOOK_FAILED'],
      ['after', () => silence, 'timeout', 'HOOK_TIMEOUT'],
    ] as const) {
      const raw = await served(carrier, { [`context/${hook}Inference`]: answer })
      const host = await hosting(raw, { hooks: { raw: { [hook]: { timeout: outcome === 'timeout' ? '50ms' : '10s' } } } })
      const turn = await host.conversation('c').send('Go')
      await turn.done
      const facts = { ...noted(`hook.${hook}`, outcome, undefined), inferenceId: turn.inferenceId, why: { code } }
      expect(await entries(host, `hook.${hook}`)).toMatchObject([facts])
    }
    const raw = await served(carrier, { 'context/beforeInference': () => silence })
    const host = await hosting(raw)
    const turn = await host.conversation('c').send('Go')
    await raw.script.hears('context/beforeInference')
    turn.cancel()
    await turn.done.catch(() => undefined)
    const facts = { ...noted('hook.before', 'failure', undefined), inferenceId: turn.inferenceId, why: { code: 'TURN_STOPPED' } }
    expect(await entry(host, 'hook.before', () => true)).toMatchObject(facts)
  })

  test('L13.2-1: inferences that fail, are cancelled or come amid a hook are entries with that outcome and the set', async () => {
    const failing = await served(carrier)
    const broken = await hosting(failing, { model: scripted({ error: new Error('no') }) })
    expect(await failing.ask('inference/request', think)).toHaveProperty('error')
    expect(await entries(broken, 'infer')).toMatchObject([noted('infer', 'failure', 'lab.think')])

    const leaving = await served(carrier)
    const slow = await hosting(leaving, { model: scripted({ text: 'late', latencyMs: 60_000 }) })
    const id = leaving.begin('inference/request', think)
    // It is under way when what was asked after it is answered.
    await leaving.ask('model/info', {})
    leaving.tell('notifications/cancelled', { requestId: carrier === 'http 2026-07-28' ? String(id) : id })
    const cancelled = await entry(slow, 'infer', () => true)
    expect(cancelled).toMatchObject({ ...noted('infer', 'failure', 'lab.think'), why: { code: 'CANCELLED' } })

    const hooked = await served(carrier, {
      'context/beforeInference': async () => {
        await asking(hooked)
        return { featureSet: 'lab.hooks', contextInjections: [] }
      },
    })
    const host = await hosting(hooked)
    await (await host.conversation('c').send('Hi')).done
    const facts = { ...noted('infer', 'refused', 'lab.think'), why: { code: 'HOOK_IN_PROGRESS' } }
    expect(await entries(host, 'infer')).toMatchObject([facts])
  })
})

const asking = (raw: RawServer): Promise<Frame> => raw.ask('inference/request', think)
