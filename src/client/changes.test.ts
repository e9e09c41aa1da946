import { describe, expect, it } from 'vitest'
import {
  discovery,
  type Frame,
  modernServer,
  Refusal,
  type Script,
  type ScriptedServer,
  sessionServer,
  silence,
} from '../../test/client/scripted-server.ts'
import { fakeClock } from '../testing/clock.ts'
import type { ConnectOptions } from './api.ts'
import { connect } from './connect.ts'

const idKey = 'io.modelcontextprotocol/subscriptionId'
const over = { done: true, value: undefined }

/** Tells that the listen request with this place in order is heard, as asked or as `honoured`. */
async function acknowledge(server: ScriptedServer, nth = 1, honoured?: Frame): Promise<Frame> {
  const { id, params } = await server.saw('subscriptions/listen', nth)
  const notifications = honoured ?? (params as { notifications: Frame }).notifications
  await server.tell('notifications/subscriptions/acknowledged', { notifications, _meta: { [idKey]: id } })
  return { [idKey]: id }
}

async function listening(script: Script = {}, options: ConnectOptions = {}) {
  const clock = fakeClock()
  const server = modernServer({ 'subscriptions/listen': () => silence, ...script })
  return { clock, server, mcp: await connect(server.connection, { clock, ...options }) }
}

const kinds = ['tools', 'prompts', 'resources'] as const

describe('changes of a list', () => {
  it.each(kinds)('of %s come unasked on wires with sessions (trap 14)', async kind => {
    const server = sessionServer()
    await using mcp = await connect(server.connection)
    const changes = mcp.changes(kind)
    const first = changes.next()
    await server.tell(`notifications/${kind}/list_changed`)
    expect((await first).done).toBe(false)
    for (const other of kinds) if (other !== kind) await server.tell(`notifications/${other}/list_changed`)
    const second = changes.next()
    await changes.return()
    expect(await second).toEqual(over)
  })

  it.each(kinds)('of %s are asked for on the stateless wire, by one listen that wants nothing else', async kind => {
    const { server, mcp } = await listening()
    await using _ = mcp
    const changes = mcp.changes(kind)
    const first = changes.next()
    const _meta = await acknowledge(server)
    expect(server.params('subscriptions/listen')).toEqual([{ notifications: { [`${kind}ListChanged`]: true } }])
    await server.tell(`notifications/${kind}/list_changed`, { _meta })
    expect((await first).done).toBe(false)
    await changes.return()
  })

  it('that nobody has read yet become one', async () => {
    const server = sessionServer()
    await using mcp = await connect(server.connection)
    const changes = mcp.changes('tools')
    const first = changes.next()
    for (let n = 0; n < 5; n++) await server.tell('notifications/tools/list_changed')
    await first
    await changes.next()
    const third = changes.next()
    await changes.return()
    expect(await third).toEqual(over)
  })

  it('are told to all who read, by one listen, which ends with the last of them', async () => {
    const { server, mcp } = await listening()
    await using _ = mcp
    const [a, b] = [mcp.changes('tools'), mcp.changes('tools')]
    const firsts = [a.next(), b.next()]
    const _meta = await acknowledge(server)
    await server.tell('notifications/tools/list_changed', { _meta })
    expect((await Promise.all(firsts)).map(({ done }) => done)).toEqual([false, false])
    expect(server.of('subscriptions/listen')).toHaveLength(1)
    const pending = b.next()
    await a.return()
    await server.tell('notifications/tools/list_changed', { _meta })
    expect((await pending).done).toBe(false)
    expect(server.of('notifications/cancelled')).toEqual([])
    await b.return()
    expect((await server.saw('notifications/cancelled'))['params']).toMatchObject({ requestId: _meta[idKey] })
  })

  it('end when the client is closed, and fail when the server is gone', async () => {
    for (const make of [() => sessionServer(), () => modernServer({ 'subscriptions/listen': () => silence })]) {
      const closed = make()
      const mcp = await connect(closed.connection)
      const first = mcp.changes('tools').next()
      await mcp.close()
      expect(await first).toEqual(over)
      const lost = make()
      await using other = await connect(lost.connection)
      const second = other.changes('tools').next()
      await new Promise(setImmediate)
      await lost.close()
      await expect(second).rejects.toMatchObject({ name: 'ConnectionError' })
      await expect(other.changes('prompts').next()).rejects.toMatchObject({ name: 'ConnectionError' })
    }
  })
})

describe('a listen request', () => {
  it('that the server ends is made anew after a pause, and the reader is told to look once it is heard', async () => {
    const { clock, server, mcp } = await listening()
    await using _ = mcp
    const changes = mcp.changes('tools')
    const first = changes.next()
    const _meta = await acknowledge(server)
    server.send({ id: _meta[idKey], result: { resultType: 'complete', _meta } })
    await new Promise(setImmediate)
    expect(server.of('subscriptions/listen')).toHaveLength(1)
    clock.advance(200)
    const second = await acknowledge(server, 2)
    expect(second[idKey]).not.toBe(_meta[idKey])
    expect((await first).done).toBe(false)
    await changes.return()
  })

  it('that the server cancels is made anew too', async () => {
    const { clock, server, mcp } = await listening()
    await using _ = mcp
    const first = mcp.changes('tools').next()
    const _meta = await acknowledge(server)
    await server.tell('notifications/cancelled', { requestId: _meta[idKey] })
    clock.advance(200)
    await acknowledge(server, 2)
    expect((await first).done).toBe(false)
  })

  it('that ends again and again is made anew ever more slowly', async () => {
    const { clock, server, mcp } = await listening({ 'subscriptions/listen': () => ({ resultType: 'complete' }) })
    await using _ = mcp
    const changes = mcp.changes('tools')
    const first = changes.next()
    for (let n = 1; n < 300; n++) {
      await new Promise(setImmediate)
      clock.advance(1_000)
    }
    expect(server.of('subscriptions/listen').length).toBeLessThan(20)
    await changes.return()
    expect(await first).toEqual(over)
  })

  it.each([-32601, -32602, -32021])('that is refused with %i fails the reader', async code => {
    const { server, mcp } = await listening({
      'subscriptions/listen': () => {
        throw new Refusal(code, 'no listening here')
      },
    })
    await using _ = mcp
    await expect(mcp.changes('tools').next()).rejects.toMatchObject({ code })
    expect(server.of('subscriptions/listen')).toHaveLength(1)
  })

  it('of which the server honours nothing that was asked for fails the reader, and is let go', async () => {
    const { server, mcp } = await listening()
    await using _ = mcp
    const first = mcp.changes('tools').next()
    first.catch(() => {})
    const _meta = await acknowledge(server, 1, {})
    await expect(first).rejects.toMatchObject({ kind: 'capability-missing', message: expect.stringContaining('tools') })
    expect((await server.saw('notifications/cancelled'))['params']).toMatchObject({ requestId: _meta[idKey] })
  })

  it('is acknowledged on the draft under its id as text', async () => {
    const { server, mcp } = await listening(
      { 'server/discover': () => discovery({}, ['DRAFT-2026-v1']) },
      { revisions: ['draft-2026-v1'] },
    )
    await using _ = mcp
    const first = mcp.changes('tools').next()
    first.catch(() => {})
    const { id } = await server.saw('subscriptions/listen')
    await server.tell('notifications/subscriptions/acknowledged', { notifications: {}, _meta: { [idKey]: String(id) } })
    await expect(first).rejects.toMatchObject({ kind: 'capability-missing' })
  })

  it('is not confused by an acknowledgement of another', async () => {
    const { server, mcp } = await listening()
    await using _ = mcp
    const first = mcp.changes('tools').next()
    await server.saw('subscriptions/listen')
    for (const id of [999, 'x', null])
      await server.tell('notifications/subscriptions/acknowledged', { notifications: {}, _meta: { [idKey]: id } })
    await server.tell('notifications/subscriptions/acknowledged', { notifications: {} })
    await acknowledge(server)
    await server.tell('notifications/tools/list_changed')
    expect((await first).done).toBe(false)
  })
})

describe('updates of a resource', () => {
  const subscribing = { 'resources/subscribe': () => ({}), 'resources/unsubscribe': () => ({}) }

  it('are subscribed to on wires with sessions, and left again', async () => {
    const server = sessionServer(subscribing)
    await using mcp = await connect(server.connection)
    const updates = mcp.resourceUpdates('file:///a')
    const first = updates.next()
    await server.saw('resources/subscribe')
    await server.tell('notifications/resources/updated', { uri: 'file:///a' })
    expect(await first).toEqual({ done: false, value: 'file:///a' })
    await updates.return()
    expect((await server.saw('resources/unsubscribe'))['params']).toEqual({ uri: 'file:///a' })
  })

  it('that come together with the answer to the subscription are not missed', async () => {
    const server = sessionServer(subscribing)
    await using mcp = await connect(server.connection)
    server.on('resources/subscribe', ({ uri }) => {
      queueMicrotask(() => void server.tell('notifications/resources/updated', { uri }))
      return {}
    })
    expect(await mcp.resourceUpdates('file:///a').next()).toEqual({ done: false, value: 'file:///a' })
  })

  it('are of the resource itself or of a part of it, not of one that is named alike', async () => {
    const server = sessionServer(subscribing)
    await using mcp = await connect(server.connection)
    const updates = mcp.resourceUpdates('file:///a')
    const first = updates.next()
    for (const uri of ['file:///ab', 'file:///', 'file:///b', 'file:///a/part', 'file:///a#top'])
      await server.tell('notifications/resources/updated', { uri })
    expect([await first, await updates.next()].map(({ value }) => value)).toEqual(['file:///a/part', 'file:///a#top'])
    await updates.return()
  })

  it('are subscribed to once, however many read', async () => {
    const server = sessionServer(subscribing)
    await using mcp = await connect(server.connection)
    const [a, b] = [mcp.resourceUpdates('file:///a'), mcp.resourceUpdates('file:///a')]
    const firsts = [a.next(), b.next()]
    await server.saw('resources/subscribe')
    await server.tell('notifications/resources/updated', { uri: 'file:///a' })
    await Promise.all(firsts)
    await a.return()
    const next = b.next()
    await server.tell('notifications/resources/updated', { uri: 'file:///a' })
    expect((await next).value).toBe('file:///a')
    expect([server.of('resources/subscribe').length, server.of('resources/unsubscribe').length]).toEqual([1, 0])
    await b.return()
    await server.saw('resources/unsubscribe')
  })

  it('that the server does not offer fail the reader', async () => {
    await using mcp = await connect(sessionServer().connection)
    await expect(mcp.resourceUpdates('file:///a').next()).rejects.toMatchObject({ code: -32601 })
  })

  it('are asked for by a listen on the stateless wire', async () => {
    const { server, mcp } = await listening()
    await using _ = mcp
    const updates = mcp.resourceUpdates('file:///a')
    const first = updates.next()
    const _meta = await acknowledge(server)
    expect(server.params('subscriptions/listen')).toEqual([{ notifications: { resourceSubscriptions: ['file:///a'] } }])
    await server.tell('notifications/resources/updated', { uri: 'file:///a/b', _meta })
    expect(await first).toEqual({ done: false, value: 'file:///a/b' })
    await updates.return()
  })

  it('that pile up unread become a doubt about the whole: a slow reader holds no queue', async () => {
    const server = sessionServer(subscribing)
    await using mcp = await connect(server.connection)
    const updates = mcp.resourceUpdates('x:/')
    const first = updates.next()
    for (let n = 0; n < 2_600; n++) server.send({ method: 'notifications/resources/updated', params: { uri: `x:/${n}` } })
    await server.tell('notifications/resources/updated', { uri: 'x:/last' })
    const seen = [(await first).value]
    while (seen.at(-1) !== 'x:/last') seen.push((await updates.next()).value)
    expect(seen.length).toBeLessThan(1_001)
    expect(seen).toContain('x:/')
    await updates.return()
  })
})
