/** Log messages to the client: by a session's level, or only where a request asked for them. */
import { notification, officialIds, request, sessionRevisionIds } from '../../../engine/method.ts'
import { anything, object, oneOf, optional, string } from '../../../jsonrpc/shape.ts'

/** The levels of log messages, the least severe first. */
export const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
/** The level of a log message. */
export type LogLevel = (typeof levels)[number]

/** `logging/setLevel`: the least severe messages that the client wants in this session. */
export const setLevel = request<Record<string, never>>()({
  name: 'logging/setLevel',
  to: 'server',
  in: sessionRevisionIds,
  params: object({ level: oneOf(...levels) }),
})

/** `notifications/message`: a log message of the server. */
export const message = notification({
  name: 'notifications/message',
  to: 'client',
  in: officialIds,
  params: object({ level: oneOf(...levels), logger: optional(string), data: anything }),
})
