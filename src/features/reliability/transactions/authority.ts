/** What a caller was allowed when a step was made, as data: its inverse runs with that, whatever was taken away since. */
import type { Caller, Carrier, Principal } from '../../../jsonrpc/connection.ts'
import { isRecord } from '../../../jsonrpc/message.ts'

interface Authority {
  readonly carrier: Carrier
  readonly principal?: Omit<Principal, 'expiresAt'>
}

/** Until when the proof was good does not matter any more. */
export function captured({ carrier, principal }: Caller): Authority {
  if (principal === undefined) return { carrier }
  const { expiresAt: _, ...rest } = principal
  return { carrier, principal: rest }
}

/** The caller that stands for whoever made the step. */
export function restored(authority: unknown): Caller {
  // Written by this package, into a store that is its own.
  const { carrier, principal } = (isRecord(authority) ? authority : { carrier: 'http' }) as unknown as Authority
  return { carrier, connection: {}, ...(principal === undefined ? {} : { principal }) }
}
