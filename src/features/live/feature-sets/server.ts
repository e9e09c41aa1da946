/** Server side of feature sets: declares them in the handshake in the host's dialect, applies selections, and announces changes. */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import type { Clock } from '../../../core/clock.ts'
import { digest } from '../../../core/digest.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import type { HostDialect, LiveHost, TransferableSelection } from '../hosts/messages.ts'
import type { ScopeLists } from '../scopes/messages.ts'
import {
  asCapabilities,
  type FeatureSetFacts,
  liveErrors,
  liveVersion,
  manifestChanged,
  mcplName,
  type Receipt,
  readLiveManifest,
  selectionShape,
  setsChanged,
  updateSets,
  updateSetsByRequest,
  type WireSelection,
  type WireServerLive,
} from './messages.ts'

interface FeatureSetsParts {
  readonly clock: Clock
  readonly hosts: () => Iterable<LiveHost>
  /** The dialect of a peer; undefined for a plain client. */
  readonly dialectOf: (peer: Peer) => HostDialect | undefined
  /** The stored selection of the sender; undefined for a plain client. */
  readonly stored: (exchange: Exchange) => { readonly dialect: HostDialect; readonly selection: SelectedSets } | undefined
  /** Called when sets were removed; selections of them become void. */
  readonly gone: (names: readonly string[]) => void
  /** Called after a host has selected. */
  readonly selected: (exchange: Exchange) => void
}

/** Creates the catalog of sets and its handlers. */
export function featureSetsServer(parts: FeatureSetsParts) {
  const catalog = createCatalog<OfferedSet>({ noun: 'feature set', key: ({ name }) => name })
  catalog.onChange(announcer(parts, catalog))
  const update = (exchange: Exchange): Receipt => {
    const stored = parts.stored(exchange)
    if (stored === undefined)
      throw new McpError('method-not-found', `Only hosts that declare MCP Live can send ${updateSets.name}`)
    const said = exchange.params as WireSelection
    checkCapabilityPaths(said)
    const receipt = select(stored.selection, said, catalog.snapshot.entries, readingOf(exchange, stored.dialect, said))
    parts.selected(exchange)
    return receipt
  }
  const manifest = async ({ peer }: Exchange): Promise<object> => {
    const declared = declare(catalog.snapshot.entries, parts.dialectOf(peer))
    return { ...declared, revision: await digest(declared) }
  }
  const side: Side = {
    errors: liveErrors,
    capabilities: (revision, _caller, peer) =>
      asCapabilities(revision, declare(catalog.snapshot.entries, peer && parts.dialectOf(peer))),
    handlers: [
      [updateSets, exchange => void update(exchange)],
      [updateSetsByRequest, update],
      [readLiveManifest, manifest],
    ],
    layers: [{ stage: 'enter', methods: ['initialize'], run: readOutside }],
  }
  return {
    side,
    /** The offered sets. */
    catalog,
    /** Applies the selection that a stateless request carries. */
    select: (selection: SelectedSets, said: WireSelection): void =>
      void select(selection, said, catalog.snapshot.entries, 'whole'),
    /** The selection that a host declares in its handshake (MCP Live 0.2 §5.2, §7.2). */
    selectedWith: (declared: Params): SelectedSets => {
      const selection = new SelectedSets()
      const first = selectionIn(declared['featureSets'])
      const scopes = selectionIn({ scopes: declared['scopes'] })
      const names = catalog.snapshot.entries.map(({ name }) => name)
      if (first !== undefined || scopes !== undefined) selection.apply({ ...first, ...scopes }, names, 'whole')
      return selection
    },
  }
}

/**
 * A request with granted capabilities is the whole selection; otherwise it is a difference. Hosts of 0.5 use notifications only to
 * withdraw.
 */
function readingOf({ id }: Exchange, { label }: HostDialect, { effectiveCapabilities }: WireSelection): SelectionReading {
  if (id === undefined) return label === '0.5' ? 'narrow' : 'delta'
  return effectiveCapabilities === undefined ? 'delta' : 'whole'
}

/** Applies a selection. Selected sets that lack a capability are disabled, and the receipt says why. */
function select(selection: SelectedSets, said: WireSelection, sets: readonly OfferedSet[], reading: SelectionReading): Receipt {
  selection.apply(
    said,
    sets.map(({ name }) => name),
    reading,
  )
  const granted = said.effectiveCapabilities
  if (granted === undefined) return { accepted: true }
  const unavailableFeatures = sets.flatMap(set => {
    const missingCapabilities = selection.enabled(set.name) ? missingFrom(granted, set) : []
    if (missingCapabilities.length === 0) return []
    selection.disable(set.name)
    return [{ featureSet: set.name, missingCapabilities, effect: 'disabled' }]
  })
  return { accepted: true, mode: 'mcpl', unavailableFeatures, notes: [] }
}

/** MCP Live 0.2 §5.2 shows `experimental` beside `capabilities`; this accepts hosts that send it there. */
function readOutside(exchange: Exchange, next: () => unknown): unknown {
  const { capabilities, experimental } = exchange.params
  const outside = isRecord(experimental) ? experimental[mcplName] : undefined
  if (isRecord(outside) && isRecord(capabilities)) {
    const inside = isRecord(capabilities['experimental']) ? capabilities['experimental'] : {}
    if (inside[mcplName] === undefined)
      exchange.params = {
        ...exchange.params,
        capabilities: { ...capabilities, experimental: { ...inside, [mcplName]: outside } },
      }
  }
  return next()
}

/** Announces changes, at most once per turn of the event loop. */
function announcer({ clock, hosts, gone }: FeatureSetsParts, catalog: Catalog<OfferedSet>): () => void {
  let before: ReadonlyMap<string, FeatureSetFacts> | undefined
  let planned = false
  const now = (): ReadonlyMap<string, FeatureSetFacts> =>
    new Map(catalog.snapshot.entries.map(({ name, facts }) => [name, facts]))
  const tell = (): void => {
    planned = false
    const was = before ?? new Map()
    before = undefined
    const is = now()
    const added = [...is].filter(([name, facts]) => JSON.stringify(was.get(name)) !== JSON.stringify(facts))
    const removed = [...was.keys()].filter(name => !is.has(name))
    if (added.length + removed.length === 0) return
    gone(removed)
    for (const host of hosts()) announce(host, added, removed, catalog)
  }
  let known = now()
  return () => {
    // Hosts that connect later read the current state; during setup there is nobody to tell.
    if ([...hosts()].length > 0) before ??= known
    known = now()
    if (before === undefined) return
    if (!planned) clock.setTimeout(tell, 0, true)
    planned = true
  }
}

function announce(
  host: LiveHost,
  changed: readonly (readonly [string, FeatureSetFacts])[],
  removed: readonly string[],
  catalog: Catalog<OfferedSet>,
): void {
  // By name for all hosts: this form is the one of MCP Live 0.2 §6.7.
  host.notify(setsChanged, { added: Object.fromEntries(changed), removed })
  // Hosts of 0.5 do not know `featureSets/changed`; they read the manifest again.
  if (host.dialect.label === '0.5') {
    const sets = catalog.snapshot.entries
    void digest(declare(sets, host.dialect)).then(revision => host.notify(manifestChanged, { revision }))
  }
}

// Declarations in the form that a host reads.

/** A set as it is currently offered. */
export interface OfferedSet {
  readonly name: string
  readonly facts: FeatureSetFacts
  /** Whether it has a before-hook. */
  readonly before: boolean
  readonly after: false | 'told' | 'blocking'
  /** The positions of its injections; hosts of 0.5 grant each separately. */
  readonly positions: readonly string[]
}

const uses = (sets: readonly OfferedSet[], use: string): boolean => sets.some(({ facts }) => facts.uses.includes(use))

/** The members of `channels` that some set uses. */
function channelUses(sets: readonly OfferedSet[]): readonly string[] {
  const prefix = 'channels.'
  return sets.flatMap(({ facts }) => facts.uses.filter(use => use.startsWith(prefix)).map(use => use.slice(prefix.length)))
}

function declare(sets: readonly OfferedSet[], dialect: HostDialect | undefined): Readonly<Record<string, unknown>> {
  return dialect?.label === '0.5' ? declareByPaths(sets) : { ...declarePlain(sets, dialect?.arrays === true) }
}

/** The form of MCP Live 0.2 §5.1, §6.1. */
function declarePlain(sets: readonly OfferedSet[], arrays: boolean): WireServerLive {
  const before = sets.some(set => set.before)
  const after = sets.some(set => set.after !== false)
  const hooks = {
    ...(before ? { beforeInference: true } : {}),
    ...(after ? { afterInference: { blocking: sets.some(set => set.after === 'blocking') } } : {}),
  }
  return {
    version: liveVersion,
    ...(uses(sets, 'pushEvents') ? { pushEvents: true } : {}),
    ...(before || after ? { contextHooks: hooks } : {}),
    ...(uses(sets, 'inferenceRequest') ? { inferenceRequest: { streaming: true } } : {}),
    modelInfo: true,
    ...(channelUses(sets).length > 0 ? { channels: true } : {}),
    featureSets: arrays
      ? sets.map(({ name, facts }) => ({ name, ...facts }))
      : Object.fromEntries(sets.map(({ name, facts }) => [name, facts])),
  }
}

/** The form of 0.5: capabilities as paths. Such hosts disable a set if one of its paths is unknown to them. */
function declareByPaths(sets: readonly OfferedSet[]): Readonly<Record<string, unknown>> {
  const before = sets.filter(set => set.before)
  const inject = Object.fromEntries(before.flatMap(set => set.positions).map(position => [position, true]))
  return {
    version: '0.5',
    ...(uses(sets, 'pushEvents') ? { pushEvents: true } : {}),
    ...(before.length > 0 ? { contextHooks: { beforeInference: { observe: true, inject } } } : {}),
    ...(sets.some(set => set.after !== false) ? { inferenceLifecycle: true } : {}),
    ...(uses(sets, 'inferenceRequest') ? { inferenceRequest: { streaming: true } } : {}),
    modelInfo: true,
    ...(channelUses(sets).length > 0 ? { channels: Object.fromEntries(channelUses(sets).map(use => [use, true])) } : {}),
    featureSets: Object.fromEntries(sets.map(set => [set.name, { ...set.facts, uses: pathsOf(set) }])),
  }
}

/** The 0.5 paths that a set needs. */
function pathsOf({ facts, positions }: OfferedSet): readonly string[] {
  return facts.uses.flatMap(use => {
    if (use === 'contextHooks.afterInference') return ['inferenceLifecycle']
    if (use !== 'contextHooks.beforeInference') return [use]
    return [`${use}.observe`, ...positions.map(position => `${use}.inject.${position}`)]
  })
}

/** Optional channel capabilities: a set works without them. */
const merelyTold: ReadonlySet<string> = new Set([
  'channels.lifecycle',
  'channels.streaming',
  'channels.typing',
  'channels.acknowledge',
])

/** The uses that a host does not grant. A granted parent covers its children, and a granted child suffices for its parent. */
function missingFrom(granted: readonly string[], { facts }: OfferedSet): readonly string[] {
  const related = (use: string, path: string): boolean => path === use || use.startsWith(`${path}.`) || path.startsWith(`${use}.`)
  const heard = (use: string): boolean =>
    granted.some(path => related(use, path)) ||
    (use === 'contextHooks.afterInference' && granted.some(path => related('inferenceLifecycle', path)))
  return facts.uses.filter(use => !heard(use) && !merelyTold.has(use))
}

// What one host has selected. A set that was never named is disabled.

/** `delta`: only named sets change. `whole`: sets that are not named are disabled. `narrow`: sets can only be disabled. */
type SelectionReading = 'delta' | 'whole' | 'narrow'

/** The selection of one host. */
export class SelectedSets implements TransferableSelection {
  readonly #said = new Map<string, boolean>()
  #scopes = new Map<string, ScopeLists>()
  /** Whether the host has named any set. */
  said = false

  enabled(name: string): boolean {
    return this.#said.get(name) === true
  }

  /** Whether the host has disabled the set explicitly. */
  disabled(name: string): boolean {
    return this.#said.get(name) === false
  }

  scopes(name: string): ScopeLists | undefined {
    return this.#scopes.get(name)
  }

  /** Applies a selection. A set in both lists is disabled (MCP Live 0.2 §6.7). */
  apply(update: WireSelection, declared: readonly string[], reading: SelectionReading): void {
    const { enabled, disabled = [], scopes } = update
    const unnamed = enabled === undefined && update.disabled === undefined
    this.said ||= !unnamed
    for (const name of declared) {
      const on = names(enabled ?? [], name)
      if (names(disabled, name)) this.#said.set(name, false)
      else if (reading === 'whole' && enabled !== undefined) this.#said.set(name, on)
      else if (on && reading !== 'narrow') this.#said.set(name, true)
    }
    if (scopes !== undefined) this.#scopes = new Map(Object.entries(scopes))
  }

  disable(name: string): void {
    this.#said.set(name, false)
  }

  /** Removes what was said about a set that no longer exists. */
  forget(name: string): void {
    this.#said.delete(name)
  }

  /** Serialises the selection for other processes. */
  save(): unknown {
    return { said: this.said, sets: [...this.#said], scopes: [...this.#scopes] }
  }

  restore(saved: unknown): void {
    if (!isRecord(saved)) return
    this.said = saved['said'] === true
    for (const [name, on] of saved['sets'] as [string, boolean][]) this.#said.set(name, on)
    this.#scopes = new Map(saved['scopes'] as [string, ScopeLists][])
  }
}

/** Matches exact names, `*`, and `memory.*` for names below `memory`. */
function names(patterns: readonly string[], name: string): boolean {
  return patterns.some(one => one === name || one === '*' || (one.endsWith('.*') && name.startsWith(one.slice(0, -1))))
}

/** Reads a selection; undefined if the value is not one. */
export function selectionIn(value: unknown): WireSelection | undefined {
  return isRecord(value) && selectionShape.check(value) === undefined ? (value as WireSelection) : undefined
}

/** Throws if a path is both granted and denied. */
function checkCapabilityPaths({ effectiveCapabilities = [], deniedCapabilities = [] }: WireSelection): void {
  const both = effectiveCapabilities.find(path => deniedCapabilities.includes(path))
  if (both === undefined) return
  throw new McpError(
    'invalid-params',
    `"${clip(both)}" is in both effectiveCapabilities and deniedCapabilities. Name it in only one of them`,
  )
}
