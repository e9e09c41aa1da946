/** Letting go of a request that is no longer wanted. */
import { everyId, notification } from '../../../engine/method.ts'
import { object, optional, string, token } from '../../../jsonrpc/shape.ts'

export const cancelled = notification({
  name: 'notifications/cancelled',
  to: 'both',
  in: everyId,
  names: { s3: 'cancel' },
  params: object({ requestId: optional(token), reason: optional(string) }),
  paramsDown: { s3: params => ({ id: params['requestId'] }) },
  paramsUp: { s3: wire => ({ requestId: wire['id'] }) },
})
