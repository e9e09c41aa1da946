/**
 * Connects the policy to a host: questions about feature sets (`reviewing`), and the rules that a config file contains (`HostRules`).
 * Questions about one server are asked one at a time, and none is asked twice.
 */
import type { SetUse } from '../features/live/dialects/messages.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { ScopeLists } from '../features/live/scopes/messages.ts'
import type { Policy } from '../policy/policy.ts'
import type { PolicyRules, Rule, ServerRules } from '../policy/rules/rule.ts'
import type { HostFoundation } from './foundation.ts'
import type { KnownServer } from './servers/entry.ts'

/** Asks the user about feature sets. */
export interface Reviewing {
  /** Asks about feature sets that no rule covers, once per declaration. */
  review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): void
  /** Asks whether an enabled set may do what it does not declare, once per declaration. */
  widen(server: string, featureSet: string, use: SetUse): void
}

/** Open questions per server about undeclared uses; more are refused without asking. */
const mostOpen = 10
/** Remembered questions of all servers. */
const mostRemembered = 10_000

/** Creates the reviewer of a host. */
export function reviewing(foundation: Pick<HostFoundation, 'servers' | 'audit' | 'impaired'>, policy: Policy): Reviewing {
  const asked = new Map<string, string>()
  const widened = new Set<string>()
  const open = new Map<string, number>()
  const waiting = new Map<string, ReadonlyMap<string, FeatureSetFacts>>()
  const inLine = lines(error => foundation.impaired(error))
  const reviewNext = async (server: string): Promise<void> => {
    const next = waiting.get(server)
    waiting.delete(server)
    if (next !== undefined) await policy.review(server, next)
  }
  return {
    // A refused question is not repeated until the declaration changes.
    review: (server, declared) => {
      const now = JSON.stringify([...declared].map(([name, facts]) => [name, words(facts)]))
      if (asked.get(server) === now) return
      asked.set(server, now)
      const queued = waiting.has(server)
      // One review at a time; it uses the latest declaration.
      waiting.set(server, declared)
      if (!queued) inLine(server, () => reviewNext(server))
    },
    widen: (server, featureSet, use) => {
      const facts = foundation.servers.get(server)?.live?.featureSets.get(featureSet)
      const key = JSON.stringify([server, featureSet, use, words(facts)])
      const count = open.get(server) ?? 0
      if (widened.has(key) || count >= mostOpen) return
      if (widened.size >= mostRemembered) widened.clear()
      widened.add(key)
      open.set(server, count + 1)
      inLine(server, async () => {
        open.set(server, (open.get(server) ?? 1) - 1)
        const { yes, why, rule } = await policy.widen(server, featureSet, use)
        const said = yes ? { rule } : { why }
        await foundation.audit.note({
          server,
          featureSet,
          kind: 'use',
          outcome: yes ? 'success' : 'refused',
          detail: use,
          ...said,
        })
      })
    },
  }
}

/** What makes a declaration another one. */
function words(facts: FeatureSetFacts | undefined): readonly unknown[] {
  const { description, uses, scoped, rollback, hostState } = facts ?? {}
  return [description, uses, scoped, rollback, hostState]
}

/** Runs the jobs of each server one after the other. */
function lines(failed: (error: unknown) => void): (server: string, job: () => Promise<void>) => void {
  const last = new Map<string, Promise<void>>()
  return (server, job) => {
    const before = last.get(server) ?? Promise.resolve()
    const next = before
      .then(job)
      .catch(failed)
      .finally(() => {
        if (last.get(server) === next) last.delete(server)
      })
    last.set(server, next)
  }
}

// Rules of the config file, beside those of the program.

/** The effective rules: those of the program and those of the config. Both can change at run time. */
export class HostRules {
  #given: PolicyRules
  #servers: ReadonlyMap<string, KnownServer> = new Map()
  readonly #apply: (rules: PolicyRules) => Promise<unknown>

  constructor(given: PolicyRules, apply: (rules: PolicyRules) => Promise<unknown>) {
    this.#given = given
    this.#apply = apply
  }

  /** The config has changed. */
  async configured(servers: ReadonlyMap<string, KnownServer>): Promise<void> {
    this.#servers = servers
    await this.#apply(configuredRules(this.#given, servers))
  }

  /** The program has changed its rules. */
  async update(given: PolicyRules): Promise<void> {
    await this.#apply(configuredRules(given, this.#servers))
    // Kept only after `apply` has accepted them.
    this.#given = given
  }
}

/** Merges the config into the rules; lists of both are joined. */
function configuredRules(given: PolicyRules, servers: ReadonlyMap<string, KnownServer>): PolicyRules {
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
  const sets = [...new Set([...Object.keys(a.scopes ?? {}), ...Object.keys(b.scopes ?? {})])]
  const uses = merged(a.uses ?? {}, b.uses ?? {})
  const scopes = sets.map(set => [set, lists(a.scopes?.[set] ?? {}, b.scopes?.[set] ?? {})] as const)
  return {
    ...(enable && { enable }),
    ...(disable && { disable }),
    ...(Object.keys(uses).length > 0 && { uses }),
    ...(scopes.length > 0 && { scopes: Object.fromEntries(scopes) }),
  }
}

/** Joins additional uses by feature set. */
function merged(a: NonNullable<ServerRules['uses']>, b: NonNullable<ServerRules['uses']>): NonNullable<ServerRules['uses']> {
  const sets = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return Object.fromEntries(sets.map(set => [set, both(a[set], b[set]) ?? []]))
}

/** Joins scope lists. */
function lists(a: ScopeLists, b: ScopeLists): ScopeLists {
  const [whitelist, blacklist] = [both(a.whitelist, b.whitelist), both(a.blacklist, b.blacklist)]
  return { ...(whitelist && { whitelist }), ...(blacklist && { blacklist }) }
}

/** Joins two lists without duplicates; undefined where both are. */
function both(a: readonly string[] | undefined, b: readonly string[] | undefined): readonly string[] | undefined {
  return a === undefined && b === undefined ? undefined : [...new Set([...(a ?? []), ...(b ?? [])])]
}
