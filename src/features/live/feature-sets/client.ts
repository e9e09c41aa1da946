/**
 * The feature sets of one server from the host's point of view: declared, selected, and told to the server; and the decision whether a
 * set may do something. A withdrawal applies at once; a permission applies only after the server was told.
 */
import { quoted, type Why, why } from '../../../core/suggestion.ts'
import type { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { LiveGate } from '../answers/messages.ts'
import {
  type Announcement,
  announcedBy,
  carriesState,
  declaredUses,
  type EnabledSet,
  type EncodedSelection,
  type HostSelection,
  isConsented,
  mostSets,
  readDeclarations,
  type SetUse,
  usesUnder,
  writeSelection,
} from '../dialects/messages.ts'
import { type FeatureSetFacts, liveError } from './messages.ts'

/** Feature sets by name, as a server declares them. */
export type DeclaredSets = ReadonlyMap<string, FeatureSetFacts>
/** A declared set, and whether it is enabled. */
export type KnownSet = FeatureSetFacts & {
  /** Whether the set is enabled now. */
  readonly enabled: boolean
}

/** What a host is asked about feature sets. */
interface SelectingHost {
  select(declared: DeclaredSets): HostSelection
  /** Called once per set and use when an enabled set was refused an undeclared use. */
  onUndeclared?(featureSet: string, use: SetUse): void
}

/** Before the server has announced anything. */
const nothing = announcedBy({}, {})

/** Limit of remembered refusals, because a server can declare new sets without end. */
const mostTold = 1_000

/** Tracks the feature sets of one server and decides what they may do. */
export class FeatureSetRegistry implements LiveGate {
  /** Reports something that was dropped or ignored to the host. */
  readonly diagnose: (what: Why) => void
  readonly #host: SelectingHost
  readonly #told = new Set<string>()
  #announced = nothing
  #selection: HostSelection | undefined = undefined
  // Whether the server was told a selection.
  #knows = false
  /** The announcement for which undeclared hooks were already reported. */
  #looked: Announcement | undefined = undefined
  /** With the declaration that was selected; a changed declaration under the same name is not enabled. */
  #enabled: ReadonlyMap<string, EnabledSet> = new Map()
  #granted: ReadonlySet<string> = new Set()
  #view: ReadonlyMap<string, KnownSet> | undefined = undefined

  constructor(host: SelectingHost, diagnose: (what: Why) => void) {
    this.#host = host
    this.diagnose = diagnose
  }

  get announced(): Announcement {
    return this.#announced
  }

  get heard(): boolean {
    return this.#announced !== nothing
  }

  /** All declared sets, with `enabled`. */
  get view(): ReadonlyMap<string, KnownSet> {
    this.#view ??= new Map(
      [...this.#announced.sets].map(([name, facts]) => [name, { ...facts, enabled: this.#enabled.has(name) }]),
    )
    return this.#view
  }

  get selected(): boolean {
    return this.#knows
  }

  isGranted(path: string): boolean {
    return this.#granted.has(path)
  }

  /** Throws unless the use is allowed; the error says whether a user could enable it (MCP Live 0.2 §6.6). */
  admit(featureSet: string, use: SetUse): void {
    const refused = this.#refusal(featureSet, use)
    if (refused === undefined) return
    const key = JSON.stringify([featureSet, use])
    if (refused.because === 'use' && !this.#told.has(key)) {
      if (this.#told.size >= mostTold) this.#told.clear()
      this.#told.add(key)
      this.diagnose(undeclaredUse(refused))
      this.#host.onUndeclared?.(featureSet, use)
    }
    throw setRefusalError(refused)
  }

  /** Like `admit`, but returns a boolean. */
  admits(featureSet: string, use: SetUse): boolean {
    return this.#refusal(featureSet, use) === undefined
  }

  /** The sets that are allowed this use, for messages that name no set. */
  admitted(use: SetUse): readonly string[] {
    return [...this.#enabled.keys()].filter(name => this.admits(name, use))
  }

  isEnabled(featureSet: string): boolean {
    return this.#enabled.has(featureSet)
  }

  /** Whether state travels with calls of the set's tools. */
  carriesState(featureSet: string): boolean {
    const set = this.#enabled.get(featureSet)
    return set !== undefined && carriesState(set.uses, this.#announced.label)
  }

  /**
   * The single decision about messages of MCP Live: may this feature set do this now? It applies to everything a server sends and
   * receives. What counts is the declaration that was consented to, and what the configuration allows beyond it; an announced
   * capability alone allows nothing. Undefined if the use is allowed.
   */
  #refusal(featureSet: string, use: SetUse): RefusedUse | undefined {
    const set = this.#enabled.get(featureSet)
    if (set !== undefined && (set.uses.has(use) || askedEachTime.has(use))) return undefined
    const { sets, faulty } = this.#announced
    const declared = sets.has(featureSet)
    const because = set !== undefined ? 'use' : declared || faulty.has(featureSet) ? 'disabled' : 'unknown'
    return { because, featureSet, use, canEnable: declared && this.#selection?.canEnable(featureSet) === true }
  }

  /** Replaces all declarations. */
  adopt(announced: Announcement): void {
    this.#take(announced)
    this.#report()
  }

  /** Applies `featureSets/changed`. */
  change({ added, removed }: Params): void {
    const news = readDeclarations(added)
    const gone = new Set(Array.isArray(removed) ? removed : [])
    const merge = <V>(old: ReadonlyMap<string, V>, more: ReadonlyMap<string, V>, other: ReadonlyMap<string, unknown>) =>
      new Map([...[...old].filter(([name]) => !gone.has(name) && !other.has(name)), ...more])
    const { sets, faulty } = this.#announced
    const all = { sets: merge(sets, news.sets, news.faulty), faulty: merge(faulty, news.faulty, news.sets) }
    if (all.sets.size > mostSets) this.diagnose(tooMany(all.sets.size))
    const stored = { sets: new Map([...all.sets].slice(0, mostSets)), faulty: new Map([...all.faulty].slice(0, mostSets)) }
    this.#take({ ...this.#announced, ...stored })
    this.#report(name => news.sets.has(name) || news.faulty.has(name))
  }

  #take(announced: Announcement): void {
    this.#announced = announced
    this.#narrow(this.#enabled, new Set(announced.paths))
  }

  /** Asks the host for a selection. What it withdraws is withdrawn at once. */
  choose(): EncodedSelection {
    const selection = this.#host.select(this.#announced.sets)
    const told = writeSelection(this.#announced, selection)
    this.#selection = selection
    this.#narrow(told.enabled, told.granted)
    return told
  }

  /** The server knows the selection. Sets that were redeclared meanwhile wait for the next one. */
  told({ enabled, granted }: EncodedSelection): void {
    const { sets, paths } = this.#announced
    this.#knows = true
    this.#enabled = new Map([...enabled].filter(([name, { facts }]) => isSame(facts, sets.get(name))))
    this.#granted = new Set([...granted].filter(path => paths.includes(path)))
    this.#view = undefined
    this.#reportUncalled()
  }

  /** Reports hooks that the server offers but no set declares; otherwise nobody could tell why they are never called. */
  #reportUncalled(): void {
    if (this.#looked === this.#announced || this.#enabled.size === 0) return
    this.#looked = this.#announced
    const { before, after, sets } = this.#announced
    const uses = new Set(
      [...[...sets.values()].map(declaredUses), ...[...this.#enabled.values()].map(set => set.uses)].flatMap(of => [...of]),
    )
    const offered = [before ? 'contextHooks.beforeInference' : [], after === false ? [] : 'contextHooks.afterInference'].flat()
    for (const hook of offered) if (!isConsented(hook, uses)) this.diagnose(uncalled(hook, [...sets.keys()][0] ?? ''))
  }

  /** Withdraws what is no longer selected, granted, or declared identically. */
  #narrow(selected: ReadonlyMap<string, EnabledSet>, paths: ReadonlySet<string>): void {
    const stored = new Map<string, EnabledSet>()
    for (const [name, { facts, uses }] of this.#enabled) {
      const now = selected.get(name)
      if (now === undefined || !isSame(facts, this.#announced.sets.get(name))) continue
      stored.set(name, { facts, uses: new Set([...uses].filter(use => now.uses.has(use))) })
    }
    this.#enabled = stored
    this.#granted = new Set([...this.#granted].filter(path => paths.has(path)))
    this.#view = undefined
  }

  // Reports invalid declarations and unknown uses.
  #report(isNew: (name: string) => boolean = () => true): void {
    for (const [name, fault] of this.#announced.faulty) {
      if (!isNew(name)) continue
      const message = `The declaration of the feature set ${quoted(name)} is not valid: ${fault}`
      this.diagnose(
        why(
          'DECLARATION_INVALID',
          'declaration',
          message,
          'Ask the author of the server to declare it as MCP Live 0.2 §6.2 requires',
        ),
      )
    }
    for (const [name, { uses }] of this.#announced.sets) {
      if (!isNew(name)) continue
      const odd = uses.filter(use => !this.#announced.paths.includes(use) && usesUnder(use).length === 0)
      if (odd.length === 0) continue
      const message = `The feature set ${quoted(name)} lists uses that this host does not know: ${odd.map(quoted).join(', ')}`
      this.diagnose(why('USE_UNKNOWN', 'uses', message, 'No action is needed: the feature set works without them'))
    }
  }
}

/** Whether two declarations are identical; consent applies to one exact declaration. */
function isSame(a: FeatureSetFacts, b: FeatureSetFacts | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function tooMany(count: number): Why {
  const message = `The server declares ${count} feature sets. Only the first ${mostSets} are used (the limit)`
  return why('TOO_MANY_SETS', 'declaration', message, 'Ask the author of the server to declare fewer feature sets')
}

interface RefusedUse {
  /** `use`: the set is enabled, but this use is not allowed. */
  readonly because: 'unknown' | 'disabled' | 'use'
  readonly featureSet: string
  readonly use: SetUse
  readonly canEnable: boolean
}

/** Uses that are decided case by case; they need an enabled set but no consent in advance. */
const askedEachTime: ReadonlySet<SetUse> = new Set<SetUse>(['scopes'])

/** The error for the server, with the code and data of MCP Live 0.2 §6.6. */
function setRefusalError(refused: RefusedUse): McpError {
  const { because, featureSet, use, canEnable } = refused
  if (because === 'unknown') {
    return liveError('feature-set-unknown', { featureSet, reason: 'The server declares no feature set of this name' })
  }
  const reason =
    because === 'disabled' ? 'The host has not enabled this feature set' : `The feature set does not list ${use} in its uses`
  return liveError('feature-set-disabled', { featureSet, canEnable, use, reason })
}

/** The diagnostic for the operator of the host, with a fix. */
function undeclaredUse({ featureSet, use }: RefusedUse): Why {
  const message = `The feature set ${quoted(featureSet)} does not list ${use} in its uses, so its message was refused`
  return why('USE_UNDECLARED', 'uses', message, widening(featureSet, use))
}

/** The diagnostic for a hook that no set declares. */
function uncalled(hook: string, featureSet: string): Why {
  const message = `The server offers the hook ${hook}, but no feature set lists it in its uses, so the hook is not called`
  return why('HOOK_UNDECLARED', 'uses', message, widening(featureSet, hook))
}

// The config entry that would allow the use.
function widening(featureSet: string, use: string): string {
  const entry = JSON.stringify({ live: { uses: { [featureSet]: [use] } } })
  return `Add ${entry} to the server's entry in the config to allow it, or ask the author of the server to add it to the uses of the feature set`
}
