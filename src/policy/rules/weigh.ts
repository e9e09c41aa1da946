/**
 * Which of several rules counts. The order in which they are written never matters: a prohibition beats all; else a rule that is
 * narrower in every respect beats the wider one; where neither is, the more careful one counts.
 */
import { matches } from '../../core/scope.ts'
import type { ReadRule } from './read.ts'
import { effects, targets } from './rule.ts'

type Conditions = ReadRule['conditions']

/** The one that counts, of those that hold. */
export function strongest(rules: readonly ReadRule[]): ReadRule | undefined {
  const denials = rules.filter(({ effect }) => effect === 'deny')
  const among = denials.length > 0 ? denials : rules
  const narrowest = among.filter(one => !among.some(other => covers(one, other) && !covers(other, one)))
  return narrowest.reduce<ReadRule | undefined>(
    (best, one) => (best === undefined || precedes(one, best) ? one : best),
    undefined,
  )
}

/** The more careful effect first, then by name. */
function precedes(one: ReadRule, other: ReadRule): boolean {
  const [a, b] = [effects.indexOf(one.effect), effects.indexOf(other.effect)]
  return a === b ? one.name < other.name : a < b
}

/** Whether the wide one is about everything that the other is about, at any time. */
function covers(wide: ReadRule, narrow: ReadRule): boolean {
  const [a, b] = [wide.conditions, narrow.conditions]
  return coversLists(a, b) && coversTargets(a, b) && coversOrigin(a, b) && coversArguments(a, b) && coversTimes(wide, narrow)
}

/** Compares the conditions that are lists of patterns. */
function coversLists(a: Conditions, b: Conditions): boolean {
  const names = ['kind', 'server', 'featureSet', 'tags', 'begunBy', 'client', 'principal'] as const
  return names.every(name => coversTexts(a[name], b[name]))
}

/** One of those that are named must fit, so whoever names one more is wider. */
function coversTargets(a: Conditions, b: Conditions): boolean {
  if (targets.every(target => a[target] === undefined)) return true
  const named = targets.filter(target => b[target] !== undefined)
  return named.length > 0 && named.every(target => a[target] !== undefined && coversTexts(a[target], b[target]))
}

/** Compares the conditions on origin. */
function coversOrigin(a: Conditions, b: Conditions): boolean {
  return [...a.origin].every(([path, patterns]) => coversTexts(patterns, b.origin.get(path)))
}

/** Compares the conditions on arguments. */
function coversArguments(a: Conditions, b: Conditions): boolean {
  const texts = new Map(b.arguments.map(([path, patterns]) => [path.join('.'), patterns]))
  return a.arguments.every(([path, patterns]) => coversTexts(patterns, texts.get(path.join('.'))))
}

/** A star of the narrow one is met by none but a star of the wide one, so this finds no more than is true. */
function coversTexts(wide: readonly string[] | undefined, narrow: readonly string[] | undefined): boolean {
  if (wide === undefined) return true
  return narrow?.every(text => wide.some(pattern => matches(pattern, text))) ?? false
}

/** Compares hours, rates and expiry. */
function coversTimes(wide: ReadRule, narrow: ReadRule): boolean {
  const [a, b] = [wide.rule.when?.hours, narrow.rule.when?.hours]
  return (
    (a === undefined || same(a, b)) &&
    (wide.above === undefined || same(wide.above, narrow.above)) &&
    (wide.running === undefined || (narrow.running !== undefined && wide.running <= narrow.running)) &&
    wide.until >= narrow.until
  )
}

function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** A rule that never counts, and the one that keeps it from it. */
export interface Shadow {
  readonly rule: string
  readonly by: string
  readonly why: string
}

/** Rules that can be deleted without any effect: the writer thought that they have one. */
export function shadowed(rules: readonly ReadRule[]): readonly Shadow[] {
  const deciding = rules.filter(({ decides }) => decides)
  return deciding.flatMap(one => {
    const by = deciding.find(other => other !== one && hides(other, one))
    if (by === undefined) return []
    const same = by.effect === one.effect
    const why = same
      ? 'it has the same effect and matches the same or more'
      : `its effect (${by.effect}) takes precedence wherever both match`
    return [{ rule: one.name, by: by.name, why }]
  })
}

function hides(by: ReadRule, one: ReadRule): boolean {
  if (!covers(by, one)) return false
  if (by.effect === 'deny' && one.effect !== 'deny') return true
  // Where both are about the same, the first in this order counts; a wider one that does not deny never hides a narrower.
  return covers(one, by) && precedes(by, one)
}
