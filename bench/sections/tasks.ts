/** What a short task costs its server over HTTP: the call that creates it, looks until it has ended, and its result. */
import type { Contender } from '../contenders.ts'
import { HttpConnection } from '../load/http-connection.ts'
import { expectStatus, headFor, openSession, startHttp } from '../load/http-server.ts'
import { nextId } from '../load/round.ts'
import type { Options } from '../options.ts'
import { cpuMicros, STEP_MS, within } from '../processes.ts'
import { failure, type TaskFigures, type TaskRow } from '../results.ts'
import { quantile } from '../stats.ts'
import { envelope, type Revision } from '../work.ts'

const REVISIONS: readonly Revision[] = ['2025-11-25', '2026-07-28']
const CONNECTIONS = 8
/** The share of one address: from here on each task takes the place of an old one, as on a server that has run for a while. */
const WARM_TASKS = 1_000
const CAPABILITIES = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

export async function measureTasks({ quick, timing }: Options, row: (row: TaskRow) => void): Promise<void> {
  for (const revision of REVISIONS)
    row({ way: revision, cells: { tasks: await measured(revision, quick ? 200 : WARM_TASKS, timing.roundMs).catch(failure) } })
}

async function measured(revision: Revision, warm: number, ms: number): Promise<TaskFigures> {
  const tasks = await openTasks(revision)
  try {
    for (let made = 0; made < warm; ) made += (await tasks.run(100)).times.length
    const began = performance.now()
    const { cost, times } = await tasks.run(ms)
    const seconds = (performance.now() - began) / 1000
    return {
      cpuMicros: cost / times.length,
      tasksPerSecond: times.length / seconds,
      p50Ms: quantile(times, 0.5),
      p99Ms: quantile(times, 0.99),
    }
  } finally {
    await tasks.stop()
  }
}

export interface OpenTasks {
  /** Makes tasks for so long: the CPU of the server, and how many milliseconds each took. */
  run(ms: number): Promise<{ cost: number; times: number[] }>
  stop(): Promise<void>
}

/** A server of tasks, and callers that make one after the other. */
export async function openTasks(revision: Revision, flags: readonly string[] = []): Promise<OpenTasks> {
  const contender: Contender = {
    name: 'vivarium',
    stdio: [],
    http: REVISIONS,
    flags,
    script: () => 'servers/tasks.mjs',
    args: () => [],
  }
  const { child, port } = await startHttp(contender, 'tools', revision)
  const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => openCaller(contender, port, revision)))
  return {
    run: async ms => {
      const [began, used] = [performance.now(), cpuMicros(child.pid)]
      const times: number[] = []
      const work = async (caller: Caller): Promise<void> => {
        do {
          const from = performance.now()
          await within(STEP_MS, 'task', oneTask(caller, revision))
          times.push(performance.now() - from)
        } while (performance.now() - began < ms)
      }
      await Promise.all(callers.map(work))
      return { cost: cpuMicros(child.pid) - used, times }
    },
    stop: async () => {
      for (const { close } of callers) close()
      await child.stop()
    },
  }
}

interface Caller {
  ask(method: string, params: object, name?: string): Promise<Record<string, unknown>>
  close(): void
}

async function openCaller(contender: Contender, port: number, revision: Revision): Promise<Caller> {
  const connection = await HttpConnection.open(port)
  const session = await openSession(connection, { port, contender, revision })
  return {
    ask: async (method, params, name) => {
      const body = JSON.stringify(envelope(revision, nextId(), method, params, CAPABILITIES))
      const head = headFor({ port, contender, revision, session, method, tool: name })(Buffer.byteLength(body))
      const answer = await connection.exchange(Buffer.from(head + body))
      expectStatus(answer, 200)
      const text = answer.body.toString()
      // A session revision may answer by an event stream.
      const { result } = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text) as { result?: Record<string, unknown> }
      if (result === undefined) throw new Error(`${method}: ${text.slice(0, 200)}`)
      return result
    },
    close: () => connection.close(),
  }
}

/** From the call to its result: part of the task at 2026-07-28, a request of its own at 2025-11-25. */
async function oneTask({ ask }: Caller, revision: Revision): Promise<void> {
  const core = revision === '2025-11-25'
  const made = await ask('tools/call', { name: 'work', arguments: {}, ...(core && { task: {} }) }, 'work')
  const { taskId } = (core ? made.task : made) as { taskId: string }
  let task: Record<string, unknown>
  do task = await ask('tasks/get', { taskId }, taskId)
  while (task.status === 'working')
  const result = core ? await ask('tasks/result', { taskId }) : task.result
  if (!JSON.stringify(result).includes('"done"')) throw new Error(`a task ended with ${JSON.stringify(task).slice(0, 200)}`)
}
