/** Letting go of a request that is no longer wanted. */
import { everyId, notification, request } from '../../../engine/method.ts'
import { object, optional, string, token } from '../../../jsonrpc/shape.ts'
import type { Wire } from '../../../revisions/index.ts'

const params = object({ requestId: optional(token), reason: optional(string) })
const dialectUp = { s3: (wire: Wire): Wire => ({ requestId: wire['id'] }) }

/** `notifications/cancelled`: the sender no longer wants the answer to a request. */
export const cancelled = notification({
  name: 'notifications/cancelled',
  to: 'both',
  in: everyId,
  names: { s3: 'cancel' },
  params,
  paramsDown: { s3: params => ({ id: params['requestId'] }) },
  paramsUp: dialectUp,
})

/** On the dialect a cancel may itself want an answer. */
export const cancelDialect = request<Wire>()({
  name: 'cancel',
  instant: true,
  to: 'server',
  in: ['s3'],
  params,
  paramsUp: dialectUp,
  resultDown: { s3: () => ({ status: 'cancelled' }) },
})
