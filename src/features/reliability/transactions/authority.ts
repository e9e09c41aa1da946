/** What a caller was allowed when a step was made, as data: its inverse runs with that, whatever was taken away since. */
import type { Caller, Carrier, Principal } from '../../../jsonrpc/connection.ts'
import { isRecord } from '../../../jsonrpc/message.ts'

interface Authority {
  readonly carrier: Carrier
  readonly principal?: Omit<Principal, 'expiresAt'>
  /** Where a grant was presented: what it gave. */
  readonly granted?: readonly string[]
}

/** Until when the proof was good does not matter any more. */
export function captured({ carrier, principal }: Caller, granted: readonly string[] | undefined): Authority {
  const given = granted === undefined ? {} : { granted }
  if (principal === undefined) return { carrier, ...given }
  const { expiresAt: _, ...rest } = principal
  return { carrier, principal: rest, ...given }
}

/** The caller that stands for whoever made the step, and what that one had been granted. */
export function restored(authority: unknown): { readonly caller: Caller; readonly scopes: readonly string[] | undefined } {
  // Written by this package, into a store that is its own.
  const { carrier, principal, granted } = (isRecord(authority) ? authority : { carrier: 'http' }) as unknown as Authority
  return { caller: { carrier, connection: {}, ...(principal === undefined ? {} : { principal }) }, scopes: granted }
}
