/** Streamable HTTP with sessions (2025-03-26 to 2025-11-25), and what holds for HTTP at any revision. */
import { official, scenario, sessions, since, tool } from '../define.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { harmless, kitInfo } from '../wire/envelope.ts'
import type { HttpReply, RawPeer } from '../wire/raw-peer.ts'

const transport = ['MCP basic/transports#streamable-http']
const managing = ['MCP basic/transports#session-management']
const http = ['http'] as const

function post(peer: RawPeer, headers: Record<string, string>, body?: string): Promise<HttpReply> {
  return peer.http.call({ method: 'POST', headers, body: body ?? JSON.stringify(harmless(peer.revision, 1)) })
}

function isRefused({ status }: HttpReply): boolean {
  return status >= 400 && status < 500
}

function sessionOf(bench: Bench, peer: RawPeer): string {
  const { session } = peer.http
  return session ?? bench.leave('it works without sessions')
}

function rightHeaders(peer: RawPeer): Record<string, string> {
  return peer.http.headers(harmless(peer.revision, 1))
}

export const httpScenarios: readonly Scenario[] = [
  scenario('base/http/answer-type', {
    title: 'a request is answered with JSON or a stream of events',
    proves: transport,
    revisions: official,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const { status, headers } = await post(peer, rightHeaders(peer))
      bench.expect(status === 200, `the HTTP status must be 200, not ${status}`)
      const type = headers['content-type'] ?? ''
      bench.expect(/^(application\/json|text\/event-stream)/.test(type), `the content type must be JSON or events, not "${type}"`)
    },
  }),
  scenario('base/http/notification', {
    title: 'a notification is taken with 202 and an empty body',
    proves: transport,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const body = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
      const reply = await post(peer, peer.http.headers(), body)
      bench.expect(reply.status === 202, `the HTTP status must be 202, not ${reply.status}`)
      bench.expect(reply.body === '', 'the body must be empty')
    },
  }),
  scenario('base/http/content-type', {
    title: 'a body that is not declared as JSON is not taken',
    proves: transport,
    revisions: official,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const reply = await post(peer, { ...rightHeaders(peer), 'content-type': 'text/plain' })
      if (!isRefused(reply))
        bench.warn(`a body of another type than application/json should be refused with 415, not ${reply.status}`)
    },
  }),
  scenario('base/http/accept', {
    title: 'who takes JSON only gets no stream of events',
    proves: transport,
    revisions: official,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const { status, headers } = await post(peer, { ...rightHeaders(peer), accept: 'application/json' })
      const type = headers['content-type'] ?? ''
      if (status === 200 && type.startsWith('text/event-stream'))
        bench.warn('a stream of events was sent to who did not accept it')
      bench.expect(status < 500, `the HTTP status must not be ${status}`)
    },
  }),
  scenario('base/http/no-empty-events', {
    title: 'a client that does not know empty events gets none',
    proves: ['MCP 2025-11-25 changelog', 'SEP-1699'],
    revisions: ['2025-03-26', '2025-06-18'],
    carriers: http,
    needs: [tool('test_tool_with_progress')],
    async run(bench) {
      const peer = await bench.open()
      const params = { name: 'test_tool_with_progress', _meta: { progressToken: 'p' } }
      const message = { jsonrpc: '2.0', id: 'streamed', method: 'tools/call', params }
      const reply = await post(peer, peer.http.headers(message), JSON.stringify(message))
      const empty = reply.events.filter(({ type, data }) => type === '' && data === '')
      bench.expect(empty.length === 0, 'events without data are for clients at 2025-11-25 or later')
    },
  }),
  scenario('base/http/not-json', {
    title: 'a body that is no JSON is refused with 400',
    proves: transport,
    revisions: official,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const reply = await post(peer, rightHeaders(peer), '{"jsonrpc":')
      bench.expect(reply.status === 400, `the HTTP status must be 400, not ${reply.status}`)
    },
  }),
  scenario('base/http/get', {
    title: 'GET gives a stream of events, or 405',
    proves: transport,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const peer = await bench.open({ listen: false })
      const { 'content-type': _, ...headers } = peer.http.headers()
      let head: { status: number; type: string } | undefined
      const stop = new AbortController()
      const seen = new Promise<void>(resolve => {
        const onHead = (status: number, got: Readonly<Record<string, string>>): void => {
          head = { status, type: got['content-type'] ?? '' }
          resolve()
        }
        const call = {
          method: 'GET',
          headers: { ...headers, accept: 'text/event-stream' },
          onHead,
          signal: stop.signal,
          ms: 5_000,
        }
        peer.http.call(call).catch(() => resolve())
      })
      await seen
      stop.abort()
      const isStream = head?.status === 200 && head.type.startsWith('text/event-stream')
      bench.expect(isStream || head?.status === 405, `GET must give a stream of events or 405, not ${head?.status} ${head?.type}`)
    },
  }),
  scenario('base/http/session-id', {
    title: 'a session id is made of visible ASCII',
    proves: managing,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      bench.expect(/^[\x21-\x7e]+$/.test(sessionOf(bench, peer)), 'Mcp-Session-Id must be of visible ASCII')
    },
  }),
  scenario('base/http/session-fresh', {
    title: 'no two sessions have the same id',
    proves: managing,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const [one, two] = [await bench.open(), await bench.open()]
      bench.expect(sessionOf(bench, one) !== sessionOf(bench, two), 'session ids must be unique')
    },
  }),
  scenario('base/http/session-missing', {
    title: 'a request without the session id is refused with 400',
    proves: managing,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      sessionOf(bench, peer)
      const { 'mcp-session-id': _, ...headers } = rightHeaders(peer)
      const { status } = await post(peer, headers)
      if (status !== 400) bench.warn(`a request without the session id should be refused with 400, not ${status}`)
    },
  }),
  scenario('base/http/session-unknown', {
    title: 'a session id that the server never gave is refused',
    proves: managing,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      sessionOf(bench, peer)
      const reply = await post(peer, { ...rightHeaders(peer), 'mcp-session-id': 'vivarium-no-such-session' })
      bench.expect(isRefused(reply), `an unknown session must be refused with 4xx, not ${reply.status}`)
      if (reply.status !== 404) bench.warn(`an unknown session should be refused with 404, not ${reply.status}`)
    },
  }),
  scenario('base/http/session-ended', {
    title: 'a session that was ended with DELETE is gone: 404',
    proves: managing,
    revisions: sessions,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      sessionOf(bench, peer)
      const headers = rightHeaders(peer)
      const { status } = await peer.http.call({ method: 'DELETE', headers })
      if (status === 405) bench.leave('it does not let clients end sessions')
      bench.expect(status >= 200 && status < 300, `DELETE must be answered with 2xx or 405, not ${status}`)
      const late = await post(peer, headers)
      bench.expect(late.status === 404, `after DELETE the session must be answered with 404, not ${late.status}`)
    },
  }),
  scenario('base/http/version-header', {
    title: 'a version header that names no version is refused with 400',
    proves: ['MCP 2025-06-18 basic/transports#protocol-version-header'],
    revisions: ['2025-06-18', '2025-11-25'],
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const { status } = await post(peer, { ...rightHeaders(peer), 'mcp-protocol-version': '1999-01-01' })
      bench.expect(status === 400, `an unknown version must be refused with 400, not ${status}`)
    },
  }),
  scenario('base/http/no-version-header', {
    title: 'a request of a session without the version header is served',
    proves: ['MCP 2025-06-18 basic/transports#protocol-version-header'],
    revisions: ['2025-06-18', '2025-11-25'],
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const { 'mcp-protocol-version': _, ...headers } = rightHeaders(peer)
      const { status } = await post(peer, headers)
      bench.expect(status === 200, `the HTTP status must be 200, not ${status}`)
    },
  }),
  scenario('base/http/several-streams', {
    title: 'requests posted at once are each answered on their own exchange',
    proves: transport,
    revisions: official,
    carriers: http,
    async run(bench) {
      const peer = await bench.open()
      const ids = ['s1', 's2', 's3']
      const replies = await Promise.all(
        ids.map(id => post(peer, rightHeaders(peer), JSON.stringify(harmless(bench.revision, id)))),
      )
      for (const [at, reply] of replies.entries()) {
        const said = reply.body + reply.events.map(({ data }) => data).join()
        const others = ids.filter(id => id !== ids[at])
        bench.expect(said.includes(`"${ids[at]}"`), 'each exchange must bring the answer to its own request')
        bench.expect(!others.some(id => said.includes(`"id":"${id}"`)), 'an exchange must not bring answers to other requests')
      }
    },
  }),
  ...(['host', 'origin'] as const).map(name =>
    scenario(`base/http/foreign-${name}`, {
      title: `a request of a page elsewhere (${name} evil.example.com) is refused on loopback`,
      proves: ['MCP basic/transports#security-warning'],
      revisions: official,
      carriers: http,
      async run(bench) {
        const peer = await bench.open()
        const { hostname } = peer.http.url
        if (!['localhost', '127.0.0.1', '[::1]'].includes(hostname)) bench.leave('the server is not on loopback')
        const value = name === 'host' ? 'evil.example.com' : 'http://evil.example.com'
        const initialize = {
          jsonrpc: '2.0',
          id: 1,
          method: 'initialize',
          params: { protocolVersion: bench.revision, capabilities: {}, clientInfo: kitInfo },
        }
        const modern = since('draft-2026-v1').includes(bench.revision)
        const message = modern ? harmless(bench.revision, 1) : initialize
        const { 'mcp-session-id': _, ...headers } = peer.http.headers(message)
        const reply = await post(peer, { ...headers, [name]: value }, JSON.stringify(message))
        // Of the two the Origin is what the protocol demands; the Host is the same hole seen from the other side.
        if (name === 'host' && !isRefused(reply)) bench.warn(`a foreign Host should be refused with 4xx, not ${reply.status}`)
        else bench.expect(isRefused(reply), `it must be refused with HTTP status 4xx, not ${reply.status}`)
      },
    }),
  ),
  scenario('base/http/resume', {
    title: 'a stream that was let go is continued by GET with Last-Event-ID',
    proves: ['MCP 2025-11-25 basic/transports#resumability-and-redelivery', 'SEP-1699'],
    revisions: ['2025-11-25'],
    carriers: http,
    needs: [tool('test_reconnection')],
    async run(bench) {
      const peer = await bench.open()
      const message = { jsonrpc: '2.0', id: 'resumed', method: 'tools/call', params: { name: 'test_reconnection' } }
      const cut = await post(peer, peer.http.headers(message), JSON.stringify(message))
      const [prime] = cut.events
      bench.expect(
        prime !== undefined && prime.id !== undefined && prime.data === '',
        'the stream must open with an event with an id and no data',
      )
      const lastId = cut.events.findLast(({ id }) => id !== undefined)?.id ?? ''
      const answered = cut.events.some(({ data }) => data.includes('"resumed"'))
      bench.expect(!answered, 'the stream must be let go before the answer')
      const { 'content-type': _, ...headers } = peer.http.headers()
      const reply = await peer.http.call({
        method: 'GET',
        headers: { ...headers, accept: 'text/event-stream', 'last-event-id': lastId },
        until: ({ data }) => data.includes('"resumed"'),
        ms: 8_000,
      })
      bench.expect(
        reply.events.some(({ data }) => data.includes('"resumed"')),
        'the answer must come on the continued stream',
      )
    },
  }),
]
