/** Rules about a value as a whole, numbers and texts (JSON Schema validation §6.1–6.3), and those that apply further schemas in place (core §10.2). */
import { isRecord } from '../../jsonrpc/message.ts'
import {
  type Apply,
  type Fault,
  fault,
  isCount,
  isList,
  isNames,
  isNumber,
  isText,
  keyword,
  type Rule,
  type RuleSource,
  type Run,
  rule,
} from './bounded-rule.ts'
import { sameJson } from './unique.ts'

export function valueRules(source: RuleSource): Rule[] {
  return [...typeRules(source), ...numberRules(source), ...textRules(source)]
}

function typeRules({ schema }: RuleSource): Rule[] {
  const rules: Rule[] = []
  const type = keyword(schema, 'type', (value): value is string | readonly string[] => isText(value) || isNames(value))
  if (type !== undefined) {
    const types = typeof type === 'string' ? [type] : type
    const message = `must be ${types.join(' or ')}`
    rules.push(rule(data => (types.some(name => isType(data, name)) ? undefined : fault(message, types))))
  }
  const choices = keyword(schema, 'enum', isList)
  if (choices !== undefined) rules.push(choiceRule(choices))
  if (Object.hasOwn(schema, 'const')) rules.push(choiceRule([schema.const]))
  return rules
}

/** Scalars are looked up, however many there are; the others are compared one by one, and cost what they are long. */
function choiceRule(choices: readonly unknown[]): Rule {
  const scalars = new Set(choices.filter(choice => typeof choice !== 'object' || choice === null))
  const others = choices.filter(choice => typeof choice === 'object' && choice !== null)
  const price = JSON.stringify(others).length >> 4
  const listed = choices.slice(0, 20).map(choice => JSON.stringify(choice))
  const message = choices.length === 1 ? `must be ${listed[0]}` : `must be one of ${listed.join(', ')}`
  return rule((data, { meter }) => {
    if (typeof data !== 'object' || data === null) return scalars.has(data) ? undefined : fault(message)
    meter.spend(price)
    return others.some(choice => sameJson(choice, data)) ? undefined : fault(message)
  })
}

function isType(data: unknown, name: string): boolean {
  switch (name) {
    case 'null':
      return data === null
    case 'array':
      return Array.isArray(data)
    case 'object':
      return isRecord(data)
    case 'integer':
      return Number.isInteger(data)
    default:
      return typeof data === name
  }
}

function numberRules({ schema }: RuleSource): Rule[] {
  const rules: Rule[] = []
  const add = (name: string, holds: (data: number, limit: number) => boolean, words: string) => {
    const limit = keyword(schema, name, isNumber)
    if (limit !== undefined) {
      rules.push(rule(data => (typeof data !== 'number' || holds(data, limit) ? undefined : fault(`must be ${words} ${limit}`))))
    }
  }
  add('minimum', (data, limit) => data >= limit, '>=')
  add('maximum', (data, limit) => data <= limit, '<=')
  add('exclusiveMinimum', (data, limit) => data > limit, '>')
  add('exclusiveMaximum', (data, limit) => data < limit, '<')
  add('multipleOf', (data, limit) => Number.isInteger(data / limit), 'a multiple of')
  return rules
}

function textRules({ schema, pattern }: RuleSource): Rule[] {
  const rules: Rule[] = []
  const least = keyword(schema, 'minLength', isCount)
  const most = keyword(schema, 'maxLength', isCount)
  if (least !== undefined || most !== undefined) {
    rules.push(
      rule((data, { meter }) => {
        if (typeof data !== 'string') return undefined
        meter.spend(data.length >> 4)
        const length = codePoints(data)
        if (least !== undefined && length < least) return fault(`must have at least ${least} characters`)
        return most !== undefined && length > most ? fault(`must have at most ${most} characters`) : undefined
      }),
    )
  }
  const text = keyword(schema, 'pattern', isText)
  const matcher = text === undefined ? undefined : pattern(text, false)
  if (matcher !== undefined) {
    rules.push(
      rule((data, { meter }) =>
        typeof data !== 'string' || matcher.test(data, meter) ? undefined : fault(`must match the pattern ${text}`),
      ),
    )
  }
  return rules
}

function codePoints(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--
  }
  return count
}

export function applicatorRules(source: RuleSource): Rule[] {
  const { schema, apply, reference } = source
  const rules: Rule[] = []
  for (const name of ['$ref', '$dynamicRef', '$recursiveRef']) {
    const ref = keyword(schema, name, isText)
    if (ref !== undefined) rules.push(rule(reference(ref)))
  }
  for (const subschema of keyword(schema, 'allOf', isList) ?? []) rules.push(rule(apply(subschema)))
  const anyOf = keyword(schema, 'anyOf', isList)?.map(apply)
  if (anyOf !== undefined) rules.push(rule(unionTest(anyOf, false)))
  const oneOf = keyword(schema, 'oneOf', isList)?.map(apply)
  if (oneOf !== undefined) rules.push(rule(unionTest(oneOf, true)))
  if (schema.not !== undefined) {
    const not = apply(schema.not)
    rules.push(
      rule((data, run) => (attempt(not, data, run, false) === undefined ? fault('has a form that is not allowed') : undefined)),
    )
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

/** Making a fault, and perhaps dropping it, takes longer than finding nothing wrong. */
const faultPrice = 6

function unionTest(branches: readonly Apply[], onlyOne: boolean): Apply {
  return (data, run) => {
    const faults: Fault[] = []
    let passed = 0
    for (const branch of branches) {
      const found = attempt(branch, data, run, true)
      if (found !== undefined) {
        run.meter.spend(faultPrice)
        faults.push(found)
      } else if (++passed > 1 && onlyOne) return fault('must match only one of the allowed forms')
      // What the other branches look at matters only where someone asks what was looked at.
      else if (!onlyOne && run.seen === undefined) return undefined
    }
    return passed > 0 ? undefined : nearest(faults)
  }
}

/** Applies a schema that may fail without the value being wrong; what a failed one has looked at does not count. */
function attempt(branch: Apply, data: unknown, run: Run, counts: boolean): Fault | undefined {
  if (run.seen === undefined) return branch(data, run)
  const seen = { names: new Set<string>(), items: new Set<number>(), upTo: 0 }
  const found = branch(data, { meter: run.meter, seen })
  if (found !== undefined || !counts) return found
  run.meter.spend(seen.names.size + seen.items.size)
  for (const name of seen.names) run.seen.names.add(name)
  for (const item of seen.items) run.seen.items.add(item)
  run.seen.upTo = Math.max(run.seen.upTo, seen.upTo)
  return undefined
}

/** The branch that came furthest is most likely the one that was meant. */
function nearest(faults: readonly Fault[]): Fault {
  if (faults.length > 0 && faults.every(({ types, segments }) => types !== undefined && segments.length === 0)) {
    const types = [...new Set(faults.flatMap(({ types: expected }) => expected ?? []))]
    return fault(`must be ${types.join(' or ')}`, types)
  }
  const [first, ...rest] = faults.filter(({ segments }) => segments.length > 0)
  return first === undefined
    ? fault('must match one of the allowed forms')
    : rest.reduce((best, other) => (other.segments.length > best.segments.length ? other : best), first)
}
