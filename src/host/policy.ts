/**
 * Connects the policy to a host: questions about feature sets (`FeatureSetQuestions`), and the rules that a config file contains (`HostRules`).
 * Questions about one server are asked one at a time, and none is asked twice.
 */
import type { SetUse } from '../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { ScopeLists } from '../features/live/scopes/messages.ts'
import type { Policy } from '../policy/policy.ts'
import type { PolicyRules, Rule, ServerRules } from '../policy/rules/rule.ts'
import type { HostFoundation } from './foundation.ts'
import type { ServerDefinition } from './servers/entry.ts'
import { KeyedQueue } from './waiting.ts'

/** Open questions per server about undeclared uses; more are refused without asking. */
const mostOpen = 10
/** Remembered questions of all servers. */
const mostRemembered = 10_000

/** Asks the user about feature sets, about each declaration once. */
export class FeatureSetQuestions {
  readonly #foundation: HostFoundation
  readonly #policy: Policy
  readonly #queue = new KeyedQueue()
  /** The declaration that was last asked about, by server. */
  readonly #asked = new Map<string, string>()
  /** Declarations that wait for their review, by server. */
  readonly #waiting = new Map<string, ReadonlyMap<string, FeatureSetFacts>>()
  readonly #widened = new Set<string>()
  /** Open questions about undeclared uses, by server. */
  readonly #open = new Map<string, number>()

  constructor(foundation: HostFoundation, policy: Policy) {
    this.#foundation = foundation
    this.#policy = policy
  }

  /** Asks about feature sets that no rule covers. A refused question is not repeated until the declaration changes. */
  review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): void {
    const now = JSON.stringify([...declared].map(([name, facts]) => [name, words(facts)]))
    if (this.#asked.get(server) === now) return
    this.#asked.set(server, now)
    const queued = this.#waiting.has(server)
    // One review at a time; it uses the latest declaration.
    this.#waiting.set(server, declared)
    if (!queued) this.#inLine(server, () => this.#reviewNext(server))
  }

  /** Asks whether an enabled set may do what it does not declare. */
  widen(server: string, featureSet: string, use: SetUse): void {
    const facts = this.#foundation.servers.get(server)?.live?.featureSets.get(featureSet)
    const key = JSON.stringify([server, featureSet, use, words(facts)])
    const count = this.#open.get(server) ?? 0
    if (this.#widened.has(key) || count >= mostOpen) return
    if (this.#widened.size >= mostRemembered) this.#widened.clear()
    this.#widened.add(key)
    this.#open.set(server, count + 1)
    this.#inLine(server, async () => {
      this.#open.set(server, (this.#open.get(server) ?? 1) - 1)
      const { yes, why, rule } = await this.#policy.widen(server, featureSet, use)
      const said = yes ? ({ outcome: 'success', rule } as const) : ({ outcome: 'refused', why } as const)
      await this.#foundation.audit.note({ server, featureSet, kind: 'use', detail: use, ...said })
    })
  }

  async #reviewNext(server: string): Promise<void> {
    const next = this.#waiting.get(server)
    this.#waiting.delete(server)
    if (next !== undefined) await this.#policy.review(server, next)
  }

  #inLine(server: string, job: () => Promise<void>): void {
    this.#queue.inLine(server, job).catch(error => this.#foundation.impaired(error))
  }
}

/** What makes a declaration another one. */
function words(facts: FeatureSetFacts | undefined): readonly unknown[] {
  const { description, uses, scoped, rollback, hostState } = facts ?? {}
  return [description, uses, scoped, rollback, hostState]
}

// Rules of the config file, beside those of the program.

/** The effective rules: those of the program and those of the config. Both can change at run time. */
export class HostRules {
  readonly #policy: Policy
  #given: PolicyRules
  #servers: ReadonlyMap<string, ServerDefinition> = new Map()

  constructor(policy: Policy, given: PolicyRules) {
    this.#policy = policy
    this.#given = given
  }

  /** The config has changed. */
  async configured(servers: ReadonlyMap<string, ServerDefinition>): Promise<void> {
    this.#servers = servers
    await this.#policy.update(configuredRules(this.#given, servers))
  }

  /** The program has changed its rules. */
  async update(given: PolicyRules): Promise<void> {
    await this.#policy.update(configuredRules(given, this.#servers))
    // Kept only after the policy has accepted them.
    this.#given = given
  }
}

/** Merges the config into the rules; lists of both are joined. */
function configuredRules(given: PolicyRules, servers: ReadonlyMap<string, ServerDefinition>): PolicyRules {
  const sections = new Map<string, ServerRules>(Object.entries(given.servers ?? {}))
  const rules: Rule[] = [...(given.rules ?? [])]
  for (const [name, { live, autoApprove }] of servers) {
    const { tools: _, ...section } = live
    if (Object.keys(section).length > 0) sections.set(name, joined(sections.get(name) ?? {}, section))
    if (autoApprove.length > 0)
      rules.push({ name: `config.${name}.autoApprove`, do: 'allow', when: { kind: 'tool', server: name, tool: autoApprove } })
  }
  return { ...given, rules, servers: Object.fromEntries(sections) }
}

/** Joins two sections of a server. */
function joined(a: ServerRules, b: ServerRules): ServerRules {
  const [enable, disable] = [both(a.enable, b.enable), both(a.disable, b.disable)]
  const uses = bySet(a.uses, b.uses, (one, other) => both(one, other) ?? [])
  const scopes = bySet(a.scopes, b.scopes, lists)
  return { ...(enable && { enable }), ...(disable && { disable }), ...(uses && { uses }), ...(scopes && { scopes }) }
}

/** Joins what two sections say of feature sets; undefined where they say nothing. */
function bySet<T>(
  a: Readonly<Record<string, T>> = {},
  b: Readonly<Record<string, T>> = {},
  join: (one: T | undefined, other: T | undefined) => T,
): Readonly<Record<string, T>> | undefined {
  const sets = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return sets.length === 0 ? undefined : Object.fromEntries(sets.map(set => [set, join(a[set], b[set])]))
}

/** Joins scope lists. */
function lists(a: ScopeLists = {}, b: ScopeLists = {}): ScopeLists {
  const [whitelist, blacklist] = [both(a.whitelist, b.whitelist), both(a.blacklist, b.blacklist)]
  return { ...(whitelist && { whitelist }), ...(blacklist && { blacklist }) }
}

/** Joins two lists without duplicates; undefined where both are. */
function both(a: readonly string[] | undefined, b: readonly string[] | undefined): readonly string[] | undefined {
  return a === undefined && b === undefined ? undefined : [...new Set([...(a ?? []), ...(b ?? [])])]
}
