/** The key that a call came with: in its `_meta`, in a header, or sealed in the state of a call that goes on. They must agree. */
import { lifetimeOfSeconds } from '../../../core/clock.ts'
import { carried, type Exchange } from '../../../engine/exchange.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { defaultTtlSeconds, idempotencyExtension, keyHeader, keyPattern, keyRule, minted, otherKeyHeader } from './messages.ts'

export interface KeyOfCall {
  readonly key: string
  readonly ttlMs: number
  /** Its caller asked for more. */
  readonly shortened?: boolean
}

/** Undefined where it came with none. */
export function keyOf(exchange: Exchange, maxTtlMs: number): KeyOfCall | undefined {
  const { meta, caller } = exchange
  const before = exchange.get(carried)?.[idempotencyExtension]
  const said = meta !== undefined && Object.hasOwn(meta, idempotencyExtension) ? meta[idempotencyExtension] : none
  if (!isRecord(said)) throw invalid(`params._meta["${idempotencyExtension}"] must be an object with idempotency_key`)
  const headed = caller.carrier === 'http' ? caller : undefined
  const found = [
    said['idempotency_key'],
    unquoted(headed?.header?.(keyHeader)),
    unquoted(headed?.header?.(otherKeyHeader)),
    before,
  ].filter(key => key !== undefined)
  const key = found[0]
  // One that we made ourselves and sealed is made again, with the time that belongs to it.
  if (found.length === 0 && said === none) return undefined
  if (found.length === 1 && typeof before === 'string' && String(key).startsWith(minted)) return undefined
  if (typeof key !== 'string' || !keyPattern.test(key)) throw invalid(`The idempotency key must be ${keyRule}`)
  const other = found.find(each => each !== key)
  if (other !== undefined)
    throw invalid(`One call has one idempotency key, not "${clip(key)}" and "${clip(String(other))}": send the same everywhere`)
  const asked = said['idempotency_ttl_seconds']
  const ttlMs = lifetimeOfSeconds(secondsIn(asked), { mostMs: maxTtlMs })
  return { key, ttlMs, shortened: asked !== undefined && ttlMs < (asked as number) * 1_000 }
}

const none = {}

function secondsIn(seconds: unknown = defaultTtlSeconds): number {
  if (Number.isSafeInteger(seconds) && (seconds as number) > 0) return seconds as number
  throw invalid('idempotency_ttl_seconds must be a whole number above 0')
}

/** As a header it is a quoted string by the IETF draft, but mostly sent bare. */
function unquoted(header: string | undefined): string | undefined {
  return header === undefined ? undefined : (/^"(.*)"$/s.exec(header.trim())?.[1] ?? header.trim())
}

function invalid(message: string): McpError {
  return new McpError('invalid-params', message)
}
