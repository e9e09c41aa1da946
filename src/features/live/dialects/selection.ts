/**
 * A host's choice among declared sets, as every dialect reads it alike: each declared set in exactly one of two lists, by its own name,
 * never by a pattern. To some `featureSets/update` is a difference, to others the whole; so both are true of it.
 */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { FeatureSetFacts, Receipt, WireSelection } from '../feature-sets/messages.ts'
import type { ScopeLists } from '../scopes/messages.ts'
import { type Announced, declaredUses, isConsented, type SetUse } from './announced.ts'

/** What a host decides about the sets of one server. */
export interface HostSelection {
  /** Names, or `memory.*` for all whose names begin so. What is in neither list is not enabled. */
  readonly enabled: readonly string[]
  /** Beats `enabled`. */
  readonly disabled: readonly string[]
  /** Whether a user could enable it. */
  canEnable(name: string): boolean
  /** What sets may do beyond what they declare, by their names. Without it a set may do what it declares, and nothing else. */
  readonly uses?: Readonly<Record<string, readonly SetUse[]>>
  readonly scopes?: Readonly<Record<string, ScopeLists>>
  /**
   * Whether a capability may be used, by its path. Default: whatever the server announced, but for text in the system's place from
   * servers of 0.5 and later, which is the dialect's own default.
   */
  grants?(path: string): boolean
}

/** A set that is enabled: what it may do, and the declaration that this was decided about. */
export interface EnabledSet {
  readonly facts: FeatureSetFacts
  readonly uses: ReadonlySet<SetUse>
}

/** A selection as it is sent. */
export interface ToldSelection {
  readonly enabled: ReadonlyMap<string, EnabledSet>
  readonly granted: ReadonlySet<string>
  /** For a request, which some servers insist on. */
  readonly byRequest: WireSelection
  /** For a notification. */
  readonly byNotice: WireSelection
}

const systemPath = 'contextHooks.beforeInference.inject.system'

/** Writes a selection as the server's dialect has it. */
export function writeSelection(announced: Announced, selection: HostSelection): ToldSelection {
  const on = new Map<string, EnabledSet>()
  for (const [name, facts] of announced.sets) {
    if (isEnabled(name, selection)) on.set(name, { facts, uses: usesOf(name, facts, selection) })
  }
  const enabled = [...on.keys()]
  // A name with a star in it would be a pattern there.
  const disabled = [...announced.sets.keys(), ...announced.faulty.keys()].filter(name => !on.has(name) && !name.includes('*'))
  const consented = new Set([...on.values()].flatMap(({ uses }) => [...uses]))
  const granted = announced.paths.filter(path => isGranted(path, announced, selection, on.size > 0, consented))
  const scopes = Object.fromEntries(Object.entries(selection.scopes ?? {}).filter(([name]) => announced.sets.has(name)))
  const byNotice = { enabled, disabled, scopes }
  return { enabled: on, granted: new Set(granted), byNotice, byRequest: { effectiveCapabilities: granted, ...byNotice } }
}

function usesOf(name: string, facts: FeatureSetFacts, { uses = {} }: HostSelection): ReadonlySet<SetUse> {
  return new Set([...declaredUses(facts), ...(Object.hasOwn(uses, name) ? (uses[name] ?? []) : [])])
}

function isEnabled(name: string, { enabled, disabled }: HostSelection): boolean {
  return enabled.some(pattern => covers(pattern, name)) && !disabled.some(pattern => covers(pattern, name))
}

/** `memory.*` covers all below `memory.`, and `*` everything. */
function covers(pattern: string, name: string): boolean {
  return pattern.endsWith('*') && (pattern === '*' || pattern.endsWith('.*'))
    ? name.startsWith(pattern.slice(0, -1))
    : pattern === name
}

/** Tools are plain MCP, and which model runs is no secret; all else is there for the sets that say they use it. */
function isGranted(
  path: string,
  { label }: Announced,
  selection: HostSelection,
  some: boolean,
  consented: ReadonlySet<SetUse>,
): boolean {
  if (path !== 'tools' && !some) return false
  if (path !== 'tools' && path !== 'modelInfo' && !isConsented(path, consented)) return false
  return selection.grants?.(path) ?? !(path === systemPath && label === '0.5')
}

/** What a server answered to a selection. */
export interface ReadReceipt {
  readonly accepted: boolean
  /** What the server falls back to when it does not accept. */
  readonly fallback: 'mcp-only' | 'close'
  /** Sets that it says will not work, with what they lack. */
  readonly unavailable: readonly { readonly featureSet: string; readonly missing: readonly string[] }[]
}

/** What came of a selection that was sent as a request; whatever is no refusal is a yes. */
export function readReceipt(wire: unknown): ReadReceipt {
  const receipt: Partial<Receipt> = isRecord(wire) ? wire : {}
  const listed: readonly unknown[] = Array.isArray(receipt.unavailableFeatures) ? receipt.unavailableFeatures : []
  return {
    accepted: receipt.accepted !== false,
    fallback: receipt.fallback === 'close' ? 'close' : 'mcp-only',
    unavailable: listed.slice(0, 100).flatMap(one => {
      if (!isRecord(one) || typeof one['featureSet'] !== 'string') return []
      const missing: readonly unknown[] = Array.isArray(one['missingCapabilities']) ? one['missingCapabilities'] : []
      return [{ featureSet: one['featureSet'], missing: missing.filter(path => typeof path === 'string') }]
    }),
  }
}
