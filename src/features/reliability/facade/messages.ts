/** The parts of the facade, shared with the features that it concerns. */
import { clip } from '../../../jsonrpc/limits.ts'

const parts = [
  ...(['transactions', 'permissions', 'confirmation', 'idempotency', 'manifest', 'recommendations'] as const),
  ...(['events', 'references'] as const),
] as const
/** A part of the extensions that the facade offers to clients without them. */
export type FacadePart = (typeof parts)[number]

/** Reads the option `facade`; throws if it is invalid. */
export function facadeParts(said: boolean | readonly FacadePart[] = false): ReadonlySet<FacadePart> {
  if (typeof said === 'boolean') return new Set(said ? parts : [])
  const strange = Array.isArray(said) ? said.find(part => !parts.includes(part)) : said
  if (strange !== undefined)
    throw new TypeError(`facade has no part "${clip(String(strange))}". Give true, or some of ${parts.join(', ')}`)
  return new Set(said)
}
