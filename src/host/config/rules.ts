/** What a config file says of servers, as rules of the policy; beside those that the program gives. */
import type { ScopeLists } from '../../features/live/scopes/messages.ts'
import type { PolicyRules, Rule, ServerRules } from '../../policy/rules/rule.ts'
import type { KnownServer } from '../servers/entry.ts'

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
