/** Idempotency on the wire: a key in the `_meta` of a call, repeated in an HTTP header, and in the result whether it was a replay. */

import { type Exchange, retryState } from '../../../engine/exchange.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { object, string } from '../../../jsonrpc/shape.ts'

/** The extension name. */
export const idempotencyExtension = `${NS}/idempotency`

/** The key in the `_meta` of a call. */
export interface WireKey {
  readonly idempotency_key: string
  readonly idempotency_ttl_seconds?: number
}

/** The information in the `_meta` of the result. */
export interface WireReplay {
  readonly idempotency_key: string
  /** Whether an earlier result was returned. */
  readonly was_replay: boolean
  readonly original_timestamp: string
  /** How long the key is kept, if that is shorter than requested. */
  readonly idempotency_ttl_seconds?: number
}

/** The syntax of keys. */
export const keyPattern = /^[a-zA-Z0-9_\-:.]{1,128}$/
/** The same in words, for error messages. */
export const keyRule = '1 to 128 characters of A-Z a-z 0-9 _ - : .'

/** The header that carries the key, so that proxies can see it. */
export const keyHeader = 'idempotency-key'
/** An alternative header that is accepted too. */
export const otherKeyHeader = 'x-idempotency-key'

/** What is known about the call with a key. */
export interface WireStatus {
  readonly idempotency_key: string
  /** What is known of the call. `indeterminate`: it was started, and its outcome is unknown. */
  readonly status: 'unknown' | 'running' | 'waiting' | 'done' | 'failed' | 'indeterminate' | 'undone'
  readonly tool?: string
  readonly started_at?: string
  readonly ended_at?: string
}

/** Queries a key. */
export const getKey = request<WireStatus>()({
  name: 'idempotency/get',
  to: 'server',
  in: officialIds,
  extension: idempotencyExtension,
  params: object({ idempotency_key: string }),
})

/** Whether a call has a key. Must be fast, because it runs for every call. */
export function isKeyed(exchange: Exchange): boolean {
  if (exchange.get(retryState)?.[idempotencyExtension] !== undefined) return true
  const { meta, caller } = exchange
  if (meta?.[idempotencyExtension] !== undefined) return true
  // Without HTTP, headers belong to the handshake and not to the call.
  if (caller.carrier !== 'http' || caller.header === undefined) return false
  return caller.header(keyHeader) !== undefined || caller.header(otherKeyHeader) !== undefined
}
