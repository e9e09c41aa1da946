/**
 * What may happen to a call: the rules that can be about its tool, weighed as in a host. Most tools have none, or only such as say the
 * same for every call of a client; those cost a look into a map.
 */
import type { Clock } from '../../core/clock.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Params, picked } from '../../jsonrpc/message.ts'
import { fits, fitsTarget, isCalledBy } from './conditions.ts'
import type { RateCounts } from './counts.ts'
import { type DefaultEffect, type Otherwise, readOtherwise } from './otherwise.ts'
import { ofCalls, type ReadRule, readRule } from './read.ts'
import {
  type Asked,
  type CallSettings,
  type Patterns,
  type Rule,
  type RuleRate,
  type TargetKind,
  targets,
  type When,
} from './rule.ts'
import { strongest } from './weigh.ts'

// What may happen to a call: the rules that can be about its tool, weighed as in a host. Most tools have none, or only such as say the
// same for every call of a client; those cost a look into a map.

/** One call, as rules see it. */
export interface PolicyCallFacts {
  readonly client: string
  readonly principal: string | undefined
  readonly args: Params
  /** It was let in before, and goes on: what counts calls has counted it. */
  readonly begun?: boolean
}

/** What becomes of a call. What a rule holds is refused until then. */
export interface CallVerdict {
  readonly do: DefaultEffect
  /** The rule that said so; undefined: none did. */
  readonly by: Rule | undefined
  /** Milliseconds until it is allowed: by a rate, or because it is held. */
  readonly waitMs?: number
}

const verdicts = 1_000

/** All rules that can be about one tool, resource or prompt. */
export class ToolPolicy {
  readonly upstream: string
  readonly tool: string
  readonly rules: readonly TargetRule[]
  /** Whether any call can be refused or asked about. */
  readonly decides: boolean
  readonly asks: boolean
  readonly counts: boolean
  readonly #deciding: readonly TargetRule[]
  readonly #counts: RateCounts
  readonly #clock: Clock
  readonly #otherwise: CallVerdict
  /** By client and principal, where nothing else matters. */
  readonly #fixed: Map<string, CallVerdict> | undefined

  constructor(
    upstream: string,
    tool: string,
    rules: readonly TargetRule[],
    otherwise: DefaultEffect,
    counts: RateCounts,
    clock: Clock,
  ) {
    this.upstream = upstream
    this.tool = tool
    this.rules = rules
    this.#deciding = rules.filter(({ decides }) => decides)
    this.#otherwise = { do: otherwise, by: undefined }
    this.#counts = counts
    this.#clock = clock
    this.decides = otherwise !== 'allow' || this.#deciding.some(({ effect }) => effect !== 'allow')
    this.asks = otherwise === 'ask' || this.#deciding.some(({ effect }) => effect === 'ask')
    this.counts = this.#deciding.some(isCounting)
    this.#fixed = this.#deciding.every(({ fixed }) => fixed) ? new Map() : undefined
  }

  judge(call: PolicyCallFacts): CallVerdict {
    if (this.#deciding.length === 0) return this.#otherwise
    if (this.#fixed === undefined) return this.#weigh(call)
    const key = call.principal === undefined ? call.client : `${call.client}\n${call.principal}`
    const known = this.#fixed.get(key)
    if (known !== undefined) return known
    const verdict = this.#weigh(call)
    if (this.#fixed.size >= verdicts) this.#fixed.clear()
    this.#fixed.set(key, verdict)
    return verdict
  }

  /** Whether nothing that a caller calls it with, and at no time, is let through. */
  refusesAll(client: string, principal: string | undefined): boolean {
    let open = this.#otherwise.do !== 'deny'
    for (const { conditions, effect, fixed } of this.#deciding) {
      if (!fits(conditions.client, client) || !fits(conditions.principal, principal)) continue
      if (effect !== 'deny') open = true
      else if (fixed) return true
    }
    return !open
  }

  /** The rules that are about a call, whatever they say. */
  about(call: PolicyCallFacts): readonly TargetRule[] {
    return this.rules.filter(rule => isAboutCall(rule, call))
  }

  /** What has to be known of the rates that a call counts for; undefined: nothing more, and it is to be judged at once. */
  ready(call: PolicyCallFacts): Promise<void> | undefined {
    if (call.begun === true) return undefined
    return this.#counts.ready?.(this.#counted(call), this.#asked(call))
  }

  /** It was let in. */
  took(call: PolicyCallFacts): void {
    if (call.begun !== true) this.#counts.took(this.#counted(call), this.#asked(call))
  }

  #counted(call: PolicyCallFacts): readonly ReadRule[] {
    return this.#deciding.filter(rule => isCounting(rule) && isAboutCall(rule, call))
  }

  /** What a rule about calls says, of those that are about one. The narrowest counts, of equals the first. */
  say<K extends keyof Rule>(member: K, call: PolicyCallFacts | undefined): Rule[K] | undefined {
    for (const read of this.rules) {
      if (read.rule[member] === undefined) continue
      if (call === undefined ? isStatic(read) : isAboutCall(read, call)) return read.rule[member]
    }
    return undefined
  }

  /** Whether what is said depends on the call. */
  varies(member: keyof Rule): boolean {
    return this.rules.some(read => read.rule[member] !== undefined && !isStatic(read))
  }

  #weigh(call: PolicyCallFacts): CallVerdict {
    // Most calls are none that a rule is about.
    if (!this.#deciding.some(rule => isAboutCall(rule, call))) return this.#otherwise
    const about = this.#deciding.filter(rule => isAboutCall(rule, call))
    const now = this.#clock.now()
    const by = strongest(about.filter(rule => this.#holds(rule, now, call)))
    if (by === undefined) return this.#otherwise
    const { rule, effect } = by
    const waitMs = isCounting(by) ? this.#counts.wait(by, this.#asked(call)) : undefined
    if (effect === 'hold')
      return { do: 'deny', by: rule, waitMs: Math.max(1, waitMs ?? 0, by.forMs ?? 0, (by.hours?.endsAfter(now) ?? now) - now) }
    return { do: effect === 'coalesce' ? 'allow' : effect, by: rule, ...(waitMs !== undefined && { waitMs }) }
  }

  #holds(read: ReadRule, now: number, call: PolicyCallFacts): boolean {
    if (read.until <= now || read.hours?.contains(now) === false) return false
    return !isCounting(read) || (call.begun !== true && this.#counts.wait(read, this.#asked(call)) > 0)
  }

  /** As counts see it. */
  #asked({ client }: PolicyCallFacts): Asked {
    return { kind: 'tool', server: this.upstream, tool: this.tool, client }
  }
}

function isCounting({ above }: ReadRule): boolean {
  return above !== undefined
}

function isAboutCall({ conditions }: ReadRule, { client, principal, args }: PolicyCallFacts): boolean {
  return isCalledBy(conditions, client, principal, args)
}

function isStatic({ conditions }: ReadRule): boolean {
  return conditions.client === undefined && conditions.principal === undefined && conditions.arguments.length === 0
}

/** All rules of a gateway. */
export class GatewayPolicy {
  readonly #rules: readonly TargetRule[]
  readonly #otherwise: ReturnType<typeof readOtherwise>
  readonly #clock: Clock
  readonly #counts: RateCounts
  /** Something may be refused whatever it is called with, so that it need not be listed. */
  readonly hides: boolean
  /** Some resource or prompt may be refused. */
  readonly decidesReading: boolean

  constructor(rules: readonly WrittenRule[], otherwise: Otherwise | undefined, clock: Clock, counts: RateCounts) {
    this.#rules = rules.map(readTargetRule)
    this.#otherwise = readOtherwise(otherwise)
    this.#clock = clock
    this.#counts = counts
    const { tool, resource, prompt } = this.#otherwise
    const refuses = ({ effect, kinds }: TargetRule): boolean =>
      (effect === 'deny' || effect === 'hold') && kinds.some(kind => kind !== 'tool')
    this.decidesReading = resource === 'deny' || prompt === 'deny' || this.#rules.some(refuses)
    this.hides =
      [tool, resource, prompt].includes('deny') ||
      this.#rules.some(({ rule, effect, fixed }) => (effect === 'deny' && fixed) || rule.scopes !== undefined)
  }

  /** What rules that look at more than the client's name say of a caller: the same text for all whom they cannot tell apart. */
  tells(principal: string | undefined, permitted: (scopes: readonly string[]) => boolean): string {
    let said = ''
    for (const { rule, conditions } of this.#rules) {
      if (conditions.principal !== undefined) said += fits(conditions.principal, principal) ? '1' : '0'
      if (rule.scopes !== undefined) said += permitted(rule.scopes) ? '1' : '0'
    }
    return said
  }

  /** What is said of a tool, a resource or a prompt. Nobody is asked about the last two. */
  for(kind: TargetKind, upstream: string, name: string): ToolPolicy {
    const rules = this.#rules.filter(rule => rule.isAbout(kind, upstream, name))
    return new ToolPolicy(upstream, name, rules, this.#otherwise[kind], this.#counts, this.#clock)
  }

  /** How much of one kind at a server a caller is refused, whatever it is called and whenever. */
  refused(kind: TargetKind, upstream: string, client: string, principal: string | undefined): 'all' | 'some' | 'none' {
    const about = this.#rules.filter(
      ({ decides, conditions }) => decides && fits(conditions.client, client) && fits(conditions.principal, principal),
    )
    const denied = about.filter(({ effect, fixed }) => effect === 'deny' && fixed).map(rule => rule.covers(kind, upstream))
    if (denied.includes('all')) return 'all'
    const open = about.some(rule => rule.effect !== 'deny' && rule.covers(kind, upstream) !== 'none')
    if (this.#otherwise[kind] === 'deny') return open ? 'some' : 'all'
    return denied.includes('some') ? 'some' : 'none'
  }
}

// Rules as a gateway holds them against calls and reads: only against those that can be about them.

/** One rule, ready to be asked. */
export interface TargetRule extends ReadRule {
  /** It is the same for every call of a client: neither arguments nor time nor counts matter. */
  readonly fixed: boolean
  /** What it is about here. None: a gateway does not know what it names, and it never counts. */
  readonly kinds: readonly TargetKind[]
  isAbout(kind: TargetKind, upstream: string, name: string): boolean
  /** How much of one kind at a server it is about, whatever that is called. */
  covers(kind: TargetKind, upstream: string): 'all' | 'some' | 'none'
}

/** Reads a rule in either spelling. Throws where it is none. */
export function readTargetRule(written: WrittenRule): TargetRule {
  const read = readRule(modernRule(written))
  const { conditions, rule, hours, above } = read
  const kinds = kindsOf(read)
  const concerns = (kind: TargetKind, upstream: string): boolean => kinds.includes(kind) && fits(conditions.server, upstream)
  return {
    ...read,
    fixed: conditions.arguments.length === 0 && hours === undefined && above === undefined && rule.until === undefined,
    kinds,
    isAbout: (kind, upstream, name) => concerns(kind, upstream) && fitsTarget(conditions, { [kind]: name }),
    covers: (kind, upstream) => {
      if (!concerns(kind, upstream)) return 'none'
      return conditions[kind]?.includes('*') === false ? 'some' : 'all'
    },
  }
}

/** Those that it names; where it names none, all of which what it says can be said. */
function kindsOf({ conditions, rule, decides, effect, above, running }: ReadRule): readonly TargetKind[] {
  if (!isKnownHere(conditions) || running !== undefined) return []
  const named = targets.filter(kind => conditions[kind] !== undefined)
  const calls =
    !decides ||
    effect === 'ask' ||
    effect === 'coalesce' ||
    above !== undefined ||
    conditions.arguments.length > 0 ||
    ofCalls.some(name => rule[name] !== undefined)
  const about = named.length > 0 ? named : calls ? (['tool'] as const) : targets
  return about.filter(kind => fits(conditions.kind, kind))
}

/** What only hosts know is never so here. */
function isKnownHere({ featureSet, tags, begunBy, origin }: ReadRule['conditions']): boolean {
  return featureSet === undefined && tags === undefined && begunBy === undefined && origin.size === 0
}

// Rules as gateways wrote them before hosts and gateways shared one language: conditions beside the name instead of in `when`. They are
// still read, and whoever runs the gateway is told how to write them now.

/**
 * A rule in the old form of gateways, with its conditions next to the name.
 * @deprecated Write the conditions in `when`: `upstream` is `server` there, `args` is `arguments`; `by` is `approver`.
 * @atLeastOne do dedupe cost scopes timeout idempotent
 */
export interface GatewayRule
  extends Omit<CallSettings, 'approver'>,
    Pick<When, 'tool' | 'resource' | 'prompt' | 'client' | 'principal' | 'hours'>,
    Pick<Rule, 'name' | 'message' | 'fix'> {
  /** Write `server` in `when`. */
  readonly upstream?: Patterns
  /** Write `arguments` in `when`. */
  readonly args?: Readonly<Record<string, Patterns>>
  /** Write `above` in `when`; `by: all` is `by: server` there. */
  readonly above?: Omit<RuleRate, 'by'> & {
    /** What is counted separately: each client, or all of them together. */
    readonly by?: 'client' | 'all'
  }
  /** The time from which on the rule no longer applies: ISO 8601. */
  readonly until?: string
  /** What happens: it is allowed, denied, or somebody is asked. */
  readonly do?: 'allow' | 'deny' | 'ask'
  /** Write `approver`. */
  readonly by?: CallSettings['approver']
}

/** A rule in either spelling. */
export type WrittenRule = Rule | GatewayRule

const oldMembers = ['upstream', 'tool', 'resource', 'prompt', 'client', 'principal', 'args', 'hours', 'above'] as const
/** What is added to the advice where a condition has another name in `when`. */
const newNames: Readonly<Record<string, string>> = {
  upstream: ', where it is called server',
  args: ', where it is called arguments',
}
const approvers: readonly unknown[] = ['client', 'operator', 'either']

/** Whether it has conditions beside its name, or says by `by` who answers. */
function isOldRule(rule: WrittenRule): rule is GatewayRule {
  return oldMembers.some(name => Object.hasOwn(rule, name)) || (rule.do !== 'coalesce' && approvers.includes(rule.by))
}

/** What to do about old rules, in a sentence; undefined where there are none. */
export function oldRulesText(rules: readonly WrittenRule[]): string | undefined {
  const old = rules.filter(isOldRule).map(({ name }) => clip(name))
  if (old.length === 0) return undefined
  const shown = `${old.slice(0, 5).join(', ')}${old.length > 5 ? ` and ${old.length - 5} more` : ''}`
  return `These rules use the old form, which a later version will not support: ${shown}. Move their conditions into when (upstream becomes server, args becomes arguments), and rename by to approver`
}

/** The same rule in the form of today. Throws where it mixes the two, or says what the old form does not know. */
export function modernRule(written: WrittenRule): Rule {
  if (!isOldRule(written)) return written
  const { upstream, tool, resource, prompt, client, principal, args, hours, above, by, ...rest } = written
  if ('when' in rest) {
    const beside = oldMembers.find(name => Object.hasOwn(written, name))
    if (beside === undefined) throw new TypeError(`by: ${by} is the old form. Use approver: ${by}`)
    throw new TypeError(`${beside} must be inside when${newNames[beside] ?? ''}`)
  }
  if (rest.do !== undefined && !['allow', 'deny', 'ask'].includes(rest.do))
    throw new TypeError(`do must be allow, deny or ask, not ${clip(String(rest.do))}`)
  if (by !== undefined && !approvers.includes(by))
    throw new TypeError(`by must be client, operator or either, not ${clip(String(by))}`)
  if (above?.by !== undefined && !['client', 'all'].includes(above.by))
    throw new TypeError(`above.by must be client or all, not ${clip(String(above.by))}`)
  const when: When = {
    ...picked(written, 'tool', 'resource', 'prompt', 'client', 'principal', 'hours'),
    ...(upstream !== undefined && { server: upstream }),
    ...(args !== undefined && { arguments: args }),
    ...(above !== undefined && { above: { ...above, by: above.by === 'all' ? 'server' : 'client' } }),
  }
  return { ...rest, when, ...(by !== undefined && { approver: by }) }
}
