/** HTTP beneath the messages: streams that break, sessions that end, endpoints elsewhere, arguments that travel in headers too. */
import { stateless } from '../../define.ts'
import { orSkip, should } from '../../expectations.ts'
import { calls, everything, first, header, none, reported, some, unvisited } from '../checks.ts'
import { clientTable, httpSessions } from '../define.ts'
import type { HttpVisit, Observation } from '../log.ts'
import { call, listTools, type Play, play, reportedPlay, stepsAgain, testTool, textResult } from '../play.ts'
import { noAnswer } from '../script.ts'
import { plainRun } from './run.ts'

const RETRY_MS = 400
const waiting = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"wait"}}'

/** The answer of the call comes on a stream that breaks, and goes on where the client comes back with its last event. */
function broken(name: string, retry: boolean): Play {
  return reportedPlay(name, {
    ms: 6_000,
    on: {
      'tools/call': ({ reply, log, id }) => {
        if (reply.stream === undefined) return textResult('done')
        log.notes.set('open call', id)
        reply.stream(`id: event-1\n${retry ? `data: \n\nretry: ${RETRY_MS}` : `event: message\ndata: ${waiting}`}\n\n`)
        setTimeout(() => {
          log.notes.set('broken at', log.now)
          if (retry) reply.finish()
          else reply.cut()
        }, 50)
        return noAnswer
      },
    },
    http:
      ({ log }) =>
      ({ method, headers }, response) => {
        if (method !== 'GET' || headers['last-event-id'] === undefined) return false
        const answer = JSON.stringify({ jsonrpc: '2.0', id: log.notes.get('open call'), result: textResult('resumed') })
        log.sent(answer, 0)
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: event-2\nevent: message\ndata: ${answer}\n\n`)
        return true
      },
  })
}

const retried = broken('sse-retry-vivarium', true)
const resumed = broken('sse-resume', false)

const lostSession = reportedPlay('session-lost', {
  steps: stepsAgain,
  http:
    ({ log }) =>
    ({ method, headers }, response, body) => {
      if (method !== 'POST' || headers['mcp-session-id'] !== 'session-1' || !body.includes('"again"')) return false
      log.notes.set('lost at', log.now)
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}')
      return true
    },
})

const noStream = reportedPlay('no-stream', { inputClosed: true })
const streamed = reportedPlay('streamed', { streams: true })

/** The old pair names an endpoint on another origin, where a token would go to whoever sits there. */
const foreignEndpoint = play('foreign-endpoint', {
  ms: 8_000,
  endpoint: ({ origin }) => `${origin.replace('127.0.0.1', 'localhost')}/messages?stolen=1`,
})

/** The request with which the client came back for the rest of a stream. */
function reconnection(seen: Observation): HttpVisit | undefined {
  return seen.visits('GET').find(({ headers }) => headers['last-event-id'] !== undefined)
}

const row = clientTable('client/', { revisions: httpSessions, carriers: ['http'] })
const wasBroken = { 'the client did not call the tool': orSkip((seen: Observation) => seen.note('broken at') !== undefined) }
const lastEvent = (seen: Observation) => {
  const id = reconnection(seen)?.headers['last-event-id'] ?? 'event-1'
  return id === 'event-1' || `Last-Event-ID must be event-1, not ${id}`
}

const streams = [
  row(
    'http/retry MCP 2025-11-25 basic/transports#resumability-and-redelivery',
    'A stream that the server closes is resumed after the time that it named',
  ).by(
    { play: retried, revisions: ['2025-11-25'] },
    {
      ...wasBroken,
      'The client did not resume the stream': seen => reconnection(seen) !== undefined,
      'The last event': lastEvent,
      'The wait': seen => {
        // Timers may fire a little early, clocks differ a little.
        const waited = (reconnection(seen)?.at ?? 0) - (seen.note<number>('broken at') ?? 0)
        return (
          waited >= RETRY_MS - 60 ||
          `The client came back after ${Math.round(waited)} ms, before the ${RETRY_MS} ms that the server named`
        )
      },
      'The answer on the new stream was lost': reported('call', ({ ok }) => ok),
    },
  ),
  row('http/resume MCP basic/transports#resumability-and-redelivery', 'A broken stream is resumed after the last event').by(
    resumed,
    {
      ...wasBroken,
      'The client does not resume broken streams': should(seen => reconnection(seen) !== undefined),
      'The last event': lastEvent,
      'The session must be named when a stream is resumed': seen =>
        (reconnection(seen)?.headers['mcp-session-id'] ?? 'session-1') === 'session-1',
    },
  ),
  row(
    'http/session-lost MCP basic/transports#session-management',
    'A session that the server no longer knows is opened again, without its id',
  ).by(lostSession, (seen, { expect, leave }) => {
    const lost = seen.note<number>('lost at')
    if (lost === undefined) return leave('the client did not make a second call')
    const anew = seen.requests('initialize').find(({ at }) => at > lost)
    expect(anew !== undefined, 'After a 404 the client must send initialize again', seen.fromClient.slice(-2))
    expect(anew?.headers['mcp-session-id'] === undefined, 'The new session was requested with the old id', [anew])
    const later = seen.fromClient.filter(({ at, headers }) => at > (anew?.at ?? 0) && headers['mcp-session-id'] === 'session-1')
    expect(later.length === 0, 'The lost session was still used', later.slice(0, 1))
  }),
  row('http/no-stream MCP basic/transports#listening-for-messages-from-the-server', 'A server without a GET stream works').by(
    noStream,
    {
      'The client did not accept 405 for its GET': some(calls),
    },
  ),
  row('http/no-get MCP 2026-07-28 basic/transports/streamable-http', 'The client sends no GET, DELETE or resumption').by(
    { play: plainRun, revisions: stateless },
    {
      'The client sent a GET, which this revision does not have': unvisited('/mcp'),
      'The client sent a DELETE, which this revision does not have': seen => seen.visits('DELETE').length === 0,
      'This revision has no sessions': none(everything, ({ headers }) => headers['mcp-session-id'] !== undefined),
    },
  ),
  row(
    'http/streamed MCP basic/transports#sending-messages-to-the-server',
    'A response is accepted from a stream and from a body',
  ).by(
    { play: streamed, revisions: [...httpSessions, ...stateless] },
    {
      'The client does not read answers from streams': some(calls),
      'The answer on the stream was lost': reported('call', ({ ok }) => ok),
    },
  ),
  row(
    'sse/foreign-endpoint MCP 2024-11-05 basic/transports#http-with-sse',
    'Nothing is sent to an endpoint on another origin',
  ).by(
    { play: foreignEndpoint, revisions: ['2024-11-05'], carriers: ['sse'] },
    { 'The client sent its messages to another origin': none(everything, ({ http }) => http?.path.includes('stolen') === true) },
  ),
]

// ── arguments in headers (2026-07-28 §2.5), and tools that ask for what cannot be a header ──────────────────────────

/** A schema whose properties are marked with these headers. */
function marked(marks: Readonly<Record<string, string>>, type = 'string') {
  const properties = Object.entries(marks).map(([name, mark]) => [name, { type, 'x-mcp-header': mark }])
  return { type: 'object', properties: Object.fromEntries(properties) }
}

function encoded(text: string): string {
  return `=?base64?${Buffer.from(text).toString('base64')}?=`
}

const texts = marked({ region: 'Region', city: 'City', blank: 'Blank', absent: 'Absent' }).properties
const numbers = marked({ count: 'Count' }, 'integer').properties
const flags = marked({ dry: 'Dry' }, 'boolean').properties
const given = { region: 'eu-1', count: 42, dry: false, city: 'Zürich', blank: ' edge ', absent: null }
const want = { region: 'eu-1', count: '42', dry: 'false', city: encoded('Zürich'), blank: encoded(' edge ') }

const mirrored = play('mirrored-headers', {
  steps: [listTools, call('call', given)],
  tools: [{ name: 'test-tool', inputSchema: { type: 'object', properties: { ...texts, ...numbers, ...flags } } }],
})

const impossibleTools = [
  { name: 'empty-mark', inputSchema: marked({ a: '' }) },
  { name: 'no-token', inputSchema: marked({ a: 'a b' }) },
  { name: 'twice', inputSchema: marked({ a: 'X', b: 'x' }) },
  { name: 'object-type', inputSchema: marked({ a: 'Obj' }, 'object') },
]

const impossible = reportedPlay('http-invalid-tool-headers-vivarium', {
  steps: [
    { do: 'list', what: 'tools', as: 'list' },
    ...impossibleTools.map(({ name }) => ({ do: 'call', tool: name, arguments: { a: 'x' }, as: name }) as const),
    call('call'),
  ],
  tools: [...impossibleTools, testTool],
})

const headerRow = clientTable('client/headers/', { revisions: ['2026-07-28'], carriers: ['http'] })

const headers = [
  headerRow(
    'mirrored MCP 2026-07-28 basic/transports/streamable-http',
    'Marked arguments are in headers, encoded if necessary, and omitted if null',
  ).by(mirrored, {
    'the client did not call the tool with these arguments': orSkip(first(calls, ({ args }) => args['region'] !== undefined)),
    'The headers': first(calls, ({ headers: sent }) => {
      const wrong = Object.entries(want).find(([name, value]) => sent[`mcp-param-${name}`] !== value)
      const [name, value] = wrong ?? []
      return wrong === undefined || `Mcp-Param-${name} must be "${value}", not "${sent[`mcp-param-${name}`]}"`
    }),
    'What is null has no header': first(calls, header('mcp-param-absent', undefined)),
  }),
  headerRow(
    'impossible MCP 2026-07-28 basic/transports/streamable-http',
    'A tool whose marks cannot be headers is not offered; the others are',
  ).by(impossible, {
    'the client called nothing': orSkip(some(seen => seen.calls())),
    'One invalid tool removed the valid ones': some(calls),
    'the client does not report what it lists': orSkip(seen => seen.reported.get('list')?.count !== undefined),
    // The report is listed too.
    'The tools': reported(
      'list',
      ({ count }) => count === 2 || `Of the tools ${count} are offered; the four with impossible marks must not be`,
    ),
  }),
]

/** What shows over HTTP alone. */
export const httpScenarios = [...streams, ...headers]
