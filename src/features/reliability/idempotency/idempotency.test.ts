import { afterEach, describe, expect, it } from 'vitest'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { bodyOf, call, codeOf, replayOf, revisions, type World, world } from '../../../../test/reliability/keyed-world.ts'
import { errorOf, type Frame, resultOf, speak, textOf } from '../../../../test/spec/wire.ts'
import { type StoreKind, storeKinds, storesUnderTest } from '../../../../test/stores-under-test.ts'
import type { ServerOptions } from '../../../server/index.ts'
import { memoryStore, type Store, StoreError } from '../../../stores/index.ts'
import { idempotencyExtension } from './messages.ts'

const worlds: World[] = []
afterEach(async () => {
  for (const { server } of worlds.splice(0)) await server.close()
})

const stores = storesUnderTest()
const cells = revisions.flatMap(revision => storeKinds.map(store => [revision, store] as const))

/** `none`: the option is not given. */
function make(store: StoreKind | 'none', options: Partial<ServerOptions> = {}): World {
  const made = world({ ...(store === 'none' ? {} : { store: stores.url(store) }), ...options })
  worlds.push(made)
  return made
}

describe.each(cells)('keys at %s on %s', (revision, store) => {
  it('E5-2: a repetition gets the same result, the tool runs once, and both say so', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    const first = await wire.ask('tools/call', call('create', 'k1', { title: 'a' }))
    const second = await wire.ask('tools/call', call('create', 'k1', { title: 'a' }))
    expect(runs.get('create')).toBe(1)
    expect(bodyOf(second)).toEqual(bodyOf(first))
    const { original_timestamp } = replayOf(first)
    expect(replayOf(first)).toEqual({ idempotency_key: 'k1', was_replay: false, original_timestamp })
    expect(replayOf(second)).toEqual({ idempotency_key: 'k1', was_replay: true, original_timestamp })
  })

  it('E5-2: the time that is told is that of the first completion, not of its beginning nor of a repetition', async () => {
    const clock = stores.clock()
    const { speak, open, waiting } = make(store, { store: await stores.urlOn(store, clock), clock })
    const wire = await speak(revision)
    const first = wire.ask('tools/call', call('gate', 'k'))
    await waiting(1)
    await clock.advance(3_000)
    const ended = new Date(clock.now()).toISOString()
    open()
    expect(replayOf(await first)['original_timestamp']).toBe(ended)
    await clock.advance(3_000)
    expect(replayOf(await wire.ask('tools/call', call('gate', 'k')))).toMatchObject({
      was_replay: true,
      original_timestamp: ended,
    })
  })

  it('E5-1: what does not count for the fingerprint makes no other call; the order of members does not count either', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    await wire.ask('tools/call', { ...call('create', 'k', { title: 'a', x: { b: 1, c: 2 } }) })
    const other = call('create', 'k', { x: { c: 2, b: 1 }, title: 'a' })
    const again = await wire.ask('tools/call', { ...other, _meta: { ...(other['_meta'] as Frame), 'example.com/x': 1 } })
    expect([runs.get('create'), replayOf(again)['was_replay']]).toEqual([1, true])
  })

  it('E5-1, E5-3: the same key with other arguments, for another tool or in another transaction is a conflict', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    await wire.ask('tools/call', call('create', 'k', { title: 'a' }))
    const inside = call('create', 'k', { title: 'a' })
    const transacted = {
      ...inside,
      _meta: { ...(inside['_meta'] as Frame), 'dev.vivarium/transactions': { transaction_id: 't' } },
    }
    for (const params of [call('create', 'k', { title: 'b' }), call('say', 'k'), transacted]) {
      const answer = await wire.ask('tools/call', params)
      expect([codeOf(answer), resultOf(answer)['isError']]).toEqual(['IDEMPOTENCY_CONFLICT', true])
      expect((resultOf(answer)['_meta'] as Frame)['dev.vivarium/problem']).toMatchObject({ category: 'invalid_input' })
    }
    expect([runs.get('create'), runs.get('say')]).toEqual([1, undefined])
  })

  it('E5-1: another principal has keys of their own', async () => {
    const { speak, runs } = make(store)
    const [ann, bob] = [await speak(revision, { principal: 'ann' }), await speak(revision, { principal: 'bob' })]
    await ann.ask('tools/call', call('say', 'k'))
    expect(replayOf(await bob.ask('tools/call', call('say', 'k')))['was_replay']).toBe(false)
    expect(runs.get('say')).toBe(2)
  })

  it('E5-4: who comes while it runs joins it', async () => {
    const { speak, runs, open, waiting } = make(store)
    const [one, two] = [await speak(revision), await speak(revision)]
    const first = one.ask('tools/call', call('gate', 'k'))
    await waiting(1)
    const joined = [one.ask('tools/call', call('gate', 'k')), two.ask('tools/call', call('gate', 'k'))]
    open()
    const answers = await Promise.all([first, ...joined])
    expect(answers.map(textOf)).toEqual(['passed 1', 'passed 1', 'passed 1'])
    expect(answers.map(answer => replayOf(answer)['was_replay'])).toEqual([false, true, true])
    expect(runs.get('gate')).toBe(1)
  })

  it('E5-4: who joins for too long is told to come again', async () => {
    const { speak, open, waiting } = make(store, { idempotency: { join: 1 } })
    const wire = await speak(revision)
    const first = wire.ask('tools/call', call('gate', 'k'))
    await waiting(1)
    const late = await wire.ask('tools/call', call('gate', 'k'))
    expect((resultOf(late)['_meta'] as Frame)['dev.vivarium/problem']).toMatchObject({
      code: 'IDEMPOTENCY_IN_PROGRESS',
      category: 'transient',
      retry_after_seconds: 1,
    })
    open()
    expect(textOf(await first)).toBe('passed 1')
  })

  it.each([
    ['a permanent problem', 'fail', { code: 'GONE' }, true],
    ['an input that its handler refuses', 'fail', { code: 'INVALID_INPUT' }, true],
    ['an exception', 'break', {}, true],
    ['a passing failure', 'fail', { code: 'SERVER_UNAVAILABLE' }, false],
    ['a limit', 'fail', { code: 'RATE_LIMIT_EXCEEDED' }, false],
    ['a missing right', 'fail', { code: 'SCOPE_INSUFFICIENT' }, false],
  ])('E5-5: %s of a handler', async (_, tool, args, stored) => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    const answers = [await wire.ask('tools/call', call(tool, 'k', args)), await wire.ask('tools/call', call(tool, 'k', args))]
    expect(runs.get(tool)).toBe(stored ? 1 : 2)
    expect(answers.map(codeOf)).toEqual([codeOf(answers[0] as Frame), codeOf(answers[0] as Frame)])
    expect(answers.map(answer => resultOf(answer)['isError'])).toEqual([true, true])
    if (stored) expect(bodyOf(answers[1] as Frame)).toEqual(bodyOf(answers[0] as Frame))
  })

  it('E5-5: what is refused before it begins leaves the key free', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    const refused = await wire.ask('tools/call', call('create', 'k', {}))
    expect(resultOf(refused)['isError']).toBe(true)
    expect(replayOf(await wire.ask('tools/call', call('create', 'k', { title: 'a' })))['was_replay']).toBe(false)
    expect(runs.get('create')).toBe(1)
  })

  it('E5-6: a call that ran out of time is not made again, and its status can be asked for', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    expect(codeOf(await wire.ask('tools/call', call('late', 'k')))).toBe('OPERATION_TIMEOUT')
    const again = await wire.ask('tools/call', call('late', 'k'))
    expect([codeOf(again), runs.get('late')]).toEqual(['OUTCOME_UNKNOWN', 1])
    expect(textOf(again)).toMatch(/outcome is unknown: Tool late took longer than its timeout of \d+ ms/)
    expect(resultOf(await wire.ask('idempotency/get', { idempotency_key: 'k' }))).toMatchObject({
      idempotency_key: 'k',
      status: 'indeterminate',
      tool: 'late',
    })
    expect(resultOf(await wire.ask('idempotency/get', { idempotency_key: 'other' }))).toMatchObject({ status: 'unknown' })
  })

  it('E5-6: a tool that is declared idempotent is run again', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    expect(codeOf(await wire.ask('tools/call', call('again', 'k')))).toBe('OPERATION_TIMEOUT')
    const again = await wire.ask('tools/call', call('again', 'k'))
    expect([textOf(again), runs.get('again')]).toEqual(['done at last', 2])
    expect(replayOf(await wire.ask('tools/call', call('again', 'k')))['was_replay']).toBe(true)
  })

  it('E5-7: the time a key is kept is the server’s to limit, and after it the key is fresh', async () => {
    const clock = stores.clock()
    const url = await stores.urlOn(store, clock)
    const { speak, runs } = make(store, { store: url, clock, idempotency: { maxTtl: '10s' } })
    const wire = await speak(revision)
    const long = call('say', 'k', {}, { idempotency_ttl_seconds: 3600 })
    await wire.ask('tools/call', long)
    await clock.advance(9_999)
    expect(textOf(await wire.ask('tools/call', long))).toBe('said 1')
    await clock.advance(1)
    expect(textOf(await wire.ask('tools/call', long))).toBe('said 2')
    expect(runs.get('say')).toBe(2)
  })

  it('E5-7: a store full of calls that run refuses more, and runs nothing; of those that ended none goes before its time', async () => {
    const { speak, open, waiting, runs } = make(store, { idempotency: { records: 4 } })
    const wire = await speak(revision)
    const running = [wire.ask('tools/call', call('gate', 'k1')), wire.ask('tools/call', call('gate', 'k2'))]
    await waiting(2)
    expect(codeOf(await wire.ask('tools/call', call('create', 'k3', { title: 'a' })))).toBe('SERVER_UNAVAILABLE')
    open()
    await Promise.all(running)
    const refused = await wire.ask('tools/call', call('create', 'k3', { title: 'a' }))
    expect(codeOf(refused)).toBe('QUOTA_EXHAUSTED')
    expect(runs.get('create')).toBeUndefined()
    expect(replayOf(await wire.ask('tools/call', call('gate', 'k1')))['was_replay']).toBe(true)
  })

  it('E5-8: a key or a time that can be none is refused, and nothing runs', async () => {
    const { speak, runs } = make(store)
    const wire = await speak(revision)
    const codes: number[] = []
    for (const key of ['', 'a b', 'ä', 'x'.repeat(129), 7, null, undefined]) {
      const meta = { [idempotencyExtension]: { idempotency_key: key } }
      codes.push(errorOf(await wire.ask('tools/call', { name: 'say', _meta: meta })).code)
    }
    for (const seconds of [0, -1, 1.5, '1'])
      codes.push(errorOf(await wire.ask('tools/call', call('say', 'k', {}, { idempotency_ttl_seconds: seconds }))).code)
    expect(codes).toEqual(Array.from({ length: 11 }, () => -32602))
    expect(runs.get('say')).toBeUndefined()
  })

  it('E5-9, X1: who may no longer do it gets no replay of it', async () => {
    const made = make(store)
    let allowed = true
    made.server.use((incoming, next) => {
      if (incoming.method === 'tools/call' && !allowed) throw incoming.context.problem('SCOPE_INSUFFICIENT', 'Not any more')
      return next(incoming)
    })
    const wire = await made.speak(revision)
    await wire.ask('tools/call', call('say', 'k'))
    allowed = false
    expect(codeOf(await wire.ask('tools/call', call('say', 'k')))).toBe('SCOPE_INSUFFICIENT')
  })

  it('E5-10, X2: the question of a call is not its result; with the answer the same call goes on, and is asked once', async () => {
    const { speak, runs } = make(store)
    let asked = 0
    const accept = (): Frame => {
      asked++
      return { action: 'accept', content: { confirm: true } }
    }
    const answers = { 'elicitation/create': accept }
    const wire = await speak(revision, { answers })
    let answer = await wire.ask('tools/call', call('ask', 'k'))
    if (revision === '2026-07-28') {
      const { requestState } = resultOf(answer)
      const before = resultOf(await wire.ask('idempotency/get', { idempotency_key: 'k' }))
      expect(before).toMatchObject({ status: 'waiting' })
      const inputResponses = { 'elicit-1': { action: 'accept', content: { confirm: true } } }
      // Without the key: the state tells whose it is.
      answer = await wire.ask('tools/call', { ...call('ask', undefined), requestState, inputResponses })
      asked++
      const after = resultOf(await wire.ask('idempotency/get', { idempotency_key: 'k' }))
      expect(after).toMatchObject({ status: 'done', started_at: before['started_at'] })
    }
    expect([textOf(answer), replayOf(answer)['was_replay']]).toEqual(['true 1', false])
    const again = await wire.ask('tools/call', call('ask', 'k'))
    expect([textOf(again), replayOf(again)['was_replay'], asked, runs.get('ask')]).toEqual(['true 1', true, 1, 1])
  })

  it('a result whose schema is of no object is the same again on every wire', async () => {
    const { speak } = make(store)
    const wire = await speak(revision)
    const first = await wire.ask('tools/call', call('find', 'k'))
    expect(bodyOf(await wire.ask('tools/call', call('find', 'k')))).toEqual(bodyOf(first))
    expect(bodyOf(first)['structuredContent']).toEqual(revision === '2025-11-25' ? { result: { found: 1 } } : { found: 1 })
  })

  it('a result that is too long to be kept is not made again', async () => {
    const { speak, runs } = make(store, { idempotency: { resultLength: 10 } })
    const wire = await speak(revision)
    expect(textOf(await wire.ask('tools/call', call('say', 'k')))).toBe('said 1')
    expect([codeOf(await wire.ask('tools/call', call('say', 'k'))), runs.get('say')]).toEqual(['PAYLOAD_TOO_LARGE', 1])
  })
})

it('a result is kept as far as the share reaches when the call ends, not when it began', async () => {
  const { server, speak } = make('memory', { idempotency: { length: 1_000_000 }, limits: { rates: false } })
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  server.tool('slow', {}, async () => {
    await opened
    return 'x'.repeat(200_000)
  })
  server.tool('large', {}, () => 'x'.repeat(100_000))
  const wire = await speak('2026-07-28')
  const slow = wire.ask('tools/call', call('slow', 'slow'))
  for (let n = 0; n < 8; n++) await wire.ask('tools/call', call('large', `large-${n}`))
  open()
  expect(textOf(await slow)).toHaveLength(200_000)
  expect(codeOf(await wire.ask('tools/call', call('slow', 'slow')))).toBe('PAYLOAD_TOO_LARGE')
})

describe('what a server tells of keys', () => {
  it('C4: peers that did not declare them get no word of them, but their keys count', async () => {
    const { server, runs } = make('memory')
    const wire = await speak(server, '2026-07-28')
    const answers = [await wire.ask('tools/call', call('say', 'k')), await wire.ask('tools/call', call('say', 'k'))]
    expect(answers.map(textOf)).toEqual(['said 1', 'said 1'])
    expect(JSON.stringify(answers)).not.toContain(idempotencyExtension)
    expect(runs.get('say')).toBe(1)
    expect(errorOf(await wire.ask('idempotency/get', { idempotency_key: 'k' }))).toMatchObject({ code: -32021 })
  })

  it('is declared where a store was given, and only there', async () => {
    const declares = async (store: StoreKind | 'none'): Promise<boolean> => {
      const made = make(store)
      const wire = await made.speak('2026-07-28')
      return JSON.stringify(resultOf(await wire.ask('server/discover'))).includes(idempotencyExtension)
    }
    expect([await declares('memory'), await declares('none')]).toEqual([true, false])
  })

  it('of a tool is a hint that follows from its being idempotent, unless its author says otherwise', async () => {
    const { server, speak } = make('memory')
    server.tool('said', { idempotent: true, annotations: { idempotentHint: false, title: 'x' } }, () => '')
    const wire = await speak('2025-11-25')
    const tools = resultOf(await wire.ask('tools/list'))['tools'] as readonly Frame[]
    const hint = (name: string): unknown => tools.find(tool => tool['name'] === name)?.['annotations']
    expect([hint('again'), hint('say'), hint('said')]).toEqual([
      { idempotentHint: true },
      undefined,
      { idempotentHint: false, title: 'x' },
    ])
  })
})

it('E5-6: two executions never overlap, even where the first was given up', async () => {
  const made = make('memory', { idempotency: { join: 5_000 } })
  let running = 0
  let most = 0
  let first = true
  const { promise, resolve } = Promise.withResolvers<void>()
  made.server.tool('stubborn', { timeout: '10ms', idempotent: true }, async () => {
    most = Math.max(most, ++running)
    if (first) {
      first = false
      await promise
    }
    running--
    return 'done'
  })
  const wire = await made.speak('2026-07-28')
  expect(codeOf(await wire.ask('tools/call', call('stubborn', 'k')))).toBe('OPERATION_TIMEOUT')
  const again = wire.ask('tools/call', call('stubborn', 'k'))
  await wire.quiet()
  expect(running).toBe(1)
  resolve()
  expect(textOf(await again)).toBe('done')
  expect(most).toBe(1)
})

/** A store in memory of which some is otherwise. */
function storeWith(other: Partial<Store>, kept = memoryStore()): Store {
  return {
    get: key => kept.get(key),
    scan: (prefix, options) => kept.scan(prefix, options),
    read: (log, options) => kept.read(log, options),
    commit: ops => kept.commit(ops),
    watch: (prefixes, signal) => kept.watch(prefixes, signal),
    close: () => kept.close(),
    ...other,
  }
}

describe.each(revisions)('a store that fails, at %s', revision => {
  it('E5-7: means that nothing runs, and that the caller may come again', async () => {
    const store = storeWith({ commit: () => Promise.reject(new StoreError('failed', 'The disk is full')) })
    const made = world({ store })
    worlds.push(made)
    const wire = await made.speak(revision)
    const answer = await wire.ask('tools/call', call('say', 'k'))
    expect([codeOf(answer), made.runs.get('say')]).toEqual(['SERVER_UNAVAILABLE', undefined])
    expect(JSON.stringify(answer)).not.toContain('disk')
  })

  it('C6: fails a method of an extension with −31000 and the problem as data', async () => {
    const store = storeWith({ get: () => Promise.reject(new StoreError('failed', 'The disk is full')) })
    const made = world({ store })
    worlds.push(made)
    const wire = await made.speak(revision)
    const { code, data } = errorOf(await wire.ask('idempotency/get', { idempotency_key: 'k' }))
    expect([code, data?.['code'], data?.['category']]).toEqual([-31000, 'SERVER_UNAVAILABLE', 'transient'])
    expectFits(data, 'error.schema.json')
  })

  it('E5-6: after the effect tells the outcome to its caller, and to whoever repeats it once the store is back', async () => {
    const kept = memoryStore()
    let fails = false
    const commit: Store['commit'] = ops => (fails ? Promise.reject(new StoreError('failed', 'x')) : kept.commit(ops))
    const made = world({ store: storeWith({ commit }, kept) })
    worlds.push(made)
    made.server.tool('last', {}, () => {
      fails = true
      return 'done'
    })
    const wire = await made.speak(revision)
    expect(textOf(await wire.ask('tools/call', call('last', 'k')))).toBe('done')
    expect(codeOf(await wire.ask('tools/call', call('last', 'k')))).toBe('SERVER_UNAVAILABLE')
    fails = false
    const again = await wire.ask('tools/call', call('last', 'k'))
    expect([textOf(again), replayOf(again)['was_replay']]).toEqual(['done', true])
  })
})
