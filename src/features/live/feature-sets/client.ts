/**
 * The sets of one server as its host knows them: declared, selected, told. What is taken away holds at once; what is given holds when
 * the server was told of it.
 */
import { quoted, type Why, why } from '../../../core/why.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import type { Answerer } from '../answers/messages.ts'
import {
  type Announced,
  mostSets,
  type ReadReceipt,
  readDeclarations,
  readReceipt,
  type Selection,
  type ToldSelection,
  writeSelection,
} from '../dialects/messages.ts'
import { type FeatureSetFacts, liveErrorTexts, liveUses, manifestChanged, setsChanged, type WireSelection } from './messages.ts'

export type DeclaredSets = ReadonlyMap<string, FeatureSetFacts>
/** A declared set, and whether it may be used. */
export type KnownSet = FeatureSetFacts & { readonly enabled: boolean }

export interface SetBookOptions {
  select(declared: DeclaredSets): Selection
  diagnose(what: Why): void
}

export class SetBook {
  readonly #options: SetBookOptions
  #announced: Announced
  #selection: Selection | undefined = undefined
  #enabled: ReadonlySet<string> = new Set()
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

  isEnabled(name: string): boolean {
    return this.#enabled.has(name)
  }

  isGranted(path: string): boolean {
    return this.#granted.has(path)
  }

  /**
   * Whether anything enabled needs this. Servers are known to say too little of what their sets use: where none says it uses this,
   * any may.
   */
  needs(use: string): boolean {
    const uses = (facts: FeatureSetFacts): boolean => facts.uses.some(one => one === use || one.startsWith(`${use}.`))
    const sets = [...this.view.values()]
    return sets.some(set => set.enabled && (uses(set) || !sets.some(uses)))
  }

  /** Refuses what belongs to a set that is not enabled, and says whether it could be (MCP Live 0.2 §6.6). */
  admit(featureSet: string): void {
    if (this.#enabled.has(featureSet)) return
    const declared = this.#announced.sets.has(featureSet)
    if (!declared && !this.#announced.faulty.has(featureSet)) {
      throw new McpError('feature-set-unknown', liveErrorTexts['feature-set-unknown'], { data: { featureSet } })
    }
    const canEnable = declared && this.#selection?.canEnable(featureSet) === true
    throw new McpError('feature-set-disabled', liveErrorTexts['feature-set-disabled'], { data: { featureSet, canEnable } })
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
    this.#narrow(new Set(announced.sets.keys()), new Set(announced.paths))
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
    this.#enabled = new Set([...enabled].filter(name => this.#announced.sets.has(name)))
    this.#granted = granted
    this.#view = undefined
  }

  #narrow(sets: ReadonlySet<string>, paths: ReadonlySet<string>): void {
    this.#enabled = new Set([...this.#enabled].filter(name => sets.has(name)))
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
      const odd = uses.filter(use => !this.#announced.paths.includes(use) && !(liveUses as readonly string[]).includes(use))
      if (odd.length === 0) continue
      const message = `The feature set ${quoted(name)} uses ${odd.map(quoted).join(', ')}, which grants nothing here`
      this.#options.diagnose(why('USE_UNKNOWN', 'uses', message, 'Nothing needs to be done: the set works without it'))
    }
  }
}

function tooMany(count: number): Why {
  const message = `The server declares ${count} feature sets: ${mostSets} are taken, those that came first`
  return why('TOO_MANY_SETS', 'declaration', message, 'Ask the author of the server to declare fewer')
}

/** How a selection reaches a server. */
export interface PolicyCarrier {
  /** Sends it as a request. Rejects with what the server answers, or when it stays silent. */
  request(selection: WireSelection): Promise<unknown>
  notify(selection: WireSelection): Promise<void>
  /** Whether the failure is that of the line, so that nothing else would reach the server either. */
  isLost(error: unknown): boolean
}

/**
 * Tells a selection: as a request, which some servers insist on, and where that is not understood or not answered as the notification
 * that others know. Gives the receipt, or undefined where there is none.
 */
export async function tellSelection(carrier: PolicyCarrier, told: ToldSelection): Promise<ReadReceipt | undefined> {
  try {
    return readReceipt(await carrier.request(told.byRequest))
  } catch (error) {
    if (carrier.isLost(error)) throw error
    await carrier.notify(told.byNotice)
    return undefined
  }
}

export interface SetsHearer {
  changed(params: Params): void
  /** The manifest is another one now. */
  stale(): void
}

export function setAnswerers({ changed, stale }: SetsHearer): readonly Answerer[] {
  return [
    { method: setsChanged, waits: false, answer: changed },
    { method: manifestChanged, waits: false, answer: stale },
  ]
}
