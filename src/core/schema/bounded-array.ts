/** Rules about arrays (JSON Schema validation §6.4, core §10.3.1 and §11.2). */
import { type Apply, fault, isCount, isList, keyword, type Rule, type RuleSource, rule, within } from './bounded-rule.ts'
import { allUnique } from './unique.ts'

export function arrayRules(source: RuleSource): Rule[] {
  return [...sizeRules(source), ...itemRules(source), ...containsRules(source), ...unevaluatedRules(source)]
}

function sizeRules({ schema }: RuleSource): Rule[] {
  const rules: Rule[] = []
  const least = keyword(schema, 'minItems', isCount)
  if (least !== undefined)
    rules.push(onArrays(items => (items.length < least ? fault(`must have at least ${least} items`) : undefined)))
  const most = keyword(schema, 'maxItems', isCount)
  if (most !== undefined)
    rules.push(onArrays(items => (items.length > most ? fault(`must have at most ${most} items`) : undefined)))
  if (schema.uniqueItems === true) {
    rules.push(onArrays((items, { meter }) => (allUnique(items, meter) ? undefined : fault('must not hold the same item twice'))))
  }
  return rules
}

/** Up to 2019-09 a list under `items` is what `prefixItems` is now, and `additionalItems` is the rest. */
function itemRules({ schema, dialect, apply }: RuleSource): Rule[] {
  const older = dialect !== '2020-12'
  const listed = older && isList(schema.items)
  const prefix =
    (listed ? keyword(schema, 'items', isList) : older ? [] : keyword(schema, 'prefixItems', isList))?.map(apply) ?? []
  const others = listed ? schema.additionalItems : schema.items
  if (prefix.length === 0 && others === undefined) return []
  const rest = others === undefined || others === true ? undefined : apply(others)
  return [
    onArrays((items, run) => {
      const end = rest === undefined ? Math.min(items.length, prefix.length) : items.length
      run.meter.spend(1)
      for (let index = 0; index < end; index++) {
        const found = (prefix[index] ?? rest)?.(items[index], { meter: run.meter, seen: undefined })
        if (found !== undefined) return within(index, found)
      }
      if (run.seen !== undefined) run.seen.upTo = Math.max(run.seen.upTo, others === undefined ? end : items.length)
      return undefined
    }),
  ]
}

function containsRules({ schema, dialect, apply }: RuleSource): Rule[] {
  if (schema.contains === undefined) return []
  const contains = apply(schema.contains)
  const least = keyword(schema, 'minContains', isCount) ?? 1
  const most = keyword(schema, 'maxContains', isCount) ?? Number.POSITIVE_INFINITY
  return [
    onArrays((items, run) => {
      let count = 0
      for (const [index, item] of items.entries()) {
        if (contains(item, { meter: run.meter, seen: undefined }) !== undefined) continue
        count++
        if (dialect === '2020-12') run.seen?.items.add(index)
      }
      if (count < least) return fault(`must hold at least ${least} items of the form that is asked for`)
      return count > most ? fault(`must hold at most ${most} items of the form that is asked for`) : undefined
    }),
  ]
}

function unevaluatedRules({ schema, apply }: RuleSource): Rule[] {
  if (schema.unevaluatedItems === undefined) return []
  const unevaluated = apply(schema.unevaluatedItems)
  const test = onArrays((items, { meter, seen }) => {
    if (seen === undefined) return undefined
    meter.spend(items.length)
    for (let index = seen.upTo; index < items.length; index++) {
      if (seen.items.has(index)) continue
      const found = unevaluated(items[index], { meter, seen: undefined })
      if (found !== undefined) return within(index, found)
    }
    seen.upTo = items.length
    return undefined
  })
  return [rule(test.test, 1)]
}

function onArrays(test: (items: readonly unknown[], run: Parameters<Apply>[1]) => ReturnType<Apply>): Rule {
  return rule((data, run) => (isList(data) ? test(data, run) : undefined))
}
