/** What is said beside and before answers, on real streams: traps 9–14 and 23. */
import { afterEach, describe, expect, it } from 'vitest'
import type { RevisionId } from '../../src/revisions/index.ts'
import { createServer, type LogLevel, type Server } from '../../src/server/index.ts'
import { begin, events, type HttpPeer, headersFor, httpPeer, open } from './http.ts'
import {
  callName,
  enveloped,
  everyRevision,
  type Frame,
  requestRevisions,
  resultOf,
  sessionRevisions,
  speak,
  textOf,
} from './wire.ts'

const E = '2026-07-28'
const logKey = 'io.modelcontextprotocol/logLevel'
const idKey = 'io.modelcontextprotocol/subscriptionId'
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function make(): Server {
  const server = createServer({
    name: 'streams',
    version: '1.0.0',
    revisions: everyRevision,
    secret: 'a secret of more than thirty-two characters',
  })
  closers.push(() => server.close())
  server.tool('talk', {}, (_, ctx) => {
    for (const level of ['debug', 'info', 'error'] as LogLevel[]) ctx.log(level, level, 'test')
    for (const progress of [1, 3, 2, Number.NaN, Number.POSITIVE_INFINITY, 5]) ctx.progress(progress, { total: 5, message: 'on' })
    return 'done'
  })
  server.tool('ask', {}, async (_, ctx) => ((await ctx.confirm('Sure?')) ? 'yes' : 'no'))
  server.resource('memo://one', { name: 'one' }, () => 'one')
  server.resource('memo://asked', { name: 'asked', cache: { ttl: 60_000 } }, async (_, ctx) =>
    (await ctx.confirm('Sure?')) ? 'yes' : 'no',
  )
  server.prompt('brief', {}, () => 'Brief me')
  return server
}

/** A tool that waits until the test lets it go, and says whether it was told to stop. */
function gate(server: Server): { started: Promise<void>; open: () => void; stopped: () => boolean } {
  let open = (): void => {}
  let begin = (): void => {}
  let stopped = false
  const started = new Promise<void>(resolve => {
    begin = resolve
  })
  server.tool('wait', {}, (_, ctx) => {
    ctx.signal.addEventListener('abort', () => {
      stopped = true
    })
    begin()
    return new Promise<string>(resolve => {
      open = () => resolve('waited')
    })
  })
  return { started, open: () => open(), stopped: () => stopped }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise<void>(resolve => setImmediate(() => resolve()))
}

describe('trap 9: resultType on every result of the stateless wires', () => {
  it.each(requestRevisions)('%s', async revision => {
    const wire = await speak(make(), revision)
    const requests: readonly [string, Frame][] = [
      ['server/discover', {}],
      ['tools/list', {}],
      ['tools/call', { name: 'talk' }],
      ['resources/list', {}],
      ['resources/templates/list', {}],
      ['resources/read', { uri: 'memo://one' }],
      ['prompts/list', {}],
      ['prompts/get', { name: 'brief' }],
    ]
    for (const [method, params] of requests) expect(resultOf(await wire.ask(method, params))['resultType']).toBe('complete')
  })

  it('never to an older wire', async () => {
    for (const revision of sessionRevisions) {
      const wire = await speak(make(), revision)
      await wire.ask('tools/list')
      await wire.ask('prompts/get', { name: 'brief' })
      for (const text of wire.texts) expect(text).not.toContain('resultType')
    }
  })
})

describe('trap 10: what may be kept', () => {
  it('is stamped on six operations and on no other (E)', async () => {
    const wire = await speak(make(), E)
    const stamped = async (method: string, params: Frame = {}): Promise<boolean> => {
      const { ttlMs, cacheScope } = resultOf(await wire.ask(method, params))
      if (ttlMs !== undefined)
        expect([Number.isInteger(ttlMs), ['public', 'private'].includes(String(cacheScope))]).toEqual([true, true])
      return ttlMs !== undefined
    }
    for (const method of ['server/discover', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])
      expect([method, await stamped(method)]).toEqual([method, true])
    expect(await stamped('resources/read', { uri: 'memo://one' })).toBe(true)
    expect(await stamped('tools/call', { name: 'talk' })).toBe(false)
    expect(await stamped('prompts/get', { name: 'brief' })).toBe(false)
  })

  it('is not a result that asks, and not the one that came of answers (E)', async () => {
    const wire = await speak(make(), E, { capabilities: { elicitation: {} } })
    const { resultType, ttlMs, inputRequests, requestState } = resultOf(await wire.ask('resources/read', { uri: 'memo://asked' }))
    expect([resultType, ttlMs]).toEqual(['input_required', undefined])
    const inputResponses = { [Object.keys(inputRequests as Frame)[0] ?? '']: { action: 'accept', content: { confirm: true } } }
    const done = resultOf(await wire.ask('resources/read', { uri: 'memo://asked', inputResponses, requestState }))
    expect([done['resultType'], done['ttlMs'], done['cacheScope']]).toEqual(['complete', 0, 'private'])
  })
})

describe('trap 11: log messages', () => {
  const levels = (frames: readonly Frame[]): unknown[] =>
    frames.filter(frame => frame['method'] === 'notifications/message').map(frame => (frame['params'] as Frame)['level'])

  it.each(requestRevisions)('%s: not one unless the request set a level, and then from it up', async revision => {
    const wire = await speak(make(), revision)
    await wire.ask('tools/call', { name: 'talk' })
    expect(levels(wire.heard)).toEqual([])
    await wire.ask('tools/call', { name: 'talk', _meta: { [logKey]: 'info' } })
    expect(levels(wire.heard)).toEqual(['info', 'error'])
    await wire.ask('tools/call', { name: 'talk' })
    expect(levels(wire.heard)).toEqual(['info', 'error'])
  })

  it.each(sessionRevisions.filter(id => id !== 's3'))(
    '%s: by the level of the session, from info before it is set',
    async revision => {
      const wire = await speak(make(), revision)
      await wire.ask('tools/call', { name: 'talk' })
      expect(levels(wire.heard)).toEqual(['info', 'error'])
      expect(resultOf(await wire.ask('logging/setLevel', { level: 'error' }))).toEqual({})
      await wire.ask('tools/call', { name: 'talk' })
      expect(levels(wire.heard)).toEqual(['info', 'error', 'error'])
      expect(await wire.ask('logging/setLevel', { level: 'loud' })).toMatchObject({ error: { code: -32602 } })
    },
  )

  it('the dialect has none', async () => {
    const wire = await speak(make(), 's3')
    await wire.ask('tools/invoke', { name: 'talk' })
    expect(levels(wire.heard)).toEqual([])
  })
})

describe('trap 12: hanging up', () => {
  it('is the cancel on a stateless wire: the handler hears of it', async () => {
    const server = make()
    const held = gate(server)
    const { url } = await server.listen()
    const params = { name: 'wait' }
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: enveloped(E, params) }
    const request = begin(url, { headers: headersFor(E, 'tools/call', params), body })
    await held.started
    request.destroy()
    await until(held.stopped)
    expect(held.stopped()).toBe(true)
  })

  it('is the cancel also once the stream has begun', async () => {
    const server = make()
    let stopped = false
    server.tool('stream', {}, (_, ctx) => {
      ctx.progress(1)
      ctx.signal.addEventListener('abort', () => {
        stopped = true
      })
      return new Promise<string>(() => {})
    })
    const { url } = await server.listen({ closeMs: 10 })
    const { request, response } = await (await httpPeer(url, E)).open('tools/call', {
      name: 'stream',
      _meta: { progressToken: 1 },
    })
    response.on('error', () => {})
    request.destroy()
    await until(() => stopped)
    expect(stopped).toBe(true)
  })

  it.each(['2025-03-26', '2025-06-18', '2025-11-25'] as const)(
    'is none at %s: the work goes on, and its answer can be fetched by GET',
    async revision => {
      const server = make()
      let release = (): void => {}
      let stopped = false
      server.tool('stream', {}, (_, ctx) => {
        ctx.progress(1)
        ctx.signal.addEventListener('abort', () => {
          stopped = true
        })
        return new Promise<string>(resolve => {
          release = () => resolve('late')
        })
      })
      const { url } = await server.listen({ closeMs: 10 })
      const peer = await httpPeer(url, revision)
      const { request, response } = await peer.open('tools/call', { name: 'stream', _meta: { progressToken: 1 } })
      let last: string | undefined
      for await (const { id, frame } of events(response)) {
        last = id
        if (frame !== undefined) break
      }
      request.destroy()
      release()
      const headers = { ...headersFor(revision, '', {}, peer.session), 'last-event-id': last }
      const resumed = await open(url, { method: 'GET', headers })
      const frames: Frame[] = []
      for await (const { frame } of events(resumed.response)) if (frame !== undefined) frames.push(frame)
      expect([stopped, frames.length, textOf(frames[0] ?? {})]).toEqual([false, 1, 'late'])
    },
  )

  it.each(everyRevision)('%s: a cancelled request gets no answer, except on the dialect', async revision => {
    const server = make()
    const held = gate(server)
    const wire = await speak(server, revision)
    const id = wire.begin(callName(revision), { name: 'wait' })
    await held.started
    wire.tell(revision === 's3' ? 'cancel' : 'notifications/cancelled', revision === 's3' ? { id } : { requestId: id })
    await until(held.stopped)
    held.open()
    const answers = (await wire.quiet()).filter(frame => frame['id'] === id && frame['method'] === undefined)
    expect(answers.map(resultOf)).toEqual(revision === 's3' ? [{ status: 'cancelled', output: null }] : [])
  })

  it('a cancel that itself wants an answer gets one on the dialect (§3.1)', async () => {
    const server = make()
    const held = gate(server)
    const wire = await speak(server, 's3')
    const id = wire.begin('tools/invoke', { name: 'wait' })
    await held.started
    expect(resultOf(await wire.ask('cancel', { id }))).toEqual({ status: 'cancelled' })
    expect(held.stopped()).toBe(true)
  })

  it('one of the id of a request that is over, or that never was, is ignored', async () => {
    for (const revision of everyRevision) {
      const wire = await speak(make(), revision)
      const method = revision === 's3' ? 'cancel' : 'notifications/cancelled'
      await wire.ask('tools/list', {}, 'over')
      for (const id of ['over', 'never', 5, null, {}]) wire.tell(method, revision === 's3' ? { id } : { requestId: id })
      const before = wire.heard.length
      await wire.ask('tools/list')
      expect(wire.heard.length).toBe(before + 1)
    }
  })
})

describe('trap 13: listening', () => {
  const all = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: ['memo://one'],
  }

  it.each([7, '7'])(
    'acknowledges first, marks every message with the id as the request wrote it (%j), says nothing unasked',
    async id => {
      const server = make()
      const wire = await speak(server, E)
      wire.begin('subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: ['memo://one'] } }, id)
      const first = await wire.next(frame => frame['method'] !== undefined)
      expect([first['method'], first['params']]).toEqual([
        'notifications/subscriptions/acknowledged',
        { notifications: { toolsListChanged: true, resourceSubscriptions: ['memo://one'] }, _meta: { [idKey]: id } },
      ])
      server.prompt('later', {}, () => 'x')
      server.resource('memo://later', { name: 'later' }, () => 'x')
      server.resourceUpdated('memo://later')
      server.resourceUpdated('memo://one')
      server.tool('later', {}, () => 'x')
      await wire.next(frame => frame['method'] === 'notifications/resources/updated')
      const said = (await wire.quiet()).filter(frame => frame['method'] !== undefined).slice(1)
      expect(said.map(({ method, params }) => [method, params]).sort()).toEqual([
        ['notifications/resources/updated', { uri: 'memo://one', _meta: { [idKey]: id } }],
        ['notifications/tools/list_changed', { _meta: { [idKey]: id } }],
      ])
    },
  )

  it('on the draft the id is written as text (§2.8)', async () => {
    const wire = await speak(make(), 'draft-2026-v1')
    wire.begin('subscriptions/listen', { notifications: {} }, 7)
    const { params } = await wire.next(frame => frame['method'] !== undefined)
    expect((params as Frame)['_meta']).toEqual({ [idKey]: '7' })
  })

  it('honours only what the server offers', async () => {
    const bare = createServer({ name: 'bare', version: '1' })
    bare.tool('one', {}, () => 'x')
    closers.push(() => bare.close())
    const wire = await speak(bare, E)
    wire.begin('subscriptions/listen', { notifications: all })
    const { params } = await wire.next(frame => frame['method'] !== undefined)
    expect((params as Frame)['notifications']).toEqual({ toolsListChanged: true })
  })

  it('ends with its request: after the cancel nothing is said any more, and nothing answers it', async () => {
    const server = make()
    const wire = await speak(server, E)
    const id = wire.begin('subscriptions/listen', { notifications: all })
    await wire.next(frame => frame['method'] !== undefined)
    wire.tell('notifications/cancelled', { requestId: id })
    await wire.quiet()
    server.tool('later', {}, () => 'x')
    server.resourceUpdated('memo://one')
    expect((await wire.quiet()).filter(frame => frame['method'] !== undefined).length).toBe(1)
    expect(wire.heard.filter(frame => frame['id'] === id)).toEqual([])
  })

  it('is ended by the server in good order with a result that names it; on a pipe a cancel goes before (§2.7)', async () => {
    const server = make()
    const wire = await speak(server, E)
    const id = wire.begin('subscriptions/listen', { notifications: all }, 5)
    await wire.next(frame => frame['method'] !== undefined)
    await server.close()
    const last = wire.heard.slice(1)
    expect(last.map(frame => frame['method'] ?? frame['id'])).toEqual(['notifications/cancelled', id])
    expect(resultOf(last[1] ?? {})).toMatchObject({ resultType: 'complete', _meta: { [idKey]: 5 } })
  })

  it('never carries what belongs to other requests (trap 11)', async () => {
    const server = make()
    const { url } = await server.listen()
    const peer = await httpPeer(url, E)
    const listening = await peer.open('subscriptions/listen', { notifications: all, _meta: { [logKey]: 'debug' } })
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const { frame } of events(listening.response)) seen.push(frame?.['method'])
    })().catch(() => {})
    await until(() => seen.length === 1)
    await peer.ask('tools/call', { name: 'talk', _meta: { [logKey]: 'debug', progressToken: 1 } })
    server.resourceUpdated('memo://one')
    await until(() => seen.length === 2)
    listening.request.destroy()
    await reading
    expect(seen).toEqual(['notifications/subscriptions/acknowledged', 'notifications/resources/updated'])
  })
})

describe('trap 14: one publish reaches every world', () => {
  const changes = (frames: readonly Frame[]): unknown[] =>
    frames.map(frame => frame['method']).filter(method => typeof method === 'string' && /changed|updated/.test(method))

  it.each(sessionRevisions.filter(id => id !== 's3'))(
    '%s hears of lists unasked, of a resource after it subscribed',
    async revision => {
      const server = make()
      const wire = await speak(server, revision)
      await wire.quiet()
      server.resourceUpdated('memo://one')
      server.tool('later', {}, () => 'x')
      await wire.next(frame => frame['method'] === 'notifications/tools/list_changed')
      expect(resultOf(await wire.ask('resources/subscribe', { uri: 'memo://one' }))).toEqual({})
      server.resourceUpdated('memo://one')
      server.prompt('later', {}, () => 'x')
      await wire.next(frame => frame['method'] === 'notifications/resources/updated')
      await wire.ask('resources/unsubscribe', { uri: 'memo://one' })
      server.resourceUpdated('memo://one')
      expect(changes(await wire.quiet())).toEqual([
        'notifications/tools/list_changed',
        'notifications/prompts/list_changed',
        'notifications/resources/updated',
      ])
    },
  )

  it.each(requestRevisions)('%s hears nothing without a listen', async revision => {
    const server = make()
    const wire = await speak(server, revision)
    await wire.ask('tools/list')
    server.tool('later', {}, () => 'x')
    server.resourceUpdated('memo://one')
    expect(changes(await wire.quiet())).toEqual([])
  })
})

describe('trap 23: streams that may be left and re-joined', () => {
  const streamOf = async (peer: HttpPeer): Promise<{ id: string | undefined; frame: Frame | undefined }[]> => {
    const { response } = await peer.open('tools/call', { name: 'talk', _meta: { progressToken: 'p' } })
    const seen: { id: string | undefined; frame: Frame | undefined }[] = []
    for await (const event of events(response)) seen.push(event)
    return seen
  }

  it.each(['2025-03-26', '2025-06-18', '2025-11-25'] as RevisionId[])(
    '%s: an empty first event from D on alone; every event has an id of its own',
    async revision => {
      const server = make()
      const { url } = await server.listen()
      const peer = await httpPeer(url, revision)
      const seen = await streamOf(peer)
      expect(seen[0]?.frame === undefined).toBe(revision === '2025-11-25')
      const more = await streamOf(peer)
      const ids = [...seen, ...more].map(({ id }) => id)
      expect([ids.every(id => id !== undefined), new Set(ids).size]).toEqual([true, ids.length])
    },
  )

  it('priming: false leaves the empty event out for clients that take it for a broken message; streams resume all the same', async () => {
    const server = make()
    const { url } = await server.listen({ priming: false })
    const peer = await httpPeer(url, '2025-11-25')
    const seen = await streamOf(peer)
    expect(seen.map(({ id, frame }) => [id !== undefined, frame !== undefined])).toEqual(seen.map(() => [true, true]))
    expect(seen.length).toBeGreaterThan(1)
    const headers = { ...headersFor('2025-11-25', '', {}, peer.session), 'last-event-id': seen[0]?.id }
    const { response } = await open(url, { method: 'GET', headers })
    for await (const { id } of events(response)) {
      expect(id).toBe(seen[1]?.id)
      break
    }
    response.destroy()
  })

  it('a stateless wire has neither event ids nor empty events', async () => {
    const server = make()
    const { url } = await server.listen()
    const seen = await streamOf(await httpPeer(url, E))
    expect(seen.map(({ id, frame }) => [id, frame !== undefined])).toEqual(seen.map(() => [undefined, true]))
  })

  it('replays nothing of another session, whatever event it names', async () => {
    const server = make()
    const { url } = await server.listen()
    const [ada, eve] = [await httpPeer(url, '2025-11-25'), await httpPeer(url, '2025-11-25')]
    const [first] = await streamOf(ada)
    const headers = { ...headersFor('2025-11-25', '', {}, eve.session), 'last-event-id': first?.id }
    const { response } = await open(url, { method: 'GET', headers })
    response.resume()
    expect(response.statusCode).toBe(400)
  })

  it('replays the stream that sent the event, and no other', async () => {
    const server = make()
    const { url } = await server.listen()
    const peer = await httpPeer(url, '2025-11-25')
    const first = await streamOf(peer)
    await streamOf(peer)
    const headers = { ...headersFor('2025-11-25', '', {}, peer.session), 'last-event-id': first[1]?.id }
    const { response } = await open(url, { method: 'GET', headers })
    const again: (string | undefined)[] = []
    for await (const { id } of events(response)) again.push(id)
    expect(again).toEqual(first.slice(2).map(({ id }) => id))
  })
})
