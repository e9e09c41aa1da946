/** What whoever runs tasks answers in the core form, be it server or client. */
import type { Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { TaskRecord } from './record.ts'
import { answerResult } from './result.ts'
import type { Runner } from './runner.ts'
import { detailedTask, taskOf } from './view.ts'

/** Another's task, or one of another wire, is as unknown as one that never was. */
export async function visible(runner: Runner, exchange: Exchange, id: string): Promise<TaskRecord | undefined> {
  const record = await runner.table.get(id)
  return record?.owner === runner.owner(exchange) && record?.revision === exchange.peer.revision.id ? record : undefined
}

export async function find(runner: Runner, exchange: Exchange, id = exchange.params['taskId'] as string): Promise<TaskRecord> {
  const record = await visible(runner, exchange, id)
  if (record === undefined) throw new McpError('unknown-task', `There is no task "${clip(id)}", or its time is over`)
  return record
}

export async function look(runner: Runner, exchange: Exchange): Promise<object> {
  return detailedTask(await find(runner, exchange), exchange.engine)
}

export async function cancelCore(runner: Runner, exchange: Exchange): Promise<object> {
  const { id } = await find(runner, exchange)
  const after = await runner.cancel(exchange.engine, id)
  if (after === undefined)
    throw new McpError('task-over', `The task "${clip(id)}" has ended; only one that still runs can be cancelled`)
  return taskOf(after)
}

export async function result(runner: Runner, exchange: Exchange): Promise<unknown> {
  const record = await find(runner, exchange)
  return answerResult(exchange, record, runner.running(record.id), () => find(runner, exchange), runner.table.durable)
}

/** How long a caller wants its task kept, in milliseconds; undefined: as long as we like. */
export function wishedTtl({ params }: Exchange): number | undefined {
  const wish = params['task']
  const ttl = isRecord(wish) ? wish['ttl'] : undefined
  if (isRecord(wish) && (ttl === undefined || (typeof ttl === 'number' && Number.isSafeInteger(ttl) && ttl >= 0))) return ttl
  throw new McpError('invalid-params', 'params.task must be an object; its ttl, if any, a whole number of milliseconds')
}
