/** What goes on over several messages: session state (E14), transactions (E5), streams that are resumed (E8) and events (E15). */
import { isRecord } from '../../../jsonrpc/message.ts'
import { is, objectIn, objectsIn, orSkip, sameJson, should } from '../../expectations.ts'
import { extensionId } from '../../said.ts'
import type { Json } from '../../scenario.ts'
import { keys } from '../../wire/envelope.ts'
import { calls, each, first, isUndone, none, reported, requires, sent, shownBy, some, times, under } from '../checks.ts'
import { type ClientScenario, knowing, offering, problemResult } from '../define.ts'
import type { LoggedMessage, Observation } from '../log.ts'
import { call, listTools, type Play, play, reportedPlay, type Step, testTool, textResult } from '../play.ts'
import { type ClientRequest, noAnswer } from '../script.ts'

// ── state ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Nothing that anybody may take apart. */
const FIRST = 'st.A/+=\u00e9 1'
const SECOND = 'st.B'

function numbered(n: string, conversation?: string): Step {
  return call(n, { n }, conversation === undefined ? {} : { conversation })
}

/** Calls by these names are answered with these tokens, or with a problem. */
function stateful(name: string, steps: readonly Step[], tokens: Json): Play {
  return play(name, {
    steps,
    report: true,
    capabilities: offering('state', 'problem'),
    on: {
      'tools/call': ({ args }) => {
        const token = tokens[String(args['n'])]
        if (isRecord(token)) return problemResult(token)
        const state = { session_state: token, state_changed: true }
        return textResult('done', token === undefined ? {} : { _meta: { [extensionId('state')]: state } })
      },
    },
  })
}

const three = [numbered('one'), numbered('two'), numbered('three')]
const rotation = stateful('state-rotation', [...three, numbered('four'), numbered('else', 'another')], {
  one: FIRST,
  three: SECOND,
})
const invalid = stateful('state-invalid', three, {
  one: FIRST,
  two: { code: 'STATE_INVALID', message: 'Not mine', category: 'permanent', details: { recovery: 'restart' } },
})
const large = stateful('state-large', three.slice(0, 2), { one: 'x'.repeat(70_000) })

/** The call of this name has this token. */
function token(n: string, right: string | undefined): ReturnType<typeof some> {
  const named = (seen: Observation) => calls(seen).filter(({ args }) => args['n'] === n)
  return shownBy(named, seen => under(named(seen)[0], 'state')['session_state'] === right)
}

const stateRow = knowing('state', { needs: [requires(seen => calls(seen).length > 1, 'the client did not make the calls')] })

const states = [
  stateRow('E14-1 E14-4', 'The last token is sent back unchanged').by(rotation, {
    'The first call has a token that the server never sent': token('one', undefined),
    'The token of the first answer was changed or left out': token('two', FIRST),
    'An answer without a token has ended the state': token('three', FIRST),
    'The newest token was not used': token('four', SECOND),
  }),
  stateRow('E14-6', 'A token stays in its conversation').by(rotation, {
    'the client has one conversation only': orSkip(seen => calls(seen).some(({ args }) => args['n'] === 'else')),
    'Another conversation sent the token of the first': token('else', undefined),
  }),
  stateRow('E14-3', 'A token that the server refuses is not sent again').by(invalid, {
    'A refused token was sent again': token('three', undefined),
  }),
  stateRow('E14-2', 'A token of more than 64 KiB is dropped').by(large, {
    'A token over the limit was kept and sent': token('two', undefined),
  }),
]

// ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────────

function transacting(name: string, fails: boolean): Play {
  const begun = { begun_at: '2026-01-01T00:00:00Z', timeout_seconds: 300, steps: [] }
  const answer =
    (more: Json) =>
    ({ params: { transaction_id } }: ClientRequest): Json => ({ transaction_id, ...more, ...begun })
  return play(name, {
    steps: [{ do: 'transaction', calls: [1, 2].map(n => ({ tool: 'test-tool', arguments: { n } })), as: 'tx' }],
    report: true,
    capabilities: offering('transactions', 'idempotency', 'problem'),
    on: {
      'transaction/begin': answer({ status: 'begun' }),
      'transaction/commit': answer({ status: 'committed', steps_completed: 2 }),
      'transaction/rollback': answer({ status: 'rolled_back', steps_compensated: [] }),
      'transaction/get': answer({ status: 'begun' }),
      'tools/call': ({ log }) =>
        fails && log.of('tools/call').length > 1
          ? problemResult({ code: 'INVALID_INPUT', message: 'No', category: 'permanent' })
          : textResult('done'),
    },
  })
}

const committed = transacting('transaction', false)
const failed = transacting('transaction-failed', true)

function transactionOf(seen: Observation): unknown {
  return seen.requests('transaction/begin')[0]?.params['transaction_id']
}

function namesIt({ params }: LoggedMessage, seen: Observation): boolean {
  return params['transaction_id'] === transactionOf(seen)
}

const transactionRow = knowing('transactions', { needs: [sent('transaction/begin', 'the client began no transaction')] })

const transactions = [
  transactionRow('E5-12 E5-15', 'Every call of a transaction names it, and its end is sent').by(committed, {
    'A transaction has an id': shownBy('transaction/begin', seen => is.word(transactionOf(seen))),
    'A step does not name its transaction': each(
      calls,
      (step, seen) => under(step, 'transactions')['transaction_id'] === transactionOf(seen),
    ),
    'Two steps have the same name': shownBy(calls, seen => {
      const names = calls(seen).map(step => under(step, 'transactions')['step_id'])
      const given = names.filter(name => name !== undefined)
      return new Set(given).size === given.length
    }),
    'The transaction was not committed': first('transaction/commit', namesIt),
  }),
  transactionRow('E5-14', 'A transaction with a failed step is rolled back').by(failed, {
    'The transaction was left open': first('transaction/rollback', namesIt),
    'It was committed after a failure': none('transaction/commit'),
  }),
]

// ── streams ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const CHECKPOINT = 'cp/1+=é'

function chunk({ meta: { progressToken }, tell }: ClientRequest, sequence: number, more: Json = {}): void {
  if (progressToken === undefined) return
  const about = { type: 'stream_chunk', operation_id: 'op-1', sequence, data: `part ${sequence}`, checkpoint_token: CHECKPOINT }
  const _meta = { [extensionId('streaming')]: { ...about, ...more } }
  tell('notifications/progress', { progressToken, progress: sequence + 1, _meta })
}

function resumes(message: Pick<LoggedMessage, 'meta'>): boolean {
  return isRecord(under(message, 'streaming')['resume'])
}

/** The stream breaks after its first chunk; then comes what `resumed` says. */
function streaming(name: string, resumed: (request: ClientRequest) => unknown): Play {
  return reportedPlay(name, {
    steps: [listTools, call('stream', { n: 1 }, { stream: true })],
    tools: [{ ...testTool, _meta: { [extensionId('streaming')]: { supports_streaming: true } } }],
    capabilities: offering('streaming', 'problem', 'idempotency'),
    on: {
      'tools/call': request => {
        if (resumes(request)) return resumed(request)
        chunk(request, 0)
        setTimeout(() => request.reply.cut(), 50)
        return noAnswer
      },
    },
  })
}

const broken = streaming('stream-resume', request => {
  chunk(request, 1, { is_final: true })
  return textResult('part 0part 1')
})
const gone = streaming('stream-gone', () =>
  problemResult({ code: 'CHECKPOINT_NOT_FOUND', message: 'Too late', category: 'permanent' }),
)

function furtherCalls(seen: Observation): readonly LoggedMessage[] {
  return calls(seen).slice(1)
}

const resumesStreams = { 'the client does not resume streams': orSkip(some(furtherCalls)) }
const streamRow = knowing('streaming', { carriers: ['http'] })

const streams = [
  streamRow('E8-6', 'A stream that broke continues after the last chunk').by(broken, {
    'the client did not stream': orSkip(some(calls)),
    ...resumesStreams,
    'The second call must name operation and checkpoint unchanged': first(furtherCalls, again => {
      const { operation_id, checkpoint_token } = objectIn(under(again, 'streaming'), 'resume')
      return operation_id === 'op-1' && checkpoint_token === CHECKPOINT
    }),
    'The second call differs from the first': first(furtherCalls, ({ args }) => sameJson(args, { n: 1 })),
    'The chunks': reported('stream', ({ count = 2 }) => count === 2 || `The reader got ${count} of 2 chunks`),
  }),
  streamRow('E8-7', 'A stream that cannot continue is not restarted without the consent of the caller').by(gone, {
    ...resumesStreams,
    'The call was made again': none(furtherCalls, again => !resumes(again)),
    'A broken stream is reported as complete': reported('stream', isUndone),
  }),
]

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function event(n: number, more: Json = {}): Json {
  return {
    type: 'event',
    event: 'thing_happened',
    timestamp: '2026-01-01T00:00:00Z',
    payload: { id: `e${n}` },
    event_id: `e${n}`,
    cursor: `c${n}`,
    previous_cursor: `c${n - 1}`,
    ...more,
  }
}

/** What is told to a client that has subscribed behind this cursor. */
type EventsAfter = (cursor: unknown) => readonly Json[]

const wanted = ['notifications', extensionId('events')] as const

/** Subscribes as the wire says, and tells of the events once the subscription stands. */
function events(name: string, after: EventsAfter, settings: Json = {}): Play {
  return reportedPlay(name, {
    ms: 12_000,
    steps: [{ do: 'events', names: ['thing_happened'], count: 2, as: 'events' }],
    capabilities: { tools: {}, extensions: { [extensionId('events')]: settings } },
    on: server => ({
      'event/subscribe': ({ params: { subscription_id = 'sub-1', cursor } }) => {
        const method = 'notifications/event'
        setTimeout(() => {
          for (const one of after(cursor)) server.unasked({ method, params: { subscription_id, ...one } })
        }, 100)
        return { subscription_id, status: 'active', cursor: cursor ?? 'c0' }
      },
      'event/unsubscribe': ({ params }) => ({ subscription_id: params['subscription_id'], status: 'cancelled' }),
      'event/poll': ({ params: { cursor = 'c0' } }) => {
        const n = cursor === 'c0' ? 1 : 2
        const found = cursor === 'c2' ? [] : [event(n, { subscription_id: 'poll' })]
        return { events: found, cursor: `c${n}`, truncated: false, more: false, poll_interval_seconds: 1 }
      },
      'subscriptions/listen': ({ params, id, tell }) => {
        const [{ subscription_id = 'sub-1', cursor } = {}] = objectsIn(params, ...wanted) as readonly Json[]
        const _meta = { [keys.subscription]: id }
        const notifications = { [extensionId('events')]: [{ subscription_id, status: 'active', cursor: cursor ?? 'c0' }] }
        tell('notifications/subscriptions/acknowledged', { notifications, _meta })
        for (const one of after(cursor)) tell('notifications/event', { subscription_id, ...one, _meta })
        return noAnswer
      },
    }),
  })
}

const action_hint = { recommended_tool: 'test-tool', parameters: {}, reason: 'Do it now' }
const doubled = events('events-doubled', () => [event(1, { action_hint }), event(1, { action_hint }), event(2)])
const gap = events('events-gap', cursor => (cursor === undefined ? [event(1), event(3)] : [event(2), event(3)]))
const polls = events('events-polled', () => [], { supported: false, poll_interval_seconds: 1 })

/** What the client has asked for in its subscriptions, in order. */
function subscriptions(seen: Observation): readonly Json[] {
  if (!seen.stateless) return seen.requests('event/subscribe').map(({ params }) => params)
  return seen.requests('subscriptions/listen').flatMap(({ params }) => objectsIn(params, ...wanted))
}

const heardBoth = reported(
  'events',
  ({ text }) => text === undefined || text === '{"id":"e1"} {"id":"e2"}' || `The client received ${text}`,
)
const row = knowing('events')
const eventRow = knowing('events', {
  needs: [requires(seen => subscriptions(seen).length > 0, 'the client did not subscribe')],
})

const listening = [
  eventRow('E15-4', 'An event that comes twice is reported once').by(doubled, {
    'the client does not report its events': orSkip(seen => seen.reported.get('events')?.text !== undefined),
    'The events': heardBoth,
  }),
  eventRow('E15-11', 'The action_hint of an event is not executed').by(doubled, {
    'The action_hint of an event was executed': none(calls),
  }),
  eventRow('E15-6 E15-3', 'After a gap the client resumes after the last event it had').by(gap, {
    'The gap was not detected': shownBy('*', seen => subscriptions(seen).length > 1),
    'The cursor': shownBy('*', seen => {
      const cursor = subscriptions(seen)[1]?.['cursor']
      return cursor === 'c1' || `The new subscription must begin at c1, not at ${JSON.stringify(cursor)}`
    }),
    'The events': heardBoth,
  }),
  row('E15-9', 'Without push the client polls at the allowed interval').by(
    [polls, sent('event/poll', 'the client does not poll')],
    {
      'The client polled only once': times('event/poll', count => count >= 2),
      'The next poll must name the cursor of the last': each(
        seen => seen.requests('event/poll').slice(1),
        ({ params }) => params['cursor'] !== undefined,
      ),
      'The pause': shownBy('event/poll', seen => {
        const [one, two] = seen.requests('event/poll')
        const pause = (two?.at ?? 0) - (one?.at ?? 0)
        return pause >= 900 || `The client polled again after ${Math.round(pause)} ms; poll_interval_seconds is 1`
      }),
    },
  ),
  eventRow('E15-7', 'A client that no longer listens unsubscribes').by(doubled, {
    'The client did not unsubscribe': should(seen => seen.stateless || seen.requests('event/unsubscribe').length > 0),
  }),
]

/** State, transactions, streams and events. */
export const ongoingScenarios: readonly ClientScenario[] = [...states, ...transactions, ...streams, ...listening]
