/** Idempotency on the wire: a key in the `_meta` of a call, mirrored in a header over HTTP; in the result's what became of it. */

import { carried, type Exchange } from '../../../engine/exchange.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { object, string } from '../../../jsonrpc/shape.ts'

/** The name of the extension. */
export const idempotencyExtension = `${NS}/idempotency`

/** In the `_meta` of a call. */
export interface WireKey {
  readonly idempotency_key: string
  readonly idempotency_ttl_seconds?: number
}

/** In its result's. */
export interface WireReplay {
  readonly idempotency_key: string
  readonly was_replay: boolean
  readonly original_timestamp: string
  /** How long it is remembered, where that is less than its caller asked for. */
  readonly idempotency_ttl_seconds?: number
}

/** What a key may look like. */
export const keyPattern = /^[a-zA-Z0-9_\-:.]{1,128}$/
/** The same, in words. */
export const keyRule = '1 to 128 of A-Z a-z 0-9 _ - : .'

/** Sent over HTTP with the key, so that what stands between can see it. */
export const keyHeader = 'idempotency-key'
/** Taken too. */
export const otherKeyHeader = 'x-idempotency-key'

/** Begins the keys that we make ourselves, of calls that have none. */
export const minted = 'same:'

/** How long a key is remembered where neither side says. */
export const defaultTtlSeconds = 86_400

/** What is known of the call that was made under a key. */
export interface WireStatus {
  readonly idempotency_key: string
  readonly status: 'unknown' | 'running' | 'waiting' | 'done' | 'failed' | 'indeterminate' | 'undone'
  readonly tool?: string
  readonly started_at?: string
  readonly ended_at?: string
}

/** Asks what became of a key. */
export const getKey = request<WireStatus>()({
  name: 'idempotency/get',
  to: 'server',
  in: officialIds,
  extension: idempotencyExtension,
  params: object({ idempotency_key: string }),
})

/** Whether there is a key at all. Cheap: every call is asked. */
export function isKeyed(exchange: Exchange): boolean {
  if (exchange.get(carried)?.[idempotencyExtension] !== undefined) return true
  const { meta, caller } = exchange
  if (meta !== undefined && Object.hasOwn(meta, idempotencyExtension)) return true
  // Headers of a handshake say nothing of a call.
  if (caller.carrier !== 'http' || caller.header === undefined) return false
  return caller.header(keyHeader) !== undefined || caller.header(otherKeyHeader) !== undefined
}
