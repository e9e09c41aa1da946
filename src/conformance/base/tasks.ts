/** Tasks of 2025-11-25: the caller asks for one, looks after it, and fetches what came of it. */
import { setTimeout as wait } from 'node:timers/promises'
import { isRecord } from '../../jsonrpc/message.ts'
import { hasCode, hasResult, isFailure, type PeerAnswer } from '../calls.ts'
import { table } from '../define.ts'
import { type Expectations, firstFault, fitsPattern, is, objectIn, objectsIn, should } from '../expectations.ts'
import { callableFixture, capability, type Need, peerHas } from '../needs.ts'
import type { Json, Scenario } from '../scenario.ts'
import { callTool, type ScenarioContext, send } from '../steps.ts'
import { keys } from '../wire/envelope.ts'

const row = table('base/tasks/', {
  proves: ['MCP 2025-11-25 basic/utilities/tasks', 'SEP-1686'],
  revisions: ['2025-11-25'],
})
const fixture = (name: string): readonly Need[] => [capability('tasks.requests.tools.call'), ...callableFixture(name)]
const terminal = ['completed', 'failed', 'cancelled']
const statuses = ['working', 'input_required', ...terminal]
const isDate = (value: unknown): boolean => is.string(value) && !Number.isNaN(Date.parse(value))
const isNumberOrNull = (value: unknown): boolean => value === null || is.number(value)

function taskFault({ taskId, status, createdAt, lastUpdatedAt, ttl, pollInterval }: Json): string | undefined {
  if (!is.word(taskId)) return 'taskId must be a string'
  if (!statuses.includes(String(status))) return 'status must be one of the five'
  if (!isDate(createdAt) || !isDate(lastUpdatedAt)) return 'createdAt and lastUpdatedAt must be times'
  if (!isNumberOrNull(ttl)) return 'ttl must be a number or null'
  return is.optional(is.number)(pollInterval) ? undefined : 'pollInterval must be a number'
}

const isTask = { 'it must be a task': ({ result }: PeerAnswer) => taskFault(result) }

async function create(x: ScenarioContext, name: string, args: Json = {}): Promise<string> {
  const answer = await x.call(name, { args, params: { task: { ttl: 60_000 } } })
  const task = objectIn(answer.result, 'task')
  x.hold(answer, {
    'a call with task must be answered with a task': hasResult({ task: isRecord }),
    'it must be a task': () => taskFault(task),
  })
  return String(task.taskId)
}

/** Looks at it until it has this status. */
async function until(x: ScenarioContext, taskId: string, wanted: string, shape: Expectations<PeerAnswer>): Promise<PeerAnswer> {
  for (let look = 0; look < 100; look++) {
    const answer = await x.ask('tasks/get', { taskId })
    x.hold(answer, shape)
    const status = String(answer.result.status)
    if (status === wanted) return answer
    x.expect(!terminal.includes(status), `the task ended as ${status}, not as ${wanted}`)
    await wait(100)
  }
  return x.fail(`the task does not reach the status ${wanted}`)
}

/** Names the task in `_meta`. */
const relates = (meta: unknown, taskId: string): boolean => objectIn(meta, keys.relatedTask).taskId === taskId

/** Tasks that the caller asks for (2025-11-25). */
export const taskScenarios: readonly Scenario[] = [
  row('result', 'a call becomes a task, and its result can be fetched when it has ended').by(fixture('slow_compute'), async x => {
    const taskId = await create(x, 'slow_compute', { seconds: 0.2 })
    x.hold(await x.ask('tasks/result', { taskId }), {
      'tasks/result must give what the call would have given': hasResult({ content: Array.isArray }),
      [`_meta must hold ${keys.relatedTask} with the taskId`]: ({ result }) => relates(result._meta, taskId),
    })
    await until(x, taskId, 'completed', isTask)
  }),
  row('cancel', 'a task can be cancelled, once').by([capability('tasks.cancel'), ...fixture('slow_compute')], async x => {
    const taskId = await create(x, 'slow_compute', { seconds: 30 })
    x.hold(await x.ask('tasks/cancel', { taskId }), {
      ...isTask,
      'the status must be cancelled': hasResult({ status: 'cancelled' }),
    })
    x.hold(await x.ask('tasks/cancel', { taskId }), {
      'cancelling a task that has ended must be refused with error -32602': hasCode(-32602),
    })
  }),
  ...['get', 'result', 'cancel'].map(what =>
    row(`unknown-${what}`, `tasks/${what} refuses a task that does not exist`).by(
      capability(what === 'cancel' ? 'tasks.cancel' : 'tasks'),
      [
        send(`tasks/${what}`, { taskId: 'vivarium-no-such-task' }).expect({
          'an unknown task must be refused with error -32602': hasCode(-32602),
        }),
      ],
    ),
  ),
  row('failed', 'a tool that fails makes its task fail, and the result says why').by(fixture('failing_job'), async x => {
    const taskId = await create(x, 'failing_job')
    await until(x, taskId, 'failed', isTask)
    x.hold(await x.ask('tasks/result', { taskId }), { 'the result must be that of the failed call': isFailure })
  }),
  row('required', 'a tool that runs only as a task refuses a plain call').by(fixture('failing_job'), async x => {
    const { taskSupport } = objectIn(x.bench.peer.tool('failing_job'), 'execution')
    if (taskSupport !== 'required') x.leave('failing_job does not require a task')
    x.hold(await x.call('failing_job'), {
      'a call without a task must be refused with error -32601': hasCode(-32601),
    })
  }),
  row('forbidden', 'a tool without task support refuses a call as a task').by(fixture('test_simple_text'), [
    callTool('test_simple_text', { params: { task: {} } }).expect({
      'a task for a tool without task support should be refused with error -32601': should(hasCode(-32601)),
    }),
  ]),
  row('list', 'tasks are listed').by([capability('tasks.list'), ...fixture('slow_compute')], async x => {
    const taskId = await create(x, 'slow_compute', { seconds: 0.1 })
    x.hold(await x.ask('tasks/list'), {
      'all must be tasks': ({ result }) => firstFault(objectsIn(result, 'tasks'), taskFault),
      'tasks/list must hold the task': ({ result }) => objectsIn(result, 'tasks').some(task => task.taskId === taskId),
    })
  }),
  row('asking', 'a task that asks has the status input_required, and its question names the task').by(
    { open: { capabilities: { elicitation: { form: {} } }, fresh: true }, needs: fixture('confirm_delete') },
    async x => {
      const questions: Json[] = []
      x.peer.onRequest('elicitation/create', params => {
        questions.push(params)
        return { action: 'accept', content: { confirm: true } }
      })
      const taskId = await create(x, 'confirm_delete', { filename: 'kit.txt' })
      x.hold(await x.ask('tasks/result', { taskId }), { 'the task must end with a result': ({ text }) => text !== '' })
      const isNamed = relates(questions[0]?._meta, taskId)
      x.expect(isNamed, `the question must hold ${keys.relatedTask} in _meta`, x.peer.heard('elicitation/create'))
    },
  ),
]

/** The tasks extension of 2026-07-28: the server decides, results come inside `tasks/get`, questions are answered by `tasks/update`. */
const later = table('base/tasks-extension/', {
  proves: ['SEP-2663', 'MCP extension io.modelcontextprotocol/tasks'],
  revisions: ['2026-07-28'],
  needs: [peerHas(peer => peer.extension(keys.tasks) !== undefined, `the server does not advertise the extension ${keys.tasks}`)],
  open: { extensions: { [keys.tasks]: {} }, capabilities: { elicitation: { form: {} } } },
})
/** A caller that does not know tasks. */
const ignorant = { open: { extensions: {}, capabilities: {} } }
const isComplete = hasResult({ resultType: 'complete' })
const isLaterTask = {
  'taskId must be a string': hasResult({ taskId: is.string }),
  'status must be a string': hasResult({ status: is.string }),
  'ttlMs must be a number or null': hasResult({ ttlMs: isNumberOrNull }),
  'pollIntervalMs must be a number': hasResult({ pollIntervalMs: is.optional(is.number) }),
  'tasks have no requestState': hasResult({ requestState: is.absent }),
}

async function createLater(x: ScenarioContext, name: string, args: Json = {}): Promise<string> {
  const answer = await x.call(name, { args })
  x.hold(answer, { 'resultType must be "task"': hasResult({ resultType: 'task' }), ...isLaterTask })
  return String(answer.result.taskId)
}

const isGot = { ...isLaterTask, 'the resultType of tasks/get must be "complete"': isComplete }

/** Tasks that the server decides on (2026-07-28). */
export const taskExtensionScenarios: readonly Scenario[] = [
  later('result', 'a call becomes a task, and its result comes inside tasks/get').by(callableFixture('slow_compute'), async x => {
    const done = await until(x, await createLater(x, 'slow_compute', { seconds: 0.2 }), 'completed', isGot)
    x.hold(done, { 'a completed task must hold its result': hasResult({ result: { content: Array.isArray } }) })
  }),
  later('undeclared-call', 'a client without task support gets no task').by(
    { ...ignorant, needs: callableFixture('slow_compute') },
    [callTool('slow_compute', { args: { seconds: 0.1 } }).expect({ 'the call must be complete': isComplete })],
  ),
  later('never', 'a quick tool is never a task').by(callableFixture('greet'), [
    callTool('greet', { args: { name: 'Ada' } }).expect({
      'the call must be complete': isComplete,
      'the tool must answer': ({ text }) => text.includes('Ada'),
    }),
  ]),
  later('undeclared-get', 'a client without task support cannot use task methods').by(
    ignorant,
    ['tasks/get', 'tasks/cancel'].map(method =>
      send(method, { taskId: 'vivarium-no-such-task' }).expect({
        [`${method} must be refused with error -32021`]: hasCode(-32021),
      }),
    ),
  ),
  later('unknown', 'a task that does not exist is refused').by([
    send('tasks/get', { taskId: 'vivarium-no-such-task' }).expect({
      'an unknown task must be refused with error -32602': hasCode(-32602),
    }),
  ]),
  later('removed', 'tasks/result and tasks/list do not exist').by(
    ['tasks/result', 'tasks/list'].map(method =>
      send(method, { taskId: 'x' }).expect({ [`${method} must be refused with error -32601`]: hasCode(-32601) }),
    ),
  ),
  later('cancel', 'a task can be cancelled, and again').by(callableFixture('slow_compute'), async x => {
    const taskId = await createLater(x, 'slow_compute', { seconds: 30 })
    for (const _ of [1, 2])
      x.hold(await x.ask('tasks/cancel', { taskId }), {
        'tasks/cancel must be answered with an empty complete result': isComplete,
      })
    await until(x, taskId, 'cancelled', isGot)
  }),
  later('tool-error', 'a tool that fails completes its task with isError').by(callableFixture('failing_job'), async x => {
    const done = await until(x, await createLater(x, 'failing_job'), 'completed', isGot)
    x.hold(done, { 'the result must have isError': hasResult({ result: { isError: true } }) })
  }),
  later('protocol-error', 'a call that fails as a request makes its task fail').by(
    callableFixture('protocol_error_job'),
    async x => {
      const done = await until(x, await createLater(x, 'protocol_error_job'), 'failed', isGot)
      x.hold(done, { 'a failed task must hold its error': hasResult({ error: { code: is.number } }) })
    },
  ),
  later('required', 'a tool that runs only as a task refuses clients without task support').by(
    { ...ignorant, needs: callableFixture('failing_job') },
    [
      callTool('failing_job').expect({
        'it must be refused with error -32021': hasCode(-32021),
        [`data.requiredCapabilities must name the extension ${keys.tasks}`]: ({ answer }) =>
          fitsPattern({ requiredCapabilities: { extensions: { [keys.tasks]: isRecord } } }, answer.error?.data),
      }),
    ],
  ),
  later('asking', 'a task that asks is answered by tasks/update').by(callableFixture('confirm_delete'), async x => {
    const taskId = await createLater(x, 'confirm_delete', { filename: 'kit.txt' })
    const asked = Object.keys(objectIn((await until(x, taskId, 'input_required', isGot)).result, 'inputRequests'))
    x.expect(asked.length === 1, 'the task must hold its question')
    const reply = { action: 'accept', content: { confirm: true } }
    const inputResponses = Object.fromEntries(asked.map(key => [key, reply]))
    x.hold(await x.ask('tasks/update', { taskId, inputResponses }), {
      'tasks/update must be answered with an empty complete result': isComplete,
    })
    await until(x, taskId, 'completed', isGot)
  }),
  later('asks-first', 'a call may ask before it becomes a task').by(callableFixture('test_tool_with_task'), async x => {
    x.peer.onRequest('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }))
    const answer = await x.call('test_tool_with_task', { converse: true })
    x.hold(answer, { 'after the answer it must become a task': hasResult({ resultType: 'task' }) })
    const done = await until(x, String(answer.result.taskId), 'completed', isGot)
    const isNamed = JSON.stringify(done.result.result ?? {}).includes('Ada')
    x.expect(isNamed, 'the result must name what was answered')
  }),
]
