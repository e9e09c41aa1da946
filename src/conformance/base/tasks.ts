/** Tasks of 2025-11-25: the caller asks for one, looks after it, and fetches what came of it. */
import { isRecord } from '../../jsonrpc/message.ts'
import { capability, codeIn, listIn, objectIn, resultIn, scenario, textIn, tool } from '../define.ts'
import type { Bench, Json, RevisionId, Scenario } from '../scenario.ts'
import { keys } from '../wire/envelope.ts'
import type { Answer, RawPeer } from '../wire/raw-peer.ts'

const tasks = ['MCP 2025-11-25 basic/utilities/tasks', 'SEP-1686']
const revisions: readonly RevisionId[] = ['2025-11-25']
const statuses = ['working', 'input_required', 'completed', 'failed', 'cancelled']
export const terminal = ['completed', 'failed', 'cancelled']

function fixture(name: string) {
  return [
    capability('tasks.requests.tools.call'),
    tool(name),
    (peer: Bench['peer']) => (peer.mayCall(name) ? undefined : `${name} may not be called`),
  ]
}

function expectTask(bench: Bench, task: Json, answer: Answer): void {
  const { taskId, status, createdAt, lastUpdatedAt, ttl, pollInterval } = task
  bench.expect(typeof taskId === 'string' && taskId !== '', 'taskId must be a string', [answer.frame])
  bench.expect(statuses.includes(String(status)), 'status must be one of the five', [answer.frame])
  for (const time of [createdAt, lastUpdatedAt])
    bench.expect(typeof time === 'string' && !Number.isNaN(Date.parse(time)), 'createdAt and lastUpdatedAt must be times', [
      answer.frame,
    ])
  bench.expect(ttl === null || typeof ttl === 'number', 'ttl must be a number or null', [answer.frame])
  bench.expect(pollInterval === undefined || typeof pollInterval === 'number', 'pollInterval must be a number', [answer.frame])
}

async function create(bench: Bench, peer: RawPeer, name: string, args: Json = {}): Promise<string> {
  const answer = await peer.request('tools/call', { name, arguments: args, task: { ttl: 60_000 } })
  bench.expect(isRecord(resultIn(answer)['task']), 'a call with task must be answered with a task', [answer.frame])
  const task = objectIn(answer.result, 'task')
  expectTask(bench, task, answer)
  return String(task['taskId'])
}

/** Looks at it until it has ended. */
async function ended(bench: Bench, peer: RawPeer, taskId: string): Promise<Json> {
  for (let look = 0; look < 100; look++) {
    const answer = await peer.request('tasks/get', { taskId })
    expectTask(bench, resultIn(answer), answer)
    if (terminal.includes(String(resultIn(answer)['status']))) return resultIn(answer)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return bench.fail('the task does not end')
}

const slow = 'slow_compute'

export const taskScenarios: readonly Scenario[] = [
  scenario('base/tasks/result', {
    title: 'a call becomes a task, and its result can be fetched when it has ended',
    proves: tasks,
    revisions,
    needs: fixture(slow),
    async run(bench) {
      const peer = await bench.open()
      const taskId = await create(bench, peer, slow, { seconds: 0.2 })
      const answer = await peer.request('tasks/result', { taskId })
      bench.expect(Array.isArray(resultIn(answer)['content']), 'tasks/result must give what the call would have given', [
        answer.frame,
      ])
      const related = objectIn(answer.result, '_meta', keys.relatedTask)
      bench.expect(related['taskId'] === taskId, `_meta must hold ${keys.relatedTask} with the taskId`, [answer.frame])
      const { status } = await ended(bench, peer, taskId)
      bench.expect(status === 'completed', 'the status must be completed')
    },
  }),
  scenario('base/tasks/cancel', {
    title: 'a task can be cancelled, once',
    proves: tasks,
    revisions,
    needs: [capability('tasks.cancel'), ...fixture(slow)],
    async run(bench) {
      const peer = await bench.open()
      const taskId = await create(bench, peer, slow, { seconds: 30 })
      const answer = await peer.request('tasks/cancel', { taskId })
      expectTask(bench, resultIn(answer), answer)
      bench.expect(resultIn(answer)['status'] === 'cancelled', 'the status must be cancelled', [answer.frame])
      const again = await peer.request('tasks/cancel', { taskId })
      bench.expect(codeIn(again) === -32602, 'cancelling a task that has ended must be refused with error -32602', [again.frame])
    },
  }),
  ...['tasks/get', 'tasks/result', 'tasks/cancel'].map(method =>
    scenario(`base/tasks/unknown-${method.slice(6)}`, {
      title: `${method} refuses a task that does not exist`,
      proves: tasks,
      revisions,
      needs: [capability(method === 'tasks/cancel' ? 'tasks.cancel' : 'tasks')],
      async run(bench) {
        const peer = await bench.open()
        const answer = await peer.request(method, { taskId: 'vivarium-no-such-task' })
        bench.expect(codeIn(answer) === -32602, 'an unknown task must be refused with error -32602', [answer.frame])
      },
    }),
  ),
  scenario('base/tasks/failed', {
    title: 'a tool that fails makes its task fail, and the result says why',
    proves: tasks,
    revisions,
    needs: fixture('failing_job'),
    async run(bench) {
      const peer = await bench.open()
      const taskId = await create(bench, peer, 'failing_job')
      const { status } = await ended(bench, peer, taskId)
      bench.expect(status === 'failed', 'the status must be failed')
      const answer = await peer.request('tasks/result', { taskId })
      bench.expect(
        resultIn(answer)['isError'] === true || answer.error !== undefined,
        'the result must be that of the failed call',
        [answer.frame],
      )
    },
  }),
  scenario('base/tasks/required', {
    title: 'a tool that runs as a task only refuses another call',
    proves: tasks,
    revisions,
    needs: fixture('failing_job'),
    async run(bench) {
      const execution = objectIn(bench.peer.tool('failing_job'), 'execution')
      if (execution['taskSupport'] !== 'required') bench.leave('failing_job does not demand a task')
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'failing_job' })
      bench.expect(codeIn(answer) === -32601, 'a call without a task must be refused with error -32601', [answer.frame])
    },
  }),
  scenario('base/tasks/forbidden', {
    title: 'a tool that knows no tasks refuses a call as one',
    proves: tasks,
    revisions,
    needs: fixture('test_simple_text'),
    async run(bench) {
      const peer = await bench.open()
      const answer = await peer.request('tools/call', { name: 'test_simple_text', task: {} })
      if (codeIn(answer) !== -32601) bench.warn('a task for a tool that knows none should be refused with error -32601')
    },
  }),
  scenario('base/tasks/list', {
    title: 'tasks are listed',
    proves: tasks,
    revisions,
    needs: [capability('tasks.list'), ...fixture(slow)],
    async run(bench) {
      const peer = await bench.open()
      const taskId = await create(bench, peer, slow, { seconds: 0.1 })
      const answer = await peer.request('tasks/list')
      const listed = listIn(answer.result, 'tasks').filter(isRecord)
      for (const task of listed) expectTask(bench, task, answer)
      bench.expect(
        listed.some(task => task['taskId'] === taskId),
        'tasks/list must hold the task',
        [answer.frame],
      )
    },
  }),
  scenario('base/tasks/asking', {
    title: 'a task that asks says so, and its question names it',
    proves: tasks,
    revisions,
    needs: fixture('confirm_delete'),
    async run(bench) {
      const peer = await bench.open({ capabilities: { elicitation: { form: {} } }, fresh: true })
      const questions: Json[] = []
      peer.onRequest('elicitation/create', params => {
        questions.push(params)
        return { action: 'accept', content: { confirm: true } }
      })
      const taskId = await create(bench, peer, 'confirm_delete', { filename: 'kit.txt' })
      const answer = await peer.request('tasks/result', { taskId })
      bench.expect(textIn(answer) !== '', 'the task must end with a result', [answer.frame])
      const related = objectIn(questions[0], '_meta', keys.relatedTask)
      bench.expect(
        related['taskId'] === taskId,
        `the question must hold ${keys.relatedTask} in _meta`,
        peer.heard('elicitation/create'),
      )
    },
  }),
]
