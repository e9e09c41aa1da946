import { afterEach, describe, expect, it } from 'vitest'
import { consentWorld, metaIn, permissions, places, problems } from '../../../../test/spec/consent.ts'
import { errorOf, type Frame, type PeerOptions, resultOf, speak, textOf, type Wire } from '../../../../test/spec/wire.ts'
import type { StoreKind } from '../../../../test/stores-under-test.ts'
import { jsonSchema } from '../../../core/schema/index.ts'
import type { PermissionsOptions, Server } from '../../../server/index.ts'

const world = consentWorld()
let ran: string[] = []
afterEach(async () => {
  ran = []
  await world.close()
})

const capabilities = { extensions: { [permissions]: {}, [problems]: {} } }
const knows: PeerOptions = { capabilities }
const all = { grant: ({ scopes }: { scopes: readonly string[] }) => scopes }

function tracker(kind: StoreKind, options: PermissionsOptions = all): Server {
  const server = world.serve(kind, { permissions: options })
  const run = (name: string) => () => ran.push(name) && name
  const input = jsonSchema({ type: 'object' })
  server.tool('read', {}, run('read'))
  server.tool('write', { scopes: ['tickets:read', 'tickets:write'] }, run('write'))
  const scopesFor = ({ of }: Frame) => {
    if (of === 'broken') throw new Error('The directory is down')
    return of === 'others' ? ['tickets:admin'] : []
  }
  server.tool('close', { input, scopes: ['tickets:write'], scopesFor }, run('close'))
  server.resource('note://1', { name: 'note', scopes: ['notes'] }, () => 'text')
  return server
}

const call = (name: string, token?: unknown, args: Frame = {}) => ({
  name,
  arguments: args,
  ...(token === undefined ? {} : { _meta: { [permissions]: { session_token: token } } }),
})
const check = (params: Frame, token?: unknown) => ({
  ...params,
  ...(token === undefined ? {} : { _meta: { [permissions]: { session_token: token } } }),
})

async function negotiate(wire: Wire, scopes: readonly string[], more: Frame = {}): Promise<Frame> {
  return resultOf(await wire.ask('permissions/negotiate', { requested_scopes: scopes, ...more }))
}
async function tokenFor(wire: Wire, scopes: readonly string[], more: Frame = {}): Promise<unknown> {
  return ((await negotiate(wire, scopes, more))['session'] as Frame)['token']
}
const problemOf = (frame: Frame): Frame => metaIn(frame, problems)
const both = ['tickets:read', 'tickets:write']

describe.each(places)('at %s on %s', (revision, kind) => {
  it('E4-3: a call without its scopes names all that are missing at once, and nothing runs', async () => {
    const wire = await speak(tracker(kind), revision, knows)
    const refused = await wire.ask('tools/call', call('write'))
    expect(resultOf(refused)['isError']).toBe(true)
    expect(problemOf(refused)).toMatchObject({
      code: 'SCOPE_INSUFFICIENT',
      category: 'auth_required',
      user_actionable: true,
      details: { missing_scopes: both },
    })
    const half = await tokenFor(wire, ['tickets:read', 'other'])
    expect(problemOf(await wire.ask('tools/call', call('write', half)))).toMatchObject({
      details: { missing_scopes: ['tickets:write'] },
    })
    expect(ran).toEqual([])
    expect(textOf(await wire.ask('tools/call', call('read')))).toBe('read')
  })

  it('E4-3: a tool that needs many scopes is called by what was granted, and one that needs too many is refused at once', async () => {
    const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `scope:${at}`)
    const server = world.serve(kind, { permissions: { grant: ({ scopes }) => scopes } })
    server.tool('much', { scopes: many(64) }, () => 'done')
    server.tool(
      'varied',
      { input: jsonSchema({ type: 'object' }), scopes: many(2), scopesFor: ({ count }) => many(Number(count)) },
      () => 'done',
    )
    const wire = await speak(server, revision, { capabilities })
    const granted = resultOf(await wire.ask('permissions/negotiate', { requested_scopes: many(64) }))
    const _meta = { [permissions]: { session_token: (granted['session'] as Frame)['token'] } }
    const called = async (name: string, args: Frame = {}) =>
      resultOf(await wire.ask('tools/call', { name, arguments: args, _meta }))
    expect((await called('much'))['isError']).toBeUndefined()
    expect((await called('varied', { count: 64 }))['isError']).toBeUndefined()
    expect((await called('varied', { count: 65 }))['isError']).toBe(true)
    expect(() => server.tool('more', { scopes: many(65) }, () => '')).toThrow('there are 65 scopes; the limit is 64')
  })

  it('E4-4, X10: a negotiation that there is no room for leaves nothing behind', async () => {
    const server = world.serve(kind, { permissions: { grant: ({ scopes }) => scopes } })
    server.tool('any', { scopes: ['a'] }, () => '')
    const wire = await speak(server, revision, { capabilities })
    const ask = (count: number) =>
      wire.ask('permissions/negotiate', { requested_scopes: Array.from({ length: count }, (_, at) => `s${at}`) })
    for (let at = 0; at < 15; at++) resultOf(await ask(64))
    for (let at = 0; at < 3; at++) expect(errorOf(await ask(64)).data?.['code']).toBe('QUOTA_EXHAUSTED')
    // Of a thousand, 15 times 64 scopes and their sessions are taken.
    resultOf(await ask(24))
    expect(errorOf(await ask(1)).data?.['code']).toBe('QUOTA_EXHAUSTED')
    expect(await server.permissions.sessions()).toHaveLength(16)
  })

  it.each([true, false])(
    'E4-3: a call that was on its way before the first scopes were declared needs them (grants: %s)',
    async grants => {
      const server = world.serve(kind, grants ? { permissions: all } : {})
      const tool = server.tool('wipe', {}, () => ran.push('wipe') && 'wiped')
      const [entered, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      server.use(async (incoming, next) => {
        if (incoming.method === 'tools/call') {
          entered.resolve()
          await gate.promise
        }
        return next(incoming)
      })
      const wire = await speak(server, revision, { ...knows, principal: 'ann', scopes: [] })
      const answer = wire.ask('tools/call', { name: 'wipe' })
      await entered.promise
      tool.update({ scopes: ['tickets:admin'] })
      gate.resolve()
      const refused = await answer
      expect(JSON.stringify(refused)).toContain('SCOPE_INSUFFICIENT')
      expect(ran).toEqual([])
    },
  )

  it('E4-3: a peer that knows nothing of this is refused in words', async () => {
    const wire = await speak(tracker(kind), revision)
    expect(textOf(await wire.ask('tools/call', call('write')))).toContain('tickets:write')
  })

  it('E4-4: a part is granted, and every other scope is denied with a reason', async () => {
    const server = tracker(kind, { grant: () => ({ scopes: ['tickets:read', 'unasked'], reasons: { admin: 'Ask Ada' } }) })
    const wire = await speak(server, revision, knows)
    const answer = await negotiate(wire, ['tickets:read', 'admin', 'tickets:write', 'a*'])
    expect(answer).toMatchObject({
      granted_scopes: ['tickets:read'],
      denied_scopes: [
        { scope: 'admin', reason: 'Ask Ada' },
        { scope: 'tickets:write', reason: expect.any(String) },
        { scope: 'a*', reason: expect.any(String) },
      ],
      session: { token: expect.any(String), scopes: ['tickets:read'], inactivity_timeout_seconds: 900 },
    })
    expect(await negotiate(wire, ['admin'])).not.toHaveProperty('session')
  })

  it('E4-4: a token is granted no more than it has, whatever the author says', async () => {
    const wire = await speak(tracker(kind), revision, { ...knows, principal: 'ada', scopes: ['tickets:read'] })
    expect(await negotiate(wire, both)).toMatchObject({
      granted_scopes: ['tickets:read'],
      denied_scopes: [{ scope: 'tickets:write', reason: 'The access token does not have this scope' }],
    })
  })

  it('E4-5: what is granted lasts no longer than was asked for', async () => {
    const wire = await speak(tracker(kind, { ...all, ttl: '1h' }), revision, knows)
    const endOf = async (seconds: number) => {
      const { session } = await negotiate(wire, both, { ttl_seconds: seconds })
      return Math.round((Date.parse((session as Frame)['expires_at'] as string) - world.clock.now()) / 1000)
    }
    expect(await endOf(60)).toBeLessThanOrEqual(60)
    expect(await endOf(86_400)).toBeLessThanOrEqual(3600)
    const token = await tokenFor(wire, both, { ttl_seconds: 60 })
    expect(textOf(await wire.ask('tools/call', call('write', token)))).toBe('write')
    await world.clock.forward(61_000)
    expect(problemOf(await wire.ask('tools/call', call('write', token)))['code']).toBe('SCOPE_INSUFFICIENT')
  })

  it('E4-5: it ends when it is not used, use moves that end, but never past the last', async () => {
    const wire = await speak(tracker(kind, { ...all, ttl: '25m', idle: '10m' }), revision, knows)
    const token = await tokenFor(wire, both)
    const codes = []
    for (const minutes of [9, 9]) {
      await world.clock.forward(minutes * 60_000)
      codes.push(problemOf(await wire.ask('tools/call', call('write', token)))['code'])
    }
    await world.clock.forward(8 * 60_000)
    codes.push(problemOf(await wire.ask('tools/call', call('write', token)))['code'])
    expect(codes).toEqual([undefined, undefined, 'SCOPE_INSUFFICIENT'])
    const idle = await tokenFor(wire, both)
    await world.clock.forward(11 * 60_000)
    expect(problemOf(await wire.ask('tools/call', call('write', idle)))['code']).toBe('SCOPE_INSUFFICIENT')
  })

  it('E4-1: a check has no effect and says what the call gets, arguments included', async () => {
    const wire = await speak(tracker(kind), revision, knows)
    const token = await tokenFor(wire, ['tickets:write'])
    for (const [name, args] of [
      ['read', {}],
      ['write', {}],
      ['close', {}],
      ['close', { of: 'others' }],
      ['close', { of: 'broken' }],
    ] as const) {
      for (const held of [token, undefined]) {
        const params = { tool: name, parameters: args, scopes_held: ['tickets:admin', ...both] }
        const before = ran.length
        const said = resultOf(await wire.ask('permissions/check', check(params, held)))
        expect(ran.length).toBe(before)
        const done = await wire.ask('tools/call', call(name, held, args))
        expect(said['allowed']).toBe(resultOf(done)['isError'] !== true)
        expect(said['missing_scopes']).toEqual((problemOf(done)['details'] as Frame | undefined)?.['missing_scopes'])
      }
    }
    expect(ran).toEqual(['read', 'read', 'close'])
  })

  it('E4-1: a check is no use: it keeps no grant alive, and takes nothing of a quota or a rate', async () => {
    const server = tracker(kind, { ...all, ttl: '1h', idle: '10m' })
    server.tool('scarce', { scopes: ['tickets:write'], quota: { calls: 1, per: '1h' } }, () => ran.push('scarce') && 'scarce')
    server.tool('rare', { scopes: ['tickets:write'], rate: { perSecond: 0.001, burst: 1 } }, () => ran.push('rare') && 'rare')
    const wire = await speak(server, revision, knows)
    const token = await tokenFor(wire, both)
    const allowed = async (tool: string): Promise<unknown> =>
      resultOf(await wire.ask('permissions/check', check({ tool }, token)))['allowed']
    for (const tool of ['scarce', 'rare']) for (let turn = 0; turn < 3; turn++) expect(await allowed(tool)).toBe(true)
    for (const tool of ['scarce', 'rare']) expect(textOf(await wire.ask('tools/call', call(tool, token)))).toBe(tool)
    for (const minutes of [4, 5]) {
      await world.clock.forward(minutes * 60_000)
      expect(await allowed('write')).toBe(true)
    }
    await world.clock.forward(2 * 60_000)
    expect(await allowed('write')).toBe(false)
    expect(problemOf(await wire.ask('tools/call', call('write', token)))['code']).toBe('SCOPE_INSUFFICIENT')
    expect(ran).toEqual(['scarce', 'rare'])
  })

  it('E4-1: many checks are answered in their order', async () => {
    const wire = await speak(tracker(kind), revision, knows)
    const token = await tokenFor(wire, both)
    const checks = [{ tool: 'write' }, { tool: 'close', parameters: { of: 'others' } }, { tool: 'nothing' }]
    const { checks: answers } = resultOf(await wire.ask('permissions/check', check({ checks }, token)))
    expect(answers).toMatchObject([{ allowed: true }, { allowed: false, missing_scopes: ['tickets:admin'] }, { allowed: false }])
  })

  it('E4-2: an unknown tool is not allowed, without missing scopes, and the call itself is an error', async () => {
    const wire = await speak(tracker(kind), revision, knows)
    const answer = resultOf(await wire.ask('permissions/check', { tool: 'nothing' }))
    expect(answer).toMatchObject({ allowed: false, reason: 'There is no tool "nothing"' })
    expect(answer).not.toHaveProperty('missing_scopes')
    expect(errorOf(await wire.ask('tools/call', call('nothing'))).code).toBe(-32602)
  })

  it('E4-6: revocation holds for the next decision', async () => {
    const server = tracker(kind)
    const wire = await speak(server, revision, knows)
    const token = await tokenFor(wire, both)
    const [held] = await server.permissions.sessions()
    expect(held).toMatchObject({ scopes: expect.arrayContaining(both), expires: expect.any(Number) })
    expect(textOf(await wire.ask('tools/call', call('write', token)))).toBe('write')
    expect(await server.permissions.revoke(held?.session ?? '')).toBe(true)
    expect(problemOf(await wire.ask('tools/call', call('write', token)))['code']).toBe('SCOPE_INSUFFICIENT')
    expect([await server.permissions.revoke(held?.session ?? ''), await server.permissions.sessions()]).toEqual([false, []])
  })

  it('E4-6 X6: the result of a call that is under way when its grant ends is withheld', async () => {
    const server = tracker(kind)
    server.tool('slow', { scopes: ['tickets:read'] }, async () => {
      for (const { session } of await server.permissions.sessions()) await server.permissions.revoke(session)
      return 'a secret'
    })
    const wire = await speak(server, revision, knows)
    const answer = await wire.ask('tools/call', call('slow', await tokenFor(wire, both)))
    expect(problemOf(answer)).toMatchObject({ code: 'SCOPE_INSUFFICIENT', details: { executed: true } })
    expect(JSON.stringify(answer)).not.toContain('a secret')
  })

  it('X6: the result of a task whose grant ended before it is withheld too', async () => {
    const server = tracker(kind)
    server.tool('long', { scopes: ['tickets:read'], task: 'required' }, async () => {
      for (const { session } of await server.permissions.sessions()) await server.permissions.revoke(session)
      return 'a secret'
    })
    const tasks = { 'io.modelcontextprotocol/tasks': {} }
    const wire = await speak(server, revision, { capabilities: { extensions: { ...capabilities.extensions, ...tasks } } })
    const token = await tokenFor(wire, both)
    const core = revision === '2025-11-25'
    const made = resultOf(await wire.ask('tools/call', { ...call('long', token), ...(core ? { task: {} } : {}) }))
    const taskId = ((made['task'] ?? made) as Frame)['taskId']
    let end: Frame = {}
    while (end['status'] === undefined || end['status'] === 'working') {
      await new Promise<void>(resolve => setImmediate(() => resolve()))
      end = resultOf(await wire.ask('tasks/get', { taskId }))
    }
    const last = core ? resultOf(await wire.ask('tasks/result', { taskId })) : (end['result'] as Frame)
    expect(last['isError']).toBe(true)
    expect(JSON.stringify(wire.heard)).not.toContain('a secret')
  })

  it("E4-7: another principal's token is as unknown as one that never was", async () => {
    const server = tracker(kind)
    const ada = await speak(server, revision, { ...knows, principal: 'ada' })
    const eve = await speak(server, revision, { ...knows, principal: 'eve' })
    const token = await tokenFor(ada, both)
    const stolen = resultOf(await eve.ask('tools/call', call('write', token)))
    const made = resultOf(await eve.ask('tools/call', call('write', 'AAAA')))
    expect(stolen).toEqual(made)
    expect(resultOf(await eve.ask('permissions/check', check({ tool: 'write' }, token)))).toEqual(
      resultOf(await eve.ask('permissions/check', check({ tool: 'write' }, 'AAAA'))),
    )
    expect(textOf(await ada.ask('tools/call', call('write', token)))).toBe('write')
    expect(ran).toEqual(['write'])
  })

  it('E4-8: what cannot be evaluated is not allowed', async () => {
    const wire = await speak(tracker(kind), revision, knows)
    const token = await tokenFor(wire, both)
    const answer = resultOf(await wire.ask('permissions/check', check({ tool: 'close', parameters: { of: 'broken' } }, token)))
    expect(answer).toEqual({ ...answer, allowed: false, reason: expect.stringContaining('evaluation_error') })
    const refused = await wire.ask('tools/call', call('close', token, { of: 'broken' }))
    expect(problemOf(refused)).toMatchObject({ code: 'PERMISSION_DENIED', details: { reason: 'evaluation_error' } })
    expect(JSON.stringify([answer, refused])).not.toContain('directory')
    expect(ran).toEqual([])
  })

  it('E4-9: tools are listed whatever the caller may, with what they need', async () => {
    const wire = await speak(tracker(kind), revision, knows)
    const tools = resultOf(await wire.ask('tools/list'))['tools'] as Frame[]
    const needs = tools.map(tool => [tool['name'], (tool['_meta'] as Frame | undefined)?.[permissions]])
    expect(needs).toEqual([
      ['read', undefined],
      ['write', { required_scopes: both }],
      ['close', { required_scopes: ['tickets:write'] }],
    ])
  })

  it('E4-9: with the option lists show each caller what it may use, and nobody else gets its list', async () => {
    const server = tracker(kind, { ...all, hide: true })
    server.prompt('secret', { scopes: ['notes'] }, () => 'hush')
    server.resource('note://x/{id}', { name: 'notes', scopes: ['notes'] }, () => 'text')
    const ada = await speak(server, revision, { ...knows, principal: 'ada', scopes: [...both, 'notes'] })
    const eve = await speak(server, revision, { ...knows, principal: 'eve' })
    const names = async (wire: Wire, method: string, member: string, token?: unknown) => {
      const result = resultOf(await wire.ask(method, check({}, token)))
      expect(result['cacheScope']).toBe(revision === '2026-07-28' ? 'private' : undefined)
      return (result[member] as Frame[]).map(({ name }) => name)
    }
    const token = await tokenFor(eve, ['tickets:write'])
    const narrow = await tokenFor(ada, ['tickets:read'])
    for (let round = 0; round < 2; round++) {
      expect(await names(ada, 'tools/list', 'tools')).toEqual(['read', 'write', 'close'])
      expect(await names(ada, 'tools/list', 'tools', narrow)).toEqual(['read'])
      expect(await names(eve, 'tools/list', 'tools')).toEqual(['read'])
      expect(await names(eve, 'tools/list', 'tools', token)).toEqual(['read', 'close'])
      for (const [method, member, name] of [
        ['prompts/list', 'prompts', 'secret'],
        ['resources/list', 'resources', 'note'],
        ['resources/templates/list', 'resourceTemplates', 'notes'],
      ] as const) {
        expect(await names(ada, method, member)).toEqual([name])
        expect(await names(eve, method, member)).toEqual([])
      }
    }
    await server.permissions.revoke((await server.permissions.sessions('eve'))[0]?.session ?? '')
    expect(await names(eve, 'tools/list', 'tools', token)).toEqual(['read'])
  })

  it('rights are those of the token and of the grant together', async () => {
    const server = tracker(kind)
    const ada = await speak(server, revision, { ...knows, principal: 'ada', scopes: [...both, 'notes'] })
    expect(textOf(await ada.ask('tools/call', call('write')))).toBe('write')
    const narrow = await tokenFor(ada, ['tickets:read'])
    expect(problemOf(await ada.ask('tools/call', call('write', narrow)))).toMatchObject({
      details: { missing_scopes: ['tickets:write'] },
    })
    const read = { uri: 'note://1', _meta: { [permissions]: { session_token: narrow } } }
    expect(errorOf(await ada.ask('resources/read', read)).data).toMatchObject({ missing_scopes: ['notes'] })
    expect(resultOf(await ada.ask('resources/read', { uri: 'note://1' }))['contents']).toHaveLength(1)
  })

  it('E4-3: a token that is too short is asked for more, also where a grant is presented', async () => {
    const ada = await speak(tracker(kind), revision, { ...knows, principal: 'ada', scopes: ['tickets:read'] })
    const token = await tokenFor(ada, ['tickets:read'])
    for (const held of [undefined, token]) {
      const { data } = errorOf(await ada.ask('tools/call', call('write', held)))
      expect(data).toMatchObject({
        scopes: both,
        [problems]: { code: 'SCOPE_INSUFFICIENT', details: { missing_scopes: ['tickets:write'] } },
      })
    }
    expect(ran).toEqual([])
  })

  it('E4-10: a page on which the user can grant what is missing is offered, and looked for once', async () => {
    let session: string | undefined
    const server = tracker(kind, {
      ...all,
      elevationUrl: (missing, refused) => {
        session = refused.session
        return `https://tracker.example/grant?scope=${missing.join('+')}`
      },
    })
    const opened = async () => ({ action: 'accept' })
    const capable = { capabilities: { ...capabilities, elicitation: { form: {}, url: {} } } }
    const plain = await speak(server, revision, knows)
    const token = await tokenFor(plain, ['tickets:read'])
    const url = 'https://tracker.example/grant?scope=tickets:write'
    expect(problemOf(await plain.ask('tools/call', call('write', token)))).toMatchObject({ details: { elevation_url: url } })
    expect(resultOf(await plain.ask('permissions/check', check({ tool: 'write' }, token)))).toMatchObject({ elevation_url: url })
    const wire = await speak(server, revision, capable)
    const id = wire.begin('tools/call', call('write', token))
    const asked = await wire.next(frame => frame['id'] === id || frame['method'] === 'elicitation/create')
    expect(JSON.stringify(asked)).toContain(url)
    expect(await server.permissions.extend(session ?? '', ['tickets:write'])).toBe(true)
    if (asked['method'] === undefined) {
      const { inputRequests, requestState } = resultOf(asked)
      const inputResponses = Object.fromEntries(Object.keys(inputRequests as Frame).map(key => [key, { action: 'accept' }]))
      expect(textOf(await wire.ask('tools/call', { ...call('write', token), inputResponses, requestState }))).toBe('write')
    } else {
      wire.say({ jsonrpc: '2.0', id: asked['id'], result: await opened() })
      expect(textOf(await wire.next(frame => frame['id'] === id))).toBe('write')
    }
  })

  it('E4-10: an address that is not https is never told', async () => {
    const server = tracker(kind, { ...all, elevationUrl: () => 'http://tracker.example/grant' })
    const wire = await speak(server, revision, { capabilities: { ...capabilities, elicitation: { form: {}, url: {} } } })
    await wire.ask('tools/call', call('write'))
    await wire.ask('permissions/check', { tool: 'write' })
    expect(JSON.stringify(wire.heard)).not.toContain('http://tracker.example')
  })

  it('X1: who may not call is not given what was done before under the key either', async () => {
    const server = tracker(kind)
    const wire = await speak(server, revision, knows)
    const token = await tokenFor(wire, both)
    const keyed = (held: unknown) => ({
      ...call('write', held),
      _meta: { [permissions]: { session_token: held }, 'dev.vivarium/idempotency': { idempotency_key: 'op-1' } },
    })
    expect(textOf(await wire.ask('tools/call', keyed(token)))).toBe('write')
    for (const { session } of await server.permissions.sessions()) await server.permissions.revoke(session)
    expect(problemOf(await wire.ask('tools/call', keyed(token)))['code']).toBe('SCOPE_INSUFFICIENT')
    expect(textOf(await wire.ask('tools/call', keyed(await tokenFor(wire, both))))).toBe('write')
    expect(ran).toEqual(['write'])
  })

  it('methods of this are refused to whoever did not declare it', async () => {
    const wire = await speak(tracker(kind), revision)
    expect(JSON.stringify(errorOf(await wire.ask('permissions/check', { tool: 'read' })))).toContain(permissions)
  })
})
