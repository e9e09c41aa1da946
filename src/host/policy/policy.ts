/**
 * The policy of a host: what servers may do, decided by rules, lists of scopes, and the answers that somebody gave. Every verdict
 * names its rule; every refusal says what would change it.
 */
import { randomUUID } from 'node:crypto'
import { type Cancel, type Clock, realClock } from '../../core/clock.ts'
import { type Duration, toMilliseconds } from '../../core/duration.ts'
import { type Why, why } from '../../core/why.ts'
import type { FeatureSetFacts } from '../../features/live/feature-sets/messages.ts'
import type { Scope, ScopeLists } from '../../features/live/scopes/messages.ts'
import { memoryStore } from '../../stores/memory.ts'
import type { Store } from '../../stores/store.ts'
import { Approvals, type GrantFor, type Kept } from './approvals.ts'
import { Asker } from './asking.ts'
import { type Compiled, compile } from './compile.ts'
import { Counts } from './counts.ts'
import { compare, type PolicyDiff } from './diff.ts'
import { type Asking, allowFix, holding, type Judged, judge, type World, wordsFor } from './judge.ts'
import { digestOf, type OnApproval, questionText } from './question.ts'
import type { Asked, PolicyRules, Verdict } from './rule.ts'
import { type Extractors, extracted } from './scopes/extract.ts'
import { type Selection, selection } from './selection.ts'
import type { Shadow } from './weigh.ts'

export interface PolicyOptions {
  readonly rules?: PolicyRules
  /** Where answers are kept. Default in memory. */
  readonly store?: Store
  readonly onApproval?: OnApproval
  /** What tools act on, by `server/tool`. */
  readonly extract?: Extractors
  /** How long a plain yes counts. Default one hour; of what servers declare as long as they declare it alike, a year at most. */
  readonly remember?: Duration
  /** How long an answer is waited for. Default 5 minutes. */
  readonly patience?: Duration
  /** Told of a server whose feature sets may be selected otherwise from now on. */
  readonly onChange?: (server: string | undefined) => void
  readonly clock?: Clock
  readonly id?: () => string
}

/** How a verdict came about. */
export interface Explained {
  readonly verdict: Judged
  /** Every rule that was about it, and whether it was the one. */
  readonly rules: readonly { readonly name: string; readonly do: string; readonly counted: boolean }[]
}

export interface Policy {
  decide(asked: Asked): Promise<Verdict>
  /** Asks, and keeps the answer. A no comes with its reason. */
  approve(asked: Asked, verdict: Verdict & { readonly do: 'ask' }): Promise<{ readonly yes: boolean; readonly why?: Why }>
  /** Which of the declared feature sets are on: those that a rule or an answer enables, no others. */
  select(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): Selection
  /** Asks about those that no rule speaks of; gives the names of those that are now on. */
  review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): Promise<readonly string[]>
  update(rules: PolicyRules): Promise<PolicyDiff>
  /** What such an update would change, without it. */
  preview(rules: PolicyRules, examples?: readonly Asked[]): PolicyDiff
  /** What would be decided, and by what; counts nothing and asks nobody. */
  explain(asked: Asked): Explained
  /** Rules that never count. */
  shadowed(): readonly Shadow[]
  /** Allows for a time what would be asked about. What is refused stays refused. */
  grant(what: GrantFor, duration: Duration): Promise<Kept>
  grants(server: string): Promise<readonly Kept[]>
  revoke(server: string, id: string): Promise<boolean>
  /** Says that it begins, for rules about what is under way; what is returned says that it ended. */
  enter(asked: Asked): () => void
  /** What a tool call acts on, read from its arguments; undefined where nobody said how to. */
  scopesOf(server: string, tool: string, args: unknown): readonly Scope[] | undefined
  close(): void
}

/** Reads what was answered earlier, then decides. */
export async function createPolicy(options: PolicyOptions = {}): Promise<Policy> {
  const policy = new HostPolicy(options)
  await policy.open()
  return policy
}

const recent = 100
const yearMs = 366 * 86_400_000
/** Timers take no longer times. */
const longestMs = 2_000_000_000

class HostPolicy implements Policy {
  readonly #options: PolicyOptions
  readonly #clock: Clock
  readonly #counts: Counts
  readonly #approvals: Approvals
  readonly #asker: Asker
  readonly #rememberMs: number
  readonly #declared = new Map<string, ReadonlyMap<string, FeatureSetFacts>>()
  /** What was asked lately, to show what a change of the rules would have meant. */
  readonly #lately: Asked[] = []
  #compiled: Compiled
  #timer: Cancel | undefined

  constructor(options: PolicyOptions) {
    const { clock = realClock, onApproval, id = randomUUID } = options
    this.#options = options
    this.#clock = clock
    this.#compiled = compile(options.rules ?? {})
    this.#counts = new Counts(clock)
    this.#approvals = new Approvals(options.store ?? memoryStore({ now: clock.now }), clock, id)
    this.#asker = new Asker({ onApproval, clock, waitMs: toMilliseconds(options.patience ?? '5m', 'patience') })
    this.#rememberMs = toMilliseconds(options.remember ?? '1h', 'remember')
  }

  async open(): Promise<void> {
    await this.#approvals.load()
    this.#plan()
  }

  async decide(asked: Asked): Promise<Verdict> {
    this.#lately.push(asked)
    if (this.#lately.length > recent) this.#lately.shift()
    const found = await this.#look(asked)
    if (!('asking' in found)) return found
    const { asking, digest } = found
    return { do: 'ask', question: questionText(asked, asking), digest, rule: asking.rule }
  }

  /** The verdict, or what has to be asked. */
  async #look(asked: Asked): Promise<Exclude<Verdict, { do: 'ask' }> | { readonly asking: Asking; readonly digest: string }> {
    const judged = judge(this.#world(), asked)
    if (judged.do !== 'ask') {
      if (judged.do !== 'deny') this.#counts.took(this.#compiled.rules, asked)
      return judged
    }
    const digest = digestOf(judged.bound)
    const kept = await this.#approvals.find(asked, judged, digest)
    return kept === undefined ? { asking: judged, digest } : this.#answered(asked, kept)
  }

  #answered(asked: Asked, kept: Kept): Exclude<Verdict, { do: 'ask' }> {
    const rule = `approval ${kept.id}`
    if (kept.effect === 'deny') {
      const until = new Date(kept.expires).toISOString()
      const fix = `Revoke ${rule}, or wait until ${until}`
      return { do: 'deny', why: why('APPROVAL_REFUSED', rule, `Somebody refused ${wordsFor(asked)}`, fix) }
    }
    this.#counts.took(this.#compiled.rules, asked)
    return { do: 'allow', rule }
  }

  /** Looks again first: rules may have changed since the verdict, and others may have answered. */
  async approve(asked: Asked): Promise<{ readonly yes: boolean; readonly why?: Why }> {
    const found = await this.#look(asked)
    if ('asking' in found) return this.#ask(asked, found.asking, found.digest)
    return found.do === 'deny' || found.do === 'hold' ? { yes: false, why: found.why } : { yes: true }
  }

  async #ask(asked: Asked, judged: Asking, digest: string): Promise<{ readonly yes: boolean; readonly why?: Why }> {
    const { rule, about, scopes, flaw } = judged
    const text = questionText(asked, judged)
    const outcome = await this.#asker.ask({ text, asked, about, scopes, rule, digest, ...(flaw !== undefined && { flaw }) })
    if (outcome.is !== 'answered') return { yes: false, why: unanswered(outcome.is, asked, rule) }
    const { yes, reason } = outcome.answer
    const forMs = outcome.answer.for === undefined ? this.#defaultMs(asked, yes) : toMilliseconds(outcome.answer.for, 'for')
    if (forMs > 0) await this.#approvals.keep(asked, about, digest, yes, forMs)
    if (forMs > 0 && about === 'set') this.#changed(asked.server)
    // It may have been forbidden while the question was open.
    const now = judge(this.#world(), asked)
    if (now.do === 'deny') return { yes: false, why: now.why }
    if (yes) {
      this.#counts.took(this.#compiled.rules, asked)
      return { yes }
    }
    const said = reason === undefined ? `Somebody refused ${wordsFor(asked)}` : reason
    return { yes, why: why('APPROVAL_REFUSED', rule, said, allowFix(asked)) }
  }

  #defaultMs({ kind }: Asked, yes: boolean): number {
    if (!yes) return 0
    return kind === 'set' || kind === 'definition' ? yearMs : this.#rememberMs
  }

  select(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): Selection {
    this.#declared.set(server, declared)
    const scopes = (name: string): ScopeLists | undefined => this.#compiled.scopes(server, name)?.lists
    return selection(declared, name => this.#judgeSet(server, name, declared), scopes)
  }

  #judgeSet(server: string, name: string, declared: ReadonlyMap<string, FeatureSetFacts>): 'allow' | 'ask' | 'deny' {
    const asked = setAsked(server, name, declared.get(name))
    const judged = judge(this.#world(), asked)
    if (judged.do === 'allow' || judged.do === 'deny') return judged.do
    const kept = judged.do === 'ask' ? this.#approvals.findSet(asked, judged, digestOf(judged.bound)) : undefined
    return kept === undefined ? 'ask' : kept.effect
  }

  async review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): Promise<readonly string[]> {
    await this.#approvals.load()
    const open = [...declared.keys()].filter(name => this.#judgeSet(server, name, declared) === 'ask')
    // One after the other: several questions at once are read by nobody.
    for (const name of open) {
      const asked = setAsked(server, name, declared.get(name))
      const verdict = await this.decide(asked)
      if (verdict.do === 'ask') await this.approve(asked)
    }
    return this.select(server, declared).enabled
  }

  async update(rules: PolicyRules): Promise<PolicyDiff> {
    const diff = this.preview(rules)
    this.#compiled = compile(rules)
    this.#counts.keep(this.#compiled.rules)
    this.#changed(undefined)
    return diff
  }

  preview(rules: PolicyRules, examples: readonly Asked[] = this.#lately): PolicyDiff {
    return compare(this.#world(), this.#world(compile(rules)), this.#declared, examples)
  }

  explain(asked: Asked): Explained {
    const world = this.#world()
    const verdict = judge(world, asked)
    const by = 'why' in verdict ? verdict.why.rule : verdict.rule
    const rules = holding(world, asked).map(({ name, rule }) => ({ name, do: rule.do, counted: name === by }))
    return { verdict, rules }
  }

  shadowed(): readonly Shadow[] {
    return this.#compiled.shadowed
  }

  async grant(what: GrantFor, duration: Duration): Promise<Kept> {
    const kept = await this.#approvals.grant(what, toMilliseconds(duration, 'duration'))
    this.#changed(what.server)
    return kept
  }

  grants(server: string): Promise<readonly Kept[]> {
    return this.#approvals.list(server)
  }

  async revoke(server: string, id: string): Promise<boolean> {
    const revoked = await this.#approvals.revoke(server, id)
    if (revoked) this.#changed(server)
    return revoked
  }

  enter(asked: Asked): () => void {
    return this.#counts.enter(this.#compiled.rules, asked)
  }

  scopesOf(server: string, tool: string, args: unknown): readonly Scope[] | undefined {
    return extracted(this.#options.extract ?? {}, server, tool, args)
  }

  close(): void {
    this.#timer?.()
    this.#timer = undefined
  }

  #world(compiled = this.#compiled): World {
    return {
      compiled,
      counts: this.#counts,
      now: this.#clock.now(),
      facts: (server, featureSet) => this.#declared.get(server)?.get(featureSet),
      scopesOf: ({ server, tool = '', payload }) => this.scopesOf(server, tool, payload),
    }
  }

  #changed(server: string | undefined): void {
    this.#plan()
    this.#options.onChange?.(server)
  }

  /** Feature sets that were enabled for a time go off when it ends, also where nothing else happens then. */
  #plan(): void {
    this.#timer?.()
    this.#timer = undefined
    const now = this.#clock.now()
    const ends = [this.#approvals.nextEnd(), ...this.#compiled.rules.map(({ until }) => until)].filter(end => end > now)
    const next = Math.min(...ends, Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = this.#clock.setTimeout(() => this.#changed(undefined), Math.min(next - now, longestMs), true)
  }
}

/** An approval of a feature set is one of its declaration: where that changes, it is asked about again. */
function setAsked(server: string, featureSet: string, facts: FeatureSetFacts | undefined): Asked {
  const { description, uses, scoped = false, rollback = false, hostState = false } = facts ?? { description: '', uses: [] }
  return { kind: 'set', server, featureSet, payload: { description, uses, scoped, rollback, hostState } }
}

function unanswered(how: 'nobody' | 'late' | 'failed', asked: Asked, rule: string): Why {
  if (how === 'nobody')
    return why('NO_APPROVER', rule, `${wordsFor(asked)} has to be approved, and there is nobody to ask`, allowFix(asked))
  if (how === 'late') return why('APPROVAL_TIMEOUT', rule, `Nobody answered whether to allow ${wordsFor(asked)}`, allowFix(asked))
  return why(
    'APPROVAL_FAILED',
    rule,
    `Whether to allow ${wordsFor(asked)} could not be asked`,
    'Look at what onApproval threw, and try again',
  )
}
