/**
 * Consent to feature sets. A yes is one to exactly what a set declares and to what that lets it do: both are in what is asked, and the
 * answer is bound to its digest. What a set wants beyond that is another question.
 */

import { hash } from 'node:crypto'
import { type Why, why } from '../../core/suggestion.ts'
import { declaredUses, type SetUse, setUses } from '../../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import type { ScopeLists } from '../../features/live/scopes/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Store, storeWithin } from '../../stores/store.ts'
import { type ApprovalBinding, type Approvals, bindingDigest } from '../approvals/approvals.ts'
import { wordsForUses } from '../approvals/question.ts'
import { type AskVerdict, allowFix, judge, type World } from '../judge.ts'
import type { Asked } from '../rules/rule.ts'

interface ConsentParts {
  readonly approvals: Pick<Approvals, 'findSet' | 'hasSets'>
  readonly agreed: AgreedUses
  world(): World
  /** What an answer is bound to. */
  bound(asked: Asked, asking: AskVerdict): ApprovalBinding
  /** What the operator allows a set beyond what it declares. */
  widened(server: string, featureSet: string): readonly SetUse[]
}

export class SetConsent {
  readonly #parts: ConsentParts

  constructor(parts: ConsentParts) {
    this.#parts = parts
  }

  /** What a yes to a set is bound to. `undeclared`: only this, which it wants to do without declaring it. */
  asked(server: string, featureSet: string, facts: FeatureSetFacts | undefined, undeclared?: SetUse): Asked {
    const { description = '', uses = [], scoped = false, rollback = false, hostState = false } = facts ?? {}
    const own = declaredUses({ description, uses, scoped, rollback, hostState })
    const can = undeclared === undefined ? [...own, ...this.#parts.widened(server, featureSet)] : [undeclared]
    const payload = { description, uses, scoped, rollback, hostState, can: [...new Set(can)].sort() }
    return { kind: 'set', server, featureSet, payload: undeclared === undefined ? payload : { ...payload, undeclared } }
  }

  verdict(asked: Asked): 'allow' | 'ask' | 'deny' {
    return this.decision(asked).do
  }

  /** The verdict, and the rule or the approval that it rests on. */
  decision(asked: Asked): { readonly do: 'allow' | 'ask' | 'deny'; readonly rule: string } {
    const judged = judge(this.#parts.world(), asked)
    const rule = 'why' in judged ? judged.why.rule : judged.rule
    if (judged.do === 'allow' || judged.do === 'deny') return { do: judged.do, rule }
    const { approvals, bound } = this.#parts
    const kept = judged.do === 'ask' ? approvals.findSet(asked, judged, bound(asked, judged)) : undefined
    return kept === undefined ? { do: 'ask', rule } : { do: kept.effect, rule: `approval ${kept.id}` }
  }

  /** What an enabled set may do beyond what it declares: by the config, or because somebody agreed to it. */
  extra(server: string, featureSet: string, facts: FeatureSetFacts): readonly SetUse[] {
    const widened = this.#parts.widened(server, featureSet)
    if (!this.#parts.approvals.hasSets(server)) return widened
    const own = declaredUses(facts)
    const open = setUses.filter(use => !own.has(use) && !widened.includes(use))
    return [...widened, ...open.filter(use => this.verdict(this.asked(server, featureSet, facts, use)) === 'allow')]
  }

  /** Whether it is on, or off, by what somebody answered rather than by a rule. */
  rests(server: string, featureSet: string, facts: FeatureSetFacts): boolean {
    return judge(this.#parts.world(), this.asked(server, featureSet, facts)).do === 'ask'
  }

  /** Whether the set is on, and may do one of these. */
  allows(server: string, featureSet: string, facts: FeatureSetFacts, uses: readonly SetUse[]): boolean {
    if (this.verdict(this.asked(server, featureSet, facts)) !== 'allow') return false
    const own = declaredUses(facts)
    return uses.some(use => own.has(use)) || this.extra(server, featureSet, facts).some(use => uses.includes(use))
  }

  /**
   * The set is on: what it may do now is what later declarations are held against. What is on only by an answer to what was new is not
   * noted: it ends with that answer, whatever rule names the set.
   */
  enabled(server: string, featureSet: string, facts: FeatureSetFacts): void {
    const judged = judge(this.#parts.world(), this.asked(server, featureSet, facts))
    if (judged.do === 'ask' && judged.flaw !== undefined) return
    this.#parts.agreed.note(server, featureSet, [...declaredUses(facts), ...this.#parts.widened(server, featureSet)])
  }
}

/** Why a rule or a grant that names a set does not answer this: nobody who wrote it can have meant it. Undefined: it does. */
export function unforeseen({ server, featureSet = '', payload }: Asked, agreed: AgreedUses): string | undefined {
  if (!isRecord(payload) || !Array.isArray(payload['can'])) return undefined
  if (payload['undeclared'] !== undefined) return 'the feature set does not declare this'
  const before = agreed.of(server, featureSet)
  const more = before === undefined ? [] : payload['can'].filter(use => !before.has(use))
  return more.length === 0 ? undefined : `this is new since it was enabled: ${wordsForUses(more)}`
}

// What each feature set was able to do while it was enabled, kept on the store. Rules and grants name sets and not what these declare:
// a set that wants more than it had is asked about all the same, also after a restart.

interface Agreed {
  readonly server: string
  readonly featureSet: string
  readonly uses: readonly string[]
}

/** Of one server. Those that come after are taken as new each time. */
const mostSets = 1_000

export class AgreedUses {
  readonly #store: Store
  readonly #failed: (error: unknown) => void
  /** By server, then by set. */
  readonly #agreed = new Map<string, Map<string, ReadonlySet<string>>>()

  /** `failed`: told what could not be written. */
  constructor(store: Store, failed: (error: unknown) => void) {
    this.#store = storeWithin(store, 'policy/agreed/')
    this.#failed = failed
  }

  async load(): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan('', after === undefined ? {} : { after })
      for (const { value } of page) this.#remember(read(value))
      after = page.at(-1)?.key
      if (after === undefined) return
    }
  }

  /** Undefined: the set was never enabled. */
  of(server: string, featureSet: string): ReadonlySet<string> | undefined {
    return this.#agreed.get(server)?.get(featureSet)
  }

  /** The set is enabled with these, because somebody agreed to them. */
  note(server: string, featureSet: string, uses: Iterable<SetUse>): void {
    const before = this.of(server, featureSet)
    const now = new Set<string>([...(before ?? []), ...uses])
    if (before !== undefined && before.size === now.size) return
    if (before === undefined && (this.#agreed.get(server)?.size ?? 0) >= mostSets) return
    const agreed = { server, featureSet, uses: [...now] }
    this.#remember(agreed)
    const key = hash('sha256', JSON.stringify([server, featureSet]), 'base64url')
    this.#store.commit([{ op: 'put', key, value: JSON.stringify(agreed) }]).catch(this.#failed)
  }

  #remember(agreed: Agreed | undefined): void {
    if (agreed === undefined) return
    const sets = this.#agreed.get(agreed.server) ?? new Map<string, ReadonlySet<string>>()
    sets.set(agreed.featureSet, new Set(agreed.uses))
    this.#agreed.set(agreed.server, sets)
  }
}

function read(value: string): Agreed | undefined {
  const { server, featureSet, uses } = (isRecord(JSON.parse(value)) ? JSON.parse(value) : {}) as Partial<Agreed>
  return server === undefined || featureSet === undefined || uses === undefined ? undefined : { server, featureSet, uses }
}

// Which feature sets of a server are on. Names every declared one in exactly one list, so that no server can misread it.

export interface Selection {
  readonly enabled: readonly string[]
  readonly disabled: readonly string[]
  /** Whether a user may enable it. */
  canEnable(name: string): boolean
  /** What enabled ones may do beyond what they declare. */
  readonly uses?: Readonly<Record<string, readonly SetUse[]>>
  /** Of the enabled ones. */
  readonly scopes?: Readonly<Record<string, ScopeLists>>
}

export function selection(
  declared: ReadonlyMap<string, FeatureSetFacts>,
  judge: (name: string) => 'allow' | 'ask' | 'deny',
  scopes: (name: string) => ScopeLists | undefined,
  extra: (name: string, facts: FeatureSetFacts) => readonly SetUse[],
): Selection {
  const names = [...declared.keys()]
  const isOn = (name: string): boolean => isWhole(declared.get(name)) && judge(name) === 'allow'
  const enabled = names.filter(isOn)
  const lists = enabled.flatMap(name => {
    const found = scopes(name)
    return found === undefined ? [] : [[name, found] as const]
  })
  const more = enabled.flatMap(name => {
    const uses = extra(name, declared.get(name) as FeatureSetFacts)
    return uses.length === 0 ? [] : [[name, uses] as const]
  })
  return {
    enabled,
    disabled: names.filter(name => !enabled.includes(name)),
    canEnable: name => isWhole(declared.get(name)) && judge(name) !== 'deny',
    ...(more.length > 0 && { uses: Object.fromEntries(more) }),
    ...(lists.length > 0 && { scopes: Object.fromEntries(lists) }),
  }
}

/** MCP Live 0.2 §6.2: without these it is no declaration. */
function isWhole(facts: FeatureSetFacts | undefined): boolean {
  return typeof facts?.description === 'string' && Array.isArray(facts.uses)
}

// By what an event was admitted, kept with it while it waits: the program that was connected under the name of its server, and what
// its feature set declared, or the subscription of the config that it came by. When it is run it is held against both, whether its
// server is connected by then or not.

export interface SetAdmission {
  /** A digest of what was connected; absent where nothing is known but the name. */
  readonly identity?: string
  /** What the set declared; absent where it declared nothing. */
  readonly facts?: FeatureSetFacts
  /** The name of the server's event, where the config subscribes to it: then its entry is the consent, and there is no feature set. */
  readonly subscription?: string
}

interface AdmissionParts {
  readonly consent: SetConsent
  /** What is connected under the name of a server. */
  identityOf(server: string): string | undefined
  /** The events of it that the config subscribes to. */
  subscriptionsOf(server: string): readonly string[]
  /** What it declared when it was last connected. */
  declared(server: string, featureSet: string): FeatureSetFacts | undefined
  /** Reads anew what was answered about its feature sets: another process may have done so. */
  refresh(server: string): Promise<void>
}

export class Admissions {
  readonly #parts: AdmissionParts
  /** Whose declarations are known, by the name of the server. */
  readonly #declaredBy = new Map<string, string | undefined>()

  constructor(parts: AdmissionParts) {
    this.#parts = parts
  }

  /** The server has declared its feature sets. */
  declared(server: string): void {
    this.#declaredBy.set(server, this.#identity(server))
  }

  /** What an event that comes now is admitted by. */
  now(server: string, featureSet: string, subscription?: string): SetAdmission {
    const identity = this.#identity(server)
    const by = identity === undefined ? {} : { identity }
    if (subscription !== undefined) return { ...by, subscription }
    const facts = this.#facts(server, featureSet)
    return { ...by, ...(facts !== undefined && { facts }) }
  }

  /** Why an event that was admitted by this must not be run now; undefined: it may. */
  async refusal(server: string, featureSet: string, uses: readonly SetUse[], admitted: SetAdmission): Promise<Why | undefined> {
    if (admitted.identity !== this.#identity(server)) return serverChanged(server)
    const { subscription } = admitted
    if (subscription !== undefined)
      return this.#parts.subscriptionsOf(server).includes(subscription) ? undefined : unsubscribed(server, subscription)
    const facts = this.#facts(server, featureSet) ?? admitted.facts
    if (facts !== undefined && this.#parts.consent.rests(server, featureSet, facts)) await this.#parts.refresh(server)
    return this.withdrawn(server, featureSet, uses, facts)
  }

  /** Why a set may not do any of these, where nobody agrees to it any more. Of one that nobody knows nothing can be said. */
  withdrawn(server: string, featureSet: string, uses: readonly SetUse[], known?: FeatureSetFacts): Why | undefined {
    const facts = known ?? this.#facts(server, featureSet)
    if (facts === undefined || this.#parts.consent.allows(server, featureSet, facts, uses)) return undefined
    const message = `Nobody agrees any more to the feature set ${clip(featureSet)} of ${clip(server)} doing this`
    return why('CONSENT_WITHDRAWN', 'feature-sets', message, allowFix({ kind: 'set', server, featureSet }))
  }

  /** Arguments of commands may be secrets, so no more than a digest is kept. */
  #identity(server: string): string | undefined {
    const identity = this.#parts.identityOf(server)
    return identity === undefined ? undefined : bindingDigest(identity)
  }

  /** What another program declared under this name says nothing of this one. */
  #facts(server: string, featureSet: string): FeatureSetFacts | undefined {
    if (this.#declaredBy.get(server) !== this.#identity(server)) return undefined
    return this.#parts.declared(server, featureSet)
  }
}

function unsubscribed(server: string, event: string): Why {
  const message = `The config does not subscribe any more to the event ${clip(event)} of ${clip(server)}`
  const fix = `Put ${clip(event)} into "events" of its entry again; events that come from then on run`
  return why('CONSENT_WITHDRAWN', `config.${clip(server)}.events`, message, fix)
}

function serverChanged(server: string): Why {
  const message = `The event came from another program than the one that is called ${clip(server)} now`
  const fix = 'Give a new server a name of its own, or the old one its name back before its events are run'
  return why('SERVER_CHANGED', 'inbox.identity', message, fix)
}
