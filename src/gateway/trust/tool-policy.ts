/**
 * What may happen to a call: the rules that can be about its tool, weighed as in a host. Most tools have none, or only such as say the
 * same for every call of a client; those cost a look into a map.
 */
import type { Clock } from '../../core/clock.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { fits, isCalledBy, noConditions } from '../../policy/rules/conditions.ts'
import type { RateCounts } from '../../policy/rules/counts.ts'
import { type Defaults, readOtherwise } from '../../policy/rules/otherwise.ts'
import type { ReadRule } from '../../policy/rules/read.ts'
import type { Asked, DefaultEffect, Otherwise, Rule, TargetKind } from '../../policy/rules/rule.ts'
import { strongest } from '../../policy/rules/weigh.ts'
import type { WrittenRule } from './rules.ts'
import { readTargetRule, type TargetRule } from './rules.ts'

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

/** What was decided of a call whose rules count: asked again it would count itself. */
export type DecidedCalls = WeakMap<object, CallVerdict>

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
    const about = this.#deciding.filter(rule => isCounting(rule) && isAboutCall(rule, call))
    // Who calls with what was looked at just now.
    return about.map(rule => ({ ...rule, conditions: noConditions }))
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
    if (effect === 'hold') return { do: 'deny', by: rule, waitMs: Math.max(1, waitMs ?? 0, by.forMs ?? 0, heldMs(by, now)) }
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

function isCounting({ rule }: ReadRule): boolean {
  return rule.when?.above !== undefined
}

function heldMs({ hours }: ReadRule, now: number): number {
  return hours === undefined ? 0 : hours.endsAfter(now) - now
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
  readonly #otherwise: Defaults
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
