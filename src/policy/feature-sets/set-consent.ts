/**
 * Consent to feature sets. A yes is one to exactly what a set declares and to what that lets it do: both are in what is asked, and the
 * answer is bound to its digest. What a set wants beyond that is another question.
 */
import { declaredUses, type SetUse, setUses } from '../../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Approvals } from '../approvals/approvals.ts'
import type { ApprovalBinding } from '../approvals/binding.ts'
import { type AskVerdict, judge, type World } from '../judge.ts'
import type { Asked } from '../rules/rule.ts'
import type { AgreedUses } from './agreed-uses.ts'
import { wordsForUses } from './use-words.ts'

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
