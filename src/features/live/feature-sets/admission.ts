/**
 * The one decision about messages of MCP Live: may this feature set of this server do this, now? Everything that a server sends, and
 * everything that it is sent, is put to it. What counts is what the set declared when somebody agreed to it, and what its user or
 * operator allows beyond that; a capability that the server announced is a second condition and opens nothing by itself.
 */
import { quoted, type Why, why } from '../../../core/why.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { EnabledSet, SetUse } from '../dialects/messages.ts'
import { type FeatureSetFacts, liveErrorTexts } from './messages.ts'

/** How the sets of one server stand. */
export interface FeatureSetStanding {
  readonly declared: ReadonlyMap<string, FeatureSetFacts>
  /** Declared in a form that nobody can agree to. */
  readonly faulty: ReadonlyMap<string, unknown>
  readonly enabled: ReadonlyMap<string, EnabledSet>
  /** Whether a user could enable it. */
  canEnable(featureSet: string): boolean
}

interface Refused {
  /** `use`: the set is enabled, but nobody agreed to this. */
  readonly because: 'unknown' | 'disabled' | 'use'
  readonly featureSet: string
  readonly use: SetUse
  readonly canEnable: boolean
}

/** Each of these is asked about by itself, whenever it comes; so it needs no consent in advance, only a set that is enabled. */
const askedEachTime: ReadonlySet<SetUse> = new Set<SetUse>(['scopes'])

/** Undefined: it is admitted. */
export function admission(standing: FeatureSetStanding, featureSet: string, use: SetUse): Refused | undefined {
  const set = standing.enabled.get(featureSet)
  if (set !== undefined && (set.uses.has(use) || askedEachTime.has(use))) return undefined
  const declared = standing.declared.has(featureSet)
  const known = declared || standing.faulty.has(featureSet)
  const because = set !== undefined ? 'use' : known ? 'disabled' : 'unknown'
  return { because, featureSet, use, canEnable: declared && standing.canEnable(featureSet) }
}

/** The sets that are admitted for it: messages that name no set go to a server that has one. */
export function admittedSets(standing: FeatureSetStanding, use: SetUse): readonly string[] {
  return [...standing.enabled.keys()].filter(name => admission(standing, name, use) === undefined)
}

/** As the server is told (MCP Live 0.2 §6.6): the number and the data of the protocol, and the reason in words. */
export function setRefusalError(refused: Refused): McpError {
  const { because, featureSet, use, canEnable } = refused
  if (because === 'unknown') {
    const reason = 'The server declares no feature set of this name'
    return new McpError('feature-set-unknown', liveErrorTexts['feature-set-unknown'], { data: { featureSet, reason } })
  }
  const reason =
    because === 'disabled' ? 'The host has not enabled this feature set' : `The feature set does not declare that it uses ${use}`
  return new McpError('feature-set-disabled', liveErrorTexts['feature-set-disabled'], {
    data: { featureSet, canEnable, use, reason },
  })
}

/** As whoever runs the host is told, with what would change it. */
export function undeclaredUse({ featureSet, use }: Refused): Why {
  const message = `The feature set ${quoted(featureSet)} does not declare that it uses ${use}, so this was refused`
  return why('USE_UNDECLARED', 'uses', message, widening(featureSet, use))
}

/** The same of a hook that a server offers and none of its sets declares. */
export function uncalled(hook: string, featureSet: string): Why {
  const message = `The server offers ${hook}, but none of its feature sets declares that it uses it, so it is not called`
  return why('HOOK_UNDECLARED', 'uses', message, widening(featureSet, hook))
}

function widening(featureSet: string, use: string): string {
  const entry = JSON.stringify({ live: { uses: { [featureSet]: [use] } } })
  return `Add ${entry} to the server's entry in the config to allow it, or ask the author of the server to declare it`
}
