/** Rules about arrays (JSON Schema validation §6.4, core §10.3.1 and §11.2). */
import {
  acceptsAll,
  type Fault,
  fault,
  faultWithin,
  isList,
  isSchemaCount,
  keyword,
  type RuleSource,
  type Run,
  rule,
  type SchemaRule,
} from './bounded-rule.ts'
import { allDistinct } from './json-equal.ts'

export function arrayRules(source: RuleSource): SchemaRule[] {
  return [...sizeRules(source), ...itemRules(source), ...containsRules(source), ...unevaluatedRules(source)]
}

function sizeRules({ schema }: RuleSource): SchemaRule[] {
  const rules: SchemaRule[] = []
  const least = keyword(schema, 'minItems', isSchemaCount)
  if (least !== undefined) {
    const short = fault(`must have at least ${least} items`)
    rules.push(onArrays(items => (items.length < least ? short : undefined)))
  }
  const most = keyword(schema, 'maxItems', isSchemaCount)
  if (most !== undefined) {
    const long = fault(`must have at most ${most} items`)
    rules.push(onArrays(items => (items.length > most ? long : undefined)))
  }
  if (schema.uniqueItems === true) {
    const twice = fault('must not hold the same item twice')
    rules.push(onArrays((items, { meter }) => (allDistinct(items, meter) ? undefined : twice)))
  }
  return rules
}

/** Up to 2019-09 a list under `items` is what `prefixItems` is now, and `additionalItems` is the rest. */
function itemRules({ schema, dialect, apply }: RuleSource): SchemaRule[] {
  const older = dialect !== '2020-12'
  const listed = older && isList(schema.items)
  const prefix =
    (listed ? keyword(schema, 'items', isList) : older ? [] : keyword(schema, 'prefixItems', isList))?.map(apply) ?? []
  const others = listed ? schema.additionalItems : schema.items
  if (prefix.length === 0 && others === undefined) return []
  const rest = others === undefined || others === true ? undefined : apply(others)
  return [
    onArrays((items, { meter, seen, below }) => {
      const end = rest === undefined ? Math.min(items.length, prefix.length) : items.length
      meter.spend(1 + (end >> 2))
      for (let index = 0; index < end; index++) {
        const found = (prefix[index] ?? rest ?? acceptsAll)(items[index], below)
        if (found !== undefined) return faultWithin(index, found)
      }
      if (seen !== undefined) seen.upTo = Math.max(seen.upTo, others === undefined ? end : items.length)
      return undefined
    }),
  ]
}

function containsRules({ schema, dialect, apply }: RuleSource): SchemaRule[] {
  if (schema.contains === undefined) return []
  const contains = apply(schema.contains)
  const least = keyword(schema, 'minContains', isSchemaCount) ?? 1
  const most = keyword(schema, 'maxContains', isSchemaCount) ?? Number.POSITIVE_INFINITY
  const few = fault(`must hold at least ${least} items of the form that is asked for`)
  const many = fault(`must hold at most ${most} items of the form that is asked for`)
  return [
    onArrays((items, { meter, seen, below }) => {
      let count = 0
      meter.spend(1 + items.length)
      for (let index = 0; index < items.length; index++) {
        if (contains(items[index], below) !== undefined) continue
        count++
        if (dialect !== '2020-12' || seen === undefined) continue
        meter.spend(3)
        seen.items.add(index)
      }
      if (count < least) return few
      return count > most ? many : undefined
    }),
  ]
}

function unevaluatedRules({ schema, apply }: RuleSource): SchemaRule[] {
  if (schema.unevaluatedItems === undefined) return []
  const unevaluated = apply(schema.unevaluatedItems)
  const test = onArrays((items, { meter, seen, below }) => {
    if (seen === undefined) return undefined
    meter.spend(1 + items.length)
    for (let index = seen.upTo; index < items.length; index++) {
      if (seen.items.has(index)) continue
      const found = unevaluated(items[index], below)
      if (found !== undefined) return faultWithin(index, found)
    }
    seen.upTo = items.length
    return undefined
  })
  return [rule(test.test, 1)]
}

function onArrays(test: (items: readonly unknown[], run: Run) => Fault | undefined): SchemaRule {
  return rule((data, run) => (isList(data) ? test(data, run) : undefined))
}
