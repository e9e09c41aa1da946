/** What a config file says of servers, as rules of the policy; beside those that the program gives. */
import type { ScopeLists } from '../../features/live/scopes/messages.ts'
import type { PolicyRules, Rule, ServerRules } from '../policy/rule.ts'
import type { KnownServer } from '../servers/entry.ts'

/** Lists of both count: who is careful in one place need not be told in the other. */
export function configuredRules(given: PolicyRules, servers: ReadonlyMap<string, KnownServer>): PolicyRules {
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
  const scopes = sets.map(set => [set, lists(a.scopes?.[set] ?? {}, b.scopes?.[set] ?? {})] as const)
  return {
    ...(enable && { enable }),
    ...(disable && { disable }),
    ...(scopes.length > 0 && { scopes: Object.fromEntries(scopes) }),
  }
}

function lists(a: ScopeLists, b: ScopeLists): ScopeLists {
  const [whitelist, blacklist] = [both(a.whitelist, b.whitelist), both(a.blacklist, b.blacklist)]
  return { ...(whitelist && { whitelist }), ...(blacklist && { blacklist }) }
}

function both(a: readonly string[] | undefined, b: readonly string[] | undefined): readonly string[] | undefined {
  return a === undefined && b === undefined ? undefined : [...new Set([...(a ?? []), ...(b ?? [])])]
}
