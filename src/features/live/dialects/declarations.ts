/** Feature sets as servers declare them: an object by name, an array of entries with a name, or merely `true`. */
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { FeatureSetFacts } from '../feature-sets/messages.ts'

export interface Declarations {
  readonly sets: ReadonlyMap<string, FeatureSetFacts>
  /** Declared, but never enabled: by name, what is wrong. */
  readonly faulty: ReadonlyMap<string, string>
}

/** A server with more than this does not mean people to choose among them. */
export const mostSets = 1_000
const mostUses = 64
const longestName = 256
/** As a part of a key of stores. */
const longestKey = 512

export function readDeclarations(wire: unknown): Declarations {
  const sets = new Map<string, FeatureSetFacts>()
  const faulty = new Map<string, string>()
  for (const [name, value] of entries(wire).slice(0, mostSets)) {
    const fault = faultOf(name, value)
    if (fault === undefined) sets.set(name, factsOf(value as Readonly<Record<string, unknown>>))
    else if (name.length <= longestName) faulty.set(name, fault)
  }
  return { sets, faulty }
}

function entries(wire: unknown): readonly (readonly [name: string, value: unknown])[] {
  if (Array.isArray(wire)) {
    return wire.flatMap(one => (isRecord(one) && typeof one['name'] === 'string' ? [[one['name'], one] as const] : []))
  }
  return isRecord(wire) ? Object.entries(wire) : []
}

/** A star in a name would be a pattern to whoever reads the selection. */
function faultOf(name: string, value: unknown): string | undefined {
  if (name === '' || name.length > longestName) return `its name must have 1 to ${longestName} characters`
  if (!name.isWellFormed() || encodeURIComponent(name).length > longestKey) return 'its name has too many unusual characters'
  if (name.includes('*')) return 'its name must not contain a star'
  if (!isRecord(value)) return 'it is no object'
  if (typeof value['description'] !== 'string') return 'it has no description'
  return Array.isArray(value['uses']) ? undefined : 'it does not say what it uses'
}

function factsOf(value: Readonly<Record<string, unknown>>): FeatureSetFacts {
  const uses = (value['uses'] as readonly unknown[]).filter(use => typeof use === 'string').slice(0, mostUses)
  return {
    description: clip(value['description'] as string, 2_000),
    uses,
    ...(value['scoped'] === true ? { scoped: true } : {}),
    ...(value['rollback'] === true ? { rollback: true } : {}),
    ...(value['hostState'] === true ? { hostState: true } : {}),
  }
}
