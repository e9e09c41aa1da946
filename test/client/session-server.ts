/** For the tests of this room: an HTTP server with sessions that a test can make it forget. */
import type http from 'node:http'
import type { Awaitable } from '../../src/jsonrpc/message.ts'
import { events, json, type Seen, serve, type TestServer } from '../transports/http-test-server.ts'
import { hello } from './scripted-server.ts'

export interface Posted {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  readonly session: string | undefined
  readonly seen: Seen
}

export interface SessionServer extends TestServer {
  /** Everything posted, in order. */
  readonly posted: Posted[]
  /** Sessions that are known; clear it to forget them. */
  readonly sessions: Set<string>
  /** The streams for what is said unasked, by session. */
  readonly streams: Map<string, http.ServerResponse>
  /** Handshakes are refused with 503. */
  overloaded: boolean
  /** There is no stream for what is said unasked, nor any word of one. */
  mute: boolean
  /** What answers by method; may be changed. */
  readonly answers: Map<string, Answer>
  /** A session is forgotten as soon as it is open. */
  forgetful: boolean
  /** Awaited before an unknown session is refused. */
  beforeRefusal: (posted: Posted) => Awaitable<void>
  of(method: string): Posted[]
  tell(method: string, params?: Readonly<Record<string, unknown>>): void
}

/** Gives a result, or answers by itself and gives undefined. */
type Answer = (posted: Posted, response: http.ServerResponse) => Awaitable<unknown>

export async function sessionServer(answers: Readonly<Record<string, Answer>> = {}, capabilities = {}): Promise<SessionServer> {
  const posted: Posted[] = []
  const sessions = new Set<string>()
  const streams = new Map<string, http.ServerResponse>()
  const table = new Map(Object.entries(answers))
  let count = 0

  async function post(seen: Seen, response: http.ServerResponse): Promise<void> {
    const { method, params = {} } = JSON.parse(seen.body)
    const session = seen.headers['mcp-session-id'] as string | undefined
    const item = { method, params, session, seen }
    posted.push(item)
    const answer = table.get(method)
    if (method === 'server/discover' || (method !== 'initialize' && session === undefined)) {
      response.writeHead(400).end('no session')
    } else if (session !== undefined && !sessions.has(session)) {
      await self.beforeRefusal(item)
      response.writeHead(404).end()
    } else if (answer !== undefined) {
      const result = await answer(item, response)
      if (result !== undefined) json(response, 200, { jsonrpc: '2.0', id: seen.id, result })
    } else if (method === 'initialize') {
      if (self.overloaded) return void response.writeHead(503).end()
      const id = `session-${++count}`
      sessions.add(id)
      json(response, 200, { jsonrpc: '2.0', id: seen.id, result: hello(capabilities) }, { 'mcp-session-id': id })
    } else if (seen.id === undefined) {
      if (self.forgetful) sessions.clear()
      response.writeHead(202).end()
    } else json(response, 200, { jsonrpc: '2.0', id: seen.id, result: {} })
  }

  const server = await serve((seen, response) => {
    if (seen.method === 'POST') return void post(seen, response)
    const session = seen.headers['mcp-session-id'] as string
    if (!sessions.has(session) || self.mute) return response.writeHead(404).end()
    if (seen.method === 'DELETE') return response.writeHead(200).end()
    events(response)
    streams.set(session, response)
  })
  const self: SessionServer = Object.assign(server, {
    posted,
    sessions,
    streams,
    overloaded: false,
    mute: false,
    answers: table,
    forgetful: false,
    beforeRefusal: () => {},
    of: (method: string) => posted.filter(item => item.method === method),
    tell: (method: string, params = {}) => {
      for (const stream of streams.values()) stream.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params })}\n\n`)
    },
  })
  return self
}
