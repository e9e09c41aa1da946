/** Rules as a gateway holds them against calls and reads: only against those that can be about them. */

import { clip } from '../../jsonrpc/limits.ts'
import { type Conditions, fits, fitsTarget } from '../../policy/rules/conditions.ts'
import { ofCalls, type ReadRule, readRule } from '../../policy/rules/read.ts'
import { type Rule, type TargetKind, targets, type When } from '../../policy/rules/rule.ts'
import type { GatewayRule } from './settings.ts'

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

// Rules as gateways wrote them before hosts and gateways shared one language: conditions beside the name instead of in `when`. They are
// still read, and whoever runs the gateway is told how to write them now.

/** A rule in either spelling. */
export type WrittenRule = Rule | GatewayRule

const oldMembers = ['upstream', 'tool', 'resource', 'prompt', 'client', 'principal', 'args', 'hours', 'above'] as const
/** What is added to the advice where a condition has another name in `when`. */
const newNames: Readonly<Record<string, string>> = { upstream: ' as server', args: ' as arguments' }
const approvers: readonly unknown[] = ['client', 'operator', 'either']

/** Whether it has conditions beside its name, or says by `by` who answers. */
function isOldRule(rule: WrittenRule): rule is GatewayRule {
  return oldMembers.some(name => Object.hasOwn(rule, name)) || (rule.do !== 'coalesce' && approvers.includes(rule.by))
}

/** What to do about old rules, in a sentence; undefined where there are none. */
export function oldRulesText(rules: readonly WrittenRule[]): string | undefined {
  const old = rules.filter(isOldRule).map(({ name }) => clip(name))
  if (old.length === 0) return undefined
  const shown = `${old.slice(0, 5).join(', ')}${old.length > 5 ? ` and ${old.length - 5} more` : ''}`
  return `Rules in the old form, which a later version will not read: ${shown}. Write their conditions in when: upstream as server, args as arguments; and by as approver`
}

/** The same rule in the form of today. Throws where it mixes the two, or says what the old form does not know. */
export function modernRule(written: WrittenRule): Rule {
  if (!isOldRule(written)) return written
  const { upstream, tool, resource, prompt, client, principal, args, hours, above, by, ...rest } = written
  if ('when' in rest) {
    const beside = oldMembers.find(name => Object.hasOwn(written, name))
    if (beside === undefined) throw new TypeError(`by is ${by}: who answers is said by approver`)
    throw new TypeError(`${beside} stands beside when: write it in when${newNames[beside] ?? ''}`)
  }
  if (rest.do !== undefined && !['allow', 'deny', 'ask'].includes(rest.do))
    throw new TypeError(`do is ${clip(String(rest.do))}: give allow, deny or ask`)
  if (by !== undefined && !approvers.includes(by))
    throw new TypeError(`by is ${clip(String(by))}: give client, operator or either`)
  if (above?.by !== undefined && !['client', 'all'].includes(above.by))
    throw new TypeError(`above.by is ${clip(String(above.by))}: give client or all`)
  const when: When = {
    ...(upstream !== undefined && { server: upstream }),
    ...(tool !== undefined && { tool }),
    ...(resource !== undefined && { resource }),
    ...(prompt !== undefined && { prompt }),
    ...(client !== undefined && { client }),
    ...(principal !== undefined && { principal }),
    ...(args !== undefined && { arguments: args }),
    ...(hours !== undefined && { hours }),
    ...(above !== undefined && { above: { ...above, by: above.by === 'all' ? 'server' : 'client' } }),
  }
  return { ...rest, when, ...(by !== undefined && { approver: by }) }
}
