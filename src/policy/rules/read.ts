/** Rules, read once: patterns as lists, times as numbers, mistakes told by the name of the rule. */
import { toMilliseconds } from '../../core/clock.ts'
import { isRisk, risks } from '../../features/reliability/confirmation/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { conditionsOf, listConditions } from './conditions.ts'
import { counted, type Effect, effects, type Rule, type RuleRate, ruleLimit, type When } from './rule.ts'

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

/** Throws where a rule is none, or two have one name. */
export function readRules(rules: readonly Rule[]): readonly ReadRule[] {
  if (rules.length > ruleLimit) throw new RangeError(`The policy has ${rules.length} rules, more than ${ruleLimit} (the limit)`)
  const seen = new Set<string>()
  return rules.map(rule => {
    if (typeof rule.name !== 'string' || rule.name === '' || seen.has(rule.name))
      throw new TypeError(
        `The rule name ${clip(JSON.stringify(rule.name) ?? 'undefined')} is missing or used twice. Give each rule its own name`,
      )
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
  if (Number.isNaN(until)) throw new TypeError(`until must be a time in ISO 8601, not ${clip(String(rule.until))}`)
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
  const unknownKey = Object.keys(value).find(name => !allowed.includes(name))
  if (unknownKey === undefined) return
  const meant = renamed.get(unknownKey) ?? unknownKey
  if (allowed === ruleMembers && whenMembers.includes(meant))
    throw new TypeError(`${clip(unknownKey)} is a condition. Write when: { ${meant}: … }`)
  if (meant !== unknownKey) throw new TypeError(`${unknownKey} is not known. Use ${meant} instead`)
  throw new TypeError(`${clip(unknownKey)} is not known. Use ${allowed.join(', ')}`)
}

function checkEffect(rule: Rule, when: When): void {
  if (rule.do !== undefined && !effects.includes(rule.do))
    throw new TypeError(`do must be allow, deny, ask, hold or coalesce, not ${clip(String(rule.do))}`)
  if (rule.do === 'coalesce' && rule.within === undefined) throw new TypeError('coalesce needs within, such as 30s')
  if (rule.do === 'hold' && rule.for === undefined && when.hours === undefined && when.above === undefined)
    throw new TypeError('hold needs an end. Set for, when.hours or when.above')
  const says = ['do', 'dedupe', ...general] as const
  if (says.every(name => rule[name] === undefined)) throw new TypeError(`the rule has no effect. Set one of ${says.join(', ')}`)
}

function checkCounts(rule: Rule, { above, running }: When): void {
  if (above !== undefined) {
    const [count, ms] = [above.count, toMilliseconds(above.per, 'above.per')]
    if (!(Number.isInteger(count) && count >= 1 && ms >= 1))
      throw new RangeError(
        `above.count must be a whole number of at least 1 and above.per at least 1 ms, not ${count} per ${ms} ms`,
      )
  }
  if (running !== undefined && !(Number.isInteger(running) && running >= 1))
    throw new RangeError(`running must be a whole number of at least 1, not ${running}`)
  if (rule.do !== 'coalesce' && approvers.includes(rule.by))
    throw new TypeError(`by: ${rule.by} is the old form. Use approver: ${rule.by}`)
  checkCounted('by', rule.by)
  checkCounted('above.by', above?.by)
}

function checkCounted(name: string, by: Rule['by']): void {
  if (by !== undefined && !counted.includes(by))
    throw new TypeError(`${name} must be one of ${counted.join(', ')}, not ${clip(String(by))}`)
}

function checkCallSettings(rule: Rule): void {
  const { cost, scopes } = rule
  if (rule.approver !== undefined && !approvers.includes(rule.approver))
    throw new TypeError(`approver must be client, operator or either, not ${clip(String(rule.approver))}`)
  if (rule.risk !== undefined && !isRisk(rule.risk))
    throw new TypeError(`risk must be one of ${risks.join(', ')}, not ${clip(String(rule.risk))}`)
  for (const name of ['dedupe', 'timeout', 'wait'] as const) if (rule[name] !== undefined) toMilliseconds(rule[name], name)
  if (cost !== undefined && !(isRecord(cost) && Number.isFinite(cost.units) && cost.units >= 0))
    throw new TypeError('cost must be { units } or { units, label }, with units of at least 0')
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string')))
    throw new TypeError('scopes must be a list of strings')
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
      `a rule for a ${read} can only allow or deny. ${called ?? `do: ${rule.do}`} applies to tool calls: put it in a separate rule`,
    )
  const said = general.find(name => rule[name] !== undefined)
  const some = rule.until === undefined ? Object.keys(when).find(name => !ofTools.has(name)) : 'until'
  if (said !== undefined && some !== undefined)
    throw new TypeError(
      `${said} applies to all calls of a tool and cannot be combined with ${some}. Remove ${some}, or put ${said} in a separate rule`,
    )
}

// Hours of the day in a time zone: whether a moment lies in them, and when they are over.

/** Times of the day in a time zone: from `from` to before `to`, across midnight if `to` is earlier. */
export interface Hours {
  /**
   * The first minute.
   * @pattern {timeOfDay}
   * @example 22:00
   */
  readonly from: string
  /**
   * The minute after the last one.
   * @pattern {timeOfDay}
   * @example 07:00
   */
  readonly to: string
  /**
   * The time zone, by its IANA name.
   * @minLength 1
   * @example Europe/Berlin
   */
  readonly zone: string
  /** The days on which the hours begin. By default all. */
  readonly days?: readonly Day[]
}

const timeOfDay = /^([01]\d|2[0-3]):([0-5]\d)$/

const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
/** A day of the week. */
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
  for (const day of on) if (!days.includes(day)) throw new TypeError(`${clip(String(day))} is not a day. Use ${days.join(', ')}`)
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
  const [, hours, minutes] = timeOfDay.exec(text) ?? []
  if (hours === undefined || minutes === undefined)
    throw new TypeError(`${clip(String(text))} is not a time of day. Write it as in 22:00`)
  return Number(hours) * 60 + Number(minutes)
}

function localTime(zone: string): (now: number) => { readonly day: Day; readonly minute: number } {
  let format: Intl.DateTimeFormat
  try {
    const minutes = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, weekday: 'short', ...minutes })
  } catch (cause) {
    throw new TypeError(`${clip(String(zone))} is not a time zone. Write it as in Europe/Berlin or UTC`, { cause })
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
