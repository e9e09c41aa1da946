/** What of a `_meta` goes on, to the upstream from its caller: what neither wire nor gateway has used up. */
import { NS } from '../../core/namespace.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { keptOf } from '../../engine/reserved.ts'
import type { LogLevel } from '../../features/mcp/logging/messages.ts'
import { relatedTaskKey } from '../../features/mcp/tasks/messages.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { logLevelKey } from '../../revisions/envelope.ts'
import { envelopeKeys } from '../../revisions/index.ts'

/** Undefined where there is nothing to pass on, which is the most common. */
export function passedMeta({ meta }: Exchange): Params | undefined {
  return meta && keptOf(meta, isPassed)
}

function isPassed(key: string): boolean {
  return !(envelopeKeys.has(key) || key === 'progressToken' || key === relatedTaskKey || key.startsWith(NS))
}

/** Where each request says which log it wants: what this caller wants, and what a session hears that never said. */
export function logMeta(passed: Params | undefined, { peer }: Exchange, wanted: LogLevel | undefined): Params | undefined {
  const level = wanted ?? (peer.revision.era === 'session' && peer.revision.id !== 's3' ? 'info' : undefined)
  if (level === undefined) return passed
  return passed === undefined ? levelMeta(level) : { ...passed, [logLevelKey]: level }
}

const levelMetas = new Map<LogLevel, Params>()

/** One object for each level, frozen, so that what is written of it is written once. */
function levelMeta(level: LogLevel): Params {
  const known = levelMetas.get(level) ?? Object.freeze({ [logLevelKey]: level })
  levelMetas.set(level, known)
  return known
}
