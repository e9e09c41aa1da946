/**
 * The feature sets of one server from the host's point of view: declared, selected, and told to the server; and the decision whether a
 * set may do something. A withdrawal applies at once; a permission applies only after the server was told.
 */
import { quoted, type Why, why } from '../../../core/suggestion.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Answerer } from '../answers/messages.ts'
import {
  type Announced,
  carriesState,
  type DialectLabel,
  declaredUses,
  type EnabledSet,
  type HostSelection,
  isConsented,
  mostSets,
  type ReadReceipt,
  readDeclarations,
  readReceipt,
  type SetUse,
  type ToldSelection,
  usesUnder,
  writeSelection,
} from '../dialects/messages.ts'
import { type FeatureSetFacts, liveErrorTexts, manifestChanged, setsChanged, type WireSelection } from './messages.ts'

/** Feature sets by name, as a server declares them. */
export type DeclaredSets = ReadonlyMap<string, FeatureSetFacts>
/** A declared set, and whether it is enabled. */
export type KnownSet = FeatureSetFacts & { readonly enabled: boolean }

interface SetBookOptions {
  /** Asks the host for a selection. */
  select(declared: DeclaredSets): HostSelection
  diagnose(what: Why): void
  /** Called once per set and use when an enabled set was refused an undeclared use. */
  undeclared?(featureSet: string, use: SetUse): void
}

/** Limit of remembered refusals, because a server can declare new sets without end. */
const mostTold = 1_000

/** Tracks the feature sets of one server and decides what they may do. */
export class SetBook {
  readonly #options: SetBookOptions
  readonly #told = new Set<string>()
  #announced: Announced
  #selection: HostSelection | undefined = undefined
  // Whether the server was told a selection.
  #knows = false
  /** The announcement for which undeclared hooks were already reported. */
  #looked: Announced | undefined = undefined
  /** With the declaration that was selected; a changed declaration under the same name is not enabled. */
  #enabled: ReadonlyMap<string, EnabledSet> = new Map()
  #granted: ReadonlySet<string> = new Set()
  #view: ReadonlyMap<string, KnownSet> | undefined = undefined

  constructor(announced: Announced, options: SetBookOptions) {
    this.#announced = announced
    this.#options = options
    this.#report()
  }

  get announced(): Announced {
    return this.#announced
  }

  /** All declared sets, with `enabled`. */
  get view(): ReadonlyMap<string, KnownSet> {
    this.#view ??= new Map(
      [...this.#announced.sets].map(([name, facts]) => [name, { ...facts, enabled: this.#enabled.has(name) }]),
    )
    return this.#view
  }

  /** Whether the server was told a selection. */
  get selected(): boolean {
    return this.#knows
  }

  /** Whether the capability path is granted. */
  isGranted(path: string): boolean {
    return this.#granted.has(path)
  }

  /** Throws unless the use is allowed; the error says whether a user could enable it (MCP Live 0.2 §6.6). */
  admit(featureSet: string, use: SetUse): void {
    const refused = admission(this.#standing(), featureSet, use)
    if (refused === undefined) return
    const key = JSON.stringify([featureSet, use])
    if (refused.because === 'use' && !this.#told.has(key)) {
      if (this.#told.size >= mostTold) this.#told.clear()
      this.#told.add(key)
      this.#options.diagnose(undeclaredUse(refused))
      this.#options.undeclared?.(featureSet, use)
    }
    throw setRefusalError(refused)
  }

  /** Like `admit`, but returns a boolean. */
  admits(featureSet: string, use: SetUse): boolean {
    return admission(this.#standing(), featureSet, use) === undefined
  }

  /** The sets that are allowed this use, for messages that name no set. */
  admitted(use: SetUse): readonly string[] {
    return admittedSets(this.#standing(), use)
  }

  /** Whether the set is enabled, with its current declaration. */
  isEnabled(featureSet: string): boolean {
    return this.#enabled.has(featureSet)
  }

  /** Whether state travels with calls of the set's tools. */
  carriesState(featureSet: string): boolean {
    const set = this.#enabled.get(featureSet)
    return set !== undefined && carriesState(set.uses, this.#announced.label)
  }

  #standing(): FeatureSetStanding {
    return {
      declared: this.#announced.sets,
      faulty: this.#announced.faulty,
      enabled: this.#enabled,
      canEnable: name => this.#selection?.canEnable(name) === true,
    }
  }

  /** Replaces all declarations. */
  adopt(announced: Announced): void {
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
    if (all.sets.size > mostSets) this.#options.diagnose(tooMany(all.sets.size))
    const kept = { sets: new Map([...all.sets].slice(0, mostSets)), faulty: new Map([...all.faulty].slice(0, mostSets)) }
    this.#take({ ...this.#announced, ...kept })
    this.#report(name => news.sets.has(name) || news.faulty.has(name))
  }

  #take(announced: Announced): void {
    this.#announced = announced
    this.#narrow(this.#enabled, new Set(announced.paths))
  }

  /** Asks the host for a selection. What it withdraws is withdrawn at once. */
  choose(): ToldSelection {
    const selection = this.#options.select(this.#announced.sets)
    const told = writeSelection(this.#announced, selection)
    this.#selection = selection
    this.#narrow(told.enabled, told.granted)
    return told
  }

  /** The server knows the selection. Sets that were redeclared meanwhile wait for the next one. */
  told({ enabled, granted }: ToldSelection): void {
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
    for (const hook of offered) if (!isConsented(hook, uses)) this.#options.diagnose(uncalled(hook, [...sets.keys()][0] ?? ''))
  }

  /** Withdraws what is no longer selected, granted, or declared identically. */
  #narrow(selected: ReadonlyMap<string, EnabledSet>, paths: ReadonlySet<string>): void {
    const kept = new Map<string, EnabledSet>()
    for (const [name, { facts, uses }] of this.#enabled) {
      const now = selected.get(name)
      if (now === undefined || !isSame(facts, this.#announced.sets.get(name))) continue
      kept.set(name, { facts, uses: new Set([...uses].filter(use => now.uses.has(use))) })
    }
    this.#enabled = kept
    this.#granted = new Set([...this.#granted].filter(path => paths.has(path)))
    this.#view = undefined
  }

  // Reports invalid declarations and unknown uses.
  #report(isNew: (name: string) => boolean = () => true): void {
    for (const [name, fault] of this.#announced.faulty) {
      if (!isNew(name)) continue
      const message = `The server declares the feature set ${quoted(name)}, but ${fault}`
      this.#options.diagnose(
        why(
          'DECLARATION_INVALID',
          'declaration',
          message,
          'Ask the author of the server to declare it as MCP Live 0.2 §6.2 has it',
        ),
      )
    }
    for (const [name, { uses }] of this.#announced.sets) {
      if (!isNew(name)) continue
      const odd = uses.filter(use => !this.#announced.paths.includes(use) && usesUnder(use).length === 0)
      if (odd.length === 0) continue
      const message = `The feature set ${quoted(name)} uses ${odd.map(quoted).join(', ')}, which grants nothing here`
      this.#options.diagnose(why('USE_UNKNOWN', 'uses', message, 'Nothing needs to be done: the set works without it'))
    }
  }
}

/** Whether two declarations are identical; consent applies to one exact declaration. */
function isSame(a: FeatureSetFacts, b: FeatureSetFacts | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function tooMany(count: number): Why {
  const message = `The server declares ${count} feature sets: ${mostSets} are taken, those that came first`
  return why('TOO_MANY_SETS', 'declaration', message, 'Ask the author of the server to declare fewer')
}

/** How a selection is sent to a server. */
export interface PolicyCarrier {
  /** Sends the request form; rejects with the server's error, or after the timeout. */
  request(selection: WireSelection, silenceMs: number): Promise<unknown>
  /** Sends the notification form. */
  notify(selection: WireSelection): Promise<void>
  /** Whether the connection itself failed, so that the notification would not arrive either. */
  isLost(error: unknown): boolean
}

/** How long to wait for a receipt: if the request is all the server got, and if it was notified before. */
const silenceMs = 15_000
const toldMs = 2_000

/**
 * Tells a server the selection. The request form comes first, and the notification if the request is not understood or not answered.
 * Servers of 0.2 get the notification first, because that version has no such request. Returns the receipt, or undefined if there is
 * none.
 */
export async function tellSelection(
  carrier: PolicyCarrier,
  told: ToldSelection,
  label: DialectLabel,
): Promise<ReadReceipt | undefined> {
  const first = label === '0.2'
  if (first) await carrier.notify(told.byNotice)
  try {
    return readReceipt(await carrier.request(told.byRequest, first ? toldMs : silenceMs))
  } catch (error) {
    if (carrier.isLost(error)) throw error
    if (!first) await carrier.notify(told.byNotice)
    return undefined
  }
}

interface SetsHearer {
  /** The server's sets have changed. */
  changed(params: Params): void
  /** The server's manifest has changed. */
  stale(): void
}

/** Answers notifications about changed sets. */
export function setAnswerers({ changed, stale }: SetsHearer): readonly Answerer[] {
  return [
    { method: setsChanged, waits: false, answer: changed },
    { method: manifestChanged, waits: false, answer: stale },
  ]
}

// The single decision about messages of MCP Live: may this feature set do this now? It applies to everything a server sends and
// receives. What counts is the declaration that was consented to, and what the configuration allows beyond it; an announced capability
// alone allows nothing.

/** The state that the decision depends on. */
interface FeatureSetStanding {
  readonly declared: ReadonlyMap<string, FeatureSetFacts>
  /** Declared in an invalid form; cannot be enabled. */
  readonly faulty: ReadonlyMap<string, unknown>
  readonly enabled: ReadonlyMap<string, EnabledSet>
  /** Whether a user could enable it. */
  canEnable(featureSet: string): boolean
}

interface Refused {
  /** `use`: the set is enabled, but this use is not allowed. */
  readonly because: 'unknown' | 'disabled' | 'use'
  readonly featureSet: string
  readonly use: SetUse
  readonly canEnable: boolean
}

/** Uses that are decided case by case; they need an enabled set but no consent in advance. */
const askedEachTime: ReadonlySet<SetUse> = new Set<SetUse>(['scopes'])

/** Undefined if the use is allowed. */
function admission(standing: FeatureSetStanding, featureSet: string, use: SetUse): Refused | undefined {
  const set = standing.enabled.get(featureSet)
  if (set !== undefined && (set.uses.has(use) || askedEachTime.has(use))) return undefined
  const declared = standing.declared.has(featureSet)
  const known = declared || standing.faulty.has(featureSet)
  const because = set !== undefined ? 'use' : known ? 'disabled' : 'unknown'
  return { because, featureSet, use, canEnable: declared && standing.canEnable(featureSet) }
}

/** The enabled sets that are allowed this use. */
function admittedSets(standing: FeatureSetStanding, use: SetUse): readonly string[] {
  return [...standing.enabled.keys()].filter(name => admission(standing, name, use) === undefined)
}

/** The error for the server, with the code and data of MCP Live 0.2 §6.6. */
function setRefusalError(refused: Refused): McpError {
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

/** The diagnostic for the operator of the host, with a fix. */
function undeclaredUse({ featureSet, use }: Refused): Why {
  const message = `The feature set ${quoted(featureSet)} does not declare that it uses ${use}, so this was refused`
  return why('USE_UNDECLARED', 'uses', message, widening(featureSet, use))
}

/** The diagnostic for a hook that no set declares. */
function uncalled(hook: string, featureSet: string): Why {
  const message = `The server offers ${hook}, but none of its feature sets declares that it uses it, so it is not called`
  return why('HOOK_UNDECLARED', 'uses', message, widening(featureSet, hook))
}

// The config entry that would allow the use.
function widening(featureSet: string, use: string): string {
  const entry = JSON.stringify({ live: { uses: { [featureSet]: [use] } } })
  return `Add ${entry} to the server's entry in the config to allow it, or ask the author of the server to declare it`
}
