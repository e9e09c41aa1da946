/**
 * When somebody is asked about feature sets: about those that no rule speaks of, and about what an enabled one wants to do without
 * declaring it. Questions of one server come one after the other, and the same one comes once.
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
  /** Asks about feature sets that no rule speaks of, once for what they declare. */
  review(server: string, declared: ReadonlyMap<string, FeatureSetFacts>): void
  /** Asks whether an enabled set may do what it does not declare, once for what it declares. */
  widen(server: string, featureSet: string, use: SetUse): void
}

/** Questions of one server about undeclared uses that are open at once; what comes beyond is refused without one. */
const mostOpen = 10
/** Of all servers; who goes beyond that is asked about again. */
const mostRemembered = 10_000

/** Makes the reviewer of a host. Questions about one server are asked one after the other. */
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
    // Whoever said no is not asked again while nothing else is declared.
    review: (server, declared) => {
      const now = JSON.stringify([...declared].map(([name, facts]) => [name, words(facts)]))
      if (asked.get(server) === now) return
      asked.set(server, now)
      const queued = waiting.has(server)
      // One review at a time, and then of what is declared by then.
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

function words(facts: FeatureSetFacts | undefined): readonly unknown[] {
  const { description, uses, scoped, rollback, hostState } = facts ?? {}
  return [description, uses, scoped, rollback, hostState]
}

/** One job of a server after the other. */
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

// What a config file says of servers, as rules of the policy; beside those that the program gives.

/** The rules that hold: those of the program, and what the config says of its servers. Either may change while the host runs. */
export class HostRules {
  #given: PolicyRules
  #servers: ReadonlyMap<string, KnownServer> = new Map()
  readonly #apply: (rules: PolicyRules) => Promise<unknown>

  constructor(given: PolicyRules, apply: (rules: PolicyRules) => Promise<unknown>) {
    this.#given = given
    this.#apply = apply
  }

  async configured(servers: ReadonlyMap<string, KnownServer>): Promise<void> {
    this.#servers = servers
    await this.#apply(configuredRules(this.#given, servers))
  }

  async update(given: PolicyRules): Promise<void> {
    await this.#apply(configuredRules(given, this.#servers))
    // Rules that cannot be used are refused by now.
    this.#given = given
  }
}

/** Lists of both count: who is careful in one place need not be told in the other. */
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

function merged(a: NonNullable<ServerRules['uses']>, b: NonNullable<ServerRules['uses']>): NonNullable<ServerRules['uses']> {
  const sets = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return Object.fromEntries(sets.map(set => [set, both(a[set], b[set]) ?? []]))
}

function lists(a: ScopeLists, b: ScopeLists): ScopeLists {
  const [whitelist, blacklist] = [both(a.whitelist, b.whitelist), both(a.blacklist, b.blacklist)]
  return { ...(whitelist && { whitelist }), ...(blacklist && { blacklist }) }
}

function both(a: readonly string[] | undefined, b: readonly string[] | undefined): readonly string[] | undefined {
  return a === undefined && b === undefined ? undefined : [...new Set([...(a ?? []), ...(b ?? [])])]
}
