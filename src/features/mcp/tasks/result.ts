/**
 * `tasks/result` of the core form: blocks until the task has ended. While it waits, questions go out on its stream as requests
 * that name the task; the draft answers with the questions instead.
 */
import { unasked } from '../../../engine/asking.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { ConnectionError, type Lane } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { InputRequiredResult } from '../input-required/messages.ts'
import type { CallToolResult } from '../tools/messages.ts'
import { isTerminal } from './messages.ts'
import type { TaskRecord } from './record.ts'
import type { RunningTask, TaskQuestion } from './running.ts'
import { finalResult, related } from './view.ts'

/** `read` gives the record anew, or throws when it is gone. */
export async function answerResult(
  exchange: Exchange,
  record: TaskRecord,
  task: RunningTask | undefined,
  read: () => Promise<TaskRecord>,
  durable: boolean,
): Promise<CallToolResult | InputRequiredResult> {
  if (isTerminal(record.status)) return finalResult(record)
  if (task === undefined && durable) return elsewhere(exchange, record, read)
  if (task === undefined) throw new McpError('internal', 'The task was given up: the process that worked on it is gone')
  await attend(exchange, task, record.createdAt + record.ttlMs)
  const asks = [...task.questions].map(([key, { request }]) => [key, request] as const)
  if (!task.over && asks.length > 0) {
    const questions: InputRequiredResult = { resultType: 'input_required', inputRequests: Object.fromEntries(asks) }
    return { ...questions, _meta: related(task.id) } as InputRequiredResult
  }
  return finalResult(await read())
}

const lookEveryMs = 500

/** Another process works on it: its end is looked for until its time is over. */
async function elsewhere(
  { engine, reply, peer, signal }: Exchange,
  first: TaskRecord,
  read: () => Promise<TaskRecord>,
): Promise<CallToolResult | InputRequiredResult> {
  for (let record = first; ; record = await read()) {
    if (isTerminal(record.status)) return finalResult(record)
    if (peer.revision.asks !== 'push' && Object.keys(record.questions).length > 0) {
      const questions: InputRequiredResult = { resultType: 'input_required', inputRequests: record.questions }
      return { ...questions, _meta: related(record.id) } as InputRequiredResult
    }
    await new Promise<void>(resolve => engine.clock.setTimeout(resolve, lookEveryMs))
    if (signal.aborted || reply.closed) throw new McpError('caller-gone', 'The caller has gone away')
  }
}

/** Settles when the task is over, or has questions that the answer itself must carry; rejects when the caller has gone. */
function attend(exchange: Exchange, task: RunningTask, until: number): Promise<void> {
  const { conversation, reply, signal, peer } = exchange
  const pushes = peer.revision.asks === 'push'
  const leave = new AbortController()
  return new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (task.over || (!pushes && task.questions.size > 0)) settle(resolve)
      else if (pushes) {
        try {
          put(exchange, task, until, leave.signal)
        } catch (error) {
          settle(() => reject(error))
        }
      }
    }
    const gone = (): void => settle(() => reject(new McpError('caller-gone', 'The caller has gone away')))
    const settle = (act: () => void): void => {
      unwatch()
      signal.removeEventListener('abort', gone)
      act()
      leave.abort(new DOMException('The question was put on a stream that has ended', 'AbortError'))
    }
    const unwatch = task.watch(look)
    signal.addEventListener('abort', gone, { once: true })
    // A duplex connection that ends cancels what runs for it; streams of their own just close.
    if (conversation.connection === undefined) reply.onClose(gone)
    look()
  })
}

/** Asks what nobody has been asked yet; throws where this caller can not be asked. A question whose stream ends is asked again on the next one. */
function put(exchange: Exchange, task: RunningTask, until: number, signal: AbortSignal): void {
  for (const question of task.questions.values()) {
    if (question.asked) continue
    const lane = exchange.conversation.connection === undefined ? (exchange.aside ?? unasked(question.method.name)) : undefined
    question.asked = true
    send(exchange, task.id, question, until, signal, lane).then(
      answer => {
        if (question.accepts(answer)) question.resolve(answer)
        else question.reject(new McpError('invalid-answer', `The client's answer to ${question.method.name} is malformed`))
      },
      error => {
        if (!signal.aborted && !(error instanceof ConnectionError)) return question.reject(error)
        question.asked = false
        // Another stream of the same task may take it over; one that can not send would only try for ever.
        if (signal.aborted) task.wake()
      },
    )
  }
}

function send(
  exchange: Exchange,
  taskId: string,
  question: TaskQuestion,
  until: number,
  signal: AbortSignal,
  lane: Lane | undefined,
): Promise<unknown> {
  const { engine, conversation } = exchange
  const timeoutMs = Math.max(1, until - engine.clock.now())
  if (lane !== undefined) engine.streaming(exchange)
  const along = lane === undefined ? {} : { lane }
  const options = { ...along, signal, timeoutMs, totalMs: timeoutMs, meta: related(taskId) }
  if (question.by !== undefined) return question.by(exchange, question.method, question.params, options)
  return engine.call(conversation, question.method, question.params, options)
}
