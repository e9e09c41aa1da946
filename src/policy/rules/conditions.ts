/** The conditions of a rule, ready to be held against what is asked. */
import { matches } from '../../core/scope.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type ArgumentRule, fitsArguments } from './arguments.ts'
import { begunByNames } from './begun-by.ts'
import { fitsAddress } from './path-patterns.ts'
import { type Asked, kinds, type Patterns, targets, type When } from './rule.ts'

/** Conditions that are lists of patterns, in the order in which mistakes name them. */
export const listConditions = [
  'kind',
  'server',
  'featureSet',
  'tool',
  'resource',
  'prompt',
  'tags',
  'begunBy',
  'client',
  'principal',
] as const satisfies readonly (keyof When)[]

type Lists = { readonly [Name in (typeof listConditions)[number]]?: readonly string[] }

/** What a rule is about. Absent: it does not matter. */
export interface Conditions extends Lists {
  readonly origin: ReadonlyMap<string, readonly string[]>
  readonly arguments: readonly ArgumentRule[]
  /** The rule lets something through: then it has to know of everybody who had a part in it, and of everything that is handed over. */
  readonly lenient: boolean
}

/** About everything. */
export const noConditions: Conditions = { origin: new Map(), arguments: [], lenient: false }

/** Reads conditions that have no clock and no counter. Throws where one is none. */
export function conditionsOf(when: When, lenient: boolean): Conditions {
  const lists: { -readonly [Name in keyof Lists]: Lists[Name] } = {}
  for (const name of listConditions) {
    const value = when[name]
    if (value !== undefined) lists[name] = patterns(name, value)
  }
  const stranger = lists.kind?.find(kind => !kinds.some(known => known === kind))
  if (stranger !== undefined) throw new TypeError(`kind is ${clip(stranger)}: give ${kinds.join(', ')}`)
  const beginner = lists.begunBy?.find(text => text !== 'user' && text !== '*' && !text.startsWith('event/'))
  if (beginner !== undefined) throw new TypeError(`begunBy is ${clip(beginner)}: give user, or event/ and the name of a server`)
  return {
    ...lists,
    origin: new Map(members('origin', when.origin)),
    arguments: members('arguments', when.arguments).map(([path, texts]) => [path.split('.'), texts]),
    lenient,
  }
}

function members(name: string, given: Readonly<Record<string, Patterns>> = {}): readonly [string, readonly string[]][] {
  if (!isRecord(given)) throw new TypeError(`${name} must be an object of patterns by name`)
  return Object.entries(given).map(([path, value]) => [path, patterns(path, value)])
}

function patterns(name: string, value: Patterns): readonly string[] {
  const list = typeof value === 'string' ? [value] : value
  if (Array.isArray(list) && list.length > 0 && list.every(text => typeof text === 'string' && text.length <= 256)) return list
  throw new TypeError(`${clip(name)} must be a text or a list of texts of up to 256 characters`)
}

/** Whether the conditions that need no clock and no counter hold. */
export function isAbout(conditions: Conditions, asked: Asked): boolean {
  const { kind, server, featureSet, tags } = conditions
  return (
    fits(kind, asked.kind) &&
    fits(server, asked.server) &&
    fits(featureSet, asked.featureSet) &&
    fitsTarget(conditions, asked) &&
    (tags === undefined || (asked.tags ?? []).some(tag => fits(tags, tag))) &&
    (conditions.begunBy === undefined || isBegunBy(conditions, asked)) &&
    isCalledBy(conditions, asked.client, asked.principal, asked.kind === 'tool' ? asked.payload : undefined) &&
    (conditions.origin.size === 0 || comesFrom(conditions.origin, asked.origin))
  )
}

/** Who calls, and with what: the conditions that differ between calls of one tool in a gateway. */
export function isCalledBy(
  conditions: Conditions,
  client: string | undefined,
  principal: string | undefined,
  args: unknown,
): boolean {
  if (!fits(conditions.client, client) || !fits(conditions.principal, principal)) return false
  return conditions.arguments.length === 0 || fitsArguments(conditions.arguments, args, conditions.lenient)
}

/** Of the tools, resources and prompts that are named, what is called or read is one. */
export function fitsTarget(conditions: Conditions, asked: Pick<Asked, 'tool' | 'resource' | 'prompt'>): boolean {
  const { tool, resource, prompt, lenient } = conditions
  if (targets.every(target => conditions[target] === undefined)) return true
  if (tool !== undefined && asked.tool !== undefined && fits(tool, asked.tool)) return true
  if (prompt !== undefined && asked.prompt !== undefined && fits(prompt, asked.prompt)) return true
  return resource !== undefined && asked.resource !== undefined && fitsAddress(resource, asked.resource, lenient)
}

function isBegunBy({ begunBy, lenient }: Conditions, asked: Asked): boolean {
  const names = begunByNames(asked.begunBy)
  if (names.length === 0) return false
  return lenient ? names.every(name => fits(begunBy, name)) : names.some(name => fits(begunBy, name))
}

/** Whether a text is among those that are meant. Without patterns it does not matter, also where there is no text. */
export function fits(patterns: readonly string[] | undefined, text: string | undefined): boolean {
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
