/** What was paid for something that may be taken back: kept until then, given back with it, and once. */
import { isRecord } from '../../jsonrpc/message.ts'
import { add, put, remove } from '../../stores/ops.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { Clock } from '../clock.ts'

/** Counted in one place. */
export interface Charge {
  readonly key: string
  readonly count: number
  /** When that place is forgotten: milliseconds since the epoch. */
  readonly expires: number
}

/** The step that keeps it. Nothing can be given back to what is forgotten, so it is kept no longer. */
export function keeping(key: string, charges: readonly Charge[], clock: Clock): Op {
  const ttl = Math.max(0, ...charges.map(({ expires }) => expires)) - clock.now()
  return put(chargeKey(key), JSON.stringify(charges), { ttl: Math.max(1, ttl) })
}

/** The steps that give back what is kept; none where there is nothing. They conflict where another was faster. */
export async function refunding(store: Store, clock: Clock, key: string): Promise<readonly Op[]> {
  const entry = await store.get(chargeKey(key))
  if (entry === undefined) return []
  const now = clock.now()
  const charges = readCharges(entry.value).filter(({ expires, count }) => expires > now && count > 0)
  return [remove(entry.key, entry.version), ...charges.map(({ key, count, expires }) => add(key, -count, { ttl: expires - now }))]
}

function chargeKey(key: string): string {
  return `charge/${key}`
}

function readCharges(text: string): readonly Charge[] {
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value) && value.every(isCharge)) return value
  throw new Error('What was paid cannot be read: was it written by another program?')
}

function isCharge(value: unknown): value is Charge {
  return (
    isRecord(value) &&
    typeof value['key'] === 'string' &&
    typeof value['count'] === 'number' &&
    typeof value['expires'] === 'number'
  )
}
