/** Calls under way whose callers may not make them any more: other settings count at once, not only for the next call. */

import { stopCall, underWay } from '../../engine/disconnect.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { aimOf } from '../../features/mcp/authorization/messages.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { denied } from './gate.ts'
import { judgedOf } from './options.ts'
import { absent, readingOf, type SightParts, sees } from './sight.ts'

/** Stops each of them and tells its caller why. */
export function stopWithdrawn(engine: Engine, parts: SightParts): void {
  for (const exchange of underWay(engine)) {
    const why = withdrawnFrom(parts, exchange)
    if (why !== undefined) stopCall(exchange, why)
  }
}

/** Why its caller may not make this call any more; undefined: it may. */
export function withdrawnFrom(parts: SightParts, exchange: Exchange): Error | undefined {
  const aim = aimOf(exchange)
  if (aim === undefined || exchange.unwinds) return undefined
  const [kind, name] = aim
  const { caller, params } = exchange
  if (!sees(parts, caller, kind, name)) return absent(aim)
  const policy = kind === 'tool' ? parts.tools.get(name) : readingOf(parts, kind, name)
  const args = kind === 'tool' ? ((params['arguments'] ?? {}) as Params) : {}
  const verdict = policy?.judge({ ...judgedOf(parts.clients, caller, args), begun: true })
  return policy !== undefined && verdict?.do === 'deny' ? denied(policy, verdict) : undefined
}
