/** What an author may say of the façade. */
import { clip } from '../../../jsonrpc/limits.ts'

const parts = [
  ...(['transactions', 'permissions', 'confirmation', 'idempotency', 'manifest', 'recommendations'] as const),
  ...(['events', 'references'] as const),
] as const
/** What of the extensions is there for clients that know none. */
export type FacadePart = (typeof parts)[number]

/** Throws where what was said makes no sense. */
export function facadeParts(said: boolean | readonly FacadePart[] = false): ReadonlySet<FacadePart> {
  if (typeof said === 'boolean') return new Set(said ? parts : [])
  const strange = Array.isArray(said) ? said.find(part => !parts.includes(part)) : said
  if (strange !== undefined)
    throw new TypeError(`facade has no "${clip(String(strange))}": give true, or some of ${parts.join(', ')}`)
  return new Set(said)
}
