/** Whether a request declared that its caller takes tasks (2026-07-28, tasks extension). */
import { capabilityMissing } from '../../../engine/asking.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { declared } from '../../../engine/extensions.ts'
import { tasksExtension } from './messages.ts'

/** Throws unless this request declared the extension. */
export function requireExtension(exchange: Exchange): void {
  if (declaresTasks(exchange)) return
  throw capabilityMissing(exchange.route.method.name, { extensions: { [tasksExtension]: {} } })
}

export function declaresTasks({ peer }: Exchange): boolean {
  return declared(peer, tasksExtension) !== undefined
}
