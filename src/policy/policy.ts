/**
 * The policy of a host: what servers may do, decided by rules, lists of scopes, and the answers that somebody gave. Every verdict
 * names its rule; every refusal says what would change it.
 */
import { randomUUID } from 'node:crypto'
import { type Cancel, type Clock, type Duration, realClock, toMilliseconds } from '../core/clock.ts'
import { Problem } from '../core/problem.ts'
import { type Why, why } from '../core/suggestion.ts'
import type { SetUse } from '../features/live/dialects/messages.ts'
import type { HostSelection } from '../features/live/dialects/selection.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { Scope } from '../features/live/scopes/messages.ts'
import { memoryStore } from '../stores/memory.ts'
import type { Store } from '../stores/store.ts'
import { Approvals, boundOf, type Covers, type GrantFor, type StoredApproval, widerAnswers } from './approvals/approvals.ts'
import { ApprovalAsker, type OnApproval, type PolicyDecision, questionText } from './approvals/question.ts'
import { type CompiledPolicy, compare, compile, type PolicyDiff } from './compile.ts'
import { type SetAdmission, SetConsent } from './feature-sets/set-consent.ts'
import { type AskVerdict, allowFix, judge, matchingRules, type PolicyInputs, wordsFor } from './judge.ts'
import { isAbout } from './rules/conditions.ts'
import { Counts } from './rules/counts.ts'
import { type Asked, begunByText, type PolicyRules } from './rules/rule.ts'
import type { Verdict } from './rules/verdict.ts'
import { type Extractors, extracted } from './scopes/elevate.ts'

/** The options of `createPolicy`. */
export interface PolicyOptions {
  readonly rules?: PolicyRules
  /** Where answers are kept. Default in memory. */
  readonly store?: Store
  readonly onApproval?: OnApproval
  /** What tools act on, by `server/tool`. */
  readonly extract?: Extractors
  /** How long a plain yes counts. Default one hour; of what servers declare as long as they declare it alike, a year at most. */
  readonly remember?: Duration
  /** How long `onApproval` may take. Default 5 minutes. */
  readonly approvalTimeout?: Duration
  /** Told of what was decided beside verdicts: answers of people, grants, feature sets that go on or off, other rules. */
  readonly onDecided?: (decision: PolicyDecision) => void
  /** Told of what could not be written and nobody waits for. */
  readonly onTrouble?: (error: unknown) => void
  /** What is connected under the name of a server: answers count for it, and not for another that gets its name later. */
  readonly identityOf?: (server: string) => string | undefined
  /** The events of a server that the config subscribes to. */
  readonly subscriptionsOf?: (server: string) => readonly string[]
  /** Told of a server whose feature sets may be selected otherwise from now on. */
  readonly onChange?: (server: string | undefined) => void
  readonly clock?: Clock
  readonly id?: () => string
}

/** How a request would be decided. */
export interface Explained {
  /** What would be decided. */
  readonly verdict: ReturnType<typeof judge>
  /** Every rule that applies to the request. */
  readonly rules: readonly {
    /** The name of the rule. */
    readonly name: string
    /** The effect of the rule. */
    readonly do: string
    /** Whether the rule decides. */
    readonly counted: boolean
  }[]
}

/** The answer to a question. */
interface ApprovalOutcome {
  /** Whether it is allowed. */
  readonly yes: boolean
  /** Why it is refused. */
  readonly why?: Why
  /** The approval or grant that allows it. */
  readonly rule?: string
  /** Who answered, where the answer says so. */
  readonly by?: string
}

/** Reads what was answered earlier, then decides. */
export async function createPolicy(options: PolicyOptions = {}): Promise<Policy> {
  const policy = new Policy(options)
  await policy.open()
  return policy
}

const recent = 100
const yearMs = 366 * 86_400_000
/** Timers take no longer times. */
const longestMs = 2_000_000_000

/** Decides what servers may do, asks the user where no rule decides, and keeps the answers: `host.policy`. */
export class Policy {
  readonly #options: PolicyOptions
  readonly #clock: Clock
  readonly #counts: Counts
  readonly #approvals: Approvals
  readonly #consent: SetConsent
  readonly #asker: ApprovalAsker
  readonly #rememberMs: number
  /** What was asked lately, to show what a change of the rules would have meant. */
  readonly #lately: Asked[] = []
  #compiled: CompiledPolicy
  #timer: Cancel | undefined

  constructor(options: PolicyOptions) {
    const { clock = realClock, onApproval, id = randomUUID } = options
    this.#options = options
    this.#clock = clock
    this.#compiled = compile(options.rules ?? {})
    this.#counts = new Counts(clock)
    const store = options.store ?? memoryStore({ now: clock.now })
    this.#approvals = new Approvals(store, clock, id)
    this.#consent = new SetConsent({ store, approvals: this.#approvals, options, world: () => this.#world() })
    this.#asker = new ApprovalAsker(onApproval, clock, toMilliseconds(options.approvalTimeout ?? '5m', 'approvalTimeout'))
    this.#rememberMs = toMilliseconds(options.remember ?? '1h', 'remember')
  }

  /** Loads the answers that are kept. Call it before anything is decided. */
  async open(): Promise<void> {
    await this.#approvals.load()
    await this.#consent.load()
    this.#plan()
  }

  /** Decides about one request, and counts it for rules about rates. */
  async decide(asked: Asked): Promise<Verdict> {
    this.#lately.push(asked)
    if (this.#lately.length > recent) this.#lately.shift()
    const found = await this.#look(asked)
    if (!('asking' in found)) return found
    const { asking, bound } = found
    return { do: 'ask', question: questionText(asked, asking), digest: bound.call, rule: asking.rule }
  }

  /** The verdict, or what has to be asked. */
  async #look(
    asked: Asked,
  ): Promise<Exclude<Verdict, { do: 'ask' }> | { asking: AskVerdict; bound: ReturnType<typeof boundOf> }> {
    const judged = judge(this.#world(), asked)
    if (judged.do !== 'ask') {
      if (judged.do !== 'deny') this.#took(asked)
      return judged
    }
    const bound = boundOf(asked, judged, this.#options.identityOf?.(asked.server))
    const stored = await this.#approvals.find(asked, judged, bound)
    return stored === undefined ? { asking: judged, bound } : this.#answered(asked, stored)
  }

  /** It was let in: rates count it. */
  #took(asked: Asked): void {
    const about = this.#compiled.rules.filter(({ above, conditions }) => above !== undefined && isAbout(conditions, asked))
    this.#counts.took(about, asked)
  }

  #answered(asked: Asked, stored: StoredApproval): Exclude<Verdict, { do: 'ask' }> {
    const rule = `approval ${stored.id}`
    if (stored.effect === 'deny') {
      const until = new Date(stored.expires).toISOString()
      const fix = `Revoke ${rule}, or wait until ${until}`
      return { do: 'deny', why: why('APPROVAL_REFUSED', rule, `The user declined ${wordsFor(asked)}`, fix) }
    }
    this.#took(asked)
    return { do: 'allow', rule }
  }

  /** Asks the user and keeps the answer. */
  async approve(asked: Asked, _verdict?: Verdict): Promise<ApprovalOutcome> {
    // Rules may have changed since the verdict, and others may have answered.
    const found = await this.#look(asked)
    if (!('asking' in found)) {
      return found.do === 'deny' || found.do === 'hold' ? { yes: false, why: found.why } : { yes: true, rule: found.rule }
    }
    const answer = await this.#ask(asked, found.asking, found.bound)
    const outcome = answer.yes ? 'success' : outcomeOf(answer.why)
    const detail = `${wordsFor(asked)}, required by ${found.asking.rule}`
    this.#options.onDecided?.({ kind: 'approval', asked, outcome, rule: answer.rule, why: answer.why, by: answer.by, detail })
    return answer
  }

  async #ask(asked: Asked, judged: AskVerdict, bound: ReturnType<typeof boundOf>): Promise<ApprovalOutcome> {
    const { rule, about, scopes, flaw } = judged
    const [text, wider] = [questionText(asked, judged), widerAnswers(asked, judged)]
    const lastsMs = this.#defaultMs(asked, true)
    const question = { text, asked, about, scopes, rule, digest: bound.call, lastsMs, wider }
    const outcome = await this.#asker.ask(flaw === undefined ? question : { ...question, flaw })
    if (outcome.is !== 'answered') return { yes: false, why: unanswered(outcome.is, asked, rule) }
    const { yes, reason, covers = 'call', by } = outcome.answer
    const person = by === undefined ? {} : { by }
    const forMs = outcome.answer.for === undefined ? this.#defaultMs(asked, yes) : toMilliseconds(outcome.answer.for, 'for')
    const reach: Covers = wider.some(one => one.covers === covers) ? covers : 'call'
    // An answer that finds no room, because so many are kept of this server, counts this once.
    const stored = forMs > 0 ? await this.#approvals.keep(asked, bound, reach, yes, forMs).catch(unlessFull) : undefined
    if (forMs > 0 && about === 'set') this.#changed(asked.server)
    // It may have been forbidden while the question was open.
    const now = judge(this.#world(), asked)
    if (now.do === 'deny' || now.do === 'hold') return { yes: false, why: now.why, ...person }
    if (yes) {
      this.#took(asked)
      return { ...person, yes, rule: stored?.[0] === undefined ? `approval, this once (${rule})` : `approval ${stored[0].id}` }
    }
    const said = reason ?? `The user declined ${wordsFor(asked)}`
    return { ...person, yes, why: why('APPROVAL_REFUSED', rule, said, 'Continue without it, or ask the user what to do instead') }
  }

  #defaultMs({ kind }: Asked, yes: boolean): number {
    if (!yes) return 0
    return kind === 'set' || kind === 'definition' ? yearMs : this.#rememberMs
  }

  /** Returns which of the declared feature sets are enabled: those that a rule or an approval enables, no others. */
  select(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): HostSelection {
    return this.#consent.select(server, declared)
  }

  /** Asks about feature sets that no rule mentions, and returns the names of those that are now enabled. */
  async review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): Promise<readonly string[]> {
    await this.#approvals.load()
    const consent = this.#consent
    const all = [...declared].map(([name, facts]) => consent.asked(server, name, facts))
    // One after the other: several questions at once are read by nobody.
    for (const asked of all.filter(each => consent.decision(each).do === 'ask')) {
      const verdict = await this.decide(asked)
      if (verdict.do === 'ask') await this.approve(asked)
    }
    // By now the server may declare other things: what was answered does not count for those.
    return this.select(server, consent.declared.get(server) ?? declared).enabled
  }

  /** Asks whether an enabled feature set may do what it does not declare. A yes applies to exactly this declaration. */
  async widen(server: string, featureSet: string, use: SetUse): Promise<ApprovalOutcome> {
    const facts = this.#consent.facts(server, featureSet)
    return facts === undefined ? { yes: false } : this.approve(this.#consent.asked(server, featureSet, facts, use))
  }

  /** Why a known feature set may no longer do any of these. Undefined: it may. */
  withdrawn(server: string, featureSet: string, uses: readonly SetUse[]): Why | undefined {
    return this.#consent.withdrawn(server, featureSet, uses)
  }

  /** What an event is admitted by now, to be kept with it. `subscription`: the event of the server that the config subscribes to. */
  admission(server: string, featureSet: string, subscription?: string): SetAdmission {
    return this.#consent.admission(server, featureSet, subscription)
  }

  /** Why an admitted event must not run now: another program has the name of the server, or its approval has ended. */
  refusal(server: string, featureSet: string, uses: readonly SetUse[], admitted: SetAdmission): Promise<Why | undefined> {
    return this.#consent.refusal(server, featureSet, uses, admitted)
  }

  /** The rule or approval that enables or disables a known feature set. */
  ruleOfSet(server: string, featureSet: string): string {
    return this.#consent.decision(this.#consent.asked(server, featureSet)).rule
  }

  /** Replaces the rules at once, and returns what changes. */
  async update(rules: PolicyRules): Promise<PolicyDiff> {
    const diff = this.preview(rules)
    this.#compiled = compile(rules)
    this.#counts.keep(this.#compiled.rules)
    const { added, changed, removed } = diff
    const detail = `${added.length} new, ${changed.length} changed, ${removed.length} removed`
    if (added.length + changed.length + removed.length > 0)
      this.#options.onDecided?.({ kind: 'rules', asked: { server: '' }, outcome: 'success', rule: 'policy.update', detail })
    this.#changed(undefined)
    return diff
  }

  /** Returns what an update of the rules would change, without applying it. */
  preview(rules: PolicyRules, examples: readonly Asked[] = this.#lately): PolicyDiff {
    return compare(this.#world(), this.#world(compile(rules)), this.#consent.declared, examples)
  }

  /** Returns what would be decided, and by which rule. Counts nothing and asks nobody. */
  explain(asked: Asked): Explained {
    const world = this.#world()
    const verdict = judge(world, asked)
    const by = 'why' in verdict ? verdict.why.rule : verdict.rule
    return { verdict, rules: matchingRules(world, asked).map(({ name, effect }) => ({ name, do: effect, counted: name === by })) }
  }

  /** Rules that never apply, because others always decide before them. */
  shadowed(): CompiledPolicy['shadowed'] {
    return this.#compiled.shadowed
  }

  /** Allows for a time what the user would be asked about. Denied requests stay denied. */
  async grant(what: GrantFor, duration: Duration): Promise<StoredApproval> {
    const stored = await this.#approvals.grant(what, toMilliseconds(duration, 'duration'))
    const detail = `granted for a limited time: ${stored.kind} ${stored.tool ?? stored.featureSet ?? ''}`
    this.#granted(what, `approval ${stored.id}`, detail)
    return stored
  }

  /** The answers that are stored for a server. */
  grants(server: string): Promise<readonly StoredApproval[]> {
    return this.#approvals.list(server)
  }

  /** Removes an answer that is kept. False if there is none with this id. */
  async revoke(server: string, id: string): Promise<boolean> {
    const revoked = await this.#approvals.revoke(server, id)
    if (!revoked) return false
    this.#granted({ server }, 'policy.revoke', `revoked approval ${id}`)
    return true
  }

  #granted(asked: PolicyDecision['asked'], rule: string, detail: string): void {
    this.#options.onDecided?.({ kind: 'grant', asked, outcome: 'success', rule, detail })
    this.#changed(asked.server)
  }

  /** Reports that a request begins, for rules about running requests. The returned function reports its end. */
  enter(asked: Asked): () => void {
    return this.#counts.enter(this.#compiled.rules, asked)
  }

  /** What a tool call acts on, read from its arguments. Undefined if no extractor is configured. */
  scopesOf(server: string, tool: string, args: unknown): readonly Scope[] | undefined {
    return extracted(this.#options.extract ?? {}, server, tool, args)
  }

  /** Stops the timers of the policy. */
  close(): void {
    this.#timer?.()
    this.#timer = undefined
  }

  #world(compiled = this.#compiled): PolicyInputs {
    return {
      compiled,
      counts: this.#counts,
      now: this.#clock.now(),
      facts: (server, featureSet) => this.#consent.facts(server, featureSet),
      unforeseen: asked => this.#consent.unforeseen(asked),
      scopesOf: ({ server, tool = '', payload }) => this.scopesOf(server, tool, payload),
    }
  }

  #changed(server: string | undefined): void {
    this.#plan()
    this.#options.onChange?.(server)
  }

  /** Feature sets that were enabled for a time go off when it ends, also where nothing else happens then. */
  #plan(): void {
    this.close()
    const now = this.#clock.now()
    const ends = [this.#approvals.nextEnd(), ...this.#compiled.rules.map(({ until }) => until)].filter(end => end > now)
    const next = Math.min(...ends, Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = this.#clock.setTimeout(() => this.#changed(undefined), Math.min(next - now, longestMs), true)
  }
}

function unlessFull(error: unknown): undefined {
  if (!(error instanceof Problem && error.code === 'QUOTA_EXHAUSTED')) throw error
}

/** How a question ended that got no yes. */
function outcomeOf(said: Why | undefined): PolicyDecision['outcome'] {
  if (said?.code === 'APPROVAL_TIMEOUT') return 'timeout'
  return said?.code === 'APPROVAL_FAILED' ? 'failure' : 'refused'
}

/** Why there is no yes where nobody gave an answer. */
function unanswered(how: 'nobody' | 'late' | 'failed', asked: Asked, rule: string): Why {
  const what = `${wordsFor(asked)}${begunByText(asked.begunBy)}`
  if (how === 'nobody')
    return why('NO_APPROVER', rule, `An approval is needed for ${what}, but there is nobody to ask`, allowFix(asked))
  if (how === 'late')
    return why('APPROVAL_TIMEOUT', rule, `The question whether to allow ${what} was not answered in time`, allowFix(asked))
  return why(
    'APPROVAL_FAILED',
    rule,
    `Asking whether to allow ${what} failed`,
    'Check the error that onApproval threw, and try again',
  )
}
