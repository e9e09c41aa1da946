/**
 * The sets of one server as its host knows them: declared, selected, told. What is taken away holds at once; what is given holds when
 * the server was told of it.
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
/** A declared set, and whether it may be used. */
export type KnownSet = FeatureSetFacts & { readonly enabled: boolean }

interface SetBookOptions {
  select(declared: DeclaredSets): HostSelection
  diagnose(what: Why): void
  /** An enabled set wants to do what it did not declare; it was refused. Told once for each. */
  undeclared?(featureSet: string, use: SetUse): void
}

/** Refusals of uses that are told once; sets may come and go without end. */
const mostTold = 1_000

/** The feature sets of one server, and which of them are selected. */
export class SetBook {
  readonly #options: SetBookOptions
  readonly #told = new Set<string>()
  #announced: Announced
  #selection: HostSelection | undefined = undefined
  #knows = false
  /** What was looked at for hooks that are never called. */
  #looked: Announced | undefined = undefined
  /** Each with the declaration that was selected: another one under the same name is not enabled. */
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

  get view(): ReadonlyMap<string, KnownSet> {
    this.#view ??= new Map(
      [...this.#announced.sets].map(([name, facts]) => [name, { ...facts, enabled: this.#enabled.has(name) }]),
    )
    return this.#view
  }

  /** Whether the server has been told a selection. */
  get selected(): boolean {
    return this.#knows
  }

  isGranted(path: string): boolean {
    return this.#granted.has(path)
  }

  /** Refuses what nobody agreed to, and says whether a user could (MCP Live 0.2 §6.6). */
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

  /** The same as a question. */
  admits(featureSet: string, use: SetUse): boolean {
    return admission(this.#standing(), featureSet, use) === undefined
  }

  /** Sets for which a message may be sent or taken that names none. */
  admitted(use: SetUse): readonly string[] {
    return admittedSets(this.#standing(), use)
  }

  isEnabled(featureSet: string): boolean {
    return this.#enabled.has(featureSet)
  }

  /** Whether state may go along with calls of the set's tools. */
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

  /** Everything that the server declares is new. */
  adopt(announced: Announced): void {
    this.#take(announced)
    this.#report()
  }

  /** Some sets are new, some are gone. */
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

  /** Asks for a selection. What it takes away is gone from here on. */
  choose(): ToldSelection {
    const selection = this.#options.select(this.#announced.sets)
    const told = writeSelection(this.#announced, selection)
    this.#selection = selection
    this.#narrow(told.enabled, told.granted)
    return told
  }

  /** The server knows. What was declared anew meanwhile has its own selection to wait for. */
  told({ enabled, granted }: ToldSelection): void {
    const { sets, paths } = this.#announced
    this.#knows = true
    this.#enabled = new Map([...enabled].filter(([name, { facts }]) => isSame(facts, sets.get(name))))
    this.#granted = new Set([...granted].filter(path => paths.includes(path)))
    this.#view = undefined
    this.#reportUncalled()
  }

  /** Hooks that are offered, and that no set declares: nobody could tell why they are never called. */
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

  /** What is no longer selected, granted or declared in the same words is gone at once. */
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

/** Whether a set is declared in the same words: whoever agreed to it agreed to these. */
function isSame(a: FeatureSetFacts, b: FeatureSetFacts | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b)
}

function tooMany(count: number): Why {
  const message = `The server declares ${count} feature sets: ${mostSets} are taken, those that came first`
  return why('TOO_MANY_SETS', 'declaration', message, 'Ask the author of the server to declare fewer')
}

/** How a selection reaches a server. */
export interface PolicyCarrier {
  /** Sends it as a request. Rejects with what the server answers, or when it stays silent for so long. */
  request(selection: WireSelection, silenceMs: number): Promise<unknown>
  notify(selection: WireSelection): Promise<void>
  /** Whether the failure is that of the line, so that nothing else would reach the server either. */
  isLost(error: unknown): boolean
}

/** How long a server may keep silent on a selection that came as a request: where that is all it got, and where it was told before. */
const silenceMs = 15_000
const toldMs = 2_000

/**
 * Tells a selection: as a request, which some servers insist on, and where that is not understood or not answered as the notification
 * that others know. Servers of 0.2 get the notification first: to the letter of it they answer no such request, and would be waited
 * for in vain. Gives the receipt, or undefined where there is none.
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
  changed(params: Params): void
  /** The manifest is another one now. */
  stale(): void
}

/** Answers a server that says its sets have changed. */
export function setAnswerers({ changed, stale }: SetsHearer): readonly Answerer[] {
  return [
    { method: setsChanged, waits: false, answer: changed },
    { method: manifestChanged, waits: false, answer: stale },
  ]
}

// The one decision about messages of MCP Live: may this feature set of this server do this, now? Everything that a server sends, and
// everything that it is sent, is put to it. What counts is what the set declared when somebody agreed to it, and what its user or
// operator allows beyond that; a capability that the server announced is a second condition and opens nothing by itself.

/** How the sets of one server stand. */
interface FeatureSetStanding {
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
function admission(standing: FeatureSetStanding, featureSet: string, use: SetUse): Refused | undefined {
  const set = standing.enabled.get(featureSet)
  if (set !== undefined && (set.uses.has(use) || askedEachTime.has(use))) return undefined
  const declared = standing.declared.has(featureSet)
  const known = declared || standing.faulty.has(featureSet)
  const because = set !== undefined ? 'use' : known ? 'disabled' : 'unknown'
  return { because, featureSet, use, canEnable: declared && standing.canEnable(featureSet) }
}

/** The sets that are admitted for it: messages that name no set go to a server that has one. */
function admittedSets(standing: FeatureSetStanding, use: SetUse): readonly string[] {
  return [...standing.enabled.keys()].filter(name => admission(standing, name, use) === undefined)
}

/** As the server is told (MCP Live 0.2 §6.6): the number and the data of the protocol, and the reason in words. */
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

/** As whoever runs the host is told, with what would change it. */
function undeclaredUse({ featureSet, use }: Refused): Why {
  const message = `The feature set ${quoted(featureSet)} does not declare that it uses ${use}, so this was refused`
  return why('USE_UNDECLARED', 'uses', message, widening(featureSet, use))
}

/** The same of a hook that a server offers and none of its sets declares. */
function uncalled(hook: string, featureSet: string): Why {
  const message = `The server offers ${hook}, but none of its feature sets declares that it uses it, so it is not called`
  return why('HOOK_UNDECLARED', 'uses', message, widening(featureSet, hook))
}

function widening(featureSet: string, use: string): string {
  const entry = JSON.stringify({ live: { uses: { [featureSet]: [use] } } })
  return `Add ${entry} to the server's entry in the config to allow it, or ask the author of the server to declare it`
}
