/** The conditions of a rule, ready to be held against what is asked. */
import { matches } from '../../core/scope.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Asked, begunByNames, kinds, type Patterns, targets, type When } from './rule.ts'

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
interface Conditions extends Lists {
  readonly origin: ReadonlyMap<string, readonly string[]>
  readonly arguments: readonly ArgumentRule[]
  /** The rule lets something through: then it has to know of everybody who had a part in it, and of everything that is handed over. */
  readonly lenient: boolean
}

/** Reads conditions that have no clock and no counter. Throws where one is none. */
export function conditionsOf(when: When, lenient: boolean): Conditions {
  const lists: { -readonly [Name in keyof Lists]: Lists[Name] } = {}
  for (const name of listConditions) {
    const value = when[name]
    if (value !== undefined) lists[name] = patterns(name, value)
  }
  const unknownKey = lists.kind?.find(kind => !kinds.some(known => known === kind))
  if (unknownKey !== undefined) throw new TypeError(`kind must be one of ${kinds.join(', ')}, not ${clip(unknownKey)}`)
  const beginner = lists.begunBy?.find(text => text !== 'user' && text !== '*' && !text.startsWith('event/'))
  if (beginner !== undefined)
    throw new TypeError(`begunBy must be user, or event/ and the name of a server, not ${clip(beginner)}`)
  return {
    ...lists,
    origin: new Map(members('origin', when.origin)),
    arguments: members('arguments', when.arguments).map(([path, texts]) => [path.split('.'), texts]),
    lenient,
  }
}

function members(name: string, given: Readonly<Record<string, Patterns>> = {}): readonly [string, readonly string[]][] {
  if (!isRecord(given)) throw new TypeError(`${name} must be an object with patterns as values`)
  return Object.entries(given).map(([path, value]) => [path, patterns(path, value)])
}

function patterns(name: string, value: Patterns): readonly string[] {
  const list = typeof value === 'string' ? [value] : value
  if (Array.isArray(list) && list.length > 0 && list.every(text => typeof text === 'string' && text.length <= 256)) return list
  throw new TypeError(`${clip(name)} must be a string or a non-empty list of strings, each of up to 256 characters`)
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
  if (resource === undefined || asked.resource === undefined) return false
  return lenient ? fitsAll(resource, asked.resource, asAddress) : fitsAny(resource, asked.resource, asAddress)
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

// Whether the arguments of a call are those that a rule is about. A rule that allows must fit everything that lies at its path, one
// that refuses or asks only one thing of it: whatever a caller wraps a value in, nobody gets round a rule by it.

/** Patterns of what lies at a path. */
type ArgumentRule = readonly [path: readonly string[], patterns: readonly string[]]

/** Whether the arguments of a call meet all these conditions. `allows`: the rule lets something through. */
export function fitsArguments(rules: readonly ArgumentRule[], given: unknown, allows: boolean): boolean {
  return rules.every(([path, patterns]) => {
    const found: string[] = []
    collect(given, path, 0, found)
    if (found.length === 0) return false
    return allows ? found.every(text => fitsAll(patterns, text)) : found.some(text => fitsAny(patterns, text))
  })
}

/**
 * All texts at a path and below it, names of members too: where an object is a map, they are the caller's words. A list on the way
 * stands for each of its members.
 */
function collect(value: unknown, path: readonly string[], at: number, found: string[]): void {
  const name = path[at]
  if (Array.isArray(value)) {
    if (value.length === 0 && name === undefined) found.push('')
    for (const member of value) collect(member, path, at, found)
  } else if (name !== undefined) {
    if (isRecord(value) && Object.hasOwn(value, name)) collect(value[name], path, at + 1, found)
  } else if (isRecord(value)) {
    const members = Object.entries(value)
    // Nothing within it, but it is there.
    if (members.length === 0) found.push('')
    for (const [key, member] of members) {
      found.push(key)
      collect(member, path, at, found)
    }
  } else if (value !== undefined) found.push(String(value))
}

// Texts that may be paths or addresses, against patterns: with their detours and escapes, as whoever gets them may understand them.

interface ReadAs {
  /** Stands before each reading. */
  readonly before?: string
  /** It is an address, whatever the pattern looks like. */
  readonly address?: boolean
}

const asItLooks: ReadAs = {}

/** In one of the ways in which whoever gets it may understand it. */
export function fitsAny(patterns: readonly string[], text: string, as = asItLooks): boolean {
  return patterns.some(pattern => {
    if (!hasReadings(pattern, text, as)) return matches(pattern, withPrefix(text, as))
    return readings(text).some(reading => matches(pattern, withPrefix(reading, as)))
  })
}

/** In all of them: what lies in one folder as it is written, and in another one as it is meant, is in the other one. */
export function fitsAll(patterns: readonly string[], text: string, as = asItLooks): boolean {
  return patterns.some(pattern => {
    if (!hasReadings(pattern, text, as)) return matches(pattern, withPrefix(text, as))
    return readings(text).every(reading => matches(pattern, withPrefix(reading, as)))
  })
}

const asAddress: ReadAs = { address: true }

/** How often what is escaped may be escaped once more. */
const mostEscapes = 3

/** Whether a text can be read in several ways: it, or the pattern, is a path or an address, and it has dots or escapes. */
function hasReadings(pattern: string, text: string, { address }: ReadAs): boolean {
  return (address === true || /[/\\]/.test(pattern)) && /[\\%]|\.\.|\/\.?\//.test(text)
}

function withPrefix(text: string, { before }: ReadAs): string {
  return before === undefined ? text : before + text
}

/** A text, and what becomes of its dots and escapes. */
function readings(text: string): readonly string[] {
  const found = [text, straight(text)]
  let plain = text
  for (let i = 0; i < mostEscapes && plain.includes('%'); i++) {
    // One by one: what cannot be read whole is perhaps read so.
    plain = plain.replace(/%[0-9a-f]{2}/gi, code => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
    found.push(plain, straight(plain))
  }
  return found
}

/** Without detours: `/a/./b//../c` is `/a/c`. */
function straight(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? ''
  const parts: string[] = []
  const rest = text.slice(scheme.length).split(/[/\\]/)
  for (const [at, part] of rest.entries()) {
    if (part === '.' || (part === '' && at > 0 && at < rest.length - 1)) continue
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') {
      // Above the root there is nothing.
      if (parts.length > 1 || parts[0] !== '') parts.pop()
    } else parts.push(part)
  }
  return scheme + parts.join('/')
}
