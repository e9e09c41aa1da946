/** Offering feature sets: declared in the handshake, selected by hosts, announced when they change. */
import { type Catalog, createCatalog } from '../../../core/catalog.ts'
import type { Clock } from '../../../core/clock.ts'
import { digest } from '../../../core/digest.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Peer, Revision } from '../../../revisions/index.ts'
import type { HostDialect, LiveHost } from '../hosts/messages.ts'
import { declare, missingFrom, type OfferedSet } from './declaration.ts'
import {
  type FeatureSetFacts,
  liveErrors,
  liveExtension,
  manifestChanged,
  mcplName,
  type Receipt,
  readLiveManifest,
  setsChanged,
  updateSets,
  updateSetsByRequest,
  type WireSelection,
} from './messages.ts'
import { checkCapabilityPaths, type SelectedSets, type SelectionReading } from './selection.ts'

interface FeatureSetsParts {
  readonly clock: Clock
  readonly hosts: () => Iterable<LiveHost>
  /** The dialect of whoever shakes hands, undefined for a plain host. */
  readonly dialectOf: (peer: Peer) => HostDialect | undefined
  /** Where the selection of a request's sender is kept; undefined for a plain host. */
  readonly kept: (exchange: Exchange) => { readonly dialect: HostDialect; readonly selection: SelectedSets } | undefined
  /** Sets are no longer offered: what hosts had selected of them is void. */
  readonly gone: (names: readonly string[]) => void
  /** A host has selected. */
  readonly selected: (exchange: Exchange) => void
}

interface FeatureSets {
  readonly side: Side
  readonly catalog: Catalog<OfferedSet>
  readonly names: () => readonly string[]
}

export function featureSetsServer(parts: FeatureSetsParts): FeatureSets {
  const catalog = createCatalog<OfferedSet>({ noun: 'feature set', key: ({ name }) => name })
  const names = (): readonly string[] => catalog.snapshot.entries.map(({ name }) => name)
  const told = announcer(parts, catalog)
  catalog.onChange(told)
  const update = (exchange: Exchange): Receipt => {
    const kept = parts.kept(exchange)
    if (kept === undefined) throw new McpError('method-not-found', `${updateSets.name} is for hosts that declared MCP Live`)
    const said = exchange.params as WireSelection
    checkCapabilityPaths(said)
    const receipt = select(kept.selection, said, catalog.snapshot.entries, readingOf(exchange, kept.dialect, said))
    parts.selected(exchange)
    return receipt
  }
  return {
    catalog,
    names,
    side: {
      errors: liveErrors,
      capabilities: (revision, _caller, peer) => shown(catalog.snapshot.entries, revision, peer && parts.dialectOf(peer)),
      handlers: [
        [updateSets, (exchange: Exchange) => void update(exchange)],
        [updateSetsByRequest, update],
        [
          readLiveManifest,
          async ({ peer }: Exchange) => {
            const manifest = declare(catalog.snapshot.entries, parts.dialectOf(peer))
            return { ...manifest, revision: await digest(manifest) }
          },
        ],
      ],
      layers: [{ stage: 'enter', methods: ['initialize'], run: readOutside }],
    },
  }
}

function shown(sets: readonly OfferedSet[], revision: Revision, dialect: HostDialect | undefined): Record<string, unknown> {
  if (revision.extensionsIn === undefined) return {}
  const said = declare(sets, dialect)
  const experimental = { [mcplName]: said }
  return revision.era === 'session' ? { experimental } : { experimental, extensions: { [liveExtension]: said } }
}

/** A request that grants capabilities says all there is; else what is named changes. Later hosts only take back by a notification. */
function readingOf({ id }: Exchange, { label }: HostDialect, { effectiveCapabilities }: WireSelection): SelectionReading {
  if (id === undefined) return label === '0.5' ? 'narrow' : 'delta'
  return effectiveCapabilities === undefined ? 'delta' : 'whole'
}

/** Sets that were selected but lack what they use are off, and the host learns why. */
export function select(
  selection: SelectedSets,
  said: WireSelection,
  sets: readonly OfferedSet[],
  reading: SelectionReading,
): Receipt {
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

/** MCP Live 0.2 §5.2 shows `experimental` beside `capabilities`; hosts are read that follow it to the letter. */
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

/** What changes in one turn of the loop is told once. */
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
    // Whoever comes later reads what is there then; while a server is being set up there is nobody to tell.
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
  // By name to all: hosts that read a list of sets in the hello read this one as MCP Live 0.2 §6.7 has it.
  host.notify(setsChanged, { added: Object.fromEntries(changed), removed })
  // Later hosts know no `changed`: they read the manifest anew.
  if (host.dialect.label === '0.5') {
    const sets = catalog.snapshot.entries
    void digest(declare(sets, host.dialect)).then(revision => host.notify(manifestChanged, { revision }))
  }
}
