/**
 * L13.2-1: every decision of a host is an entry of its audit, with the rule, grant or approval that allowed or refused it. Judged by a
 * server whose frames are written by hand, on each carrier; and by the places in the source at which a host decides.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHost, type HostOptions, type Noted } from '../../src/host/index.ts'
import { scripted } from '../../src/host/models/scripted.ts'
import { createServer } from '../../src/server/index.ts'
import { memoryPair } from '../../src/transports/memory.ts'
import { mcpl, push } from '../live/raw/host.ts'
import { type Carrier, carriers, type RawServer, rawServer } from '../live/raw/raw-server.ts'

const sets = ['lab.push', 'lab.hooks', 'lab.think', 'lab.files', 'lab.notes']
const think = { featureSet: 'lab.think', messages: [{ role: 'user', content: 'Sum it up' }] }

async function hosting(carrier: Carrier, options: HostOptions = {}) {
  const none = { featureSet: 'lab.hooks', contextInjections: [] }
  const answers = { 'context/beforeInference': () => none, 'context/afterInference': () => ({ featureSet: 'lab.hooks' }) }
  const raw = await rawServer(carrier, { mcpl, answers })
  onTestFinished(() => raw.close())
  const notes: Noted[] = []
  const host = await createHost({
    model: scripted('Fine.', { again: true }),
    servers: { raw: { target: raw.target, connect: raw.options, live: { enable: sets, disable: ['lab.off'] } } },
    onNote: noted => notes.push(noted),
    ...options,
  })
  onTestFinished(() => host.close())
  return { raw, host, notes }
}

const codeOf = async (raw: RawServer, method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> =>
  ((await raw.ask(method, params))['error'] as { code?: number } | undefined)?.code

describe.each(carriers)('%s', carrier => {
  test('L13.2-1: what is refused at the gate is an entry with the reason, and an event is explained by it', async () => {
    const { raw, host, notes } = await hosting(carrier)
    expect(await codeOf(raw, 'push/event', push({ featureSet: 'lab.off', eventId: 'off-1' }))).toBe(-32001)
    expect(await codeOf(raw, 'push/event', push({ featureSet: 'lab.none', eventId: 'none-1' }))).toBe(-32003)
    expect(await codeOf(raw, 'inference/request', { ...think, featureSet: 'lab.off' })).toBe(-32001)
    expect(await codeOf(raw, 'scope/elevate', { featureSet: 'lab.off', scope: { label: '/x' } })).toBe(-32001)
    const { featureSet: _, ...unnamed } = push({ eventId: 'unnamed-1' })
    expect(await codeOf(raw, 'push/event', unnamed)).toBe(-32602)
    const refused = notes.filter(({ outcome, detail }) => outcome === 'refused' && detail?.includes('/'))
    expect(refused.map(({ kind, featureSet, why }) => [kind, featureSet, why?.code, why?.rule])).toEqual([
      ['push', 'lab.off', 'SET_NOT_ENABLED', 'feature-sets'],
      ['push', 'lab.none', 'SET_UNKNOWN', 'feature-sets'],
      ['infer', 'lab.off', 'SET_NOT_ENABLED', 'feature-sets'],
      ['scope', 'lab.off', 'SET_NOT_ENABLED', 'feature-sets'],
      ['push', undefined, 'INVALID_PARAMS', 'shape'],
    ])
    for (const [id, code] of [
      ['off-1', 'SET_NOT_ENABLED'],
      ['none-1', 'SET_UNKNOWN'],
      ['unnamed-1', 'INVALID_PARAMS'],
    ] as const) {
      const { notes: story } = await host.explain(id)
      expect(story.map(({ kind, outcome, why }) => [kind, outcome, why?.code])).toEqual([['push', 'refused', code]])
    }
  })

  test('L13.2-1: what is allowed is an entry with the rule that allowed it: events, inferences, scopes, the model, the sets', async () => {
    const { raw, notes } = await hosting(carrier, {
      policy: {
        rules: [{ name: 'ring', do: 'allow', when: { kind: 'push' } }],
        servers: { raw: { scopes: { 'lab.files': { whitelist: ['/src/**'] } } } },
      },
    })
    await raw.ask('push/event', push({ eventId: 'on-1' }))
    await raw.ask('inference/request', think)
    await raw.ask('scope/elevate', { featureSet: 'lab.files', scope: { label: '/src/a.ts' } })
    await raw.ask('model/info', {})
    await expect.poll(() => notes.some(({ kind, outcome }) => kind === 'infer' && outcome === 'success')).toBe(true)
    const rules = (kind: string) =>
      notes.filter(noted => noted.kind === kind && noted.outcome === 'success').map(({ rule }) => rule)
    expect(rules('push')).toEqual(['ring'])
    expect(rules('infer')).toEqual(['otherwise.infer'])
    expect(rules('scope')).toEqual([expect.stringContaining('lab.files')])
    expect(rules('model')).toEqual(['model/info is always answered'])
    const told = notes
      .filter(({ kind }) => kind === 'set')
      .map(({ featureSet, outcome, rule, why }) => [featureSet, outcome, rule ?? why?.rule])
    expect(told).toEqual(
      expect.arrayContaining([
        ['lab.push', 'success', expect.any(String)],
        ['lab.off', 'refused', expect.any(String)],
      ]),
    )
  })
})

async function inMemory(options: HostOptions) {
  const server = createServer({ name: 'desk', version: '1.0.0' })
  const set = server.featureSet('desk.news', { description: 'News', uses: ['pushEvents'] })
  server.tool('act', { input: { type: 'object', properties: { secret: { type: 'string' } } } }, () => 'Done')
  const target = () => {
    const [here, there] = memoryPair()
    server.acceptor.accept(there)
    return here
  }
  const notes: Noted[] = []
  const host = await createHost({
    servers: { desk: { target, live: { enable: ['*'] } } },
    onNote: noted => notes.push(noted),
    ...options,
  })
  onTestFinished(async () => {
    await host.close()
    await server.close()
  })
  return { host, set, notes }
}

test('L13.2-1: approvals and refusals by the user are entries, with the approval that a call rests on and nothing of its arguments', async () => {
  const answers = [true, false]
  const call = (secret: string) => ({ calls: [{ name: 'act', arguments: { secret } }] })
  const { host, notes } = await inMemory({
    model: scripted([call('s3cret'), 'A', call('s3cret'), 'B', call('other'), 'C']),
    policy: { rules: [{ name: 'careful', do: 'ask', when: { kind: 'tool' } }] },
    onApproval: () => answers.shift() ?? false,
  })
  for (const text of ['one', 'two', 'three']) await (await host.conversation('c').send(text)).done
  const approvals = notes.filter(({ kind }) => kind === 'approval')
  expect(approvals.map(({ outcome }) => outcome)).toEqual(['success', 'refused'])
  const [kept] = await host.policy.grants('desk')
  expect(approvals[0]?.rule).toBe(`approval ${kept?.id}`)
  expect(approvals[1]?.why).toMatchObject({
    code: 'APPROVAL_REFUSED',
    rule: 'careful',
    message: expect.stringContaining('declined'),
  })
  const calls = notes.filter(({ kind }) => kind === 'tool').map(({ outcome, rule, why }) => [outcome, rule ?? why?.rule])
  expect(calls).toEqual([
    ['success', `approval ${kept?.id}`],
    ['success', `approval ${kept?.id}`],
    ['refused', 'careful'],
  ])
  expect(JSON.stringify(notes)).not.toContain('s3cret')
  await host.policy.revoke('desk', kept?.id ?? '')
  expect(notes.at(-1)).toMatchObject({ kind: 'grant', outcome: 'success', detail: `revoked approval ${kept?.id}` })
})

test('L13.2-1: the story of an event that was asked about and refused is told whole', async () => {
  const { host, set, notes } = await inMemory({
    model: scripted([]),
    policy: { rules: [{ name: 'ask-first', do: 'ask', when: { kind: 'push' } }] },
    onApproval: () => false,
  })
  await host.open()
  await (await set.push({ eventId: 'e1', content: 'Ring' })).answered
  await expect.poll(() => notes.some(({ kind, outcome }) => kind === 'inbox' && outcome === 'refused')).toBe(true)
  const { notes: story } = await host.explain('e1')
  expect(story.map(({ kind, outcome }) => `${kind} ${outcome}`).sort()).toEqual([
    'approval refused',
    'inbox refused',
    'push success',
  ])
})

/** Every place that asks the policy, and the kind under which its decision is noted. A new place belongs on this list, with a test. */
const places: Readonly<Record<string, readonly string[]>> = {
  'host/create.ts': ['pin'],
  'host/inbox/acceptance.ts': ['push', 'inbox'],
  'host/inbox/runs.ts': ['inbox'],
  'host/loop/answers/answers.ts': ['roots', 'elicit', 'infer'],
  'host/loop/answers/sampling.ts': ['sample'],
  'host/loop/inference-hooks.ts': ['inject'],
  'host/loop/calls.ts': ['tool'],
  'host/loop/host-tools.ts': ['tool'],
  'host/loop/permission.ts': [],
  'host/loop/undo.ts': ['undo'],
  'policy/scopes/elevate.ts': ['scope'],
  'policy/policy.ts': ['approval', 'grant', 'rules', 'set'],
}

test('every place at which a host asks its policy is known to write an entry', () => {
  const src = join(import.meta.dirname, '../../src')
  const asks = /\b(?:decide|approve|askPermission|requirePermission)\(/
  const found = ['host', 'policy']
    .flatMap(room => readdirSync(join(src, room), { recursive: true, encoding: 'utf8' }).map(file => join(room, file)))
    .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .filter(file => {
      const code = readFileSync(join(src, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$|^import .*$/gm, '')
      return /\bpolicy\b/.test(code) && asks.test(code.replace(/\bfunction \w+\(|servers\.approve\(|pins\.approve\(/g, ''))
    })
    .map(file => file.replaceAll('\\', '/'))
  expect(found.sort()).toEqual(expect.arrayContaining(Object.keys(places)))
  expect(found.filter(file => places[file] === undefined)).toEqual([])
})
