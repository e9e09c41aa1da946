/** Scopes that single tools, resources and prompts need beyond what lets a caller in. */
import { problem } from '../../../core/problem.ts'
import { covers } from '../../../core/scope.ts'
import type { Caller, Carrier } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'

export type Scopes = readonly string[] | undefined

/** Whoever started this process, or is part of it, needs no token for what the process may do. */
const local: ReadonlySet<Carrier> = new Set<Carrier>(['stdio', 'memory'])

/** Whether a caller has the scopes. Over a network nobody has any without authorization; locally only a principal with scopes is held to them, unless nobody is trusted. */
export function permits(caller: Caller, needed: Scopes, trusting = true): boolean {
  return needed === undefined || (trusting && isTrusted(caller)) || covers(caller.principal?.scopes, needed)
}

/** Whether a caller is held to no scopes at all. */
export function isTrusted({ carrier, principal }: Caller): boolean {
  return local.has(carrier) && principal?.scopes === undefined
}

/**
 * The step-up for a token that is too short: over HTTP a 403 whose challenge names the scopes to get, elsewhere an error with
 * the same scopes in its data.
 */
export function insufficient(scopes: readonly string[], { principal }: Caller, cause?: Error): McpError {
  const remedy =
    principal === undefined
      ? 'this server was opened without authorization: serve it with auth: oauth({ … })'
      : 'ask the authorization server for a token that has them'
  const lacking = scopes.filter(scope => principal?.scopes?.includes(scope) !== true)
  return new McpError('insufficient-scope', `This needs the scopes ${scopes.join(' ')}; ${remedy}`, {
    data: { scopes },
    cause:
      cause ??
      problem('SCOPE_INSUFFICIENT', `This needs the scopes ${scopes.join(' ')}`, {
        details: { missing_scopes: lacking },
        suggestion: `Ask for ${lacking.join(', ')}`,
        actor: 'user',
      }),
  })
}
