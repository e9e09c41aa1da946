/** What a server tells its author: by the log, and raw to who asks for that. */
import type { Clock } from '../core/clock.ts'
import { type Log, logFrom, type Trace, traceInto } from '../core/log.ts'
import type { Exchange } from '../engine/exchange.ts'
import type { Layer } from '../engine/stages.ts'
import type { ServerOptions } from './options.ts'

/** Events that mean a mistake in the author's own code; the others are for those who look closer. */
const mistakes: ReadonlySet<string> = new Set([
  'internal',
  'tool-failed',
  'notification-failed',
  'authorization',
  'store-unavailable',
])

export function serverLog({ name, log, secret = [], onTrace }: ServerOptions): { log: Log; trace: Trace } {
  const chosen = logFrom(log, onTrace === undefined ? 'error' : 'silent').child({ server: name })
  const write = traceInto(chosen, { mistakes, secrets: typeof secret === 'string' ? [secret] : secret })
  if (onTrace === undefined) return { log: chosen, trace: write }
  const both: Trace = (event, detail, caller) => {
    onTrace(event, detail)
    write(event, detail, caller)
  }
  return { log: chosen, trace: both }
}

/** Tells of every call: installed only where that is wanted, so that others do not pay for it. */
export function callLayer(log: Log, clock: Clock): Layer {
  const tell = ({ route, params, peer, caller, correlated, cancelled }: Exchange, began: number, failed: boolean): void => {
    const { method } = route
    const name = method.nameParam === undefined ? {} : { name: params?.[method.nameParam] }
    const { carrier } = caller
    const id = correlated === undefined ? {} : { correlationId: correlated }
    log.debug('call', {
      method: method.name,
      ...name,
      revision: peer.revision.id,
      carrier,
      ms: clock.now() - began,
      failed,
      ...(cancelled && { cancelled }),
      ...id,
    })
  }
  return {
    stage: 'enter',
    run: async (exchange, next) => {
      const began = clock.now()
      let failed = true
      try {
        const result = await next()
        failed = false
        return result
      } finally {
        tell(exchange, began, failed)
      }
    },
  }
}
