/** Rules about objects (JSON Schema validation §6.5, core §10.2.2.4, §10.3.2 and §11.3). */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import {
  type Apply,
  type Fault,
  fault,
  faultWithin,
  isNames,
  isSchemaCount,
  keyword,
  type Members,
  type RuleSource,
  type Run,
  rule,
  type SchemaRule,
  type SeenMembers,
} from './bounded-rule.ts'
import type { LinearPattern } from './linear-pattern.ts'
import type { StepMeter } from './schema.ts'

/** The rules of a schema about objects. */
export function objectRules(source: RuleSource): SchemaRule[] {
  return [
    ...requiredRules(source),
    ...sizeRules(source),
    ...memberRules(source),
    ...dependentRules(source),
    ...unevaluatedRules(source),
  ]
}

const missing = fault('is required')

function requiredRules({ schema }: RuleSource): SchemaRule[] {
  const required = keyword(schema, 'required', isNames)
  if (required === undefined || required.length === 0) return []
  const names = [...new Set(required)]
  return [onObjects((members, run) => firstMissing(members, names, run, missing))]
}

/** The names are different, so that no more of them are looked for than the object has members, and one. */
function firstMissing(members: Members, names: readonly string[], { meter }: Run, lacks: Fault): Fault | undefined {
  for (const name of names) {
    meter.spend(1)
    if (!Object.hasOwn(members, name)) return faultWithin(name, lacks)
  }
  return undefined
}

function sizeRules({ schema, apply }: RuleSource): SchemaRule[] {
  const rules: SchemaRule[] = []
  const least = keyword(schema, 'minProperties', isSchemaCount) ?? 0
  const most = keyword(schema, 'maxProperties', isSchemaCount) ?? Number.POSITIVE_INFINITY
  if (least > 0 || most < Number.POSITIVE_INFINITY) {
    const few = fault(`must have at least ${least} members`)
    const many = fault(`must have at most ${most} members`)
    rules.push(
      onObjects((members, run) => {
        const { length } = run.names.of(members)
        if (length < least) return few
        return length > most ? many : undefined
      }),
    )
  }
  if (schema.propertyNames !== undefined) {
    const named = apply(schema.propertyNames)
    const odd = fault('is a name that is not allowed')
    rules.push(
      onObjects((members, run) => {
        for (const name of run.names.of(members)) if (named(name, run.below) !== undefined) return faultWithin(name, odd)
        return undefined
      }),
    )
  }
  return rules
}

function memberRules({ schema, apply, pattern }: RuleSource): SchemaRule[] {
  const properties = new Map(
    Object.entries(keyword(schema, 'properties', isRecord) ?? {}).map(([name, value]) => [name, apply(value)]),
  )
  const patterns = Object.entries(keyword(schema, 'patternProperties', isRecord) ?? {}).map(([text, value]) => ({
    matcher: pattern(text, true),
    apply: apply(value),
  }))
  const additional = schema.additionalProperties === undefined ? undefined : additionalApply(schema.additionalProperties, apply)
  if (patterns.length > 0) return [onObjects(patternTest(properties, patterns, additional))]
  return properties.size === 0 && additional === undefined ? [] : [onObjects(memberTest(properties, additional))]
}

type MemberTest = (members: Members, run: Run) => Fault | undefined

/** By names alone, as in most schemas. */
function memberTest(properties: ReadonlyMap<string, Apply>, additional: Apply | undefined): MemberTest {
  return (members, run) => {
    const { meter, seen, below } = run
    const names = run.names.of(members)
    meter.spend(names.length * 2 + 2)
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string
      const test = properties.get(name) ?? additional
      if (test === undefined) continue
      const found = test(members[name], below)
      if (found !== undefined) return faultWithin(name, found)
      if (seen !== undefined) look(name, seen, meter)
    }
    return undefined
  }
}

interface NamePattern {
  readonly matcher: LinearPattern | undefined
  readonly apply: Apply
}

function patternTest(
  properties: ReadonlyMap<string, Apply>,
  patterns: readonly NamePattern[],
  additional: Apply | undefined,
): MemberTest {
  return (members, run) => {
    const { meter, seen, below } = run
    const names = run.names.of(members)
    meter.spend(names.length * 2 + 2)
    for (const name of names) {
      const known = properties.get(name)
      let found = known?.(members[name], below)
      let evaluated = known !== undefined
      for (const { matcher, apply } of patterns) {
        if (found !== undefined || matcher?.test(name, meter) !== true) continue
        evaluated = true
        found = apply(members[name], below)
      }
      if (!evaluated && additional !== undefined) {
        evaluated = true
        found = additional(members[name], below)
      }
      if (found !== undefined) return faultWithin(name, found)
      if (evaluated && seen !== undefined) look(name, seen, meter)
    }
    return undefined
  }
}

/** From here on the member counts as looked at. */
function look(name: string, seen: SeenMembers, meter: StepMeter): void {
  meter.spend(6)
  seen.names.add(name)
}

const unknown = fault('is not a known member; remove it')

function additionalApply(schema: unknown, apply: (schema: unknown) => Apply): Apply {
  return schema === false ? () => unknown : apply(schema)
}

/** What must hold where a member is there; `dependencies` is what 2019-09 divided into the two others. */
function dependentRules({ schema, apply }: RuleSource): SchemaRule[] {
  const dependents = new Map<string, Apply[]>()
  for (const list of ['dependentRequired', 'dependencies', 'dependentSchemas']) {
    for (const [name, value] of Object.entries(keyword(schema, list, isRecord) ?? {})) {
      const test = isNames(value) ? neededWith(name, value) : list === 'dependentRequired' ? undefined : apply(value)
      if (test !== undefined) dependents.set(name, [...(dependents.get(name) ?? []), test])
    }
  }
  if (dependents.size === 0) return []
  return [
    onObjects((members, run) => {
      // By the object's own names, of which there are often far fewer.
      const names = run.names.of(members)
      run.meter.spend(names.length)
      for (const name of names) {
        for (const test of dependents.get(name) ?? []) {
          const found = test(members, run)
          if (found !== undefined) return found
        }
      }
      return undefined
    }),
  ]
}

function neededWith(name: string, needed: readonly string[]): Apply {
  const names = [...new Set(needed)]
  const lacks = fault(`is required together with ${clip(name)}`)
  return (data, run) => firstMissing(data as Members, names, run, lacks)
}

function unevaluatedRules({ schema, apply }: RuleSource): SchemaRule[] {
  if (schema.unevaluatedProperties === undefined) return []
  const unevaluated = additionalApply(schema.unevaluatedProperties, apply)
  const { test } = onObjects((members, { meter, names, seen, below }) => {
    if (seen === undefined) return undefined
    const all = names.of(members)
    meter.spend(all.length * 4)
    for (const name of all) {
      if (seen.names.has(name)) continue
      const found = unevaluated(members[name], below)
      if (found !== undefined) return faultWithin(name, found)
      look(name, seen, meter)
    }
    return undefined
  })
  return [rule(test, 1)]
}

function onObjects(test: (members: Members, run: Run) => Fault | undefined): SchemaRule {
  return rule((data, run) => (isRecord(data) ? test(data, run) : undefined))
}
