/** Asking the client for an answer as a task, where it runs such tasks (2025-11-25); where it does not, by a plain request. */
import { toMilliseconds } from '../../../core/duration.ts'
import type { SendOptions } from '../../../engine/calls.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Method } from '../../../engine/method.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { finishTask } from './finish.ts'
import type { TaskWish } from './messages.ts'
import { createdTask, portTo, type TaskPort, takesTask } from './requests.ts'

export async function askThroughTask(
  { engine, conversation, peer }: Exchange,
  method: Method,
  params: Params,
  options: SendOptions,
  wish: TaskWish,
): Promise<unknown> {
  if (!takesTask(peer, method.name)) return engine.call(conversation, method, params, options)
  const ttl = typeof wish === 'object' ? wish.ttl : undefined
  const task = ttl === undefined ? {} : { ttl: toMilliseconds(ttl, 'task.ttl') }
  const answer = await engine.call(conversation, method, { ...params, task }, options)
  const created = createdTask(answer)
  if (created === undefined) return answer
  const { lane, signal, timeoutMs } = options
  const port = portTo(engine, conversation)
  // Whatever is said about the task goes the way of the question: on the stream of the call that asks.
  const along = lane === undefined ? {} : { lane }
  const request: TaskPort['request'] = (about, what, more) => port.request(about, what, { ...more, ...along })
  return finishTask({ ...port, request }, created, { signal, totalMs: timeoutMs })
}
