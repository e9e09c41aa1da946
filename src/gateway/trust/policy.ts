/**
 * What may happen to a call: the rules that can be about its tool, weighed as the policy of hosts weighs them. Most tools have none,
 * or only such as say the same for every call of a client; those cost a look into a map.
 */
import type { Clock } from '../../core/clock.ts'
import { Counts } from '../../host/policy/counts.ts'
import type { Asked } from '../../host/policy/rule.ts'
import { strongest } from '../../host/policy/weigh.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { fits, fitsArguments, type ReadRule, readRule } from './rules.ts'
import type { GatewayRule } from './settings.ts'

/** One call, as rules see it. */
export interface Judged {
  readonly client: string
  readonly principal: string | undefined
  readonly args: Params
}

export interface Verdict {
  readonly do: 'allow' | 'deny' | 'ask'
  /** The rule that said so; undefined: none did. */
  readonly by: GatewayRule | undefined
  /** Milliseconds until a rate allows it. */
  readonly waitMs?: number
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
  readonly #counts: Counts
  readonly #clock: Clock
  readonly #otherwise: Verdict
  /** By client and principal, where nothing else matters. */
  readonly #fixed: Map<string, Verdict> | undefined

  constructor(
    upstream: string,
    tool: string,
    rules: readonly ReadRule[],
    otherwise: Verdict['do'],
    counts: Counts,
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

  /** The rules that are about a call, whatever they say. */
  about(call: Judged): readonly ReadRule[] {
    return this.rules.filter(read => isAbout(read, call))
  }

  /** It was let in. */
  took(call: Judged): void {
    const about = this.#deciding.filter(read => read.rule.above !== undefined && isAbout(read, call))
    // Who calls with what was looked at just now.
    const hosts = about.flatMap(({ host }) => (host === undefined ? [] : { ...host, conditions: { origin: nowhere } }))
    this.#counts.took(hosts, this.#asked)
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
    const holding = about.filter(read => this.#holds(read, now))
    const host = strongest(holding.flatMap(({ host }) => host ?? []))
    const by = holding.find(read => read.host === host)
    if (by === undefined || host === undefined) return this.#otherwise
    const waitMs = by.rule.above === undefined ? undefined : this.#counts.wait(host, this.#asked)
    return { do: by.rule.do ?? 'allow', by: by.rule, ...(waitMs !== undefined && { waitMs }) }
  }

  #holds({ host, rule }: ReadRule, now: number): boolean {
    if (host === undefined || host.until <= now) return false
    if (host.hours?.contains(now) === false) return false
    return rule.above === undefined || this.#counts.wait(host, this.#asked) > 0
  }

  get #asked(): Asked {
    return { kind: 'tool', server: this.upstream, tool: this.tool }
  }
}

function isAbout(read: ReadRule, { client, principal, args }: Judged): boolean {
  return fits(read.client, client) && fits(read.principal, principal) && (read.args.length === 0 || fitsArguments(read, args))
}

function isStatic({ client, principal, args }: ReadRule): boolean {
  return client === undefined && principal === undefined && args.length === 0
}

export class Policy {
  readonly #rules: readonly ReadRule[]
  readonly #otherwise: Verdict['do']
  readonly #clock: Clock
  readonly #counts: Counts

  constructor(rules: readonly GatewayRule[], otherwise: Verdict['do'], clock: Clock) {
    this.#rules = rules.map(readRule)
    this.#otherwise = otherwise
    this.#clock = clock
    this.#counts = new Counts(clock)
  }

  for(upstream: string, tool: string): ToolPolicy {
    const rules = this.#rules.filter(read => read.aboutTool(upstream, tool))
    return new ToolPolicy(upstream, tool, rules, this.#otherwise, this.#counts, this.#clock)
  }
}
