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
  type Seen,
  serve,
} from '../../../test/transports/http-test-server.ts'
import { httpClientConnection } from './client.ts'

afterEach(cleanUp)

const named = { 'mcp-session-id': 's1' }
const sessionOf = (seen: Seen | undefined) => seen?.headers['mcp-session-id']

describe('a session', () => {
  it('is taken from the first answer and sent with all that belongs to it, and with nothing else (rev D §1.2)', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id), seen.id === 1 ? named : {}))
    const connection = httpClientConnection(server.url)
    await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    await connection.send(request(2), { id: 2, session: true })
    await connection.send(request(3), { id: 3 })
    expect(server.seen.map(sessionOf)).toEqual([undefined, 's1', undefined])
  })

  it('is known before the answer that brought it is handed on, so that a reply from within belongs to it', async () => {
    const server = await serve((seen, response) => {
      if (seen.id === undefined) return response.writeHead(202).end()
      events(response, named)
      return response.end(`data: ${result(seen.id)}\n\n`)
    })
    const connection = httpClientConnection(server.url)
    const delivered = Promise.withResolvers<void>()
    connection.start({
      frame: () => delivered.resolve(connection.send(notice, { session: true })),
      fault: () => undefined,
      closed: () => undefined,
    })
    await connection.send(request(1), { id: 1, session: true })
    await delivered.promise
    expect(sessionOf(server.seen[1])).toBe('s1')
    await connection.close()
  })

  it('is not taken from an answer to what is outside of it', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id), named))
    const connection = httpClientConnection(server.url)
    await hear(connection)
    await connection.send(request(1), { id: 1 })
    await connection.send(request(2), { id: 2, session: true })
    expect(server.seen.map(sessionOf)).toEqual([undefined, undefined])
  })

  it('that the server no longer knows is reported and forgotten (trap 24)', async () => {
    const server = await serve((seen, response) =>
      seen.id === 2
        ? json(response, 404, '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}')
        : json(response, 200, result(seen.id), sessionOf(seen) === undefined ? { 'mcp-session-id': `s${seen.id}` } : {}),
    )
    const connection = httpClientConnection(server.url)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    expect(await failure(connection.send(request(2), { id: 2, session: true }))).toMatchObject({ kind: 'session', status: 404 })
    await connection.send(request(3), { id: 3, session: true })
    await connection.send(request(4), { id: 4, session: true })
    expect(server.seen.map(sessionOf)).toEqual([undefined, 's1', undefined, 's3'])
    expect(heard.frames).toHaveLength(3)
  })

  it('is not lost by a 404 to a message outside of it (trap 2)', async () => {
    const server = await serve((seen, response) =>
      seen.id === 2
        ? json(response, 404, `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}`)
        : json(response, 200, result(seen.id), named),
    )
    const connection = httpClientConnection(server.url)
    await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    await connection.send(request(2), { id: 2 })
    await connection.send(request(3), { id: 3, session: true })
    expect(sessionOf(server.seen[2])).toBe('s1')
  })

  it('that is gone is not brought back by a late answer from it', async () => {
    const late: (() => void)[] = []
    const server = await serve((seen, response) => {
      if (seen.id === 2) late.push(() => json(response, 200, result(2), { 'mcp-session-id': 's1' }))
      else if (seen.id === 3) response.writeHead(404).end()
      else json(response, 200, result(seen.id), { 'mcp-session-id': sessionOf(seen) ?? `s${seen.id}` })
    })
    const connection = httpClientConnection(server.url)
    await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    const slow = connection.send(request(2), { id: 2, session: true })
    await server.saw(2)
    expect((await failure(connection.send(request(3), { id: 3, session: true }))).kind).toBe('session')
    await connection.send(request(4), { id: 4, session: true })
    late[0]?.()
    await slow
    await connection.send(request(5), { id: 5, session: true })
    expect(sessionOf(server.seen[4])).toBe('s4')
  })

  it('must have a name of visible characters', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id), { 'mcp-session-id': 'a b' }))
    const connection = httpClientConnection(server.url)
    await hear(connection)
    expect((await failure(connection.send(request(1), { id: 1, session: true }))).kind).toBe('protocol')
  })
})

describe('closing', () => {
  it('takes leave of the session under its headers, then says once that it is closed (rev D §1.1)', async () => {
    const server = await serve((seen, response) =>
      seen.method === 'POST' ? json(response, 200, result(seen.id), named) : response.end(),
    )
    const connection = httpClientConnection(server.url, { headers: { authorization: 'Bearer t' } })
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, session: true, headers: { 'mcp-protocol-version': '2025-11-25' } })
    await Promise.all([connection.close(), connection.close()])
    expect(server.seen[1]).toMatchObject({
      method: 'DELETE',
      headers: { 'mcp-session-id': 's1', authorization: 'Bearer t', 'mcp-protocol-version': '2025-11-25' },
    })
    expect(server.seen).toHaveLength(2)
    expect(heard.closes).toEqual([undefined])
  })

  it('without a session says nothing to the server', async () => {
    const server = await serve((seen, response) => json(response, 200, result(seen.id)))
    const connection = httpClientConnection(server.url)
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    await connection.close()
    expect(server.seen).toHaveLength(1)
    expect(heard.closes).toEqual([undefined])
  })

  it('does not wait long for a server that does not let go', async () => {
    const server = await serve((seen, response) => {
      if (seen.method === 'POST') json(response, 200, result(seen.id), named)
    })
    const connection = httpClientConnection(server.url, { closeTimeoutMs: 20 })
    const heard = await hear(connection)
    await connection.send(request(1), { id: 1, session: true })
    await connection.close()
    expect(server.seen[1]?.method).toBe('DELETE')
    expect(heard.closes).toEqual([undefined])
  })

  it('lets go of every call under way and of every socket', async () => {
    const gone = Promise.withResolvers<void>()
    const server = await serve((seen, response) => {
      response.on('close', gone.resolve)
      if (seen.id === 1) events(response)
    })
    const connection = httpClientConnection(server.url)
    await hear(connection)
    const sent = [failure(connection.send(request(1), { id: 1 })), failure(connection.send(request(2), { id: 2 }))]
    await server.saw(2)
    await connection.close()
    expect((await Promise.all(sent)).map(({ kind }) => kind)).toEqual(['aborted', 'aborted'])
    await gone.promise
    expect((await failure(connection.send(request(3), { id: 3 }))).kind).toBe('aborted')
    expect(server.seen).toHaveLength(2)
  })
})
