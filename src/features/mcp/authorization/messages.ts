/** Scopes that single tools, resources and prompts need beyond what lets a caller in. */
import { covers } from '../../../core/scope.ts'
import type { Caller, Carrier } from '../../../jsonrpc/connection.ts'

export type Scopes = readonly string[] | undefined

/** Whoever started this process, or is part of it, needs no token for what the process may do. */
const local: ReadonlySet<Carrier> = new Set<Carrier>(['stdio', 'memory'])

/** Whether a caller has the scopes. Over a network nobody has any without authorization; locally only a principal with scopes is held to them. */
export function permits({ carrier, principal }: Caller, needed: Scopes): boolean {
  if (needed === undefined || (local.has(carrier) && principal?.scopes === undefined)) return true
  return covers(principal?.scopes, needed)
}
