import type http from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import {
  cleanUp,
  events,
  failure,
  hastyClock,
  hear,
  json,
  request,
  result,
  type Seen,
  serve,
} from '../../../test/transports/http-test-server.ts'
import { httpClientConnection } from './client.ts'

afterEach(cleanUp)

const resumable = { id: 1, resume: true, session: true, headers: { 'mcp-protocol-version': '2025-11-25' } }
const update = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
const lastIds = (seen: readonly Seen[]) =>
  seen.filter(({ method }) => method === 'GET').map(({ headers }) => headers['last-event-id']?.toString())

/** A stream that is cut after what is written. */
function cut(response: http.ServerResponse, text: string): void {
  events(response)
  response.write(text, () => response.destroy())
}

describe('an answer stream that ends before the answer', () => {
  it('is continued by GET under its last event id after the wait that the server named (rev D §1.2, trap 23)', async () => {
    const clock = hastyClock()
    const server = await serve((seen, response) => {
      events(response, { 'mcp-session-id': 's' })
      response.end(seen.method === 'POST' ? 'retry: 500\nid: e1\ndata:\n\n' : `id: e2\ndata: ${result(1)}\n\n`)
    })
    const connection = httpClientConnection(server.url, { clock })
    const heard = await hear(connection)
    await connection.send(request(1), resumable)
    expect(server.seen.map(({ method }) => method)).toEqual(['POST', 'GET'])
    expect(server.seen[1]?.headers).toMatchObject({
      accept: 'text/event-stream',
      'last-event-id': 'e1',
      'mcp-session-id': 's',
      'mcp-protocol-version': '2025-11-25',
    })
    expect(clock.waits).toEqual([500])
    expect(heard.frames).toEqual([{ text: result(1), status: 200 }])
  })

  it('is continued after a break too, from the last event that came whole', async () => {
    const clock = hastyClock()
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') return cut(response, `id: 1\ndata: ${update}\n\nid: 2\ndata: {"jsonrpc":`)
      events(response)
      return response.end(`data: ${result(1)}\n\n`)
    })
    const connection = httpClientConnection(server.url, { clock })
    const heard = await hear(connection)
    await connection.send(request(1), resumable)
    expect(lastIds(server.seen)).toEqual(['1'])
    expect(heard.frames.map(({ text }) => text)).toEqual([update, result(1)])
    expect(clock.waits).toEqual([1000])
  })

  it('may be polled at the pace of the server for as long as it likes', async () => {
    const clock = hastyClock()
    const server = await serve((seen, response) => {
      events(response)
      if (seen.method === 'POST') response.end('retry: 70\nid: 1\ndata:\n\n')
      else response.end(server.seen.length < 20 ? undefined : `data: ${result(1)}\n\n`)
    })
    const connection = httpClientConnection(server.url, { clock })
    await hear(connection)
    await connection.send(request(1), resumable)
    expect(clock.waits).toEqual(Array.from({ length: 19 }, () => 70))
  })

  it('is asked for at growing distances while that fails, and from where it stands', async () => {
    const clock = hastyClock()
    const server = await serve((seen, response) => {
      const count = server.seen.length
      if (seen.method === 'POST') cut(response, 'id: 1\ndata:\n\n')
      else if (count < 4) response.writeHead(503).end()
      else if (count === 4) cut(response, `id: 2\ndata: ${update}\n\n`)
      else if (count === 5) seen.socket.destroy()
      else {
        events(response)
        response.end(`data: ${result(1)}\n\n`)
      }
    })
    const connection = httpClientConnection(server.url, { clock, random: () => 0 })
    await hear(connection)
    await connection.send(request(1), resumable)
    expect(lastIds(server.seen)).toEqual(['1', '1', '1', '2', '2'])
    expect(clock.waits).toEqual([1000, 1000, 2000, 1000, 2000])
  })

  it('counts as lost when it could not be opened again so many times', async () => {
    const clock = hastyClock()
    const server = await serve((seen, response) =>
      seen.method === 'POST' ? cut(response, 'id: 1\ndata:\n\n') : response.writeHead(503).end(),
    )
    const connection = httpClientConnection(server.url, { clock, resumeTries: 3 })
    await hear(connection)
    expect((await failure(connection.send(request(1), resumable))).kind).toBe('lost')
    expect(server.seen).toHaveLength(5)
  })

  it.each([404, 405, 400])('counts as lost, not as never run, when the server answers %i to the GET', async status => {
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') {
        events(response, { 'mcp-session-id': 's' })
        response.end('id: 1\ndata:\n\n')
      } else response.writeHead(status).end()
    })
    const connection = httpClientConnection(server.url, { clock: hastyClock() })
    await hear(connection)
    expect((await failure(connection.send(request(1), resumable))).kind).toBe('lost')
    expect(server.seen.slice(0, 2).map(({ method }) => method)).toEqual(['POST', 'GET'])
  })

  it.each([
    ['named no id', 'data:\n\n', resumable],
    ['may not be continued (rev E §1.2)', 'id: 1\ndata:\n\n', { id: 1 }],
  ])('is not asked for again when it %s', async (_name, text, outgoing) => {
    const server = await serve((_seen, response) => {
      events(response)
      response.end(text)
    })
    const connection = httpClientConnection(server.url, { clock: hastyClock() })
    await hear(connection)
    expect((await failure(connection.send(request(1), outgoing))).kind).toBe('lost')
    expect(server.seen).toHaveLength(1)
  })

  it.each([
    ['0', 50],
    ['1000000000', 300_000],
    ['9'.repeat(400), 300_000],
  ])('waits within bounds when the server says retry: %s', async (retry, expected) => {
    const waits: number[] = []
    const waited = Promise.withResolvers<void>()
    const server = await serve((_seen, response) => {
      events(response)
      response.end(`retry: ${retry}\nid: 1\ndata:\n\n`)
    })
    const clock = hastyClock()
    const connection = httpClientConnection(server.url, {
      connectTimeoutMs: 9_999,
      clock: {
        ...clock,
        setTimeout(fn, ms, background) {
          if (background || ms === 9_999) return clock.setTimeout(fn, ms, background)
          waits.push(ms)
          waited.resolve()
          return () => undefined
        },
      },
    })
    await hear(connection)
    const sent = failure(connection.send(request(1), resumable))
    await waited.promise
    expect(waits).toEqual([expected])
    await connection.close()
    expect((await sent).kind).toBe('aborted')
  })

  it('is let go when the caller gives up, also between two streams', async () => {
    const waiting = Promise.withResolvers<void>()
    const clock = hastyClock()
    const server = await serve((_seen, response) => {
      events(response)
      response.end('retry: 77\nid: 1\ndata:\n\n')
    })
    let cancelled = 0
    const connection = httpClientConnection(server.url, {
      clock: {
        ...clock,
        setTimeout(fn, ms, background) {
          if (ms !== 77) return clock.setTimeout(fn, ms, background)
          waiting.resolve()
          return () => cancelled++
        },
      },
    })
    await hear(connection)
    const abort = new AbortController()
    const sent = failure(connection.send(request(1), { ...resumable, signal: abort.signal }))
    await waiting.promise
    abort.abort()
    expect((await sent).kind).toBe('aborted')
    expect(cancelled).toBe(1)
  })

  it('sends an id beyond ASCII back as the bytes in which it came', async () => {
    const server = await serve((seen, response) => {
      events(response)
      response.end(seen.method === 'POST' ? 'id: é漢\ndata:\n\n' : `data: ${result(1)}\n\n`)
    })
    const connection = httpClientConnection(server.url, { clock: hastyClock() })
    await hear(connection)
    await connection.send(request(1), resumable)
    expect(Buffer.from(lastIds(server.seen)[0] ?? '', 'latin1').toString()).toBe('é漢')
  })
})

describe('the stream for what is said unasked', () => {
  it('hands on what comes, within the session and under the headers given (rev D §1.2)', async () => {
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') return json(response, 200, result(1), { 'mcp-session-id': 's' })
      events(response)
      return response.write(`data: ${update}\n\n`)
    })
    const connection = httpClientConnection(server.url)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    connection.listen?.({ session: true, headers: { 'mcp-protocol-version': '2025-11-25' } })
    await heard.got(2)
    expect(heard.frames[1]).toEqual({ text: update, status: 200 })
    expect(server.seen[1]).toMatchObject({
      method: 'GET',
      headers: { accept: 'text/event-stream', 'mcp-session-id': 's', 'mcp-protocol-version': '2025-11-25' },
    })
  })

  it('is opened again under its last event id whenever it ends', async () => {
    const clock = hastyClock()
    const server = await serve((_seen, response) => {
      events(response)
      const count = server.seen.length
      if (count === 1) response.end(`id: a\ndata: ${update}\n\n`)
      else if (count === 2) response.write(`id: b\ndata: ${update}\n\n`, () => response.destroy())
      else response.write(`data: ${update}\n\n`)
    })
    const connection = httpClientConnection(server.url, { clock })
    const heard = await hear(connection)
    connection.listen?.({})
    await heard.got(3)
    expect(lastIds(server.seen)).toEqual([undefined, 'a', 'b'])
  })

  it.each([405, 404, 401, 204, 302])('that the server answers with %i is not asked for again', async status => {
    const clock = hastyClock()
    const server = await serve((seen, response) =>
      seen.method === 'POST' ? json(response, 200, result(seen.id)) : response.writeHead(status, { location: '/' }).end(),
    )
    const connection = httpClientConnection(server.url, { clock })
    const heard = await hear(connection)
    connection.listen?.({})
    await server.saw(1)
    await connection.send(request(1), { id: 1 })
    await connection.send(request(2), { id: 2 })
    expect(server.seen.map(({ method }) => method)).toEqual(['GET', 'POST', 'POST'])
    expect(clock.waits).toEqual([])
    expect([heard.faults, heard.closes]).toEqual([[], []])
  })

  it('is asked for less and less often while it cannot be had, up to half a minute', async () => {
    const waits: number[] = []
    const clock = hastyClock()
    const enough = Promise.withResolvers<void>()
    const server = await serve((_seen, response) => response.writeHead(503).end())
    const connection = httpClientConnection(server.url, {
      random: () => 0,
      connectTimeoutMs: 9_999,
      clock: {
        ...clock,
        setTimeout(fn, ms, background) {
          if (background || ms === 9_999) return clock.setTimeout(fn, ms, background)
          if (waits.push(ms) === 8) enough.resolve()
          return clock.setTimeout(fn, 0)
        },
      },
    })
    await hear(connection)
    connection.listen?.({})
    await enough.promise
    expect(waits.slice(0, 8)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  })

  it('skips an unreadable event with a fault, and comes back', async () => {
    const server = await serve((_seen, response) => {
      events(response)
      const count = server.seen.length
      if (count === 1) response.write(`data: ${'x'.repeat(200)}\n\n`)
      else if (count === 2) response.write(Buffer.from([...Buffer.from('data: '), 0xff, 10, 10]))
      else response.write(`data: ${update}\n\n`)
    })
    const limits = { frameBytes: 100, depth: 128, elements: 1000, names: 1000, batch: 10 }
    const connection = httpClientConnection(server.url, { clock: hastyClock(), limits })
    const heard = await hear(connection)
    connection.listen?.({})
    await heard.got(1)
    expect(heard.faults.map(({ kind }) => kind)).toEqual(['too-large', 'not-utf8'])
  })

  it('begins anew where the server can not go on after its last event, and says that something may be missing', async () => {
    const opened: boolean[] = []
    const server = await serve((seen, response) => {
      if (seen.headers['last-event-id'] !== undefined) return response.writeHead(400).end()
      events(response)
      if (server.seen.length === 1) response.end(`id: a\ndata: ${update}\n\n`)
      else response.write(`data: ${update}\n\n`)
    })
    const connection = httpClientConnection(server.url, { clock: hastyClock() })
    const heard = await hear(connection)
    connection.listen?.({}, { opened: continued => opened.push(continued), lost: () => {}, absent: () => {} })
    await heard.got(2)
    expect(lastIds(server.seen)).toEqual([undefined, 'a', undefined])
    expect(opened).toEqual([false, false])
  })

  it.each([
    ['was open in it', true, 'session'],
    ['never was open', false, 'absent'],
  ])('that is answered with 404 and %s tells of that', async (_, opens, expected) => {
    const told = Promise.withResolvers<string>()
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') return json(response, 200, result(seen.id), { 'mcp-session-id': 's' })
      if (!opens || server.seen.length > 2) return response.writeHead(404).end()
      events(response)
      response.end(':\n\n')
    })
    const connection = httpClientConnection(server.url, { clock: hastyClock() })
    await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    const user = {
      opened: () => {},
      lost: ({ kind }: { kind: string }) => told.resolve(kind),
      absent: () => told.resolve('absent'),
    }
    connection.listen?.({ session: true }, user)
    expect(await told.promise).toBe(expected)
    await connection.send(request(2), { id: 2, session: true })
    // A session that is gone is not named any more.
    expect(server.seen.at(-1)?.headers['mcp-session-id']).toBe(opens ? undefined : 's')
  })

  it('is one: a second call replaces it, a signal or close() ends it', async () => {
    const ended: number[] = []
    const closed = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const server = await serve((_seen, response) => {
      const number = server.seen.length
      events(response)
      response.on('close', () => {
        ended.push(number)
        closed[number - 1]?.resolve()
      })
    })
    const connection = httpClientConnection(server.url)
    await hear(connection)
    const abort = new AbortController()
    connection.listen?.({})
    await server.saw(1)
    connection.listen?.({ signal: abort.signal })
    await closed[0]?.promise
    await server.saw(2)
    abort.abort()
    await closed[1]?.promise
    connection.listen?.({})
    await server.saw(3)
    await connection.close()
    await closed[2]?.promise
    expect(ended).toEqual([1, 2, 3])
    connection.listen?.({})
    expect(server.seen).toHaveLength(3)
  })
})
