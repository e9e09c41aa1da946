/** What a change of the policy changes: rules by name, feature sets that go on or off, and what was decided lately. */
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { CompiledPolicy } from './compile.ts'
import { judge, type World } from './judge.ts'
import type { Asked, Effect, Otherwise } from './rules/rule.ts'
import type { Shadow } from './rules/weigh.ts'

export interface PolicyDiff {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Feature sets of servers that are known. */
  readonly sets: readonly {
    readonly server: string
    readonly featureSet: string
    readonly before: Effect
    readonly after: Effect
  }[]
  /** Of what was asked lately, or of the examples given: what would be decided otherwise. */
  readonly verdicts: readonly { readonly asked: Asked; readonly before: Effect; readonly after: Effect }[]
  /** Rules that never count, in the new policy. */
  readonly shadowed: readonly Shadow[]
}

type Declared = ReadonlyMap<string, ReadonlyMap<string, FeatureSetFacts>>

export function compare(before: World, after: World, declared: Declared, examples: readonly Asked[]): PolicyDiff {
  const sets = [...declared].flatMap(([server, facts]) =>
    [...facts.keys()].map((featureSet): Asked => ({ kind: 'set', server, featureSet })),
  )
  const turned = (asked: Asked) => ({ asked, before: judge(before, asked).do, after: judge(after, asked).do })
  const other = <T extends { before: Effect; after: Effect }>(all: readonly T[]): T[] =>
    all.filter(each => each.before !== each.after)
  return {
    ...compareRules(before.compiled, after.compiled),
    sets: other(sets.map(turned)).map(({ asked, ...rest }) => ({
      server: asked.server,
      featureSet: asked.featureSet ?? '',
      ...rest,
    })),
    verdicts: other(examples.map(turned)),
    shadowed: after.compiled.shadowed,
  }
}

function otherwiseTexts(otherwise: Otherwise = {}): readonly (readonly [name: string, text: string])[] {
  if (typeof otherwise === 'string') return [['otherwise', otherwise]]
  return Object.entries(otherwise).map(([kind, effect]) => [`otherwise.${kind}`, String(effect)])
}

function compareRules(before: CompiledPolicy, after: CompiledPolicy): Pick<PolicyDiff, 'added' | 'removed' | 'changed'> {
  const texts = ({ rules, written }: CompiledPolicy) =>
    new Map([
      ...rules.map(({ name, rule }) => [name, JSON.stringify(rule)] as const),
      ...otherwiseTexts(written.otherwise),
      ...Object.entries(written.servers ?? {}).flatMap(([server, { scopes = {}, uses = {} }]) => [
        ...Object.entries(scopes).map(([set, lists]) => [`servers.${server}.scopes.${set}`, JSON.stringify(lists)] as const),
        ...Object.entries(uses).map(([set, more]) => [`servers.${server}.uses.${set}`, JSON.stringify(more)] as const),
      ]),
    ])
  const [old, now] = [texts(before), texts(after)]
  return {
    added: [...now.keys()].filter(name => !old.has(name)),
    removed: [...old.keys()].filter(name => !now.has(name)),
    changed: [...now].flatMap(([name, text]) => (old.has(name) && old.get(name) !== text ? [name] : [])),
  }
}
