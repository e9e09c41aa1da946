/**
 * What may happen to a call: the rules that can be about its tool, weighed as the policy of hosts weighs them. Most tools have none,
 * or only such as say the same for every call of a client; those cost a look into a map.
 */
import type { Clock } from '../../core/clock.ts'
import type { ReadRule as HostRule } from '../../host/policy/conditions.ts'
import type { Asked } from '../../host/policy/rule.ts'
import { strongest } from '../../host/policy/weigh.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { fitsArguments } from './arguments.ts'
import { fits, type Kind, type ReadRule, readRule } from './rules.ts'
import type { GatewayRule } from './settings.ts'

/** One call, as rules see it. */
export interface Judged {
  readonly client: string
  readonly principal: string | undefined
  readonly args: Params
  /** It was let in before, and goes on: what counts calls has counted it. */
  readonly begun?: boolean
}

export interface Verdict {
  readonly do: 'allow' | 'deny' | 'ask'
  /** The rule that said so; undefined: none did. */
  readonly by: GatewayRule | undefined
  /** Milliseconds until a rate allows it. */
  readonly waitMs?: number
}

/** What was decided of a call whose rules count: asked again it would count itself. */
export type Decided = WeakMap<object, Verdict>

/** What rules count: of this process alone, or of all that share a store. */
export interface Counting {
  /** Milliseconds until the rate allows one more; 0 where it does now. */
  wait(rule: HostRule, asked: Asked): number
  /** It was let in. */
  took(rules: readonly HostRule[], asked: Asked): void
  /** To be waited for before a call is judged, until it is undefined. */
  ready?(rules: readonly HostRule[], asked: Asked): Promise<void> | undefined
  close?(): Promise<void>
}

const verdicts = 1_000
const nowhere: ReadonlyMap<string, readonly string[]> = new Map()

/** All rules that can be about one tool. */
export class ToolPolicy {
  readonly upstream: string
  readonly tool: string
  readonly rules: readonly ReadRule[]
  /** Whether any call can be refused or asked about. */
  readonly decides: boolean
  readonly asks: boolean
  readonly counts: boolean
  readonly #deciding: readonly ReadRule[]
  readonly #counts: Counting
  readonly #clock: Clock
  readonly #otherwise: Verdict
  /** By client and principal, where nothing else matters. */
  readonly #fixed: Map<string, Verdict> | undefined

  constructor(
    upstream: string,
    tool: string,
    rules: readonly ReadRule[],
    otherwise: Verdict['do'],
    counts: Counting,
    clock: Clock,
  ) {
    this.upstream = upstream
    this.tool = tool
    this.rules = rules
    this.#deciding = rules.filter(({ host }) => host !== undefined)
    this.#otherwise = { do: otherwise, by: undefined }
    this.#counts = counts
    this.#clock = clock
    this.decides = otherwise !== 'allow' || this.#deciding.some(({ rule }) => rule.do !== 'allow')
    this.asks = otherwise === 'ask' || this.#deciding.some(({ rule }) => rule.do === 'ask')
    this.counts = this.#deciding.some(({ rule }) => rule.above !== undefined)
    this.#fixed = this.#deciding.every(({ fixed }) => fixed) ? new Map() : undefined
  }

  judge(call: Judged): Verdict {
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
    for (const read of this.#deciding) {
      if (!fits(read.client, client) || !fits(read.principal, principal)) continue
      if (read.rule.do !== 'deny') open = true
      else if (read.fixed) return true
    }
    return !open
  }

  /** The rules that are about a call, whatever they say. */
  about(call: Judged): readonly ReadRule[] {
    return this.rules.filter(read => isAbout(read, call))
  }

  /** What has to be known of the rates that a call counts for; undefined: nothing more, and it is to be judged at once. */
  ready(call: Judged): Promise<void> | undefined {
    if (call.begun === true) return undefined
    return this.#counts.ready?.(this.#counted(call), this.#asked(call))
  }

  /** It was let in. */
  took(call: Judged): void {
    if (call.begun !== true) this.#counts.took(this.#counted(call), this.#asked(call))
  }

  #counted(call: Judged): readonly HostRule[] {
    const about = this.#deciding.filter(read => read.rule.above !== undefined && isAbout(read, call))
    // Who calls with what was looked at just now.
    return about.flatMap(({ host }) => (host === undefined ? [] : { ...host, conditions: { origin: nowhere } }))
  }

  /** What a rule about calls says, of those that are about one. The narrowest counts, of equals the first. */
  say<K extends keyof GatewayRule>(member: K, call: Judged | undefined): GatewayRule[K] | undefined {
    for (const read of this.rules) {
      if (read.rule[member] === undefined) continue
      if (call === undefined ? isStatic(read) : isAbout(read, call)) return read.rule[member]
    }
    return undefined
  }

  /** Whether what is said depends on the call. */
  varies(member: keyof GatewayRule): boolean {
    return this.rules.some(read => read.rule[member] !== undefined && !isStatic(read))
  }

  #weigh(call: Judged): Verdict {
    // Most calls are none that a rule is about.
    if (!this.#deciding.some(read => isAbout(read, call))) return this.#otherwise
    const about = this.#deciding.filter(read => isAbout(read, call))
    const now = this.#clock.now()
    const holding = about.filter(read => this.#holds(read, now, call))
    const host = strongest(holding.flatMap(({ host }) => host ?? []))
    const by = holding.find(read => read.host === host)
    if (by === undefined || host === undefined) return this.#otherwise
    const waitMs = by.rule.above === undefined ? undefined : this.#counts.wait(host, this.#asked(call))
    return { do: by.rule.do ?? 'allow', by: by.rule, ...(waitMs !== undefined && { waitMs }) }
  }

  #holds({ host, rule }: ReadRule, now: number, call: Judged): boolean {
    if (host === undefined || host.until <= now) return false
    if (host.hours?.contains(now) === false) return false
    return rule.above === undefined || (call.begun !== true && this.#counts.wait(host, this.#asked(call)) > 0)
  }

  /** As the counts of hosts see it. */
  #asked({ client }: Judged): Asked {
    return { kind: 'tool', server: this.upstream, tool: this.tool, origin: { client } }
  }
}

function isAbout(read: ReadRule, { client, principal, args }: Judged): boolean {
  if (!fits(read.client, client) || !fits(read.principal, principal)) return false
  return read.args.length === 0 || fitsArguments(read.args, args, read.rule.do === 'allow')
}

function isStatic({ client, principal, args }: ReadRule): boolean {
  return client === undefined && principal === undefined && args.length === 0
}

export class Policy {
  readonly #rules: readonly ReadRule[]
  readonly #otherwise: Verdict['do']
  readonly #clock: Clock
  readonly #counts: Counting
  /** Some caller may be refused every call of some tool. */
  readonly hides: boolean
  /** Some resource or prompt may be refused. */
  readonly decidesReading: boolean

  constructor(rules: readonly GatewayRule[], otherwise: Verdict['do'], clock: Clock, counts: Counting) {
    this.#rules = rules.map(readRule)
    this.#otherwise = otherwise
    this.#clock = clock
    this.#counts = counts
    const refuses = ({ rule, kinds }: ReadRule): boolean => rule.do === 'deny' && kinds.some(kind => kind !== 'tool')
    this.decidesReading = otherwise === 'deny' || this.#rules.some(refuses)
    this.hides =
      otherwise === 'deny' || this.#rules.some(({ rule, fixed }) => (rule.do === 'deny' && fixed) || rule.scopes !== undefined)
  }

  /** What rules that look at more than the client's name say of a caller: the same text for all whom they cannot tell apart. */
  tells(principal: string | undefined, permitted: (scopes: readonly string[]) => boolean): string {
    let said = ''
    for (const { rule, principal: patterns } of this.#rules) {
      if (patterns !== undefined) said += fits(patterns, principal) ? '1' : '0'
      if (rule.scopes !== undefined) said += permitted(rule.scopes) ? '1' : '0'
    }
    return said
  }

  for(upstream: string, tool: string): ToolPolicy {
    return this.#of('tool', upstream, tool, this.#otherwise)
  }

  /** What is said of a resource or a prompt: nobody is asked about those. */
  reading(kind: 'resource' | 'prompt', upstream: string, name: string): ToolPolicy {
    return this.#of(kind, upstream, name, this.#otherwise === 'deny' ? 'deny' : 'allow')
  }

  /** How much of one kind at a server a caller is refused, whatever it is called and whenever. */
  refused(kind: Kind, upstream: string, client: string, principal: string | undefined): 'all' | 'some' | 'none' {
    const about = this.#rules.filter(
      read => read.host !== undefined && fits(read.client, client) && fits(read.principal, principal),
    )
    const denied = about.filter(({ rule, fixed }) => rule.do === 'deny' && fixed).map(read => read.covers(kind, upstream))
    if (denied.includes('all')) return 'all'
    const open = about.some(read => read.rule.do !== 'deny' && read.covers(kind, upstream) !== 'none')
    if (this.#otherwise === 'deny') return open ? 'some' : 'all'
    return denied.includes('some') ? 'some' : 'none'
  }

  #of(kind: Kind, upstream: string, name: string, otherwise: Verdict['do']): ToolPolicy {
    const rules = this.#rules.filter(read => read.isAbout(kind, upstream, name))
    return new ToolPolicy(upstream, name, rules, otherwise, this.#counts, this.#clock)
  }
}
