/** Rules about objects (JSON Schema validation §6.5, core §10.2.2.4, §10.3.2 and §11.3). */
import { isRecord } from '../../jsonrpc/message.ts'
import {
  type Apply,
  type Fault,
  fault,
  isCount,
  isNames,
  keyword,
  type Rule,
  type RuleSource,
  rule,
  within,
} from './bounded-rule.ts'

export function objectRules(source: RuleSource): Rule[] {
  return [
    ...requiredRules(source),
    ...sizeRules(source),
    ...memberRules(source),
    ...dependentRules(source),
    ...unevaluatedRules(source),
  ]
}

function requiredRules({ schema }: RuleSource): Rule[] {
  const rules: Rule[] = []
  const required = keyword(schema, 'required', isNames)
  if (required !== undefined) rules.push(onObjects((members, { meter }) => firstMissing(members, required, meter, 'is required')))
  for (const [name, needed] of Object.entries(keyword(schema, 'dependentRequired', isRecord) ?? {})) {
    if (isNames(needed)) rules.push(neededWith(name, needed))
  }
  return rules
}

function neededWith(name: string, needed: readonly string[]): Rule {
  return onObjects((members, { meter }) =>
    Object.hasOwn(members, name) ? firstMissing(members, needed, meter, `is required together with ${name}`) : undefined,
  )
}

function firstMissing(
  members: Members,
  names: readonly string[],
  meter: { spend(steps: number): void },
  message: string,
): Fault | undefined {
  meter.spend(names.length >> 2)
  for (const name of names) if (!Object.hasOwn(members, name)) return within(name, fault(message))
  return undefined
}

function sizeRules({ schema, apply }: RuleSource): Rule[] {
  const rules: Rule[] = []
  const least = keyword(schema, 'minProperties', isCount) ?? 0
  const most = keyword(schema, 'maxProperties', isCount) ?? Number.POSITIVE_INFINITY
  if (least > 0 || most < Number.POSITIVE_INFINITY) {
    rules.push(
      onNames(names => {
        if (names.length < least) return fault(`must have at least ${least} members`)
        return names.length > most ? fault(`must have at most ${most} members`) : undefined
      }),
    )
  }
  if (schema.propertyNames !== undefined) {
    const named = apply(schema.propertyNames)
    rules.push(
      onNames((names, _, { meter }) => {
        for (const name of names)
          if (named(name, { meter, seen: undefined }) !== undefined) return within(name, fault('is a name that is not allowed'))
        return undefined
      }),
    )
  }
  return rules
}

function memberRules({ schema, apply, pattern }: RuleSource): Rule[] {
  const properties = new Map(
    Object.entries(keyword(schema, 'properties', isRecord) ?? {}).map(([name, value]) => [name, apply(value)]),
  )
  const patterns = Object.entries(keyword(schema, 'patternProperties', isRecord) ?? {}).map(([text, value]) => ({
    matcher: pattern(text, true),
    apply: apply(value),
  }))
  const additional = schema.additionalProperties === undefined ? undefined : additionalApply(schema.additionalProperties, apply)
  if (properties.size === 0 && patterns.length === 0 && additional === undefined) return []
  return [
    onNames((names, members, run) => {
      const below = { meter: run.meter, seen: undefined }
      for (const name of names) {
        const known = properties.get(name)
        let found = known?.(members[name], below)
        let evaluated = known !== undefined
        for (const { matcher, apply: applies } of patterns) {
          if (found !== undefined || matcher?.test(name, run.meter) !== true) continue
          evaluated = true
          found = applies(members[name], below)
        }
        if (!evaluated && additional !== undefined) {
          evaluated = true
          found = additional(members[name], below)
        }
        if (found !== undefined) return within(name, found)
        if (evaluated) run.seen?.names.add(name)
      }
      return undefined
    }),
  ]
}

function additionalApply(schema: unknown, apply: (schema: unknown) => Apply): Apply {
  return schema === false ? () => fault('is not known here; remove it') : apply(schema)
}

/** `dependencies` is what 2019-09 divided into `dependentRequired` and `dependentSchemas`. */
function dependentRules({ schema, apply }: RuleSource): Rule[] {
  const both = { ...keyword(schema, 'dependencies', isRecord), ...keyword(schema, 'dependentSchemas', isRecord) }
  return Object.entries(both).map(([name, value]) => {
    if (isNames(value)) return neededWith(name, value)
    const dependent = apply(value)
    return onObjects((members, run) => (Object.hasOwn(members, name) ? dependent(members, run) : undefined))
  })
}

function unevaluatedRules({ schema, apply }: RuleSource): Rule[] {
  if (schema.unevaluatedProperties === undefined) return []
  const unevaluated = additionalApply(schema.unevaluatedProperties, apply)
  const { test } = onNames((names, members, { meter, seen }) => {
    for (const name of names) {
      if (seen === undefined || seen.names.has(name)) continue
      const found = unevaluated(members[name], { meter, seen: undefined })
      if (found !== undefined) return within(name, found)
      seen.names.add(name)
    }
    return undefined
  })
  return [rule(test, 1)]
}

type Members = Readonly<Record<string, unknown>>
type Run = Parameters<Apply>[1]

function onObjects(test: (members: Members, run: Run) => Fault | undefined): Rule {
  return rule((data, run) => (isRecord(data) ? test(data, run) : undefined))
}

/** Objects with more members than this are kept as tables by the engine: going through one is slower. */
const fewMembers = 64

/** For rules that go through all members: each costs. */
function onNames(test: (names: readonly string[], members: Members, run: Run) => Fault | undefined): Rule {
  return onObjects((members, run) => {
    const names = Object.keys(members)
    run.meter.spend(names.length > fewMembers ? names.length * 4 : names.length)
    return test(names, members, run)
  })
}
