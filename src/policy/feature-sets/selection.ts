/** Which feature sets of a server are on. Names every declared one in exactly one list, so that no server can misread it. */
import type { SetUse } from '../../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import type { ScopeLists } from '../../features/live/scopes/messages.ts'

export interface Selection {
  readonly enabled: readonly string[]
  readonly disabled: readonly string[]
  /** Whether a user may enable it. */
  canEnable(name: string): boolean
  /** What enabled ones may do beyond what they declare. */
  readonly uses?: Readonly<Record<string, readonly SetUse[]>>
  /** Of the enabled ones. */
  readonly scopes?: Readonly<Record<string, ScopeLists>>
}

export function selection(
  declared: ReadonlyMap<string, FeatureSetFacts>,
  judge: (name: string) => 'allow' | 'ask' | 'deny',
  scopes: (name: string) => ScopeLists | undefined,
  extra: (name: string, facts: FeatureSetFacts) => readonly SetUse[],
): Selection {
  const names = [...declared.keys()]
  const isOn = (name: string): boolean => isWhole(declared.get(name)) && judge(name) === 'allow'
  const enabled = names.filter(isOn)
  const lists = enabled.flatMap(name => {
    const found = scopes(name)
    return found === undefined ? [] : [[name, found] as const]
  })
  const more = enabled.flatMap(name => {
    const uses = extra(name, declared.get(name) as FeatureSetFacts)
    return uses.length === 0 ? [] : [[name, uses] as const]
  })
  return {
    enabled,
    disabled: names.filter(name => !enabled.includes(name)),
    canEnable: name => isWhole(declared.get(name)) && judge(name) !== 'deny',
    ...(more.length > 0 && { uses: Object.fromEntries(more) }),
    ...(lists.length > 0 && { scopes: Object.fromEntries(lists) }),
  }
}

/** MCP Live 0.2 §6.2: without these it is no declaration. */
function isWhole(facts: FeatureSetFacts | undefined): boolean {
  return typeof facts?.description === 'string' && Array.isArray(facts.uses)
}
