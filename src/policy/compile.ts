/** A policy as it was written, read into what decisions need. */
import { matches } from '../core/scope.ts'
import { type SetUse, setUses, usesUnder } from '../features/live/dialects/announced.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { ScopeLists } from '../features/live/scopes/messages.ts'
import { clip } from '../jsonrpc/limits.ts'
import { judge, type PolicyInputs } from './judge.ts'
import { type Otherwise, readOtherwise } from './rules/otherwise.ts'
import { readRules } from './rules/read.ts'
import type { Asked, Effect, PolicyRules, Rule } from './rules/rule.ts'
import { shadowed } from './rules/weigh.ts'
import { scopeJudge } from './scopes/lists.ts'

/** A policy that is ready to decide. */
export type CompiledPolicy = ReturnType<typeof compile>

const remembered = 1_000

/** Throws where something in it is a mistake. */
export function compile(written: PolicyRules) {
  const unknownKey = Object.keys(written).find(name => !['rules', 'servers', 'otherwise'].includes(name))
  if (unknownKey !== undefined)
    throw new TypeError(`${clip(unknownKey)} is not known in a policy. Use rules, servers or otherwise`)
  const rules = readRules([...(written.rules ?? []), ...serverRules(written)])
  return {
    written,
    rules,
    otherwise: readOtherwise(written.otherwise),
    shadowed: shadowed(rules),
    /** The lists of a feature set, from all that fit its server and its name; undefined where there are none. */
    scopes: scopesOf(written),
    /** What a set may do beyond what it declares. */
    uses: usesOf(written),
  }
}

function serverRules({ servers = {} }: PolicyRules): readonly Rule[] {
  return Object.entries(servers).flatMap(([server, { enable = [], disable = [] }]) => {
    const on: Rule = { name: `servers.${server}.enable`, do: 'allow', when: { kind: 'set', server, featureSet: enable } }
    const off: Rule = { name: `servers.${server}.disable`, do: 'deny', when: { server, featureSet: disable } }
    return [...(enable.length > 0 ? [on] : []), ...(disable.length > 0 ? [off] : [])]
  })
}

function scopesOf({ servers = {} }: PolicyRules) {
  const entries = Object.entries(servers).flatMap(([server, { scopes = {} }]) =>
    Object.entries(scopes).map(([featureSet, lists]) => ({ server, featureSet, lists })),
  )
  // Read at once, so that a mistake is told when the policy is set and not when the first scope is asked for.
  for (const { lists } of entries) scopeJudge(lists)
  const judges = new Map<string, ReturnType<typeof scopeJudge> | undefined>()
  return (server: string, featureSet: string) => {
    const key = `${server}\n${featureSet}`
    if (judges.has(key)) return judges.get(key)
    const found = entries.filter(entry => matches(entry.server, server) && matches(entry.featureSet, featureSet))
    const judge = found.length === 0 ? undefined : scopeJudge(merged(found.map(({ lists }) => lists)))
    if (judges.size >= remembered) judges.clear()
    judges.set(key, judge)
    return judge
  }
}

function usesOf({ servers = {} }: PolicyRules) {
  const entries = Object.entries(servers).flatMap(([server, { uses = {} }]) =>
    Object.entries(uses).map(([featureSet, paths]) => {
      const unknownKey = paths.find(path => usesUnder(path).length === 0)
      if (unknownKey !== undefined)
        throw new TypeError(`servers.${clip(server)}.uses: ${clip(unknownKey)} is not a known use. Use ${setUses.join(', ')}`)
      return { server, featureSet, uses: paths.flatMap(usesUnder) }
    }),
  )
  return (server: string, featureSet: string): readonly SetUse[] => {
    const found = entries.filter(entry => matches(entry.server, server) && matches(entry.featureSet, featureSet))
    return [...new Set(found.flatMap(({ uses }) => uses))]
  }
}

function merged(lists: readonly ScopeLists[]): ScopeLists {
  return {
    whitelist: lists.flatMap(({ whitelist = [] }) => whitelist),
    blacklist: lists.flatMap(({ blacklist = [] }) => blacklist),
  }
}

// What a change of the policy changes: rules by name, feature sets that go on or off, and what was decided lately.

/** What an update of the rules changes. */
export interface PolicyDiff {
  /** The names of new rules. */
  readonly added: readonly string[]
  /** The names of removed rules. */
  readonly removed: readonly string[]
  /** The names of changed rules. */
  readonly changed: readonly string[]
  /** Feature sets of known servers whose effect changes. */
  readonly sets: readonly {
    /** The name of the server. */
    readonly server: string
    /** The name of the feature set. */
    readonly featureSet: string
    /** The effect under the old rules. */
    readonly before: Effect
    /** The effect under the new rules. */
    readonly after: Effect
  }[]
  /** Recent requests, or the given examples, that would be decided differently. */
  readonly verdicts: readonly {
    /** The request. */
    readonly asked: Asked
    /** The effect under the old rules. */
    readonly before: Effect
    /** The effect under the new rules. */
    readonly after: Effect
  }[]
  /** Rules of the new policy that never apply, because others always decide before them. */
  readonly shadowed: CompiledPolicy['shadowed']
}

type DeclaredSets = ReadonlyMap<string, ReadonlyMap<string, FeatureSetFacts>>

/** Compares two policies by their rules, by the feature sets that they enable, and by examples. */
export function compare(
  before: PolicyInputs,
  after: PolicyInputs,
  declared: DeclaredSets,
  examples: readonly Asked[],
): PolicyDiff {
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
