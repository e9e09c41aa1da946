import { afterEach, describe, expect, it } from 'vitest'
import {
  cleanUp,
  events,
  failure,
  hear,
  notice,
  request,
  result,
  type Seen,
  serve,
} from '../../../test/transports/http-test-server.ts'
import { sseClientConnection } from './client.ts'

afterEach(cleanUp)

type Handler = Parameters<typeof serve>[0]

/** A server of the old pair: `answer` gives what the stream says to a posted message. */
function pair(answer: (seen: Seen) => string | undefined, endpoint = '/messages?session=1') {
  let say: (text: string) => void = () => undefined
  return serve((seen, response) => {
    if (seen.method === 'GET') {
      events(response)
      say = text => response.write(`event: message\ndata: ${text}\n\n`)
      response.write(`event: endpoint\ndata: ${endpoint}\n\n`)
      return
    }
    response.writeHead(202).end('Accepted')
    const text = answer(seen)
    if (text !== undefined) say(text)
  })
}

const wires = [
  ['node:http', {}],
  ['fetch', { fetch: (url: string, init: RequestInit) => fetch(url, init) }],
] as const

describe.each(wires)('the old pair over %s', (_name, options) => {
  it('posts to the address that the stream names, and hears the answers on the stream (rev A §1.2)', async () => {
    const server = await pair(seen => result(seen.id))
    const connection = sseClientConnection(`${server.origin}/sse`, { ...options, headers: { authorization: 'Bearer t' } })
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, headers: { 'x-test': 'y' } })
    await heard.got(1)
    expect(heard.frames[0]?.text).toBe(result(1))
    expect(server.seen).toMatchObject([
      { method: 'GET', path: '/sse', headers: { accept: 'text/event-stream', authorization: 'Bearer t' } },
      { method: 'POST', path: '/messages?session=1', body: request(1), headers: { authorization: 'Bearer t', 'x-test': 'y' } },
    ])
  })

  it('takes a full address too, if it is of the same origin', async () => {
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') return response.writeHead(202).end()
      events(response)
      return response.write(`event: endpoint\ndata: ${server.origin}/post\n\n`)
    })
    const connection = sseClientConnection(`${server.origin}/sse`, options)
    await hear(connection)
    await connection.send(notice)
    expect(server.seen[1]?.path).toBe('/post')
  })

  it.each(['http://example.com/steal', '//example.com/steal', 'file:///etc/passwd', 'http://'])(
    'does not post to %s, which is not the same origin',
    async address => {
      const server = await pair(() => undefined, address)
      const connection = sseClientConnection(`${server.origin}/sse`, options)
      expect(await failure(hear(connection).then(() => undefined))).toMatchObject({ kind: 'protocol' })
      await failure(connection.send(notice))
      expect(server.seen).toHaveLength(1)
    },
  )

  it('sends what follows a notification after it, and loses no order among messages without an answer', async () => {
    const server = await pair(() => undefined)
    const connection = sseClientConnection(`${server.origin}/sse`, options)
    await hear(connection)
    const bodies = Array.from({ length: 50 }, (_, at) => `{"jsonrpc":"2.0","method":"n${at}"}`)
    await Promise.all([...bodies.map(body => connection.send(body)), connection.send(request(1), { id: 1 })])
    expect(server.seen.slice(1).map(({ body }) => body)).toEqual([...bodies, request(1)])
  })

  it('does not make requests wait for each other', async () => {
    const held: (() => void)[] = []
    const server = await serve((seen, response) => {
      if (seen.method === 'GET') {
        events(response)
        response.write('event: endpoint\ndata: /m\n\n')
      } else held.push(() => response.writeHead(202).end())
    })
    const connection = sseClientConnection(`${server.origin}/sse`, options)
    await hear(connection)
    const sent = [connection.send(request(1), { id: 1 }), connection.send(request(2), { id: 2 })]
    await server.saw(3)
    for (const release of held) release()
    await Promise.all(sent)
  })

  it('refuses a message that the server refuses, and goes on', async () => {
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') return response.writeHead(seen.id === 1 ? 400 : 202).end('no')
      events(response)
      return response.write('event: endpoint\ndata: /m\n\n')
    })
    const connection = sseClientConnection(`${server.origin}/sse`, options)
    const heard = await hear(connection)
    expect(await failure(connection.send(request(1), { id: 1 }))).toMatchObject({ kind: 'status', status: 400 })
    await connection.send(request(2), { id: 2 })
    expect(heard.closes).toEqual([])
  })

  it.each<[string, Handler, string]>([
    ['405', (_seen, response) => response.writeHead(405).end(), 'status'],
    ['a web page', (_seen, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'), 'protocol'],
    ['a redirection', (_seen, response) => response.writeHead(302, { location: 'http://example.com/' }).end(), 'status'],
    ['an empty stream', (_seen, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(), 'protocol'],
    ['nothing', seen => seen.socket.destroy(), 'lost'],
    [
      'an event without end',
      (_seen, response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${'x'.repeat(2000)}`),
      'too-large',
    ],
  ])('does not come about when the server answers with %s', async (_what, handler, kind) => {
    const server = await serve(handler)
    const limits = { frameBytes: 1000, depth: 10, elements: 100, names: 100, batch: 1 }
    const connection = sseClientConnection(`${server.origin}/sse`, { ...options, limits })
    expect((await failure(hear(connection).then(() => undefined))).kind).toBe(kind)
  })

  it('does not come about when the server names no address in time', async () => {
    const server = await serve((_seen, response) => events(response))
    const connection = sseClientConnection(`${server.origin}/sse`, { ...options, endpointTimeoutMs: 30 })
    const error = await failure(hear(connection).then(() => undefined))
    expect(error.kind).toBe('protocol')
    expect(error.message).toContain('endpoint')
  })

  it('ends once when the stream ends, with what was under way', async () => {
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') return void stream?.end()
      events(response)
      stream = response
      response.write('event: endpoint\ndata: /m\n\n')
    })
    let stream: { end(): void } | undefined
    const connection = sseClientConnection(`${server.origin}/sse`, options)
    const heard = await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('lost')
    expect(heard.closes).toMatchObject([{ kind: 'lost' }])
    expect((await failure(connection.send(request(2), { id: 2 }))).kind).toBe('lost')
    await connection.close()
    expect(heard.closes).toHaveLength(1)
  })

  it('closes its stream and is then closed', async () => {
    const gone = Promise.withResolvers<void>()
    const server = await serve((_seen, response) => {
      events(response)
      response.on('close', gone.resolve)
      response.write('event: endpoint\ndata: /m\n\n')
    })
    const connection = sseClientConnection(`${server.origin}/sse`, options)
    const heard = await hear(connection)
    await connection.close()
    await connection.close()
    await gone.promise
    expect(heard.closes).toEqual([undefined])
    expect((await failure(connection.send(notice))).kind).toBe('aborted')
  })
})
