/** Using idempotency: a key of the runtime's own making for each call that changes something, where the server knows keys. */
import type { SendOptions } from '../../../engine/calls.ts'
import { declaration, declared } from '../../../engine/extensions.ts'
import type { Side } from '../../../engine/plan.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { idempotencyExtension, keyHeader, keyPattern, keyRule, type WireStatus } from './messages.ts'

export { getKey } from './messages.ts'

export function idempotencyClient(): Side {
  return { capabilities: revision => declaration(revision, idempotencyExtension) }
}

/** Whether the server does what comes under one key once. */
export function knowsKeys(peer: Peer | undefined): boolean {
  return peer !== undefined && declared(peer, idempotencyExtension) !== undefined
}

/** Throws unless a key that was given can be one. */
export function checkKey(key: string): void {
  if (!keyPattern.test(key)) throw new TypeError(`"${clip(key)}" is no idempotency key: use ${keyRule}`)
}

/** How long a key is needed that we made ourselves: for the repetitions of this call, which are over long before. */
const ownKeySeconds = 3_600

/** `own`: nobody else knows the key, so nobody comes back with it later, and it need not take up room for a day. */
export function withKey(options: SendOptions, key: string, own = false): SendOptions {
  const said = options.meta?.[idempotencyExtension]
  const lasts = own ? { idempotency_ttl_seconds: ownKeySeconds } : {}
  return {
    ...options,
    meta: { ...options.meta, [idempotencyExtension]: { ...lasts, ...(isRecord(said) ? said : {}), idempotency_key: key } },
    headers: { ...options.headers, [keyHeader]: key },
  }
}

/** What is known of the call that was made under a key. */
export interface CallStatus {
  /** `indeterminate`: it was begun, and nobody knows how it ended. */
  readonly status: WireStatus['status']
  readonly tool: string | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
}

export function callStatus({ status, tool, started_at, ended_at }: WireStatus): CallStatus {
  return { status, tool, startedAt: dateOf(started_at), endedAt: dateOf(ended_at) }
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text)
}
