/** How far a call has come. The token is the caller's; on the dialect it is the request's id and the scale is percent. */
import type { Progress } from '../../../engine/calls.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { everyId, notification } from '../../../engine/method.ts'
import { port } from '../../../engine/ports.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { number, object, optional, string, token } from '../../../jsonrpc/shape.ts'
import type { Wire } from '../../../revisions/index.ts'
import { without } from '../content/messages.ts'

/** How a caller is told something before its answer: by progress, if it asked for that. */
export interface ProgressPort {
  /** Whether it asked. */
  asked(exchange: Exchange): boolean
  /** How far the call has come; `meta` goes along. */
  progress(exchange: Exchange, step: Progress, allow: () => boolean, meta?: () => Params): boolean
  /** Something else, which must not get lost unless it is `spare`. False: nobody takes it. */
  along(exchange: Exchange, more: { readonly message?: string; readonly _meta?: Params }, spare?: boolean): boolean
}

/** How a caller is told something before its answer. */
export const progressPort = port<ProgressPort>('progress')

/** `notifications/progress`: how far a request has come. */
export const progress = notification({
  name: 'notifications/progress',
  to: 'both',
  in: everyId,
  names: { s3: 'progress' },
  params: object({ progressToken: token, progress: number, total: optional(number), message: optional(string) }),
  paramsDown: {
    '2024-11-05': params => without(params, 'message'),
    s3: toPercent,
  },
  paramsUp: {
    s3: wire => ({
      progressToken: wire['id'],
      progress: wire['percent'],
      total: 100,
      ...(wire['message'] === undefined ? {} : { message: wire['message'] }),
    }),
  },
})

function toPercent(params: Wire): Wire {
  const done = params['progress'] as number
  const total = params['total'] as number | undefined
  const percent = total === undefined || total <= 0 ? 0 : Math.min(100, Math.max(0, (100 * done) / total))
  return { id: params['progressToken'], percent, ...(params['message'] === undefined ? {} : { message: params['message'] }) }
}
