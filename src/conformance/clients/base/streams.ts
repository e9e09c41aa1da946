/** HTTP beneath the messages: streams that break, sessions that end, endpoints elsewhere. */
import { type Play, RUN, said } from '../play.ts'
import { type ClientScenario, HTTP_SESSIONS, OLDEST, STATELESS, scenario } from '../scenario.ts'
import type { Stage } from '../stage/open.ts'
import { silence } from '../stage/script.ts'
import { header, run } from './running.ts'

const RETRY_MS = 400

/** The answer of the call comes on a stream that breaks, and goes on where the client comes back with its last event. */
function broken(name: string, retry: boolean): Play {
  return {
    name,
    steps: RUN,
    report: true,
    ms: 6_000,
    on: () => ({
      'tools/call': call => {
        const { way, book, id } = call
        if (way.stream === undefined) return said('done')
        book.notes.set('open call', id)
        way.stream(
          retry
            ? `id: event-1\ndata: \n\nretry: ${RETRY_MS}\n\n`
            : 'id: event-1\nevent: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"wait"}}\n\n',
        )
        setTimeout(() => {
          book.notes.set('broken at', book.now)
          if (retry) way.finish()
          else way.cut()
        }, 50)
        return silence
      },
    }),
    http:
      ({ book }) =>
      ({ method, headers }, response) => {
        if (method !== 'GET' || headers['last-event-id'] === undefined) return false
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const answer = JSON.stringify({ jsonrpc: '2.0', id: book.notes.get('open call'), result: said('resumed') })
        book.told(answer, 0)
        response.end(`id: event-2\nevent: message\ndata: ${answer}\n\n`)
        return true
      },
  }
}

const retried = broken('sse-retry-vivarium', true)
const resumed = broken('sse-resume', false)

const lostSession: Play = {
  name: 'session-lost',
  steps: [...RUN, { do: 'call', tool: 'test-tool', arguments: { again: true }, as: 'again' }],
  report: true,
  http:
    ({ book }) =>
    ({ method, headers }, response, body) => {
      if (method !== 'POST' || headers['mcp-session-id'] !== 'session-1' || !body.includes('"again"')) return false
      book.notes.set('lost at', book.now)
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}')
      return true
    },
}

const deaf: Play = { name: 'no-stream', steps: RUN, report: true, deaf: true }
const streamed: Play = { name: 'streamed', steps: RUN, report: true, streams: true }

/** The old pair names an endpoint on another origin, where a token would go to whoever sits there. */
const elsewhere: Play = {
  name: 'foreign-endpoint',
  steps: RUN,
  ms: 8_000,
  endpoint: ({ origin }: Stage) => `${origin.replace('127.0.0.1', 'localhost')}/messages?stolen=1`,
}

export const streams: readonly ClientScenario[] = [
  scenario('client/http/retry', 'A stream that the server lets go of is taken up after the time it named', retried, {
    proves: ['MCP 2025-11-25 basic/transports#resumability-and-redelivery'],
    revisions: ['2025-11-25'],
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      const broke = seen.note<number>('broken at')
      if (broke === undefined) return skip('the client did not call the tool')
      const back = seen.visits('GET').find(({ headers }) => headers['last-event-id'] !== undefined)
      if (back === undefined) return expect(false, 'The client did not come back for the answer', seen.calls())
      expect(back.headers['last-event-id'] === 'event-1', `Last-Event-ID must be event-1, not ${back.headers['last-event-id']}`)
      // Timers may fire a little early, clocks differ a little.
      expect(
        back.at - broke >= RETRY_MS - 60,
        `The client came back after ${Math.round(back.at - broke)} ms, before the ${RETRY_MS} ms it was told`,
      )
      const entry = seen.reported.get('call')
      expect(entry === undefined || entry.ok, 'The answer on the new stream was lost', seen.calls())
    },
  }),
  scenario('client/http/resume', 'A stream that breaks is resumed behind the last event', resumed, {
    proves: ['MCP basic/transports#resumability-and-redelivery'],
    revisions: HTTP_SESSIONS,
    carriers: ['http'],
    check: (seen, { expect, skip, warn }) => {
      if (seen.note<number>('broken at') === undefined) skip('the client did not call the tool')
      const back = seen.visits('GET').find(({ headers }) => headers['last-event-id'] !== undefined)
      if (back === undefined) return warn('The client does not resume broken streams')
      expect(back.headers['last-event-id'] === 'event-1', `Last-Event-ID must be event-1, not ${back.headers['last-event-id']}`)
      expect(back.headers['mcp-session-id'] === 'session-1', 'The session must be named when a stream is resumed')
    },
  }),
  scenario('client/http/session-lost', 'A session that the server no longer knows is opened anew, without its id', lostSession, {
    proves: ['MCP basic/transports#session-management'],
    revisions: HTTP_SESSIONS,
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      const lost = seen.note<number>('lost at')
      if (lost === undefined) return skip('the client did not make a second call')
      const anew = seen.requests('initialize').find(({ at }) => at > lost)
      if (anew === undefined) return expect(false, 'After a 404 the client must send initialize again', seen.fromClient.slice(-2))
      expect(header(anew, 'mcp-session-id') === undefined, 'The new session was asked for under the old id', [anew])
      const later = seen.fromClient.filter(({ at, http }) => at > anew.at && http?.headers['mcp-session-id'] === 'session-1')
      expect(later.length === 0, 'The dead session was still used', later.slice(0, 1))
    },
  }),
  scenario('client/http/no-stream', 'A server without a stream of its own is served as well', deaf, {
    proves: ['MCP basic/transports#listening-for-messages-from-the-server'],
    revisions: HTTP_SESSIONS,
    carriers: ['http'],
    check: (seen, { expect }) => {
      expect(seen.calls('test-tool').length > 0, 'The client did not get along with 405 for its GET', seen.fromClient.slice(-2))
    },
  }),
  scenario('client/http/no-get', 'There is nothing to GET, to DELETE or to resume', run, {
    proves: ['MCP 2026-07-28 basic/transports/streamable-http'],
    revisions: STATELESS,
    carriers: ['http'],
    check: (seen, { expect }) => {
      for (const method of ['GET', 'DELETE'])
        expect(seen.visits(method).length === 0, `The client sent a ${method}, which this wire does not have`)
      const sent = seen.fromClient.filter(said => header(said, 'mcp-session-id') !== undefined)
      expect(sent.length === 0, 'There are no sessions on this wire', sent.slice(0, 1))
    },
  }),
  scenario('client/http/streamed', 'An answer is taken from a stream as from a body', streamed, {
    proves: ['MCP basic/transports#sending-messages-to-the-server'],
    revisions: [...HTTP_SESSIONS, ...STATELESS],
    carriers: ['http'],
    check: (seen, { expect }) => {
      expect(seen.calls('test-tool').length > 0, 'The client does not read answers from streams', seen.fromClient.slice(-2))
      const entry = seen.reported.get('call')
      expect(entry === undefined || entry.ok, 'The answer on the stream was lost', seen.calls())
    },
  }),
  scenario('client/sse/foreign-endpoint', 'An endpoint on another origin gets nothing', elsewhere, {
    proves: ['MCP 2024-11-05 basic/transports#http-with-sse'],
    revisions: [OLDEST],
    carriers: ['sse'],
    check: (seen, { expect }) => {
      const posted = seen.fromClient.filter(({ http }) => http?.path.includes('stolen') === true)
      expect(posted.length === 0, 'The client sent its messages to another origin', posted.slice(0, 1))
    },
  }),
]
