/** Rules, read once: patterns as lists, times as numbers, mistakes told by the name of the rule. */
import { toMilliseconds } from '../../core/clock.ts'
import { isRisk, risks } from '../../features/reliability/confirmation/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { conditionsOf, listConditions } from './conditions.ts'
import {
  counted,
  type DefaultEffect,
  type Effect,
  effects,
  type Kind,
  kinds,
  type Otherwise,
  type Rule,
  type RuleRate,
  type When,
} from './rule.ts'

/** One rule, ready to be asked. */
export interface ReadRule {
  readonly name: string
  readonly rule: Rule
  /** False: it says only what a gateway adds to calls, and lets through or refuses nothing. */
  readonly decides: boolean
  readonly effect: Effect
  readonly conditions: ReturnType<typeof conditionsOf>
  /** The rate beyond which it holds. */
  readonly above: RuleRate | undefined
  /** While so many are under way. */
  readonly running: number | undefined
  readonly hours: OpenHours | undefined
  readonly until: number
  readonly forMs: number | undefined
  readonly withinMs: number
}

/** What a gateway adds to all calls of a tool, whoever makes them. */
const general = ['cost', 'scopes', 'timeout', 'idempotent'] as const satisfies readonly (keyof Rule)[]
/** What only calls of tools have. */
export const ofCalls = ['approver', 'risk', 'wait', 'dedupe', ...general] as const satisfies readonly (keyof Rule)[]
const ruleMembers = ['name', 'do', 'when', 'until', 'for', 'within', 'by', 'message', 'fix', ...ofCalls]
const whenMembers: readonly string[] = [...listConditions, 'arguments', 'origin', 'hours', 'above', 'running']
const approvers: readonly unknown[] = ['client', 'operator', 'either']
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

/** Throws where it is none; the mistake does not name the rule. */
export function readRule(rule: Rule): ReadRule {
  const { name, when = {}, do: effect } = rule
  if (typeof when !== 'object' || when === null || Array.isArray(when))
    throw new TypeError('when must be an object of conditions')
  known(rule, ruleMembers)
  known(when, whenMembers)
  checkEffect(rule, when)
  checkCounts(rule, when)
  checkCallSettings(rule)
  checkTogether(rule, when)
  const until = rule.until === undefined ? Number.POSITIVE_INFINITY : new Date(rule.until).getTime()
  if (Number.isNaN(until)) throw new TypeError(`until is ${clip(String(rule.until))}: give a time in ISO 8601`)
  return {
    name,
    rule,
    decides: effect !== undefined,
    effect: effect ?? 'allow',
    conditions: conditionsOf(when, effect === 'allow' || effect === 'coalesce'),
    above: when.above,
    running: when.running,
    hours: when.hours && openHours(when.hours),
    until,
    forMs: rule.for === undefined ? undefined : toMilliseconds(rule.for, 'for'),
    withinMs: rule.within === undefined ? 0 : toMilliseconds(rule.within, 'within'),
  }
}

/** Words of earlier rules of gateways, and what they are called now. */
const renamed: ReadonlyMap<string, string> = new Map([
  ['upstream', 'server'],
  ['args', 'arguments'],
])

/** A misspelled condition would be none, and the rule about everything. */
function known(value: object, allowed: readonly string[]): void {
  const stranger = Object.keys(value).find(name => !allowed.includes(name))
  if (stranger === undefined) return
  const meant = renamed.get(stranger) ?? stranger
  if (allowed === ruleMembers && whenMembers.includes(meant))
    throw new TypeError(`${clip(stranger)} is not known here: it is a condition, write when: { ${meant}: … }`)
  if (meant !== stranger) throw new TypeError(`${stranger} is not known: write ${meant}`)
  throw new TypeError(`${clip(stranger)} is not known: there is ${allowed.join(', ')}`)
}

function checkEffect(rule: Rule, when: When): void {
  if (rule.do !== undefined && !effects.includes(rule.do))
    throw new TypeError(`do is ${clip(String(rule.do))}: give allow, deny or ask; or hold or coalesce`)
  if (rule.do === 'coalesce' && rule.within === undefined) throw new TypeError('coalesce needs within, such as 30s')
  if (rule.do === 'hold' && rule.for === undefined && when.hours === undefined && when.above === undefined)
    throw new TypeError('hold needs for, or hours or a rate that end it')
  const says = ['do', 'dedupe', ...general] as const
  if (says.every(name => rule[name] === undefined)) throw new TypeError(`it says nothing: give ${says.join(', ')}`)
}

function checkCounts(rule: Rule, { above, running }: When): void {
  if (above !== undefined) {
    const [count, ms] = [above.count, toMilliseconds(above.per, 'above.per')]
    if (!(Number.isInteger(count) && count >= 1 && ms >= 1))
      throw new RangeError(`above is ${count} per ${ms} ms: give a whole number of at least 1, and a time`)
  }
  if (running !== undefined && !(Number.isInteger(running) && running >= 1))
    throw new RangeError(`running is ${running}: give a whole number of at least 1`)
  if (rule.do !== 'coalesce' && approvers.includes(rule.by))
    throw new TypeError(`by is ${rule.by}: who answers is said by approver`)
  checkCounted('by', rule.by)
  checkCounted('above.by', above?.by)
}

function checkCounted(name: string, by: Rule['by']): void {
  if (by !== undefined && !counted.includes(by)) throw new TypeError(`${name} is ${clip(String(by))}: give ${counted.join(', ')}`)
}

function checkCallSettings(rule: Rule): void {
  const { cost, scopes } = rule
  if (rule.approver !== undefined && !approvers.includes(rule.approver))
    throw new TypeError(`approver is ${clip(String(rule.approver))}: give client, operator or either`)
  if (rule.risk !== undefined && !isRisk(rule.risk))
    throw new TypeError(`risk is ${clip(String(rule.risk))}: give ${risks.join(', ')}`)
  for (const name of ['dedupe', 'timeout', 'wait'] as const) if (rule[name] !== undefined) toMilliseconds(rule[name], name)
  if (cost !== undefined && !(isRecord(cost) && Number.isFinite(cost.units) && cost.units >= 0))
    throw new TypeError('cost must be { units } of at least 0, with a label if you like')
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string')))
    throw new TypeError('scopes must be a list of texts')
}

/** What holds for every call of a tool: a rule that says it has no conditions but these. */
const ofTools: ReadonlySet<string> = new Set(['kind', 'server', 'tool'])

/** What each is right by itself, and means nothing beside the other: a rule that nobody keeps is a mistake. */
function checkTogether(rule: Rule, when: When): void {
  const read = (['resource', 'prompt'] as const).find(kind => when[kind] !== undefined || [when.kind].flat().includes(kind))
  const called =
    (['arguments', 'above'] as const).find(name => when[name] !== undefined) ?? ofCalls.find(name => rule[name] !== undefined)
  if (read !== undefined && (called !== undefined || (rule.do !== 'allow' && rule.do !== 'deny')))
    throw new TypeError(
      `a ${read} is only allowed or denied: ${called ?? `do: ${rule.do}`} is for calls of tools, say it in a rule of its own`,
    )
  const said = general.find(name => rule[name] !== undefined)
  const some = rule.until === undefined ? Object.keys(when).find(name => !ofTools.has(name)) : 'until'
  if (said !== undefined && some !== undefined)
    throw new TypeError(`${said} holds for all calls of a tool: leave out ${some}, or say it in a rule of its own`)
}

// Hours of the day in a time zone: whether a moment lies in them, and when they are over.

/** Local time from `from` to before `to`, over midnight where `to` is the earlier one. */
export interface Hours {
  /** `22:00`. */
  readonly from: string
  /** `07:00`; that minute does not belong to it. */
  readonly to: string
  /** A name such as `Europe/Berlin`. */
  readonly zone: string
  /** On which days they begin. Default all. */
  readonly days?: readonly Day[]
}

const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
type Day = (typeof days)[number]

interface OpenHours {
  contains(now: number): boolean
  /** The first minute after `now` that lies outside. */
  endsAfter(now: number): number
}

const minuteMs = 60_000
const dayMinutes = 1_440

/** Throws where the times or the zone are none. */
export function openHours({ from, to, zone, days: on = days }: Hours): OpenHours {
  const [start, end] = [minuteOf(from), minuteOf(to)]
  const local = localTime(zone)
  for (const day of on) if (!days.includes(day)) throw new TypeError(`${clip(String(day))} is no day: give ${days.join(', ')}`)
  const contains = (now: number): boolean => {
    const { day, minute } = local(now)
    if (start < end) return minute >= start && minute < end && on.includes(day)
    // Over midnight: the part after it belongs to the day before.
    if (minute >= start) return on.includes(day)
    return minute < end && on.includes(days[(days.indexOf(day) + 6) % 7] as Day)
  }
  const endsAfter = (now: number): number => {
    const { minute } = local(now)
    const whole = Math.floor(now / minuteMs) * minuteMs
    const ahead = (end - minute + dayMinutes) % dayMinutes || dayMinutes
    let at = contains(now) ? whole + ahead * minuteMs : whole + minuteMs
    // Clocks that are put forward or back move the end: first to where it is surely over, then back to its first minute.
    while (contains(at)) at += 15 * minuteMs
    while (at - minuteMs > now && !contains(at - minuteMs)) at -= minuteMs
    return at
  }
  return { contains, endsAfter }
}

function minuteOf(text: string): number {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hours === undefined || minutes === undefined) throw new TypeError(`${clip(String(text))} is no time of day: write 22:00`)
  return Number(hours) * 60 + Number(minutes)
}

function localTime(zone: string): (now: number) => { readonly day: Day; readonly minute: number } {
  let format: Intl.DateTimeFormat
  try {
    const minutes = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, weekday: 'short', ...minutes })
  } catch (cause) {
    throw new TypeError(`${clip(String(zone))} is no time zone: write Europe/Berlin or UTC`, { cause })
  }
  return now => {
    const parts = new Map(format.formatToParts(now).map(({ type, value }) => [type, value]))
    const day = (parts.get('weekday') ?? '').toLowerCase()
    return {
      day: days.find(each => day.startsWith(each)) ?? 'sun',
      minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')),
    }
  }
}

// What happens where no rule says anything.

/** By kind, for every kind. */
type Defaults = Readonly<Record<Kind, DefaultEffect>>

/** New feature sets and what leads out of them are asked about; the rest lies within what was enabled. */
const usual: Defaults = {
  push: 'allow',
  infer: 'allow',
  inject: 'allow',
  tool: 'allow',
  resource: 'allow',
  prompt: 'allow',
  elicit: 'allow',
  sample: 'ask',
  roots: 'ask',
  scope: 'ask',
  set: 'ask',
  definition: 'ask',
}

const careful: readonly unknown[] = ['allow', 'ask', 'deny'] satisfies DefaultEffect[]

/** Throws where it is none. */
export function readOtherwise(otherwise: Otherwise = {}): Defaults {
  if (typeof otherwise === 'string') return forAll(otherwise)
  for (const [kind, effect] of Object.entries(otherwise)) {
    if (!kinds.some(known => known === kind)) throw new TypeError(`otherwise: ${clip(kind)} is not among ${kinds.join(', ')}`)
    if (!careful.includes(effect)) throw new TypeError(`otherwise.${kind} is ${clip(String(effect))}: give allow, ask or deny`)
    if (effect === 'ask' && isRead(kind)) throw new TypeError(`otherwise.${kind} is ask: give allow or deny`)
  }
  return { ...usual, ...otherwise }
}

/** Nobody is asked about what is only read; and one word for all opens nothing that is closed unless it is named. */
function forAll(effect: DefaultEffect): Defaults {
  if (!careful.includes(effect)) throw new TypeError(`otherwise is ${clip(String(effect))}: give allow, ask or deny`)
  const of = (kind: Kind): DefaultEffect => {
    if (isRead(kind)) return effect === 'deny' ? 'deny' : 'allow'
    return kind === 'tool' || effects.indexOf(effect) < effects.indexOf(usual[kind]) ? effect : usual[kind]
  }
  return Object.fromEntries(kinds.map(kind => [kind, of(kind)])) as Defaults
}

function isRead(kind: string): boolean {
  return kind === 'resource' || kind === 'prompt'
}
