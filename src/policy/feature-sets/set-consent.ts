/**
 * Consent to feature sets. A yes counts for exactly what a set declares and for what that lets it do: both are in what is asked, and the
 * answer is bound to its digest. What a set wants beyond that is another question. What each set was able to do while it was enabled is
 * kept on the store: rules and grants name sets and not what these declare, so a set that wants more is asked about, also after a restart.
 */
import { hash } from 'node:crypto'
import { type Why, why } from '../../core/suggestion.ts'
import { declaredUses, type SetUse, setUses } from '../../features/live/dialects/messages.ts'
import type { HostSelection } from '../../features/live/dialects/selection.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { entriesUnder, prefixedStore, type Store } from '../../stores/store.ts'
import { type Approvals, bindingDigest, boundOf } from '../approvals/approvals.ts'
import { type PolicyDecision, wordsForUses } from '../approvals/question.ts'
import { type AskVerdict, allowFix, judge, type PolicyInputs } from '../judge.ts'
import type { PolicyOptions } from '../policy.ts'
import type { Asked } from '../rules/rule.ts'

/** What feature sets a server declares, by name. */
type DeclaredSets = ReadonlyMap<string, FeatureSetFacts>

/**
 * What an event was admitted by. It is kept while the event waits, and compared with the server and the feature set when the
 * event runs.
 */
export interface SetAdmission {
  /** A digest of the connected server. Absent if only its name is known. */
  readonly identity?: string
  /** What the feature set declared. Absent if nothing was declared. */
  readonly facts?: FeatureSetFacts
  /** The name of the server's event, if the config subscribes to it. There is no feature set then. */
  readonly subscription?: string
}

interface ConsentParts {
  readonly store: Store
  readonly approvals: Approvals
  readonly options: PolicyOptions
  world(): PolicyInputs
}

/** Sets of one server whose uses are remembered. Those that come after are taken as new each time. */
const mostSets = 1_000

/** Which feature sets are on, what they may do, and whether that still holds. */
export class SetConsent {
  readonly #parts: ConsentParts
  readonly #store: Store
  /** What sets were able to do while they were enabled, by server, then by set. */
  readonly #agreed = new Map<string, Map<string, ReadonlySet<string>>>()
  readonly #declared = new Map<string, DeclaredSets>()
  /** Who declared that, by the name of the server. */
  readonly #declaredBy = new Map<string, string | undefined>()
  /** Which sets were on when that was last told: only changes are decisions. */
  readonly #told = new Map<string, ReadonlyMap<string, boolean>>()

  constructor(parts: ConsentParts) {
    this.#parts = parts
    this.#store = prefixedStore(parts.store, 'policy/agreed/')
  }

  /** Reads what sets were able to do in earlier lives. */
  async load(): Promise<void> {
    for await (const { value } of entriesUnder(this.#store, '')) {
      const agreed: unknown = JSON.parse(value)
      const { server, featureSet, uses } = isRecord(agreed) ? agreed : {}
      // A record that nobody here wrote counts for nothing: the set is asked about again.
      if (typeof server === 'string' && typeof featureSet === 'string' && Array.isArray(uses))
        this.#remember(server, featureSet, uses)
    }
  }

  /** What a server declared when it was last connected. */
  get declared(): ReadonlyMap<string, DeclaredSets> {
    return this.#declared
  }

  /** What a server declared of one set. */
  facts(server: string, featureSet: string): FeatureSetFacts | undefined {
    return this.#declared.get(server)?.get(featureSet)
  }

  /** What a yes to a set is bound to. `undeclared`: only this, which it wants to do without declaring it. */
  asked(server: string, featureSet: string, facts = this.facts(server, featureSet), undeclared?: SetUse): Asked {
    const { description = '', uses = [], scoped = false, rollback = false, hostState = false } = facts ?? {}
    const own = declaredUses({ description, uses, scoped, rollback, hostState })
    const can = undeclared === undefined ? [...own, ...this.#widened(server, featureSet)] : [undeclared]
    const payload = { description, uses, scoped, rollback, hostState, can: [...new Set(can)].sort() }
    return { kind: 'set', server, featureSet, payload: undeclared === undefined ? payload : { ...payload, undeclared } }
  }

  /** The verdict, and the rule or the approval that it rests on. */
  decision(asked: Asked): { readonly do: 'allow' | 'ask' | 'deny'; readonly rule: string } {
    const judged = judge(this.#parts.world(), asked)
    const rule = 'why' in judged ? judged.why.rule : judged.rule
    if (judged.do === 'allow' || judged.do === 'deny') return { do: judged.do, rule }
    const { approvals, options } = this.#parts
    const boundTo = (asking: AskVerdict) => boundOf(asked, asking, options.identityOf?.(asked.server))
    const stored = judged.do === 'ask' ? approvals.findSet(asked, judged, boundTo(judged)) : undefined
    return stored === undefined ? { do: 'ask', rule } : { do: stored.effect, rule: `approval ${stored.id}` }
  }

  /** Which of the declared sets are on. Names every one in exactly one list, so that no server can misread it. */
  select(server: string, declared: DeclaredSets): HostSelection {
    this.#declared.set(server, declared)
    this.#declaredBy.set(server, this.#identity(server))
    const isOpen = (name: string, ...effects: readonly string[]): boolean =>
      isWhole(declared.get(name)) && effects.includes(this.decision(this.asked(server, name, declared.get(name))).do)
    const names = [...declared.keys()]
    const enabled = names.filter(name => isOpen(name, 'allow'))
    const lists = enabled.flatMap(name => {
      const found = this.#parts.world().compiled.scopes(server, name)?.lists
      return found === undefined ? [] : [[name, found] as const]
    })
    const more = enabled.flatMap(name => {
      const uses = this.#extra(server, name, declared.get(name) as FeatureSetFacts)
      return uses.length === 0 ? [] : [[name, uses] as const]
    })
    for (const name of enabled) this.#enabled(server, name, declared.get(name) as FeatureSetFacts)
    this.#tell(server, new Map(names.map(name => [name, enabled.includes(name)])))
    return {
      enabled,
      disabled: names.filter(name => !enabled.includes(name)),
      canEnable: name => isOpen(name, 'allow', 'ask'),
      ...(more.length > 0 && { uses: Object.fromEntries(more) }),
      ...(lists.length > 0 && { scopes: Object.fromEntries(lists) }),
    }
  }

  /** What an event that comes now is admitted by. */
  admission(server: string, featureSet: string, subscription?: string): SetAdmission {
    const identity = this.#identity(server)
    const by = identity === undefined ? {} : { identity }
    if (subscription !== undefined) return { ...by, subscription }
    const facts = this.#ownFacts(server, featureSet)
    return { ...by, ...(facts !== undefined && { facts }) }
  }

  /** Why an event that was admitted by this must not be run now; undefined: it may. */
  async refusal(server: string, featureSet: string, uses: readonly SetUse[], admitted: SetAdmission): Promise<Why | undefined> {
    if (admitted.identity !== this.#identity(server)) return serverChanged(server)
    const { subscription } = admitted
    if (subscription !== undefined)
      return this.#parts.options.subscriptionsOf?.(server).includes(subscription) === true
        ? undefined
        : unsubscribed(server, subscription)
    const facts = this.#ownFacts(server, featureSet) ?? admitted.facts
    // Where it rests on an answer and not on a rule, another process may have changed that.
    if (facts !== undefined && judge(this.#parts.world(), this.asked(server, featureSet, facts)).do === 'ask')
      await this.#parts.approvals.refresh(server)
    return this.withdrawn(server, featureSet, uses, facts)
  }

  /** Why a set may not do any of these, where nobody agrees to it any more. Of one that nobody knows nothing can be said. */
  withdrawn(server: string, featureSet: string, uses: readonly SetUse[], known?: FeatureSetFacts): Why | undefined {
    const facts = known ?? this.#ownFacts(server, featureSet)
    if (facts === undefined || this.#allows(server, featureSet, facts, uses)) return undefined
    const message = `The feature set ${clip(featureSet)} of ${clip(server)} is no longer allowed to do this`
    return why('CONSENT_WITHDRAWN', 'feature-sets', message, allowFix({ kind: 'set', server, featureSet }))
  }

  /** Why a rule or a grant that names a set does not answer this: nobody who wrote it can have meant it. Undefined: it does. */
  unforeseen({ server, featureSet = '', payload }: Asked): string | undefined {
    if (!isRecord(payload) || !Array.isArray(payload['can'])) return undefined
    if (payload['undeclared'] !== undefined) return 'the feature set does not declare this'
    const before = this.#agreed.get(server)?.get(featureSet)
    const more = before === undefined ? [] : payload['can'].filter(use => !before.has(use))
    return more.length === 0 ? undefined : `this was added after it was enabled: ${wordsForUses(more)}`
  }

  /** What the operator allows a set beyond what it declares. */
  #widened(server: string, featureSet: string): readonly SetUse[] {
    return this.#parts.world().compiled.uses(server, featureSet)
  }

  /** What an enabled set may do beyond what it declares: by the config, or because somebody agreed to it. */
  #extra(server: string, featureSet: string, facts: FeatureSetFacts): readonly SetUse[] {
    const widened = this.#widened(server, featureSet)
    if (!this.#parts.approvals.hasSets(server)) return widened
    const own = declaredUses(facts)
    const open = setUses.filter(use => !own.has(use) && !widened.includes(use))
    return [...widened, ...open.filter(use => this.decision(this.asked(server, featureSet, facts, use)).do === 'allow')]
  }

  /** Whether the set is on, and may do one of these. */
  #allows(server: string, featureSet: string, facts: FeatureSetFacts, uses: readonly SetUse[]): boolean {
    if (this.decision(this.asked(server, featureSet, facts)).do !== 'allow') return false
    const own = declaredUses(facts)
    return uses.some(use => own.has(use)) || this.#extra(server, featureSet, facts).some(use => uses.includes(use))
  }

  /**
   * The set is on: what it may do now is what later declarations are held against. What is on only by an answer to what was new is not
   * noted: it ends with that answer, whatever rule names the set.
   */
  #enabled(server: string, featureSet: string, facts: FeatureSetFacts): void {
    const judged = judge(this.#parts.world(), this.asked(server, featureSet, facts))
    if (judged.do === 'ask' && judged.flaw !== undefined) return
    const before = this.#agreed.get(server)?.get(featureSet)
    const now = new Set<string>([...(before ?? []), ...declaredUses(facts), ...this.#widened(server, featureSet)])
    if (before !== undefined && before.size === now.size) return
    if (before === undefined && (this.#agreed.get(server)?.size ?? 0) >= mostSets) return
    const agreed = { server, featureSet, uses: [...now] }
    this.#remember(server, featureSet, agreed.uses)
    const key = hash('sha256', JSON.stringify([server, featureSet]), 'base64url')
    this.#store.commit([{ op: 'put', key, value: JSON.stringify(agreed) }]).catch(error => this.#parts.options.onTrouble?.(error))
  }

  #remember(server: string, featureSet: string, uses: readonly string[]): void {
    const sets = this.#agreed.get(server) ?? new Map<string, ReadonlySet<string>>()
    this.#agreed.set(server, sets.set(featureSet, new Set(uses)))
  }

  /** Tells of the sets that are on or off otherwise than before, of new ones, and of those that are no longer declared. */
  #tell(server: string, now: ReadonlyMap<string, boolean>): void {
    const before = this.#told.get(server) ?? new Map<string, boolean>()
    this.#told.set(server, now)
    for (const name of new Set([...now.keys(), ...before.keys()])) {
      const asked = this.asked(server, name)
      if (before.get(name) === now.get(name)) continue
      this.#parts.options.onDecided?.(setDecision(asked, this.decision(asked).rule, now.get(name)))
    }
  }

  /** Arguments of commands may be secrets, so no more than a digest is kept. */
  #identity(server: string): string | undefined {
    const identity = this.#parts.options.identityOf?.(server)
    return identity === undefined ? undefined : bindingDigest(identity)
  }

  /** What another program declared under this name says nothing of this one. */
  #ownFacts(server: string, featureSet: string): FeatureSetFacts | undefined {
    return this.#declaredBy.get(server) === this.#identity(server) ? this.facts(server, featureSet) : undefined
  }
}

/** MCP Live 0.2 §6.2: without these it is no declaration. */
function isWhole(facts: FeatureSetFacts | undefined): boolean {
  return typeof facts?.description === 'string' && Array.isArray(facts.uses)
}

/** That a set went on or off, or is gone: that is nobody's decision, and all that rested on it is over. */
function setDecision(asked: Asked, rule: string, on: boolean | undefined): PolicyDecision {
  if (on === undefined) return { kind: 'set', asked, outcome: 'success', detail: 'gone', rule: 'no longer declared' }
  if (on) return { kind: 'set', asked, outcome: 'success', detail: 'on', rule }
  const message = `The feature set ${clip(asked.featureSet ?? '')} of ${clip(asked.server)} is not enabled`
  return { kind: 'set', asked, outcome: 'refused', detail: 'off', why: why('SET_NOT_ENABLED', rule, message, allowFix(asked)) }
}

function unsubscribed(server: string, event: string): Why {
  const message = `The config no longer subscribes to the event ${clip(event)} of ${clip(server)}`
  const fix = `Add ${clip(event)} to "events" in the entry of ${clip(server)}. Events that arrive after that run`
  return why('CONSENT_WITHDRAWN', `config.${clip(server)}.events`, message, fix)
}

function serverChanged(server: string): Why {
  const message = `The event came from a different program than the one that is now configured as ${clip(server)}`
  const fix = 'Give the new server another name, or give the old server its name back before its events run'
  return why('SERVER_CHANGED', 'inbox.identity', message, fix)
}
