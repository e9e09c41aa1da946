/** Rules, read once: patterns as lists, times as numbers, mistakes told by the name of the rule. */
import { toMilliseconds } from '../../core/duration.ts'
import { matches } from '../../core/scope.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { begunByNames } from '../begun-by.ts'
import { type OpenHours, openHours } from './hours.ts'
import { type Asked, type Counted, effects, kinds, type Rule, type When } from './rule.ts'

/** What a rule is about. Absent: it does not matter. */
export interface Conditions {
  readonly kind?: readonly string[]
  readonly server?: readonly string[]
  readonly featureSet?: readonly string[]
  readonly tool?: readonly string[]
  readonly tags?: readonly string[]
  readonly begunBy?: readonly string[]
  readonly origin: ReadonlyMap<string, readonly string[]>
  /** The rule lets something through: then it has to know of everybody who had a part in it. */
  readonly lenient?: boolean
}

export interface ReadRule {
  readonly name: string
  readonly rule: Rule
  readonly conditions: Conditions
  readonly hours: OpenHours | undefined
  readonly until: number
  readonly forMs: number | undefined
  readonly withinMs: number
}

const members = new Set(['name', 'do', 'when', 'until', 'for', 'within', 'by', 'message', 'fix'])
const names = ['kind', 'server', 'featureSet', 'tool', 'tags', 'begunBy'] as const
const whenMembers = new Set([...names, 'origin', 'hours', 'above', 'running'])
const ruleLimit = 1_000

/** Throws where a rule is none, or two have one name. */
export function readRules(rules: readonly Rule[]): readonly ReadRule[] {
  if (rules.length > ruleLimit) throw new RangeError(`${rules.length} rules: the most is ${ruleLimit}`)
  const seen = new Set<string>()
  return rules.map(rule => {
    if (typeof rule.name !== 'string' || rule.name === '' || seen.has(rule.name))
      throw new TypeError(`A rule is named ${clip(JSON.stringify(rule.name) ?? 'undefined')}: give each a name of its own`)
    seen.add(rule.name)
    try {
      return readRule(rule)
    } catch (cause) {
      throw new TypeError(`Rule ${clip(rule.name)}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    }
  })
}

function readRule(rule: Rule): ReadRule {
  const { name, when = {} } = rule
  known(rule, members)
  known(when, whenMembers)
  if (!effects.includes(rule.do)) throw new TypeError(`do is ${clip(String(rule.do))}: give ${effects.join(', ')}`)
  if (rule.do === 'coalesce' && rule.within === undefined) throw new TypeError('coalesce needs within, such as 30s')
  if (rule.do === 'hold' && rule.for === undefined && when.hours === undefined && when.above === undefined)
    throw new TypeError('hold needs for, or hours or a rate that end it')
  if (when.above !== undefined) checkRate(when.above.count, toMilliseconds(when.above.per, 'above.per'))
  if (when.running !== undefined && !(Number.isInteger(when.running) && when.running >= 1))
    throw new RangeError(`running is ${when.running}: give a whole number of at least 1`)
  for (const by of [rule.by, when.above?.by]) checkCounted(by)
  const until = rule.until === undefined ? Number.POSITIVE_INFINITY : new Date(rule.until).getTime()
  if (Number.isNaN(until)) throw new TypeError(`until is ${clip(String(rule.until))}: give a time in ISO 8601`)
  return {
    name,
    rule,
    conditions: conditionsOf(when, rule.do === 'allow' || rule.do === 'coalesce'),
    hours: when.hours && openHours(when.hours),
    until,
    forMs: rule.for === undefined ? undefined : toMilliseconds(rule.for, 'for'),
    withinMs: rule.within === undefined ? 0 : toMilliseconds(rule.within, 'within'),
  }
}

/** A misspelled condition would be none, and the rule about everything. */
function known(value: object, allowed: ReadonlySet<string>): void {
  const stranger = Object.keys(value).find(name => !allowed.has(name))
  if (stranger !== undefined) throw new TypeError(`${clip(stranger)} is not known: there is ${[...allowed].join(', ')}`)
}

function checkRate(count: number, ms: number): void {
  if (!(Number.isInteger(count) && count >= 1 && ms >= 1))
    throw new RangeError(`above is ${count} per ${ms} ms: give a whole number of at least 1, and a time`)
}

function checkCounted(by: Counted | undefined): void {
  if (by !== undefined && !['server', 'featureSet', 'origin'].includes(by))
    throw new TypeError(`by is ${clip(String(by))}: give server, featureSet or origin`)
}

function conditionsOf(when: When, lenient: boolean): Conditions {
  const lists: Partial<Record<(typeof names)[number], readonly string[]>> = {}
  for (const name of names) {
    const value = when[name]
    if (value !== undefined) lists[name] = patterns(name, value)
  }
  const stranger = lists.kind?.find(kind => !kinds.some(known => known === kind))
  if (stranger !== undefined) throw new TypeError(`kind is ${clip(stranger)}: give ${kinds.join(', ')}`)
  const beginner = lists.begunBy?.find(text => text !== 'user' && text !== '*' && !text.startsWith('event/'))
  if (beginner !== undefined) throw new TypeError(`begunBy is ${clip(beginner)}: give user, or event/ and the name of a server`)
  const origin = new Map(Object.entries(when.origin ?? {}).map(([path, value]) => [path, patterns(path, value)]))
  return { ...lists, origin, lenient }
}

function patterns(name: string, value: string | readonly string[]): readonly string[] {
  const list = typeof value === 'string' ? [value] : value
  if (Array.isArray(list) && list.length > 0 && list.every(text => typeof text === 'string' && text.length <= 256)) return list
  throw new TypeError(`${clip(name)} must be a text or a list of texts of up to 256 characters`)
}

/** Whether the conditions that need no clock and no counter hold. */
export function isAbout(conditions: Conditions, asked: Asked): boolean {
  const { kind, server, featureSet, tool, tags } = conditions
  return (
    fits(kind, asked.kind) &&
    fits(server, asked.server) &&
    fits(featureSet, asked.featureSet) &&
    fits(tool, asked.tool) &&
    (tags === undefined || (asked.tags ?? []).some(tag => fits(tags, tag))) &&
    (conditions.begunBy === undefined || isBegunBy(conditions, asked)) &&
    (conditions.origin.size === 0 || comesFrom(conditions.origin, asked.origin))
  )
}

function isBegunBy({ begunBy, lenient }: Conditions, asked: Asked): boolean {
  const names = begunByNames(asked.begunBy)
  if (names.length === 0) return false
  return lenient ? names.every(name => fits(begunBy, name)) : names.some(name => fits(begunBy, name))
}

function fits(patterns: readonly string[] | undefined, text: string | undefined): boolean {
  return patterns === undefined || (text !== undefined && patterns.some(pattern => matches(pattern, text)))
}

function comesFrom(wanted: ReadonlyMap<string, readonly string[]>, origin: unknown): boolean {
  for (const [path, patterns] of wanted) {
    let value = origin
    for (const name of path.split('.')) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
    const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    if (typeof text !== 'string' || !fits(patterns, text)) return false
  }
  return true
}
