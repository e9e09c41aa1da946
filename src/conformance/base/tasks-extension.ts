/** The tasks extension of 2026-07-28: the server decides, results come inside `tasks/get`, questions are answered by `tasks/update`. */
import { isRecord } from '../../jsonrpc/message.ts'
import { codeIn, extension, objectIn, resultIn, scenario, textIn, tool } from '../define.ts'
import type { Bench, Json, Scenario } from '../scenario.ts'
import { keys } from '../wire/envelope.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'
import { terminal } from './tasks.ts'

const tasks = ['SEP-2663', 'MCP extension io.modelcontextprotocol/tasks']
const declared = { extensions: { [keys.tasks]: {} }, capabilities: { elicitation: { form: {} } } }

function fixture(name: string) {
  return [
    extension(keys.tasks),
    tool(name),
    (peer: Bench['peer']) => (peer.mayCall(name) ? undefined : `${name} may not be called`),
  ]
}

function expectTask(bench: Bench, answer: Answer): Json {
  const task = resultIn(answer)
  bench.expect(typeof task['taskId'] === 'string', 'taskId must be a string', [answer.frame])
  bench.expect(typeof task['status'] === 'string', 'status must be a string', [answer.frame])
  bench.expect(task['ttlMs'] === null || typeof task['ttlMs'] === 'number', 'ttlMs must be a number or null', [answer.frame])
  const { pollIntervalMs } = task
  bench.expect(pollIntervalMs === undefined || typeof pollIntervalMs === 'number', 'pollIntervalMs must be a number', [
    answer.frame,
  ])
  bench.expect(task['requestState'] === undefined, 'tasks have no requestState', [answer.frame])
  return task
}

async function create(bench: Bench, peer: RawPeer, name: string, args: Json = {}): Promise<string> {
  const answer = await peer.request('tools/call', { name, arguments: args })
  bench.expect(resultIn(answer)['resultType'] === 'task', 'resultType must be "task"', [answer.frame])
  return String(expectTask(bench, answer)['taskId'])
}

async function until(bench: Bench, peer: RawPeer, taskId: string, wanted: readonly string[]): Promise<Answer> {
  for (let look = 0; look < 100; look++) {
    const answer = await peer.request('tasks/get', { taskId })
    const { status, resultType } = expectTask(bench, answer)
    bench.expect(resultType === 'complete', 'the resultType of tasks/get must be "complete"', [answer.frame])
    if (wanted.includes(String(status))) return answer
    bench.expect(!terminal.includes(String(status)), `the task ended as ${status}, not as ${wanted.join(' or ')}`, [answer.frame])
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return bench.fail(`the task does not become ${wanted.join(' or ')}`)
}

function define(id: string, title: string, needs: ReturnType<typeof fixture>, run: Scenario['run']): Scenario {
  return scenario(`base/tasks-extension/${id}`, { title, proves: tasks, revisions: ['2026-07-28'], needs, run })
}

const only = [extension(keys.tasks)] as unknown as ReturnType<typeof fixture>

export const taskExtensionScenarios: readonly Scenario[] = [
  define('result', 'a call becomes a task, and its result comes inside tasks/get', fixture('slow_compute'), async bench => {
    const peer = await bench.open(declared)
    const taskId = await create(bench, peer, 'slow_compute', { seconds: 0.2 })
    const answer = await until(bench, peer, taskId, ['completed'])
    bench.expect(Array.isArray(objectIn(answer.result, 'result')['content']), 'a completed task must hold its result', [
      answer.frame,
    ])
  }),
  define('undeclared-call', 'a caller that does not know tasks gets no task', fixture('slow_compute'), async bench => {
    const peer = await bench.open()
    const answer = await peer.request('tools/call', { name: 'slow_compute', arguments: { seconds: 0.1 } })
    bench.expect(resultIn(answer)['resultType'] === 'complete', 'the call must be complete', [answer.frame])
  }),
  define('never', 'a quick tool is never a task', fixture('greet'), async bench => {
    const peer = await bench.open(declared)
    const answer = await peer.request('tools/call', { name: 'greet', arguments: { name: 'Ada' } })
    bench.expect(resultIn(answer)['resultType'] === 'complete', 'the call must be complete', [answer.frame])
    bench.expect(textIn(answer).includes('Ada'), 'the tool must answer', [answer.frame])
  }),
  define('undeclared-get', 'a caller that does not know tasks cannot look after them', only, async bench => {
    const peer = await bench.open()
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const answer = await peer.request(method, { taskId: 'vivarium-no-such-task' })
      bench.expect(codeIn(answer) === -32021, `${method} must be refused with error -32021`, [answer.frame])
    }
  }),
  define('unknown', 'a task that does not exist is refused', only, async bench => {
    const peer = await bench.open(declared)
    const answer = await peer.request('tasks/get', { taskId: 'vivarium-no-such-task' })
    bench.expect(codeIn(answer) === -32602, 'an unknown task must be refused with error -32602', [answer.frame])
  }),
  define('removed', 'tasks/result and tasks/list do not exist', only, async bench => {
    const peer = await bench.open(declared)
    for (const method of ['tasks/result', 'tasks/list']) {
      const answer = await peer.request(method, { taskId: 'x' })
      bench.expect(codeIn(answer) === -32601, `${method} must be refused with error -32601`, [answer.frame])
    }
  }),
  define('cancel', 'a task can be cancelled, and again', fixture('slow_compute'), async bench => {
    const peer = await bench.open(declared)
    const taskId = await create(bench, peer, 'slow_compute', { seconds: 30 })
    for (const _ of [1, 2]) {
      const answer = await peer.request('tasks/cancel', { taskId })
      bench.expect(resultIn(answer)['resultType'] === 'complete', 'tasks/cancel must be answered with an empty complete result', [
        answer.frame,
      ])
    }
    await until(bench, peer, taskId, ['cancelled'])
  }),
  define('tool-error', 'a tool that fails completes its task with isError', fixture('failing_job'), async bench => {
    const peer = await bench.open(declared)
    const answer = await until(bench, peer, await create(bench, peer, 'failing_job'), ['completed'])
    bench.expect(objectIn(answer.result, 'result')['isError'] === true, 'the result must have isError', [answer.frame])
  }),
  define('protocol-error', 'a call that fails as a request makes its task fail', fixture('protocol_error_job'), async bench => {
    const peer = await bench.open(declared)
    const answer = await until(bench, peer, await create(bench, peer, 'protocol_error_job'), ['failed'])
    bench.expect(typeof objectIn(answer.result, 'error')['code'] === 'number', 'a failed task must hold its error', [
      answer.frame,
    ])
  }),
  define(
    'required',
    'a tool that runs as a task only refuses callers that do not know them',
    fixture('failing_job'),
    async bench => {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'failing_job' })
      bench.expect(codeIn(answer) === -32021, 'it must be refused with error -32021', [answer.frame])
      const named = objectIn(answer.error, 'data', 'requiredCapabilities', 'extensions')
      bench.expect(isRecord(named[keys.tasks]), `data.requiredCapabilities must name the extension ${keys.tasks}`, [answer.frame])
    },
  ),
  define('asking', 'a task that asks is answered by tasks/update', fixture('confirm_delete'), async bench => {
    const peer = await bench.open(declared)
    const taskId = await create(bench, peer, 'confirm_delete', { filename: 'kit.txt' })
    const answer = await until(bench, peer, taskId, ['input_required'])
    const asked = Object.keys(objectIn(answer.result, 'inputRequests'))
    bench.expect(asked.length === 1, 'the task must hold its question', [answer.frame])
    const reply = { action: 'accept', content: { confirm: true } }
    const updated = await peer.request('tasks/update', {
      taskId,
      inputResponses: Object.fromEntries(asked.map(key => [key, reply])),
    })
    bench.expect(resultIn(updated)['resultType'] === 'complete', 'tasks/update must be answered with an empty complete result', [
      updated.frame,
    ])
    await until(bench, peer, taskId, ['completed'])
  }),
  define('asks-first', 'a call may ask before it becomes a task', fixture('test_tool_with_task'), async bench => {
    const peer = await bench.open(declared)
    peer.onRequest('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }))
    const answer = await peer.converse('tools/call', { name: 'test_tool_with_task' })
    bench.expect(resultIn(answer)['resultType'] === 'task', 'after the answer it must become a task', [answer.frame])
    const done = await until(bench, peer, String(resultIn(answer)['taskId']), ['completed'])
    bench.expect(JSON.stringify(resultIn(done)['result'] ?? {}).includes('Ada'), 'the result must name what was answered', [
      done.frame,
    ])
  }),
]
