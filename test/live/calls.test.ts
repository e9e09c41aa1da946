/** Tools of feature sets: scopes and state (MCP Live 0.2 §7, §8), judged by the frames of the server alone. */
import { afterEach, describe, expect, it } from 'vitest'
import type { Frame } from '../spec/wire.ts'
import type { Carrier } from './pipes.ts'
import { everySet, given, live, places, type RawHost, type RawHostOptions, rawHost } from './raw-host.ts'

const open: RawHost[] = []
afterEach(async () => {
  for (const host of open.splice(0)) await host.close()
})

async function hosted(carrier: Carrier, options?: RawHostOptions): Promise<RawHost> {
  const host = await rawHost(carrier, options)
  open.push(host)
  return host
}

const all = { enabled: everySet, disabled: [] }
const lists = {
  ...all,
  scopes: { 'files.edit': { whitelist: ['/project/**', '#dev-*'], blacklist: ['**/.env', '**/secrets/**'] } },
}
const resultOf = (frame: Frame): Frame => (frame['result'] ?? {}) as Frame
const stateOf = (frame: Frame): Frame => resultOf(frame)['state'] as Frame

describe.each(places)('a live server on %s', place => {
  const stateless = place === 'stateless'

  it('L7.1-1: a set whose tools act in scopes says so', async () => {
    const { declared } = await hosted(place)
    const sets = declared['featureSets'] as Record<string, Frame>
    expect(sets['files.edit']).toMatchObject({ scoped: true })
    expect(sets['git.commit']).not.toHaveProperty('scoped')
  })

  it('L7.3-1, L7.4-1: outside of the whitelist it asks before it acts, with a label and a payload', async () => {
    const host = await hosted(place, { select: lists })
    const editing = host.call('edit', { path: '/etc/hosts' })
    const asked = await host.next('scope/elevate')
    expect(asked.params).toEqual({ featureSet: 'files.edit', scope: { label: '/etc/hosts', payload: { path: '/etc/hosts' } } })
    await asked.answer({ approved: true, payload: { path: '/etc/hosts', mode: 'append' } })
    expect(given(await editing)).toEqual({ edited: ['/etc/hosts'], payload: { path: '/etc/hosts', mode: 'append' } })
    expect(given(await host.call('edit', { path: '' }))).toMatchObject({ isError: true, text: expect.stringContaining('label') })
    expect(host.said).toHaveLength(1)
  })

  it('L7.4-1: what is whitelisted needs no question; what is blacklisted is asked for all the same', async () => {
    const host = await hosted(place, { select: lists })
    expect(given(await host.call('edit', { path: '/project/src/a.ts' }))).toHaveProperty('edited')
    expect(given(await host.call('edit', { path: '#dev-ops' }))).toHaveProperty('edited')
    expect(host.said).toEqual([])
    for (const path of ['/project/.env', '/project/SECRETS/a', '/project/../etc/passwd', '/project//x', '#dev-a/b']) {
      const editing = host.call('edit', { path })
      const asked = await host.next('scope/elevate')
      expect(asked.params['scope']).toMatchObject({ label: path })
      await asked.answer({ approved: false, reason: 'on the blacklist' })
      await editing
    }
  })

  it('L7.4-1: lists that the host has changed hold from the next call on', async () => {
    const host = await hosted(place, { select: lists })
    expect(given(await host.call('edit', { path: '/project/a.ts' }))).toHaveProperty('edited')
    await host.select({ ...all, scopes: { 'files.edit': { whitelist: ['/other/**'] } } })
    expect(given(await host.call('edit', { path: '/other/a.ts' }))).toHaveProperty('edited')
    expect(host.said).toEqual([])
    const editing = host.call('edit', { path: '/project/a.ts' })
    await (await host.next('scope/elevate')).answer({ approved: false, reason: 'no longer' })
    expect(given(await editing)).toMatchObject({ isError: true })
  })

  it('L7.7-1: a scope on the call that says one thing beside and another within, or has another payload, is none', async () => {
    const host = await hosted(place)
    const scope = (path: string) => ({ label: '/a', payload: { path } })
    for (const more of [
      { scope: scope('/b') },
      { scope: { label: '/a' } },
      { scope: scope('/a'), _meta: { [live]: { scope: scope('/b') } } },
    ]) {
      const editing = host.call('edit', { path: '/a' }, more)
      await (await host.next('scope/elevate')).answer({ approved: false, reason: 'no' })
      expect(given(await editing)).toMatchObject({ isError: true })
    }
  })

  it('L7.7-1: what the host has put on the call it has judged itself', async () => {
    const host = await hosted(place)
    const scope = { label: '/a', payload: { path: '/a' } }
    expect(given(await host.call('edit', { path: '/a' }, { scope }))).toHaveProperty('edited')
    expect(given(await host.call('edit', { path: '/a' }, { _meta: { [live]: { scope } } }))).toHaveProperty('edited')
    expect(host.said).toEqual([])
    host.begin('tools/call', { name: 'edit', arguments: { path: '/b' }, scope })
    await host.next('scope/elevate')
  })

  it('L7.7-2: what was not approved is not done, and the tool fails with the reason', async () => {
    const host = await hosted(place)
    const editing = host.call('edit', { path: '/etc/passwd' })
    await (await host.next('scope/elevate')).answer({ approved: false, reason: 'Not on my watch' })
    expect(given(await editing)).toEqual({
      isError: true,
      text: expect.stringMatching(/Acting on \/etc\/passwd was not approved: Not on my watch/),
    })
    const other = host.call('edit', { path: '/ok' })
    await (await host.next('scope/elevate')).answer({ approved: true })
    expect(given(await other)).toMatchObject({ edited: ['/ok'] })
    const odd = host.call('edit', { path: '/odd' })
    await (await host.next('scope/elevate')).answer({ approved: 'yes' })
    expect(given(await odd)).toMatchObject({ isError: true })
    for (const [code, message] of [
      [-32601, 'Method not found: scope/elevate'],
      [-32603, 'Internal error'],
      [-32001, 'Feature set not enabled'],
    ] as const) {
      const failing = host.call('edit', { path: '/failing' })
      await (await host.next('scope/elevate')).refuse(code, message)
      expect((await failing)['error'] ?? given(await failing)['isError']).toBeTruthy()
    }
    const last = host.call('edit', { path: '/last' })
    await (await host.next('scope/elevate')).answer({ approved: true })
    expect(given(await last)).toMatchObject({ edited: ['/ok', '/last'] })
  })

  it('L7.7-2: a plain host is asked through its user, or refused where it cannot ask', async () => {
    const plain = await hosted(place, { mcpl: false })
    expect(given(await plain.call('edit', { path: '/a' }))['text']).toMatch(
      /not approved.*supports MCP Live, or a client that can ask its user/,
    )
    const asking = await hosted(place, { mcpl: false, capabilities: { elicitation: { form: {} } } })
    /** The call of a user who answers so. */
    const edited = async (path: string, answer: Frame): Promise<Frame> => {
      if (stateless) {
        const wants = resultOf(await asking.call('edit', { path }))
        const [key = '', question] = Object.entries(wants['inputRequests'] as Record<string, Frame>)[0] ?? []
        expect(question).toMatchObject({ method: 'elicitation/create', params: { message: expect.stringContaining(path) } })
        return asking.call('edit', { path }, { inputResponses: { [key]: answer }, requestState: wants['requestState'] })
      }
      const editing = asking.call('edit', { path })
      const question = await asking.next('elicitation/create')
      expect(question.params['message']).toMatch(`Allow "files.edit" to act on ${path}`)
      await question.answer(answer)
      return editing
    }
    for (const no of [{ action: 'decline' }, { action: 'cancel' }, { action: 'accept', content: { confirm: false } }])
      expect(given(await edited('/no', no))).toMatchObject({ isError: true })
    expect(given(await edited('/a', { action: 'accept', content: { confirm: true } }))).toMatchObject({ edited: ['/a'] })
  })

  it('L8.1-1: a set says whether it goes back, and who keeps its state', async () => {
    const sets = (await hosted(place)).declared['featureSets'] as Record<string, Frame>
    expect(sets['notes.edit']).toMatchObject({ rollback: true, hostState: true })
    expect(sets['git.commit']).toMatchObject({ rollback: true })
    expect(sets['git.commit']).not.toHaveProperty('hostState')
    expect(sets['memory.retrieval']).not.toHaveProperty('rollback')
  })

  it('L8.2-1: a result that left a state names its checkpoint and what that follows, null for a root', async () => {
    const host = await hosted(place)
    const first = await host.call('commit', { message: 'one' })
    expect(stateOf(first)).toEqual({ checkpoint: 'c1', parent: null })
    const second = await host.call('commit', { message: 'two' }, { checkpoint: 'c1' })
    expect(stateOf(second)).toEqual({ checkpoint: 'c2', parent: 'c1' })
    const copied = await host.call('commit', { message: 'three' }, { _meta: { [live]: { checkpoint: 'c1' } } })
    expect(stateOf(copied)).toEqual({ checkpoint: 'c3', parent: 'c1' })
    expect(((resultOf(copied)['_meta'] as Frame)[live] as Frame)['state']).toEqual(stateOf(copied))
  })

  it('L8.3-1: where the host keeps the state, results carry it whole, or as a patch on what was given', async () => {
    const host = await hosted(place)
    const first = stateOf(await host.call('add_note', { text: 'a' }))
    expect(first).toEqual({ checkpoint: expect.any(String), parent: null, data: { notes: ['a'] } })
    const state = { notes: ['a'] }
    const told = { _meta: { [live]: { parent: first['checkpoint'] } } }
    const second = stateOf(await host.call('add_note', { text: 'b' }, { state, ...told }))
    const patch = [{ op: 'add', path: '/notes/-', value: 'b' }]
    expect(second).toEqual({ checkpoint: expect.any(String), parent: first['checkpoint'], patch })
    expect(second['checkpoint']).not.toBe(first['checkpoint'])
    const read = await host.call('count_notes', {}, { state })
    expect([given(read), stateOf(read)]).toEqual([{ count: 1 }, undefined])
  })

  it('A13: of a host that does not say where its state was, the content tells; where nothing does, the state is sent whole', async () => {
    const host = await hosted(place)
    const bare = stateless ? { _meta: { [live]: undefined } } : {}
    const first = stateOf(await host.call('add_note', { text: 'a' }, bare))
    if (!stateless) {
      const known = stateOf(await host.call('add_note', { text: 'b' }, { state: { notes: ['a'] } }))
      expect(known).toMatchObject({ parent: first['checkpoint'], patch: [{}] })
    }
    const unknown = stateOf(await host.call('add_note', { text: 'b' }, { state: { notes: ['never', 'seen'] } }))
    expect(unknown).toEqual({ checkpoint: expect.any(String), data: { notes: ['never', 'seen', 'b'] } })
  })

  it('L8.4-3: it computes from the state that it was given, not from what it remembers', async () => {
    const host = await hosted(place)
    for (const text of ['a', 'b', 'c']) await host.call('add_note', { text }, { state: { notes: [] } })
    expect(given(await host.call('count_notes'))).toEqual({ count: 0 })
    expect(given(await host.call('count_notes', {}, { state: { notes: ['x', 'y'] } }))).toEqual({ count: 2 })
    expect(given(await host.call('count_notes', {}, { _meta: { [live]: { state: { notes: ['x'] } } } }))).toEqual({ count: 1 })
  })

  it('A11: of a host that sends no state, and does not say that there is none, nothing is lost', async () => {
    const host = await hosted(place)
    const states: Frame[] = []
    for (const text of ['a', 'b', 'c']) states.push(stateOf(await host.call('add_note', { text })))
    // Without a session nobody can tell that these calls belong together.
    if (stateless) return expect(states.map(({ data }) => data)).toEqual(['a', 'b', 'c'].map(text => ({ notes: [text] })))
    expect(given(await host.call('count_notes'))).toEqual({ count: 3 })
    expect(states[1]).toEqual({
      checkpoint: expect.any(String),
      parent: states[0]?.['checkpoint'],
      data: { notes: ['a', 'b'] },
    })
    const at = states[0]?.['checkpoint']
    await host.ask('state/rollback', { featureSet: 'notes.edit', checkpoint: at })
    expect(given(await host.call('count_notes'))).toEqual({ count: 1 })
    const checkpoint = states[1]?.['checkpoint']
    expect(given(await host.call('count_notes', {}, { checkpoint }))).toEqual({ count: 2 })
    expect((await host.call('count_notes', {}, { checkpoint: 'lost' }))['error']).toMatchObject({ code: -32005 })
    expect(given(await host.call('count_notes', {}, { _meta: { [live]: { featureSet: 'notes.edit' } } }))).toEqual({ count: 0 })
    expect(given(await host.call('count_notes'))).toEqual({ count: 0 })
  })

  it('L8.6-1: a rollback is answered with its checkpoint, and with the reason where it could not be done', async () => {
    const host = await hosted(place)
    await host.call('commit', { message: 'one' })
    await host.call('commit', { message: 'pushed' }, { checkpoint: 'c1' })
    const back = (featureSet: string, checkpoint: unknown): Promise<Frame> =>
      host.ask('state/rollback', { featureSet, checkpoint })
    expect(resultOf(await back('git.commit', 'c1'))).toMatchObject({ checkpoint: 'c1', success: true })
    expect(resultOf(await back('git.commit', 'c2'))).toMatchObject({
      checkpoint: 'c2',
      success: false,
      reason: 'It was pushed already',
    })
    expect(resultOf(await back('files.edit', 'c1'))).toMatchObject({ success: false, reason: expect.any(String) })
    const { checkpoint } = stateOf(await host.call('add_note', { text: 'a' }))
    expect(resultOf(await back('notes.edit', checkpoint))).toMatchObject({ checkpoint, success: true })
  })

  it('L8.7-1: where the server keeps the state, the tool is told the checkpoint that the host is at', async () => {
    const host = await hosted(place)
    expect(given(await host.call('commit', { message: 'x' }))).toMatchObject({ on: null })
    expect(given(await host.call('commit', { message: 'y' }, { checkpoint: 'c1' }))).toMatchObject({ on: 'c1' })
  })

  it('LA-1: a tool of a set that is off is -32001 with the name of the set, an unknown set -32003, a checkpoint -32005', async () => {
    const host = await hosted(place)
    await host.select({ enabled: everySet.filter(name => name !== 'notes.edit'), disabled: ['notes.edit'] })
    const code = (legacy: number): number => (stateless ? legacy + 1000 : legacy)
    expect((await host.call('add_note', { text: 'a' }))['error']).toMatchObject({
      code: code(-32001),
      data: { featureSet: 'notes.edit' },
    })
    const rollback = async (featureSet: string) => (await host.ask('state/rollback', { featureSet, checkpoint: 'x' }))['error']
    expect(await rollback('no.such')).toMatchObject({ code: code(-32003), data: { featureSet: 'no.such' } })
    expect(await rollback('git.commit')).toMatchObject({ code: code(-32005), data: { checkpoint: 'x' } })
  })

  it('L8.8-1: an unknown checkpoint is -32005 with its name, and an unknown set -32003', async () => {
    const host = await hosted(place)
    const code = (legacy: number): number => (stateless ? legacy + 1000 : legacy)
    for (const [featureSet, checkpoint] of [
      ['git.commit', 'old'],
      ['notes.edit', 'chk_forged'],
      ['notes.edit', 'c1'],
    ])
      expect((await host.ask('state/rollback', { featureSet, checkpoint }))['error']).toMatchObject({
        code: code(-32005),
        message: 'Checkpoint not found',
        data: { checkpoint },
      })
    const unknown = await host.ask('state/rollback', { featureSet: 'no.such', checkpoint: 'x' })
    expect(unknown['error']).toMatchObject({
      code: code(-32003),
      message: 'Unknown feature set',
      data: { featureSet: 'no.such' },
    })
  })
})
