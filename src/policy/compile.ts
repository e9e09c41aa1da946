/** A policy as it was written, read into what decisions need. */
import { matches } from '../core/scope.ts'
import { type SetUse, setUses, usesUnder } from '../features/live/dialects/uses.ts'
import type { ScopeLists } from '../features/live/scopes/messages.ts'
import { clip } from '../jsonrpc/limits.ts'
import { type Defaults, readOtherwise } from './rules/otherwise.ts'
import { type ReadRule, readRules } from './rules/read.ts'
import type { PolicyRules, Rule } from './rules/rule.ts'
import { type Shadow, shadowed } from './rules/weigh.ts'
import { type ScopeJudge, scopeJudge } from './scopes/lists.ts'

export interface CompiledPolicy {
  readonly written: PolicyRules
  readonly rules: readonly ReadRule[]
  readonly otherwise: Defaults
  readonly shadowed: readonly Shadow[]
  /** The lists of a feature set, from all that fit its server and its name; undefined where there are none. */
  scopes(server: string, featureSet: string): ScopeJudge | undefined
  /** What a set may do beyond what it declares. */
  uses(server: string, featureSet: string): readonly SetUse[]
}

const remembered = 1_000

/** Throws where something in it is a mistake. */
export function compile(written: PolicyRules): CompiledPolicy {
  const stranger = Object.keys(written).find(name => !['rules', 'servers', 'otherwise'].includes(name))
  if (stranger !== undefined) throw new TypeError(`A policy has rules, servers and otherwise, but no ${clip(stranger)}`)
  const rules = readRules([...(written.rules ?? []), ...serverRules(written)])
  return {
    written,
    rules,
    otherwise: readOtherwise(written.otherwise),
    shadowed: shadowed(rules),
    scopes: scopesOf(written),
    uses: usesOf(written),
  }
}

function serverRules({ servers = {} }: PolicyRules): readonly Rule[] {
  return Object.entries(servers).flatMap(([server, { enable = [], disable = [] }]): Rule[] => [
    ...(enable.length === 0
      ? []
      : [{ name: `servers.${server}.enable`, do: 'allow' as const, when: { kind: 'set' as const, server, featureSet: enable } }]),
    ...(disable.length === 0
      ? []
      : [{ name: `servers.${server}.disable`, do: 'deny' as const, when: { server, featureSet: disable } }]),
  ])
}

function scopesOf({ servers = {} }: PolicyRules): CompiledPolicy['scopes'] {
  const entries = Object.entries(servers).flatMap(([server, { scopes = {} }]) =>
    Object.entries(scopes).map(([featureSet, lists]) => ({ server, featureSet, lists })),
  )
  // Read at once, so that a mistake is told when the policy is set and not when the first scope is asked for.
  for (const { lists } of entries) scopeJudge(lists)
  const judges = new Map<string, ScopeJudge | undefined>()
  return (server, featureSet) => {
    const key = `${server}\n${featureSet}`
    if (judges.has(key)) return judges.get(key)
    const found = entries.filter(entry => matches(entry.server, server) && matches(entry.featureSet, featureSet))
    const judge = found.length === 0 ? undefined : scopeJudge(merged(found.map(({ lists }) => lists)))
    if (judges.size >= remembered) judges.clear()
    judges.set(key, judge)
    return judge
  }
}

function usesOf({ servers = {} }: PolicyRules): CompiledPolicy['uses'] {
  const entries = Object.entries(servers).flatMap(([server, { uses = {} }]) =>
    Object.entries(uses).map(([featureSet, paths]) => {
      const stranger = paths.find(path => usesUnder(path).length === 0)
      if (stranger !== undefined)
        throw new TypeError(`servers.${clip(server)}.uses: ${clip(stranger)} is not among ${setUses.join(', ')}`)
      return { server, featureSet, uses: paths.flatMap(usesUnder) }
    }),
  )
  return (server, featureSet) => {
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
