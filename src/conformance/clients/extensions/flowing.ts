/** What comes bit by bit: streams that are resumed (E8) and events (E15). */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, said, testTool } from '../play.ts'
import type { ClientScenario } from '../scenario.ts'
import type { Seen } from '../seen.ts'
import { type Frame, paramsOf } from '../stage/book.ts'
import type { Stage } from '../stage/open.ts'
import { type Call, type Handler, silence } from '../stage/script.ts'
import { extending, key, offering, problemResult, under } from './define.ts'

const TOKEN = 'cp/1+=é'

function chunk(call: Call, sequence: number, more: Frame = {}): void {
  const { progressToken } = call.meta
  const own = { type: 'stream_chunk', operation_id: 'op-1', sequence, data: `part ${sequence}`, checkpoint_token: TOKEN, ...more }
  if (progressToken !== undefined)
    call.tell('notifications/progress', { progressToken, progress: sequence + 1, _meta: { [key('streaming')]: own } })
}

function streaming(name: string, resumed: (call: Call) => unknown): Play {
  return {
    name,
    report: true,
    steps: [
      { do: 'list', what: 'tools' },
      { do: 'call', tool: 'test-tool', arguments: { n: 1 }, stream: true, as: 'stream' },
    ],
    tools: [{ ...testTool, _meta: { [key('streaming')]: { supports_streaming: true } } }],
    capabilities: offering('streaming', 'problem', 'idempotency'),
    on: () => ({
      'tools/call': call => {
        if (isRecord(under(call.said, 'streaming')['resume'])) return resumed(call)
        chunk(call, 0)
        setTimeout(() => call.way.cut(), 50)
        return silence
      },
    }),
  }
}

const broken = streaming('stream-resume', call => {
  chunk(call, 1, { is_final: true })
  return said('part 0part 1')
})
const gone = streaming('stream-gone', () =>
  problemResult({ code: 'CHECKPOINT_NOT_FOUND', message: 'Too late', category: 'permanent' }),
)

// ── events ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function event(id: string, previous: string, cursor: string, more: Frame = {}): Frame {
  return {
    type: 'event',
    event: 'thing_happened',
    timestamp: '2026-01-01T00:00:00Z',
    payload: { id },
    event_id: id,
    cursor,
    previous_cursor: previous,
    ...more,
  }
}

type Tell = (method: string, params: Frame) => void

/** Subscribes as the wire says, and gives the word to `then` once the subscription stands. */
function events(name: string, count: number, then: (tell: Tell, cursor: unknown) => void, settings: Frame = {}): Play {
  return {
    name,
    report: true,
    ms: 12_000,
    steps: [{ do: 'events', names: ['thing_happened'], count, as: 'events' }],
    capabilities: () => ({ tools: {}, extensions: { [key('events')]: settings } }),
    on: stage => ({
      'event/subscribe': ({ params }) => {
        const id = params['subscription_id'] ?? 'sub-1'
        setTimeout(
          () => then((method, more) => stage.unasked({ method, params: { subscription_id: id, ...more } }), params['cursor']),
          100,
        )
        return { subscription_id: id, status: 'active', cursor: params['cursor'] ?? 'c0' }
      },
      'event/unsubscribe': ({ params }) => ({ subscription_id: params['subscription_id'], status: 'cancelled' }),
      'event/poll': polled(stage),
      'subscriptions/listen': listened(then),
    }),
  }
}

function listened(then: (tell: Tell, cursor: unknown) => void): Handler {
  return call => {
    const filter = isRecord(call.params['notifications']) ? call.params['notifications'] : {}
    const wanted = filter[key('events')]
    const [first] = Array.isArray(wanted) ? (wanted as Frame[]) : []
    const id = first?.['subscription_id'] ?? 'sub-1'
    const tag = { 'io.modelcontextprotocol/subscriptionId': call.id }
    const subscribed = { subscription_id: id, status: 'active', cursor: first?.['cursor'] ?? 'c0' }
    call.tell('notifications/subscriptions/acknowledged', { notifications: { [key('events')]: [subscribed] }, _meta: tag })
    then((method, params) => call.tell(method, { subscription_id: id, ...params, _meta: tag }), first?.['cursor'])
    return silence
  }
}

function polled(_: Stage): Handler {
  return ({ params }) => {
    const first = params['cursor'] === undefined || params['cursor'] === 'c0'
    const one = first
      ? [{ ...event('e1', 'c0', 'c1'), subscription_id: 'poll' }]
      : [{ ...event('e2', 'c1', 'c2'), subscription_id: 'poll' }]
    return {
      events: params['cursor'] === 'c2' ? [] : one,
      cursor: first ? 'c1' : 'c2',
      truncated: false,
      more: false,
      poll_interval_seconds: 1,
    }
  }
}

const HINT = { recommended_tool: 'test-tool', parameters: {}, reason: 'Do it now' }
const doubled = events('events-doubled', 2, tell => {
  tell('notifications/event', event('e1', 'c0', 'c1', { action_hint: HINT }))
  tell('notifications/event', event('e1', 'c0', 'c1', { action_hint: HINT }))
  tell('notifications/event', event('e2', 'c1', 'c2'))
})
const gap = events('events-gap', 2, (tell, cursor) => {
  if (cursor === undefined) {
    tell('notifications/event', event('e1', 'c0', 'c1'))
    tell('notifications/event', event('e3', 'c2', 'c3'))
  } else {
    tell('notifications/event', event('e2', 'c1', 'c2'))
    tell('notifications/event', event('e3', 'c2', 'c3'))
  }
})
const polls = events('events-polled', 2, () => {}, { supported: false, poll_interval_seconds: 1 })

/** The wishes for events that the client has sent, in order. */
function wishes(seen: Seen): readonly Frame[] {
  if (!seen.stateless) return seen.requests('event/subscribe').map(paramsOf)
  return seen.requests('subscriptions/listen').flatMap(said => {
    const filter = paramsOf(said)['notifications']
    const wanted = isRecord(filter) ? filter[key('events')] : undefined
    return Array.isArray(wanted) ? (wanted as Frame[]) : []
  })
}

const subscribed = (seen: Seen): string | undefined => (wishes(seen).length > 0 ? undefined : 'the client did not subscribe')

export const flowing: readonly ClientScenario[] = [
  extending('E8-6', 'A stream that broke goes on behind the last chunk', broken, {
    proves: ['E8-6'],
    knows: 'streaming',
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      const [first, second] = seen.calls('test-tool')
      if (first === undefined) return skip('the client did not stream')
      if (second === undefined) return skip('the client does not resume streams')
      const resume = under(second, 'streaming')['resume']
      const right = isRecord(resume) && resume['operation_id'] === 'op-1' && resume['checkpoint_token'] === TOKEN
      expect(right, 'The second call must name operation and checkpoint as they were given', [second])
      expect(JSON.stringify(paramsOf(second)['arguments']) === '{"n":1}', 'The second call is another one', [second])
      const entry = seen.reported.get('stream')
      expect(entry?.count === undefined || entry.count === 2, `The reader saw ${entry?.count} chunks of 2`, [second])
    },
  }),
  extending('E8-7', 'A stream that cannot go on is not begun anew behind the caller’s back', gone, {
    proves: ['E8-7'],
    knows: 'streaming',
    carriers: ['http'],
    check: (seen, { expect, skip }) => {
      const calls = seen.calls('test-tool')
      if (calls.length < 2) skip('the client does not resume streams')
      const anew = calls.slice(1).filter(call => !isRecord(under(call, 'streaming')['resume']))
      expect(anew.length === 0, 'The call was made anew', anew)
      const entry = seen.reported.get('stream')
      expect(entry === undefined || !entry.ok || entry.isError === true, 'A broken stream is reported as whole')
    },
  }),
  extending('E15-4', 'An event that comes twice is told once', doubled, {
    proves: ['E15-4'],
    knows: 'events',
    needs: subscribed,
    check: (seen, { expect, skip }) => {
      const entry = seen.reported.get('events')
      if (entry?.text === undefined) return skip('the client does not report its events')
      expect(entry.text === '{"id":"e1"} {"id":"e2"}', `The client heard ${entry.text}`)
    },
  }),
  extending('E15-11', 'What an event suggests is done by nobody', doubled, {
    proves: ['E15-11'],
    knows: 'events',
    needs: subscribed,
    check: (seen, { expect }) => {
      expect(seen.calls('test-tool').length === 0, 'The action_hint of an event was done', seen.calls())
    },
  }),
  extending('E15-6', 'Where an event is missing the client takes up behind the last it had', gap, {
    proves: ['E15-6', 'E15-3'],
    knows: 'events',
    needs: subscribed,
    check: (seen, { expect }) => {
      const again = wishes(seen)[1]
      expect(again !== undefined, 'The gap was not noticed', seen.requests().slice(-2))
      expect(
        again?.['cursor'] === 'c1',
        `The new subscription must begin at c1, not at ${JSON.stringify(again?.['cursor'])}`,
        seen.requests().slice(-2),
      )
      const entry = seen.reported.get('events')
      expect(entry?.text === undefined || entry.text === '{"id":"e1"} {"id":"e2"}', `The client heard ${entry?.text}`)
    },
  }),
  extending('E15-9', 'Where nothing is pushed the client asks, as often as it may', polls, {
    proves: ['E15-9'],
    knows: 'events',
    needs: seen => (seen.requests('event/poll').length > 0 ? undefined : 'the client does not poll'),
    check: (seen, { expect }) => {
      const asked = seen.requests('event/poll')
      expect(asked.length >= 2, 'It was asked once only', asked)
      expect(
        asked.slice(1).every(one => paramsOf(one)['cursor'] !== undefined),
        'The next poll must name the cursor of the last',
        asked,
      )
      const pause = (asked[1]?.at ?? 0) - (asked[0]?.at ?? 0)
      expect(pause >= 900, `It was asked again after ${Math.round(pause)} ms; poll_interval_seconds is 1`, asked)
    },
  }),
  extending('E15-7', 'Who no longer listens unsubscribes', doubled, {
    proves: ['E15-7'],
    knows: 'events',
    needs: subscribed,
    check: (seen, { warn }) => {
      const left = seen.stateless || seen.requests('event/unsubscribe').length > 0
      if (!left) warn('The client left its subscription behind')
    },
  }),
]
