/** Rules about a value as a whole, numbers and texts (JSON Schema validation §6.1–6.3), and those that apply further schemas in place (core §10.2). */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { EnumValues } from './bounded-array.ts'
import {
  type Apply,
  acceptsAll,
  type Fault,
  fault,
  faultWithin,
  isList,
  isNames,
  isNumber,
  isSchemaCount,
  isText,
  keyword,
  type RuleSource,
  type Run,
  rule,
  type SchemaRule,
  typeBits,
} from './bounded-rule.ts'
import { StepMeter } from './schema.ts'

/** The rules of a schema about types, numbers and text. */
export function valueRules(source: RuleSource): SchemaRule[] {
  return [...typeRules(source), ...numberRules(source), ...textRules(source)]
}

function typeRules({ schema }: RuleSource): SchemaRule[] {
  const rules: SchemaRule[] = []
  const type = keyword(schema, 'type', (value): value is string | readonly string[] => isText(value) || isNames(value))
  if (type !== undefined) rules.push(typeRule([...new Set(typeof type === 'string' ? [type] : type)]))
  const choices = keyword(schema, 'enum', isList)
  if (choices !== undefined) rules.push(choiceRule(choices))
  if (Object.hasOwn(schema, 'const')) rules.push(choiceRule([schema.const]))
  return rules
}

function typeRule(types: readonly string[]): SchemaRule {
  let allowed = 0
  for (const type of types) allowed |= typeBits.get(type) ?? 0
  const wrong = fault(clip(`must be ${types.slice(0, 20).join(' or ')}`, 200), allowed)
  return rule(data => ((typeBit(data) & allowed) === 0 ? wrong : undefined))
}

function typeBit(data: unknown): number {
  switch (typeof data) {
    case 'string':
      return 8
    case 'number':
      return Number.isInteger(data) ? 64 : 32
    case 'boolean':
      return 16
    case 'object':
      return data === null ? 1 : Array.isArray(data) ? 2 : 4
    default:
      return 0
  }
}

function choiceRule(choices: readonly unknown[]): SchemaRule {
  // The schema was bounded before: reading it once needs no budget.
  const allowed = new EnumValues(choices, new StepMeter(Number.POSITIVE_INFINITY))
  const listed = choices.slice(0, 20).map(choice => clip(JSON.stringify(choice)))
  const wrong = fault(choices.length === 1 ? `must be ${listed[0]}` : `must be one of ${listed.join(', ')}`)
  return rule((data, { meter }) => (allowed.has(data, meter) ? undefined : wrong))
}

function numberRules({ schema }: RuleSource): SchemaRule[] {
  const rules: SchemaRule[] = []
  const add = (name: string, holds: (data: number, limit: number) => boolean, words: string) => {
    const limit = keyword(schema, name, isNumber)
    if (limit === undefined) return
    const wrong = fault(`must be ${words} ${limit}`)
    rules.push(rule(data => (typeof data !== 'number' || holds(data, limit) ? undefined : wrong)))
  }
  add('minimum', (data, limit) => data >= limit, '>=')
  add('maximum', (data, limit) => data <= limit, '<=')
  add('exclusiveMinimum', (data, limit) => data > limit, '>')
  add('exclusiveMaximum', (data, limit) => data < limit, '<')
  add('multipleOf', (data, limit) => Number.isInteger(data / limit), 'a multiple of')
  return rules
}

function textRules({ schema, pattern }: RuleSource): SchemaRule[] {
  const rules: SchemaRule[] = []
  const least = keyword(schema, 'minLength', isSchemaCount) ?? 0
  const most = keyword(schema, 'maxLength', isSchemaCount) ?? Number.POSITIVE_INFINITY
  if (least > 0 || most < Number.POSITIVE_INFINITY) rules.push(lengthRule(least, most))
  const text = keyword(schema, 'pattern', isText)
  const matcher = text === undefined ? undefined : pattern(text, false)
  if (matcher !== undefined) {
    const wrong = fault(`must match the pattern ${text}`)
    rules.push(rule((data, { meter }) => (typeof data !== 'string' || matcher.test(data, meter) ? undefined : wrong)))
  }
  return rules
}

/** A text has at most as many characters as code units, and at least half as many: mostly that settles it. */
function lengthRule(least: number, most: number): SchemaRule {
  const short = fault(`must have at least ${least} characters`)
  const long = fault(`must have at most ${most} characters`)
  return rule((data, { meter }) => {
    if (typeof data !== 'string') return undefined
    const units = data.length
    if (units < least) return short
    if (units > most * 2) return long
    if (units >= least * 2 && units <= most) return undefined
    meter.spend(units >> 3)
    const length = codePoints(data)
    if (length < least) return short
    return length > most ? long : undefined
  })
}

function codePoints(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--
  }
  return count
}

/** The rules of a schema that apply other schemas to the same value. */
export function applicatorRules(source: RuleSource): SchemaRule[] {
  const { schema, apply, reference } = source
  const rules: SchemaRule[] = []
  for (const name of ['$ref', '$dynamicRef', '$recursiveRef']) {
    const ref = keyword(schema, name, isText)
    if (ref !== undefined) rules.push(rule(reference(ref)))
  }
  for (const subschema of keyword(schema, 'allOf', isList) ?? []) {
    const test = apply(subschema)
    if (test !== acceptsAll) rules.push(rule(test))
  }
  const anyOf = keyword(schema, 'anyOf', isList)
  if (anyOf !== undefined) rules.push(rule(unionTest(anyOf, apply, false)))
  const oneOf = keyword(schema, 'oneOf', isList)
  if (oneOf !== undefined) rules.push(rule(unionTest(oneOf, apply, true)))
  if (schema.not !== undefined) {
    const not = apply(schema.not)
    const odd = fault('matches a form that is not allowed')
    rules.push(rule((data, run) => (attempt(not, data, run, false) === undefined ? odd : undefined)))
  }
  if (schema.if !== undefined) rules.push(rule(conditionTest(source)))
  return rules
}

function conditionTest({ schema, apply }: RuleSource): Apply {
  const condition = apply(schema.if)
  const yes = apply(schema.then ?? true)
  const no = apply(schema.else ?? true)
  return (data, run) => (attempt(condition, data, run, true) === undefined ? yes(data, run) : no(data, run))
}

// Unions of a foreign schema: `anyOf` and `oneOf` (JSON Schema core §10.2.1).

const branchPrice = 4
/** Leaving a failed branch takes longer than finding nothing wrong. */
const faultPrice = 8

function unionTest(schemas: readonly unknown[], apply: (schema: unknown) => Apply, onlyOne: boolean): Apply {
  const branches = schemas.map(apply)
  const all = branchesTest(branches, onlyOne)
  const marked = markedBranches(schemas, branches)
  if (marked === undefined) return all
  const { name, byMark } = marked
  const unknown = fault(
    `must be one of ${[...byMark.keys()]
      .slice(0, 20)
      .map(mark => clip(JSON.stringify(mark)))
      .join(', ')}`,
  )
  return (data, run) => {
    run.meter.spend(branchPrice)
    const mark = isRecord(data) && Object.hasOwn(data, name) ? data[name] : undefined
    if (typeof mark !== 'string') return all(data, run)
    const branch = byMark.get(mark)
    return branch === undefined ? faultWithin(name, unknown) : attempt(branch, data, run, true)
  }
}

function branchesTest(branches: readonly Apply[], onlyOne: boolean): Apply {
  const several = fault('must match only one of the allowed forms')
  return (data, run) => {
    let passed = 0
    // The branch that came furthest is most likely the one that was meant; where all stopped at the type, any of their types was.
    let furthest: Fault | undefined
    let reached = 0
    let types = 0
    let onlyTypes = true
    for (let index = 0; index < branches.length; index++) {
      run.meter.spend(branchPrice)
      const found = attempt(branches[index] as Apply, data, run, true)
      if (found !== undefined) {
        run.meter.spend(faultPrice)
        const reach = found.segments === undefined ? 0 : found.segments.length
        if (reach > reached) {
          furthest = found
          reached = reach
        }
        if (reach > 0 || found.types === 0) onlyTypes = false
        types |= found.types
      } else if (++passed > 1 && onlyOne) return several
      // What the other branches look at matters only where someone asks what was looked at.
      else if (!onlyOne && run.seen === undefined) return undefined
    }
    if (passed > 0) return undefined
    return furthest ?? (onlyTypes ? oneOfTypes(types) : noForm)
  }
}

interface MarkedBranches {
  readonly name: string
  readonly byMark: ReadonlyMap<string, Apply>
}

/**
 * Where every branch requires one member and gives it a text of its own (`kind: { const: 'circle' }`), that text says which branch can
 * fit: the others need not be tried, and a long list of such objects costs a fraction.
 */
function markedBranches(schemas: readonly unknown[], branches: readonly Apply[]): MarkedBranches | undefined {
  const [first] = schemas
  if (schemas.length < 2 || !isRecord(first) || !isNames(first['required'])) return undefined
  for (const name of first['required']) {
    const byMark = new Map<string, Apply>()
    const complete = schemas.every((schema, index) => {
      const mark = markOf(schema, name)
      if (mark === undefined || byMark.has(mark)) return false
      byMark.set(mark, branches[index] as Apply)
      return true
    })
    if (complete) return { name, byMark }
  }
  return undefined
}

function markOf(schema: unknown, name: string): string | undefined {
  // Beside a reference draft-07 counts nothing, so that nothing is read there.
  if (!isRecord(schema) || '$ref' in schema || !isNames(schema['required']) || !schema['required'].includes(name))
    return undefined
  const { properties } = schema
  const member = isRecord(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined
  if (!isRecord(member) || '$ref' in member) return undefined
  const only = isList(member['enum']) && member['enum'].length === 1 ? member['enum'][0] : undefined
  const mark = Object.hasOwn(member, 'const') ? member['const'] : only
  return typeof mark === 'string' ? mark : undefined
}

/** Applies a schema that may fail without the value being wrong; what a failed one has looked at does not count. */
function attempt(branch: Apply, data: unknown, run: Run, counts: boolean): Fault | undefined {
  if (run.seen === undefined) return branch(data, run)
  const own = run.apart()
  const found = branch(data, own)
  if (found === undefined && counts) run.seen.take(own.seen, run.meter)
  return found
}

const noForm = fault('must match one of the allowed forms')
/** Made once for each set of types: there are few, and unions within unions ask for them without end. */
const typeFaults = new Map<number, Fault>()

function oneOfTypes(types: number): Fault {
  if (types === 0) return noForm
  const known = typeFaults.get(types)
  if (known !== undefined) return known
  const names = [...typeBits].filter(([name, bit]) => (types & bit) === bit && (name !== 'integer' || (types & 32) === 0))
  const made = fault(`must be ${names.map(([name]) => name).join(' or ')}`, types)
  typeFaults.set(types, made)
  return made
}
