/** Cross-origin answers, for origins that the author listed and for no other. Cookies are never invited. */
import { badOrigin, type Guard } from './guard.ts'
import type { Refusal } from './refusal.ts'

const exposed = 'mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, ratelimit, ratelimit-policy'
const names = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/

/** Headers (flat) that let the page read an answer; none for an origin that is not listed. */
export function corsHeaders(guard: Guard, origin: string | undefined): readonly string[] {
  if (origin === undefined || !guard.lists(origin)) return none
  return ['access-control-allow-origin', origin, 'access-control-expose-headers', exposed, 'vary', 'origin']
}

/** Headers (flat) of the answer to a preflight, or undefined when the origin is not listed or it is no preflight. */
export function preflightHeaders(
  guard: Guard,
  origin: string | undefined,
  method: string | undefined,
  requested: string | undefined,
): string[] | undefined {
  if (origin === undefined || method === undefined || !guard.lists(origin)) return undefined
  const headers = ['access-control-allow-origin', origin, 'access-control-allow-methods', 'GET, POST, DELETE']
  // Parameter headers have names of the author's choice, so the wish is granted as it came, if it is a list of names.
  if (requested !== undefined && requested.length <= 2048 && names.test(requested)) {
    headers.push('access-control-allow-headers', requested)
  }
  headers.push('access-control-max-age', '600', 'vary', 'origin, access-control-request-headers')
  return headers
}

/** Tells whoever looks into a preflight that failed what would let it pass; undefined where it is no preflight. */
export function preflightRefusal(origin: string | undefined, method: string | undefined): Refusal | undefined {
  return origin === undefined || method === undefined ? undefined : badOrigin(origin)
}

const none: readonly string[] = []
