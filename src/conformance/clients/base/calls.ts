/** What a client makes of the answer to a call: late, doubled, broken, huge, refused, with progress, given up, or as a task. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { official } from '../../define.ts'
import { type Expectations, objectIn, orSkip, should } from '../../expectations.ts'
import { allRevisions } from '../../scenario.ts'
import { isStateless, keys } from '../../wire/envelope.ts'
import { calls, each, hasReport, header, params, reported, requires, some, times } from '../checks.ts'
import { type ClientJudging, clientTable } from '../define.ts'
import type { Observation } from '../log.ts'
import { type CallWishes, call, listTools, play, reportedPlay, stepsAgain, testTool, textResult } from '../play.ts'
import { type ClientRequest, noAnswer, Refusal } from '../script.ts'

/** Two calls at once, which are told apart by their argument. */
const twoCalls = (wishes: CallWishes = {}) => [
  listTools,
  { do: 'together', steps: [call('first', { n: 1 }, wishes), call('second', { n: 2 }, wishes)] } as const,
]

const outOfOrder = reportedPlay('out-of-order', {
  steps: twoCalls(),
  on: {
    'tools/call': async ({ args: { n }, log }) => {
      // The first is answered when the second has been.
      if (n === 1) await log.until(() => (log.notes.has('second') ? true : undefined), 2_000)
      else log.notes.set('second', true)
      return textResult(`answer ${String(n)}`)
    },
  },
})

/** Before the answer comes this. */
function disturbed(name: string, disturb: (request: ClientRequest) => void) {
  return reportedPlay(name, {
    steps: stepsAgain,
    on: {
      'tools/call': request => {
        disturb(request)
        return textResult('done')
      },
    },
  })
}

/** An answer to nobody, a notification that nobody knows and a stranger's progress. */
const noise = disturbed('noise', ({ reply, tell }) => {
  reply.write(JSON.stringify({ jsonrpc: '2.0', id: 'nobody-asked', result: {} }))
  tell('notifications/of-tomorrow', { news: true })
  tell('notifications/progress', { progressToken: 'nobody-asked', progress: 1 })
})

const garbage = disturbed('garbage', ({ reply }) => {
  for (const text of ['{"jsonrpc":"2.0","method":', '[]', 'null', '{"jsonrpc":"1.0","id":7}', '{}']) reply.write(text)
})

const huge = play('huge', {
  alone: true,
  // Who refuses a frame unread cannot know whose answer it was.
  steps: [listTools, call('call', {}, { timeout: 2_000 }), call('again', { again: true })],
  on: { 'tools/call': ({ args }) => textResult(args['again'] === true ? 'small' : 'x'.repeat(20 * 1024 * 1024)) },
})

const refused = reportedPlay('refused', { on: { 'tools/call': new Refusal(-32602, 'No such thing', { why: 'test' }) } })
const toolError = reportedPlay('tool-error', { on: { 'tools/call': textResult('It did not work', { isError: true }) } })

const structured = reportedPlay('structured', {
  tools: [{ ...testTool, outputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } }],
  on: { 'tools/call': textResult('{"n":"many"}', { structuredContent: { n: 'many' } }) },
})

/** 2025-03-26 lets servers gather what they say. */
const batch = reportedPlay('batch', {
  steps: stepsAgain,
  on: {
    'tools/call': ({ args, id, reply }) => {
      if (args['again'] === true) return textResult('done')
      const note = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'hello' } }
      reply.finish(JSON.stringify([note, { jsonrpc: '2.0', id, result: textResult('gathered') }]))
      return noAnswer
    },
  },
})

const answerRow = clientTable('client/answers/', { revisions: official })

/** Both calls were made, and the client says that both were answered; one that makes one call only has at least not failed. */
const bothWork: Expectations<Observation, ClientJudging> = {
  'The client did not call test-tool': some(calls),
  'The answers': (seen, x, says) => {
    if (!calls(seen).some(({ args }) => args['again'] === true))
      return (seen.end.error === undefined && !seen.end.timedOut) || `The client failed: ${seen.end.error ?? 'it did not end'}`
    const succeeds = (step: string) =>
      reported(step, entry => entry.ok || `The client did not get the answer of its call: ${entry.message ?? ''}`)(seen, x, says)
    return succeeds('call') === true ? succeeds('again') : succeeds('call')
  },
}

const calledOnce = times(calls, 1)

const answering = [
  answerRow('matched MCP basic#requests', 'Responses in another order reach the right calls').by(
    [outOfOrder, hasReport],
    ({ reported }, x) => {
      for (const [step, text] of [
        ['first', 'answer 1'],
        ['second', 'answer 2'],
      ] as const) {
        const entry = reported.get(step)
        x.expect(entry?.text === text, `The ${step} call got "${entry?.text ?? entry?.message}"`)
      }
    },
  ),
  answerRow('noise MCP basic#messages', 'Unknown notifications and unexpected responses do no harm').by(noise, bothWork),
  answerRow('garbage JSON-RPC 5.1', 'Frames that are not messages are ignored').by(garbage, bothWork),
  answerRow('huge MCP basic/transports', 'A huge answer is accepted or refused, and the client continues').by(huge, {
    'The client hangs after a frame of 20 MiB': ({ end }) => !end.timedOut,
    'The client did not call test-tool': some(calls),
    'The end': seen => {
      const { code, error } = seen.end
      const died = calls(seen).length === 1 && error === undefined && (code ?? 0) !== 0
      return !died || `The client died of a frame of 20 MiB (code ${code})`
    },
  }),
  answerRow('refused MCP 2026-07-28 basic#results', 'An error response is final: the call is not repeated').by(refused, {
    'The calls': times(calls, 1, count => `A call with bad parameters was made ${count} times`),
    'The client reports an error as a result': reported('call', ({ ok }) => !ok),
  }),
  answerRow('tool-error MCP server/tools#error-handling', 'A tool that failed is distinguished from one that succeeded').by(
    [toolError, hasReport],
    {
      'The client reports isError as success': ({ reported }) => {
        const entry = reported.get('call')
        return entry?.isError === true || entry?.ok === false
      },
      'A tool that failed permanently was called again': calledOnce,
    },
  ),
  answerRow('structured MCP server/tools#structured-content', 'Structured content that does not match its schema is detected').by(
    { play: structured, revisions: ['2025-06-18', '2025-11-25', '2026-07-28'], needs: [hasReport] },
    { 'Clients should check structured content against the output schema': should(reported('call', ({ ok }) => ok !== true)) },
  ),
  answerRow('batch MCP 2025-03-26 basic#batching', 'Batched responses are accepted').by(
    { play: batch, revisions: ['2025-03-26'] },
    {
      'The client still waits for a response that came in a batch': ({ end }) => !end.timedOut,
      'The answer': reported(
        'call',
        ({ ok, message }) => ok || `The client did not find the response in the batch: ${message ?? ''}`,
      ),
    },
  ),
]

// ── progress, and letting go ────────────────────────────────────────────────────────────────────────────────────────

function tellProgress({ revision, id, meta: { progressToken }, tell }: ClientRequest, progress: number): void {
  if (revision === 's3') tell('progress', { id, percent: progress * 10, message: `step ${progress}` })
  else if (progressToken !== undefined) tell('notifications/progress', { progressToken, progress, total: 10 })
}

const progress = reportedPlay('progress', {
  // A client that is busy with something else still comes to the ping.
  waitMs: 10_000,
  steps: twoCalls({ progress: true }),
  on: {
    'tools/call': async request => {
      for (const step of request.args['n'] === 1 ? [2, 5, 9] : [1]) tellProgress(request, step)
      // Whoever handles notifications beside answers shall have the time: a ping comes back when they are through.
      if (isStateless(request.revision)) await request.log.until(() => undefined, 200)
      else await request.ask('ping', undefined)
      return textResult('done')
    },
  },
})

const cancel = reportedPlay('cancel', {
  steps: [listTools, call('slow', { slow: true }, { progress: true, cancel: 300 }), call('after', { slow: false })],
  on: ({ carrier, revision }) => {
    const late = revision === 's3' ? { status: 'success', output: 'late' } : { resultType: 'complete', ...textResult('late') }
    const called = async (request: ClientRequest) => {
      if (request.args['slow'] !== true) return late
      tellProgress(request, 1)
      const { log, id, reply } = request
      await log.until(() => cancelOf(request, id) ?? closeOf(request, reply.line), 3_000)
      // Too late: nobody may be confused by it.
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result: late })
      if (carrier === 'http') reply.finish(answer)
      else reply.write(answer)
      return noAnswer
    }
    return { 'tools/call': called, 'tools/invoke': revision === 's3' ? called : undefined }
  },
})

function cancelOf({ log, revision }: Pick<ClientRequest, 'log' | 'revision'>, id: unknown): 'told' | undefined {
  const [method, member] = revision === 's3' ? ['cancel', 'id'] : ['notifications/cancelled', 'requestId']
  return log.of(method).some(({ params }) => params[member] === id) ? 'told' : undefined
}

function closeOf({ log }: Pick<ClientRequest, 'log'>, on: number): 'left' | undefined {
  return log.closed.some(({ line }) => line === on) ? 'left' : undefined
}

const during = clientTable('client/', { play: progress, revisions: official })
const cancelled = { play: cancel, revisions: allRevisions }

const meanwhile = [
  during(
    'progress/token MCP basic/utilities/progress',
    'A client that requests progress sends a separate token for each call',
  ).by((seen, x) => {
    const made = calls(seen)
    const tokens = made.map(({ meta }) => meta['progressToken']).filter(token => token !== undefined)
    if (tokens.length === 0) x.leave('the client does not ask for progress')
    x.expect(
      tokens.every(token => typeof token === 'string' || Number.isInteger(token)),
      'A token is a string or an integer',
      made,
    )
    x.expect(new Set(tokens.map(token => JSON.stringify(token))).size === tokens.length, 'Two calls have the same token', made)
  }),
  during('progress/heard MCP basic/utilities/progress', 'Progress reaches the right call').by((seen, x) => {
    const heard = seen.reported.get('first')?.progress
    if (heard === undefined) return x.leave('the client does not report progress')
    // Where no ping can tell that all was heard, an answer may overtake what was told before it.
    const second = seen.reported.get('second')?.progress ?? 0
    if (seen.stateless && heard <= 3 && second <= 1 && heard + second < 4)
      return x.warn(`The calls were sent 3 and 1 progress messages and reported ${heard} and ${second}`)
    x.expect(heard === 3, `The first call was sent 3 progress messages and reported ${heard}`, seen.calls())
    x.expect(second === 1, `The second call was sent 1 progress message and reported ${second}`, seen.calls())
  }),
  during(
    'cancel/said MCP basic/utilities/cancellation MCP basic/transports#sending-messages-to-the-server',
    'An abandoned call is cancelled as the revision and transport require',
  ).by(cancelled, (seen, { expect, leave }) => {
    const slow = calls(seen).find(({ args }) => args['slow'] === true)
    if (slow === undefined) return leave('the client did not make the call that it should abandon')
    const how = cancelOf(seen, slow.id) ?? closeOf(seen, slow.line)
    const byLeaving = seen.stateless && seen.carrier === 'http'
    const says = byLeaving ? 'Over HTTP a call is cancelled by closing its stream' : 'The client did not cancel the call'
    expect(how !== undefined, 'The client neither cancelled the call nor closed its stream', [slow])
    expect((how === 'left') === byLeaving, says, [slow])
    const told = seen.notices('notifications/cancelled')
    expect(!byLeaving || told.length === 0, 'Over HTTP there is no such notification', told)
    const named = told.every(({ params }) => params['requestId'] !== undefined || seen.revision === '2025-11-25')
    expect(named, 'requestId is missing', told)
  }),
  during(
    'cancel/late MCP basic/utilities/cancellation#behavior-requirements',
    'A response after the cancellation does no harm',
  ).by(cancelled, {
    'the client did not make the call that it should abandon': orSkip(seen => calls(seen)[0]?.args['slow'] === true),
    'The client did not continue after a late answer': times(calls, count => count > 1),
    'The call after it': reported('after', ({ ok, message }) => ok || `The call after it failed: ${message ?? ''}`),
    'The abandoned call is reported as done': reported('slow', ({ ok }) => !ok),
  }),
]

// ── tasks: in 2025-11-25 the client decides, in 2026-07-28 the server ───────────────────────────────────────────────

const POLL_MS = 150
const times2026 = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z' }
const taskSteps = [listTools, call('call', {}, { task: true })]
const chosenTask = { taskId: 'task/1', ttl: 60_000, pollInterval: POLL_MS, ...times2026 }
const decidedTask = { taskId: 'task/1', ttlMs: 60_000, pollIntervalMs: POLL_MS, ...times2026 }

const chosen = reportedPlay('task-chosen', {
  steps: taskSteps,
  tools: [{ ...testTool, execution: { taskSupport: 'optional' } }],
  capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
  on: {
    'tools/call': ({ params: { task } }) =>
      isRecord(task) ? { task: { ...chosenTask, status: 'working' } } : textResult('at once'),
    'tasks/get': ({ log }) => ({ ...chosenTask, status: log.of('tasks/get').length < 3 ? 'working' : 'completed' }),
    'tasks/result': async ({ log }) => {
      await log.until(() => undefined, log.of('tasks/get').length < 3 ? 300 : 0)
      return textResult('in the end', { _meta: { [keys.relatedTask]: { taskId: 'task/1' } } })
    },
    'tasks/cancel': { taskId: 'task/1', status: 'cancelled', ttl: 60_000, ...times2026 },
  },
})

const decided = reportedPlay('task-decided', {
  steps: taskSteps,
  capabilities: { tools: {}, extensions: { [keys.tasks]: {} } },
  on: {
    'tools/call': ({ meta }) =>
      keys.tasks in objectIn(meta, keys.capabilities, 'extensions')
        ? { resultType: 'task', ...decidedTask, status: 'working' }
        : textResult('at once'),
    'tasks/get': ({ log }) =>
      log.of('tasks/get').length < 3
        ? { ...decidedTask, status: 'working' }
        : { ...decidedTask, status: 'completed', result: textResult('in the end') },
  },
})

const taskRow = clientTable('client/tasks/', { play: chosen, revisions: ['2025-11-25'] })
const isResult = reported(
  'call',
  ({ text }) => text === 'in the end' || `The call gave "${text}" instead of the result of its task`,
)

const tasking = [
  taskRow('chosen MCP 2025-11-25 basic/utilities/tasks', 'A task is followed until its end, and its result is fetched').by({
    'the client did not ask for a task': orSkip(seen => calls(seen).some(({ params: { task } }) => isRecord(task))),
    'The result of the task was not fetched': seen => seen.requests('tasks/result')[0]?.params['taskId'] === 'task/1',
    'The result': isResult,
  }),
  taskRow('decided SEP-2322', 'A call that has become a task is polled until it is done').by(
    {
      play: decided,
      revisions: ['2026-07-28'],
      needs: [requires(seen => seen.extension(keys.tasks), `the client does not declare ${keys.tasks}`)],
    },
    {
      'The polls': times(
        'tasks/get',
        count => count >= 3,
        count => `The task was polled ${count} times, but not to its end`,
      ),
      'taskId must be the one of the task': each('tasks/get', params({ taskId: 'task/1' })),
      'The pauses': seen => {
        const asked = seen.requests('tasks/get')
        const least = Math.min(...asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0)))
        return least >= POLL_MS - 30 || `The task was polled every ${Math.round(least)} ms; pollIntervalMs is ${POLL_MS}`
      },
      'Mcp-Name must be the taskId': each(
        'tasks/get',
        (message, seen) => seen.carrier !== 'http' || header('mcp-name', 'task/1')(message, seen),
      ),
      'The result': isResult,
    },
  ),
]

/** What becomes of calls. */
export const callScenarios = [...answering, ...meanwhile, ...tasking]
