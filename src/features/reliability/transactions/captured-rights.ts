/** What a caller was allowed when a step was made, as data: its inverse runs with that, whatever was taken away since. */
import type { Caller, Carrier, Principal } from '../../../jsonrpc/connection.ts'
import { isRecord } from '../../../jsonrpc/message.ts'

interface Authority {
  readonly carrier: Carrier
  readonly principal?: Omit<Principal, 'expiresAt'>
  /** What a grant gave, where one was presented. */
  readonly scopes?: readonly string[]
}

/** Until when the proof was good does not matter any more. */
export function capturedRights({ carrier, principal }: Caller, scopes: readonly string[] | undefined): Authority {
  const given = scopes === undefined ? {} : { scopes }
  if (principal === undefined) return { carrier, ...given }
  const { expiresAt: _, ...rest } = principal
  // No more than was allowed then, also where the principal's own token gives more.
  const narrowed = scopes === undefined || rest.scopes === undefined ? rest : { ...rest, scopes }
  return { carrier, principal: narrowed, ...given }
}

/** The caller that stands for whoever made the step, and what a grant allowed to it. */
export function restoredRights(authority: unknown): { readonly caller: Caller; readonly scopes: readonly string[] | undefined } {
  // Written by this package, into a store that is its own.
  const { carrier, principal, scopes } = (isRecord(authority) ? authority : { carrier: 'http' }) as unknown as Authority
  return { caller: { carrier, connection: {}, ...(principal === undefined ? {} : { principal }) }, scopes }
}
