/** Calls that become tasks: in 2025-11-25 the client decides, in 2026-07-28 the server. */
import { isRecord } from '../../../jsonrpc/message.ts'
import { type Play, said, testTool } from '../play.ts'
import { type ClientScenario, scenario } from '../scenario.ts'
import { paramsOf } from '../stage/book.ts'
import { header } from './running.ts'

const TASKS = 'io.modelcontextprotocol/tasks'
const POLL_MS = 150
const times = { createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z' }

const chosen: Play = {
  name: 'task-chosen',
  report: true,
  steps: [
    { do: 'list', what: 'tools' },
    { do: 'call', tool: 'test-tool', arguments: {}, task: true, as: 'call' },
  ],
  tools: [{ ...testTool, execution: { taskSupport: 'optional' } }],
  capabilities: () => ({ tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }),
  on: () => ({
    'tools/call': ({ params }) =>
      isRecord(params['task'])
        ? { task: { taskId: 'task/1', status: 'working', ttl: 60_000, pollInterval: POLL_MS, ...times } }
        : said('at once'),
    'tasks/get': ({ book }) => ({
      taskId: 'task/1',
      status: book.of('tasks/get').length < 3 ? 'working' : 'completed',
      ttl: 60_000,
      pollInterval: POLL_MS,
      ...times,
    }),
    'tasks/result': async ({ book }) => {
      await book.until(() => undefined, book.of('tasks/get').length < 3 ? 300 : 0)
      return said('in the end', { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'task/1' } } })
    },
    'tasks/cancel': () => ({ taskId: 'task/1', status: 'cancelled', ttl: 60_000, ...times }),
  }),
}

const decided: Play = {
  name: 'task-decided',
  report: true,
  steps: [
    { do: 'list', what: 'tools' },
    { do: 'call', tool: 'test-tool', arguments: {}, task: true, as: 'call' },
  ],
  capabilities: () => ({ tools: {}, extensions: { [TASKS]: {} } }),
  on: () => ({
    'tools/call': ({ meta }) => {
      const declared = meta['io.modelcontextprotocol/clientCapabilities']
      const extensions = isRecord(declared) && isRecord(declared['extensions']) ? declared['extensions'] : {}
      if (!(TASKS in extensions)) return said('at once')
      return { resultType: 'task', taskId: 'task/1', status: 'working', ttlMs: 60_000, pollIntervalMs: POLL_MS, ...times }
    },
    'tasks/get': ({ book }) => {
      const task = { taskId: 'task/1', ttlMs: 60_000, pollIntervalMs: POLL_MS, ...times }
      return book.of('tasks/get').length < 3
        ? { ...task, status: 'working' }
        : { ...task, status: 'completed', result: said('in the end') }
    },
  }),
}

export const tasking: readonly ClientScenario[] = [
  scenario('client/tasks/chosen', 'A task is followed until its end, and its result is fetched', chosen, {
    proves: ['MCP 2025-11-25 basic/utilities/tasks'],
    revisions: ['2025-11-25'],
    check: (seen, { expect, skip }) => {
      const call = seen.calls('test-tool').find(one => isRecord(paramsOf(one)['task']))
      if (call === undefined) return skip('the client did not ask for a task')
      const [result] = seen.requests('tasks/result')
      expect(paramsOf(result)['taskId'] === 'task/1', 'The result of the task was not fetched', seen.requests())
      const entry = seen.reported.get('call')
      expect(
        entry === undefined || entry.text === 'in the end',
        `The call gave "${entry?.text}" instead of the result of its task`,
        seen.calls(),
      )
    },
  }),
  scenario('client/tasks/decided', 'A call that has become a task is asked after until it is done', decided, {
    proves: ['SEP-2322'],
    revisions: ['2026-07-28'],
    needs: seen => (seen.extension(TASKS) ? undefined : `the client does not declare ${TASKS}`),
    check: (seen, { expect }) => {
      const asked = seen.requests('tasks/get')
      expect(asked.length >= 3, `The task was asked after ${asked.length} times and not to its end`, seen.calls())
      expect(
        asked.every(one => paramsOf(one)['taskId'] === 'task/1'),
        'taskId must be the one of the task',
        asked.slice(0, 1),
      )
      const pauses = asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0))
      expect(
        pauses.every(ms => ms >= POLL_MS - 30),
        `It was asked after every ${Math.round(Math.min(...pauses))} ms; pollIntervalMs is ${POLL_MS}`,
      )
      if (seen.carrier === 'http')
        expect(
          asked.every(one => header(one, 'mcp-name') === 'task/1'),
          'Mcp-Name must be the taskId',
          asked.slice(0, 1),
        )
      const entry = seen.reported.get('call')
      expect(
        entry === undefined || entry.text === 'in the end',
        `The call gave "${entry?.text}" instead of the result of its task`,
      )
    },
  }),
]
