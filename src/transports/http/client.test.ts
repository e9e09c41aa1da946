import { afterEach, describe, expect, it } from 'vitest'
import {
  cleanUp,
  events,
  failure,
  hear,
  json,
  notice,
  request,
  result,
  serve,
} from '../../../test/transports/http-test-server.ts'
import { httpClientConnection } from './client.ts'

afterEach(cleanUp)

const wires = [
  ['node:http', {}],
  ['fetch', { fetch: (url: string, init: RequestInit) => fetch(url, init) }],
] as const

describe.each(wires)('an exchange over %s', (_name, options) => {
  it('posts the message with its headers and hands on a JSON answer before send resolves (rev D §1.2)', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id, 'a')))
    const connection = httpClientConnection(server.url, { ...options, headers: { Authorization: 'Bearer t' } })
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, headers: { 'Mcp-Method': 'tools/call' } })
    expect(heard.frames).toEqual([{ text: result(1, 'a'), status: 200 }])
    expect(server.seen[0]).toMatchObject({ method: 'POST', path: '/mcp', body: request(1) })
    expect(server.seen[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: 'Bearer t',
      'mcp-method': 'tools/call',
    })
  })

  it('hands on every message of an event stream in order, and resolves with the answer', async () => {
    const progress = '{"jsonrpc":"2.0","method":"notifications/progress"}'
    const asked = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    const server = await serve((seen, response) => {
      events(response)
      response.write(`: hello\n\nid: 1\ndata:\n\nevent: ping\ndata: {}\n\ndata: ${progress}\n\ndata: ${asked}\n\n`)
      response.end(`event: message\ndata: ${result(seen.id)}\n\n`)
    })
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect(heard.frames.map(({ text }) => text)).toEqual([progress, asked, result(1)])
  })

  it('text of any script arrives unchanged, both ways and in both forms', async () => {
    const text = 'ä€漢🙂\u2028'
    const server = await serve((seen, response) => {
      if (seen.id === 1) return json(response, 200, result(1, JSON.parse(seen.body).params.text))
      events(response)
      response.end(`data: ${result(2, JSON.parse(seen.body).params.text)}\n\n`)
    })
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    for (const id of [1, 2]) await connection.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'x', params: { text } }), { id })
    expect(heard.frames.map(frame => JSON.parse(frame.text).result)).toEqual([text, text])
  })

  it.each([202, 204, 200])('a notification is delivered when the server answers %i', async status => {
    const server = await serve((_seen, response) => response.writeHead(status).end())
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    await connection.send(notice)
    expect(server.seen[0]?.body).toBe(notice)
    expect(heard.frames).toEqual([])
  })

  it('an error of the protocol under an HTTP error is an answer, with its status (rev E §1.3)', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    const server = await serve((_seen, response) => json(response, 404, body))
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1 })
    expect(heard.frames).toEqual([{ text: body, status: 404 }])
  })

  it('an error without an id answers the request that it came for', async () => {
    const server = await serve((_seen, response) =>
      json(response, 400, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}'),
    )
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    await connection.send(request('a'), { id: 'a' })
    expect(JSON.parse(heard.frames[0]?.text ?? '')).toEqual({ jsonrpc: '2.0', id: 'a', error: { code: -32000, message: 'no' } })
  })

  it('a refused notification says what the server said', async () => {
    const server = await serve((_seen, response) =>
      json(response, 400, '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"}}'),
    )
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    const error = await failure(connection.send(notice))
    expect(error).toMatchObject({ kind: 'status', status: 400 })
    expect(error.message).toContain('no session')
  })

  it('a challenge is a refusal with its headers, whatever its body holds (trap 20)', async () => {
    const server = await serve((seen, response) =>
      json(response, 401, `{"jsonrpc":"2.0","id":${seen.id},"error":{"code":1,"message":"x"}}`, {
        'www-authenticate': 'Bearer scope="a"',
      }),
    )
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1 }))
    expect(error).toMatchObject({ kind: 'status', status: 401, headers: { 'www-authenticate': 'Bearer scope="a"' } })
    expect(heard.frames).toEqual([])
  })

  it('other errors are refusals that repeat no more than a hint of the body', async () => {
    const server = await serve((_seen, response) =>
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad\u0007</h1>'.repeat(500)),
    )
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1 }))
    expect(error).toMatchObject({ kind: 'status', status: 502 })
    expect(error.message).toMatch(/^The server sent HTTP 502: <h1>Bad\ufffd.{71}…$/)
  })

  it.each([
    ['nothing', 202, undefined, ''],
    ['a web page', 200, 'text/html', '<p>hi</p>'],
    ['an empty JSON body', 200, 'application/json', ''],
    ['the answer to another request', 200, 'application/json', result(2)],
    ['its id as a string (H3)', 200, 'application/json', result('1')],
    ['its id in hex as a string (H4)', 200, 'application/json', result('0x1')],
    ['half a message', 200, 'application/json', '{"jsonrpc":"2.0",'],
  ])('a request that a success answers with %s fails at once', async (_what, status, type, body) => {
    const server = await serve((_seen, response) =>
      response.writeHead(status, type === undefined ? {} : { 'content-type': type }).end(body),
    )
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect(await failure(connection.send(request(1), { id: 1 }))).toMatchObject({ kind: 'protocol', status })
  })

  it('an event stream that ends or breaks without the answer loses the call', async () => {
    const server = await serve((seen, response) => {
      events(response)
      response.write('id: 5\ndata: {"jsonrpc":"2.0","method":"x"}\n\n', () =>
        seen.id === 1 ? response.end() : response.destroy(),
      )
    })
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('lost')
    expect((await failure(connection.send(request(2), { id: 2 }))).kind).toBe('lost')
    expect(server.seen).toHaveLength(2)
  })

  it('a connection that breaks before the answer loses the call, which is not sent again', async () => {
    const server = await serve(seen => seen.socket.destroy())
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('lost')
    expect(server.seen).toHaveLength(1)
  })

  it('a server that is not there was never reached', async () => {
    const server = await serve(() => undefined)
    await server.close()
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1 }))).kind).toBe('refused')
  })

  it.each([301, 307, 308])('a redirection %i is not followed, and the error says where to (H6)', async status => {
    const other = await serve((seen, response) => json(response, 200, result(seen.id)))
    const server = await serve((_seen, response) => response.writeHead(status, { location: other.url }).end())
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1 }))
    expect(error).toMatchObject({ kind: 'status', status })
    expect(error.message).toContain(other.url)
    expect(other.seen).toEqual([])
  })

  it('a request that is given up ends on the wire, which is its cancellation (trap 12)', async () => {
    const gone = Promise.withResolvers<void>()
    const server = await serve((_seen, response) => response.on('close', gone.resolve))
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    const abort = new AbortController()
    const sent = connection.send(request(1), { id: 1, signal: abort.signal })
    await server.saw(1)
    abort.abort(new Error('enough'))
    expect(await failure(sent)).toMatchObject({ kind: 'aborted', cause: new Error('enough') })
    await gone.promise
  })

  it('a request that was given up before is not sent', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)))
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1, signal: AbortSignal.abort() }))).kind).toBe('aborted')
    await connection.send(request(2), { id: 2 })
    expect(server.seen.map(({ id }) => id)).toEqual([2])
  })

  it('a header that cannot be sent refuses the message and nothing else', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)))
    const connection = httpClientConnection(server.url, options)
    await hear(connection)
    const error = await failure(connection.send(request(1), { id: 1, headers: { 'mcp-name': 'a\r\nx: y' } }))
    expect(['refused', 'lost']).toContain(error.kind)
    await connection.send(request(2), { id: 2 })
    expect(server.seen.map(({ id }) => id)).toEqual([2])
  })

  it('many calls at once each get their own answer', async () => {
    const server = await serve((seen, response) => setImmediate(() => json(response, 200, result(seen.id, seen.id))))
    const connection = httpClientConnection(server.url, options)
    const heard = await hear(connection)
    await Promise.all(Array.from({ length: 100 }, (_, id) => connection.send(request(id), { id })))
    expect(new Set(heard.frames.map(({ text }) => text))).toEqual(new Set(Array.from({ length: 100 }, (_, id) => result(id, id))))
  })
})

describe('what the options say', () => {
  it('gives way to the headers of a message, in any case of letters', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)))
    const connection = httpClientConnection(server.url, { headers: { 'X-Test': 'option', Authorization: 'old' } })
    await hear(connection)
    await connection.send(request(1), { id: 1, headers: { AUTHORIZATION: 'new' } })
    expect(server.seen[0]?.headers).toMatchObject({ authorization: 'new', 'x-test': 'option' })
  })

  it('may not touch the headers that the carrier needs', () => {
    expect(() => httpClientConnection('http://127.0.0.1/', { headers: { Accept: 'text/plain' } })).toThrow(/accept/)
  })

  it('asks for an address of http or https without a password in it', () => {
    expect(() => httpClientConnection('ftp://127.0.0.1/')).toThrow(TypeError)
    expect(() => httpClientConnection('http://me:secret@127.0.0.1/')).toThrow(/headers.authorization/)
  })
})
