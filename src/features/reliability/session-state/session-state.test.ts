import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { expectFits } from '../../../../test/extension-schemas.ts'
import { type Called, called, callParams, peer, post, remembering, revisions, secret } from '../../../../test/remembering.ts'
import { enveloped, type Frame, helloParams } from '../../../../test/spec/wire.ts'
import { storeKinds, storesUnderTest } from '../../../../test/stores-under-test.ts'
import { type Client, connect } from '../../../client/index.ts'
import type { Occurrence } from '../../../core/feed/feed.ts'
import type { RevisionId } from '../../../revisions/index.ts'
import type { Server, ServerOptions } from '../../../server/index.ts'
import type { Store } from '../../../stores/store.ts'
import { connectInMemory, memoryPair } from '../../../testing/index.ts'
import { stateExtension } from './messages.ts'

const servers: Server[] = []
const under = storesUnderTest()
const stores: Store[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map(server => server.close()))
  await Promise.all(stores.splice(0).map(store => store.close()))
})

function make(options: Partial<ServerOptions> = {}): Server {
  const server = remembering(options)
  servers.push(server)
  return server
}

/** One of each kind, fresh. */
async function everyStore(): Promise<readonly Store[]> {
  const opened = await Promise.all(storeKinds.map(kind => under.open(kind)))
  stores.push(...opened)
  return opened
}

/** Somebody who is known, on a connection of his own. */
function linkAs(server: Server, revision: RevisionId, id: string): Promise<Client> {
  const [near, far] = memoryPair()
  server.acceptor.accept({
    carrier: far.carrier,
    caller: { carrier: 'websocket', connection: {}, principal: { id } },
    start: sink => far.start(sink),
    send: (frame, outgoing) => far.send(frame, outgoing),
    close: () => far.close(),
  })
  return connect(near, { revisions: [revision] })
}

const restart = (code: string): Frame => ({ code, details: { recovery: 'restart' } })

describe.each(revisions)('state on %s', revision => {
  it('goes from call to call by the token, on any replica that shares the secret', async () => {
    const [one, two] = [await peer(make(), revision), await peer(make(), revision)]
    const first = await one.call('note', 'a')
    expect(first).toMatchObject({ text: 'a', state: { state_changed: true } })
    expectFits({ result: {}, ...first.state }, 'session-state.schema.json', 'StateUpdateResponse')
    const second = await two.call('note', 'b', first.token)
    expect(second.text).toBe('a b')
    expect((await one.call('read', undefined, second.token)).text).toBe('{"notes":["a","b"]}')
  })

  it('is not touched, nor told of, by a call that does not ask for it', async () => {
    const one = await peer(make(), revision)
    expect((await one.call('plain')).state).toBeUndefined()
    expect((await one.call('plain', undefined, 'no token at all')).text).toBe('plain')
  })

  it('E14-2: what does not fit into a token is kept on the store, and the token says where', async () => {
    for (const store of await everyStore()) {
      const [one, two] = [await peer(make({ store }), revision), await peer(make({ store }), revision)]
      const large = await one.call('large')
      expect(large.token.length).toBeLessThan(1_000)
      expect((await two.call('read', undefined, large.token)).text).toHaveLength(100_014)
      expect((await two.call('note', 'b', large.token)).text).toHaveLength(100_002)
    }
  })

  it('E14-2: a token that fits is at most 64 KiB long', async () => {
    const one = await peer(make(), revision)
    let { token } = await one.call('note', 'x'.repeat(20_000))
    for (let i = 0; i < 3; i++) {
      token = (await one.call('note', 'x'.repeat(20_000), token)).token
      expect(token.length).toBeLessThanOrEqual(64 * 1024)
    }
    expect((await one.call('read', undefined, token)).text).toHaveLength(80_023)
  })

  it('E14-3: a token with any character changed, of another server or of another principal is refused', async () => {
    const ann = await peer(make(), revision, { principal: 'ann' })
    const { token } = await ann.call('note', 'a')
    const changed = [0, 1, 30, token.length - 2].map(
      at => token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1),
    )
    for (const bad of [...changed, '', 'x', token.slice(1), `${token}AAAA`, 'A'.repeat(70_000)])
      expect((await ann.call('read', undefined, bad)).problem).toMatchObject(restart('STATE_INVALID'))
    const others = [
      await peer(make(), revision, { principal: 'bob' }),
      await peer(make(), revision),
      await peer(make({ name: 'other' }), revision, { principal: 'ann' }),
      await peer(make({ secret: `${secret} but another` }), revision, { principal: 'ann' }),
    ]
    for (const other of others)
      for (const tool of ['read', 'strict'])
        expect((await other.call(tool, tool === 'strict' ? 'b' : undefined, token)).problem).toMatchObject(
          restart('STATE_INVALID'),
        )
    expect((await ann.call('read', undefined, token)).text).toBe('{"notes":["a"]}')
  })

  it.each(storeKinds)('E14-3: on %s a token that is too old has expired', async kind => {
    const clock = under.clock()
    const one = await peer(make({ store: await under.urlOn(kind, clock), clock, state: { ttl: '1h' } }), revision)
    const { token, state } = await one.call('note', 'a')
    expect(state?.expires_at).toBe(new Date(clock.now() + 3_600_000).toISOString())
    await clock.advance(3_599_999)
    expect((await one.call('read', undefined, token)).problem).toBeUndefined()
    await clock.advance(1)
    expect((await one.call('read', undefined, token)).problem).toMatchObject(restart('STATE_EXPIRED'))
  })

  it('E14-3: what is no token object is refused as malformed', async () => {
    const one = await peer(make(), revision)
    for (const value of [7, 'token', { session_state: 7 }, []]) {
      const frame = await one.ask('tools/call', { name: 'read', _meta: { [stateExtension]: value } })
      expect(frame).toMatchObject({ error: { code: -32602 } })
    }
  })

  it('E14-4: a call that only reads says that the state is the same, and gives no new token', async () => {
    const one = await peer(make(), revision)
    expect((await one.call('read')).state).toBeUndefined()
    const { token } = await one.call('note', 'a')
    expect((await one.call('read', undefined, token)).state).toEqual({ state_changed: false })
  })

  it.each(storeKinds)('E14-4: on %s, past half of its life, a token is renewed by whoever reads it', async kind => {
    const clock = under.clock()
    const one = await peer(make({ store: await under.urlOn(kind, clock), clock, state: { ttl: '1h' } }), revision)
    const { token } = await one.call('note', 'a')
    await clock.advance(1_800_001)
    const renewed = await one.call('read', undefined, token)
    expect(renewed.state).toMatchObject({ state_changed: false })
    await clock.advance(1_800_000)
    expect((await one.call('read', undefined, renewed.token)).text).toBe('{"notes":["a"]}')
    expect((await one.call('read', undefined, token)).problem).toMatchObject({ code: 'STATE_EXPIRED' })
  })

  it('E14-4: a token sealed by an older secret is still good, and followed by one of the newest', async () => {
    const { token } = await (await peer(make({ secret: 'the old secret of 32 characters!' }), revision)).call('note', 'a')
    const both = await peer(make({ secret: [secret, 'the old secret of 32 characters!'] }), revision)
    const next = await both.call('note', 'b', token)
    expect((await (await peer(make(), revision)).call('read', undefined, next.token)).text).toBe('{"notes":["a","b"]}')
  })

  it('E14-5: two calls with the same token have a state each where the tool branches', async () => {
    const one = await peer(make(), revision)
    for (const tool of ['branch', 'note']) {
      const { token } = await one.call(tool, 'a')
      const [b, c] = await Promise.all([one.call(tool, 'b', token), one.call(tool, 'c', token)])
      expect([b.text, c.text]).toEqual(['a b', 'a c'])
      expect((await one.call('read', undefined, b.token)).text).toBe('{"notes":["a","b"]}')
    }
  })

  it('E14-5: the later of two calls with the same token is refused where the tool says so, on any replica', async () => {
    for (const store of await everyStore()) {
      const [one, two] = [await peer(make({ store }), revision), await peer(make({ store }), revision)]
      const { token } = await one.call('strict', 'a')
      const both = await Promise.all([one.call('strict', 'b', token), two.call('strict', 'c', token)])
      expect(both.filter(({ problem }) => problem?.['code'] === 'STATE_CONFLICT')).toHaveLength(1)
      const won = both.find(({ problem }) => problem === undefined) as Called
      expect((await two.call('strict', 'd', won.token)).text).toBe(`${won.text} d`)
    }
  })

  it('E14-6: what one token carries is never seen with another, or with none', async () => {
    const one = await peer(make(), revision)
    const [a, b] = [await one.call('note', 'a'), await one.call('note', 'b')]
    expect((await one.call('read', undefined, a.token)).text).toBe('{"notes":["a"]}')
    expect((await one.call('read', undefined, b.token)).text).toBe('{"notes":["b"]}')
    expect((await one.call('read')).text).toBe('null')
  })

  it.each(storeKinds)('E14-7: on %s what happens to a session reaches those who follow it', async kind => {
    const clock = under.clock()
    const server = make({ store: await under.urlOn(kind, clock), clock, state: { ttl: '1h' } })
    const one = await peer(server, revision)
    const { token } = await one.call('note', 'a')
    await clock.advance(1_800_001)
    const renewed = await one.call('note', 'b', token)
    await one.call('forget', undefined, renewed.token)
    await clock.advance(3_600_000)
    for (let i = 0; i < 2; i++) await one.call('read', undefined, token)
    const heard = await first(server, 4)
    expect(heard.map(({ name }) => name)).toEqual([
      'session_created',
      'session_renewed',
      'session_invalidated',
      'session_expired',
    ])
    expect(new Set(heard.map(({ data }) => (data as Frame)['session_id'])).size).toBe(1)
    for (const { name, data, at } of heard)
      expectFits(
        { type: name, timestamp: new Date(at).toISOString(), ...(data as Frame) },
        'session-state.schema.json',
        'SessionLifecycleEvent',
      )
  })

  it.each(storeKinds)(
    'E14-7: on %s whoever subscribed hears on the wire what happens to his sessions, and to no others',
    async kind => {
      const clock = under.clock()
      const server = make({ store: await under.urlOn(kind, clock), clock, state: { ttl: '1h', events: true } })
      const names = ['session_created', 'session_renewed', 'session_expired', 'session_invalidated']
      const [one, bob] = [await peer(server, revision), await linkAs(server, revision, 'bob')]
      const mcp = await connectInMemory(server, { revision })
      const [mine, his] = [mcp.events(names), bob.events(names)]
      await Promise.all([mine.ready, his.ready])
      const { token } = await one.call('note', 'a')
      await clock.advance(1_800_001)
      const renewed = await one.call('note', 'b', token)
      await one.call('forget', undefined, renewed.token)
      const [created] = await first(server, 1)
      await server.states.rollback(sessionOf(created), 1)
      await clock.advance(3_600_000)
      for (let i = 0; i < 2; i++) await one.call('read', undefined, token)
      await bob.callTool('note', { text: 'c' })
      const heard: { event: string; payload: Frame }[] = []
      for await (const event of mine) if (heard.push(event as never) === 5) break
      expect(heard.map(({ event }) => event)).toEqual([
        'session_created',
        'session_renewed',
        'session_invalidated',
        'session_invalidated',
        'session_expired',
      ])
      expect(heard[3]?.payload).toMatchObject({ reason: 'rolled back' })
      for (const { event, payload } of heard) {
        expect(payload).toMatchObject({ type: event, session_id: sessionOf(created), timestamp: expect.any(String) })
        expectFits(payload, 'session-state.schema.json', 'SessionLifecycleEvent')
      }
      for await (const { event, payload } of his) {
        expect([event, payload['session_id'] === sessionOf(created)]).toEqual(['session_created', false])
        break
      }
      for (const client of [mcp, bob]) await client.close()
    },
  )

  it('E14-8: the token of a version that was rolled back, or built on one, is no longer good', async () => {
    for (const store of await everyStore()) {
      const server = make({ store })
      const [one, two] = [await peer(server, revision), await peer(make({ store }), revision)]
      const a = await one.call('note', 'a')
      const b = await one.call('note', 'b', a.token)
      const c = await one.call('note', 'c', b.token)
      const [created] = await first(server, 1)
      await server.states.rollback(sessionOf(created), 1)
      for (const { token } of [b, c])
        expect((await two.call('read', undefined, token)).problem).toMatchObject(restart('STATE_INVALID'))
      const again = await two.call('note', 'd', a.token)
      expect(again.text).toBe('a d')
      expect((await one.call('note', 'e', again.token)).text).toBe('a d e')
      expect((await first(server, 2)).at(-1)).toMatchObject({ name: 'session_invalidated', data: { reason: 'rolled back' } })
    }
  })

  it('what a call that failed has written is forgotten with it', async () => {
    const one = await peer(make(), revision)
    const { token } = await one.call('note', 'a')
    expect((await one.call('fail', 'b', token)).state).toBeUndefined()
    expect((await one.call('read', undefined, token)).text).toBe('{"notes":["a"]}')
  })

  it('is written once by a call that asks in the middle', async () => {
    const answers = { 'elicitation/create': () => ({ action: 'accept', content: { confirm: true } }) }
    const one = await peer(make(), revision, { answers })
    const { token } = await one.call('note', 'a')
    let frame = await one.ask('tools/call', callParams('sure', 'b', token))
    const asked = frame['result'] as Frame
    if (asked['resultType'] === 'input_required') {
      expect(asked['_meta'] ?? {}).not.toHaveProperty(stateExtension)
      const { requestState } = asked
      const inputResponses = { 'elicit-1': { action: 'accept', content: { confirm: true } } }
      frame = await one.ask('tools/call', { ...callParams('sure', 'b', token), requestState, inputResponses })
    }
    const done = called(frame)
    expect(done.text).toBe('{"notes":["a","b"]}')
    expect((await one.call('read', undefined, done.token)).text).toBe('{"notes":["a","b"]}')
  })

  it('is patched by steps, all or none', async () => {
    const one = await peer(make(), revision)
    const { token, text } = await one.call('add', 'a')
    expect(text).toBe('{"a":1}')
    expect((await one.call('add', 'b', token)).text).toBe('{"a":1,"b":1}')
    expect((await one.call('add', '__proto__', token)).problem).toMatchObject({ code: 'STATE_INVALID' })
  })
})

describe('state of callers who echo no token', () => {
  it.each(revisions)('is kept with the connection on a pipe, each its own, on %s', async revision => {
    const server = make()
    const [one, two] = await Promise.all([1, 2].map(() => peer(server, revision, { capabilities: {}, principal: 'ann' })))
    expect((await one?.call('durable'))?.text).toBe('true')
    expect((await one?.call('note', 'a'))?.state).toBeUndefined()
    expect((await one?.call('note', 'b'))?.text).toBe('a b')
    expect((await two?.call('read'))?.text).toBe('null')
  })

  it('is kept per session over HTTP, for any replica on the same store', async () => {
    for (const store of [undefined, ...(await everyStore())]) {
      const server = make(store === undefined ? {} : { store })
      const open = async () => ({ 'mcp-session-id': (await post(server, hello, {}, 'ann')).session ?? '' })
      const [one, two] = [await open(), await open()]
      expect(await say(server, 'note', 'a', one, 'ann')).toBe('a')
      expect(await say(server, 'note', 'b', one, 'ann')).toBe('a b')
      expect(await say(server, 'read', undefined, two, 'ann')).toBe('null')
      expect(await say(server, 'durable', undefined, two, 'ann')).toBe('true')
    }
  })

  it('is kept per principal on 2026-07-28, for any replica on the same store', async () => {
    for (const store of await everyStore()) {
      const [one, two] = [make({ store }), make({ store })]
      expect(await tell(one, 'note', 'a', 'ann')).toBe('a')
      expect(await tell(two, 'note', 'b', 'ann')).toBe('a b')
      expect(await tell(two, 'read', undefined, 'bob')).toBe('null')
      expect(await tell(two, 'durable', undefined, 'bob')).toBe('true')
    }
  })

  it('lasts for the call where nobody is known, and the log says so once', async () => {
    const hints: unknown[] = []
    const server = make({ onTrace: (event, detail) => void (event === 'state-not-durable' && hints.push(detail)) })
    expect(await tell(server, 'durable', undefined)).toBe('false')
    expect(await tell(server, 'note', 'a')).toBe('a')
    expect(await tell(server, 'note', 'b')).toBe('b')
    expect(hints).toEqual([{ hint: expect.stringContaining('ctx.state') }])
  })

  it('E14-5: is never overwritten unnoticed: steps are done again on what another call wrote, the rest is refused', async () => {
    for (const store of await everyStore()) {
      const server = make({ store })
      const added = await Promise.all(['a', 'b', 'c'].map(text => tell(server, 'add', text, 'ann')))
      expect(added).toHaveLength(3)
      expect(JSON.parse(await tell(server, 'read', undefined, 'ann'))).toEqual({ a: 1, b: 1, c: 1 })
      const both = Promise.withResolvers<void>()
      let reading = 0
      server.tool('together', { input: z.object({ text: z.string() }) }, async ({ text }, ctx) => {
        await ctx.state.get()
        if (++reading === 2) both.resolve()
        await both.promise
        await ctx.state.set({ notes: [text] })
        return text
      })
      const noted = await Promise.all(['a', 'b'].map(text => tell(server, 'together', text, 'bob')))
      expect(noted.filter(text => text.startsWith('Another call has changed the same state'))).toHaveLength(1)
    }
  })
})

it('a replica with another secret tells its operator of the tokens that it cannot open, once a minute', async () => {
  const told: string[] = []
  const onTrace = (event: string, detail: unknown) => void (event === 'state-not-opened' && told.push(JSON.stringify(detail)))
  const { token } = await (await peer(make(), '2026-07-28')).call('note', 'a')
  const other = await peer(make({ secret: `${secret} but another`, onTrace }), '2026-07-28')
  await other.call('read', undefined, token)
  await other.call('read', undefined, token)
  expect(told).toEqual([expect.stringMatching(/Replicas.*need the same option secret/)])
})

it('a server without a secret says at start-up what becomes of the states of its tools', () => {
  const hints: string[] = []
  const server = make({ secret: undefined, onTrace: event => void hints.push(event) })
  expect(hints).toEqual(['state-needs-secret'])
  expect(() => server.tool('odd', { state: 'merge' as 'branch' }, () => '')).toThrow("'branch' or 'conflict'")
})

it.each(revisions)('a server tells of states on %s when a tool says what it does with them', async revision => {
  const wire = await peer(make(), revision)
  const told = revision === '2026-07-28' ? await wire.ask('server/discover') : wire.hello
  expect(told).toMatchObject({ result: { capabilities: { extensions: { [stateExtension]: {} } } } })
})

const sessionOf = (occurrence: Occurrence | undefined): string => String((occurrence?.data as Frame | undefined)?.['session_id'])

async function first(server: Server, count: number): Promise<readonly Occurrence[]> {
  const ending = new AbortController()
  const heard: Occurrence[] = []
  for await (const occurrence of server.states.follow({ signal: ending.signal })) {
    heard.push(occurrence)
    if (heard.length === count) ending.abort()
  }
  return heard
}

const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params: helloParams('2025-11-25') }

async function say(server: Server, tool: string, text: string | undefined, headers: Record<string, string>, who?: string) {
  return called(
    (await post(server, { jsonrpc: '2.0', id: 2, method: 'tools/call', params: callParams(tool, text) }, headers, who)).frame,
  ).text
}

async function tell(server: Server, tool: string, text: string | undefined, who?: string): Promise<string> {
  const body = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: enveloped('2026-07-28', callParams(tool, text)) }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': tool }
  return called((await post(server, body, headers, who)).frame).text
}
