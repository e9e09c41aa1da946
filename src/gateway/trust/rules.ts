/** Rules as a gateway holds them against calls and reads: only against those that can be about them. */
import { type Conditions, fits, fitsTarget } from '../../policy/rules/conditions.ts'
import { ofCalls, type ReadRule, readRule } from '../../policy/rules/read.ts'
import { type TargetKind, targets } from '../../policy/rules/rule.ts'
import { modernRule, type WrittenRule } from './old-rules.ts'

/** One rule, ready to be asked. */
export interface TargetRule extends ReadRule {
  /** It is the same for every call of a client: neither arguments nor time nor counts matter. */
  readonly fixed: boolean
  /** What it is about here. None: a gateway does not know what it names, and it never counts. */
  readonly kinds: readonly TargetKind[]
  isAbout(kind: TargetKind, upstream: string, name: string): boolean
  /** How much of one kind at a server it is about, whatever that is called. */
  covers(kind: TargetKind, upstream: string): 'all' | 'some' | 'none'
}

/** Reads a rule in either spelling. Throws where it is none. */
export function readTargetRule(written: WrittenRule): TargetRule {
  const read = readRule(modernRule(written))
  const { conditions, rule } = read
  const { hours, above } = rule.when ?? {}
  const kinds = kindsOf(read)
  const concerns = (kind: TargetKind, upstream: string): boolean => kinds.includes(kind) && fits(conditions.server, upstream)
  return {
    ...read,
    fixed: conditions.arguments.length === 0 && hours === undefined && above === undefined && rule.until === undefined,
    kinds,
    isAbout: (kind, upstream, name) => concerns(kind, upstream) && fitsTarget(conditions, { [kind]: name }),
    covers: (kind, upstream) => {
      if (!concerns(kind, upstream)) return 'none'
      return conditions[kind]?.includes('*') === false ? 'some' : 'all'
    },
  }
}

/** Those that it names; where it names none, all of which what it says can be said. */
function kindsOf({ conditions, rule, decides, effect }: ReadRule): readonly TargetKind[] {
  if (!isKnownHere(conditions) || rule.when?.running !== undefined) return []
  const named = targets.filter(kind => conditions[kind] !== undefined)
  const calls =
    !decides ||
    effect === 'ask' ||
    effect === 'coalesce' ||
    rule.when?.above !== undefined ||
    conditions.arguments.length > 0 ||
    ofCalls.some(name => rule[name] !== undefined)
  const about = named.length > 0 ? named : calls ? (['tool'] as const) : targets
  return about.filter(kind => fits(conditions.kind, kind))
}

/** What only hosts know is never so here. */
function isKnownHere({ featureSet, tags, begunBy, origin }: Conditions): boolean {
  return featureSet === undefined && tags === undefined && begunBy === undefined && origin.size === 0
}
