/**
 * Writes a host's selection for a server, and reads the server's receipt. Each declared set appears by name in exactly one of two
 * lists, never as a pattern: some servers read `featureSets/update` as a difference, others as the whole selection, and so both
 * readings agree.
 */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { FeatureSetFacts, Receipt, WireSelection } from '../feature-sets/messages.ts'
import type { ScopeLists } from '../scopes/messages.ts'
import { type Announcement, declaredUses, isConsented, type SetUse } from './announced.ts'

/** What a host decides about the sets of one server. */
export interface HostSelection {
  /** Names, or `memory.*` for every name with that prefix. Sets in neither list are not enabled. */
  readonly enabled: readonly string[]
  /** Takes precedence over `enabled`. */
  readonly disabled: readonly string[]
  /** Whether a user could enable the set; reported to the server with a refusal. */
  canEnable(name: string): boolean
  /** Uses that a set is allowed beyond its declaration, by name. */
  readonly uses?: Readonly<Record<string, readonly SetUse[]>>
  /** Allow and deny lists for scopes, by set. */
  readonly scopes?: Readonly<Record<string, ScopeLists>>
  /**
   * Whether a capability path may be used. Default: everything announced, except injections into the system prompt by servers of 0.5
   * and later, which that dialect denies by default.
   */
  grants?(path: string): boolean
}

/** An enabled set: its allowed uses, and the declaration that the decision was made about. */
export interface EnabledSet {
  readonly facts: FeatureSetFacts
  readonly uses: ReadonlySet<SetUse>
}

/** A selection in its wire forms, with what it enables. */
export interface EncodedSelection {
  readonly enabled: ReadonlyMap<string, EnabledSet>
  /** The granted capability paths. */
  readonly granted: ReadonlySet<string>
  /** The request form, which some servers require. */
  readonly byRequest: WireSelection
  /** The notification form. */
  readonly byNotice: WireSelection
}

const systemPath = 'contextHooks.beforeInference.inject.system'

/** Writes a selection for a server, and computes which sets and capabilities it enables. */
export function writeSelection(announced: Announcement, selection: HostSelection): EncodedSelection {
  const on = new Map<string, EnabledSet>()
  for (const [name, facts] of announced.sets) {
    if (isEnabled(name, selection)) on.set(name, { facts, uses: usesOf(name, facts, selection) })
  }
  const enabled = [...on.keys()]
  // A name with `*` is left out, because the server would read it as a pattern.
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

/** `memory.*` matches everything below `memory.`; `*` matches everything. */
function covers(pattern: string, name: string): boolean {
  return pattern.endsWith('*') && (pattern === '*' || pattern.endsWith('.*'))
    ? name.startsWith(pattern.slice(0, -1))
    : pattern === name
}

/** `tools` is plain MCP, and the model is no secret; other paths are granted only if an enabled set uses them. */
function isGranted(
  path: string,
  { label }: Announcement,
  selection: HostSelection,
  some: boolean,
  consented: ReadonlySet<SetUse>,
): boolean {
  if (path !== 'tools' && !some) return false
  if (path !== 'tools' && path !== 'modelInfo' && !isConsented(path, consented)) return false
  return selection.grants?.(path) ?? !(path === systemPath && label === '0.5')
}

/** A server's answer to a selection. */
export interface SelectionReply {
  readonly accepted: boolean
  /** What the server does if it does not accept. */
  readonly fallback: 'mcp-only' | 'close'
  /** Sets that the server reports as not working, with the capabilities they miss. */
  readonly unavailable: readonly { readonly featureSet: string; readonly missing: readonly string[] }[]
}

/** Reads the receipt of a selection; everything but an explicit refusal counts as accepted. */
export function readSelectionReply(wire: unknown): SelectionReply {
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
