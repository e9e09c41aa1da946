/** Log messages to the client: by a session's level, or only where a request asked for them. */
import { notification, officialIds, request, sessionIds } from '../../../engine/method.ts'
import { anything, object, oneOf, optional, string } from '../../../jsonrpc/shape.ts'

export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof levels)[number]

export const setLevel = request<Record<string, never>>()({
  name: 'logging/setLevel',
  to: 'server',
  in: sessionIds,
  params: object({ level: oneOf(...levels) }),
})

export const message = notification({
  name: 'notifications/message',
  to: 'client',
  in: officialIds,
  params: object({ level: oneOf(...levels), logger: optional(string), data: anything }),
})
