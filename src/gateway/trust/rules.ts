/** Rules, read once: which calls each is about, so that a call is held only against those that can be about it. */
import { toMilliseconds } from '../../core/duration.ts'
import { matches } from '../../core/scope.ts'
import { isRisk, risks } from '../../features/reliability/confirmation/messages.ts'
import { type ReadRule as HostRule, readRules } from '../../host/policy/conditions.ts'
import type { Rule, When } from '../../host/policy/rule.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ArgumentRule } from './arguments.ts'
import { fitsAll, fitsAny } from './readings.ts'
import type { GatewayRule } from './settings.ts'

type Patterns = readonly string[] | undefined

/** One rule, ready to be asked. */
export interface ReadRule {
  readonly rule: GatewayRule
  /** The same in the words of the policy of hosts, which weighs them: undefined where it decides nothing. */
  readonly host: HostRule | undefined
  readonly client: Patterns
  readonly principal: Patterns
  readonly args: readonly ArgumentRule[]
  /** It is the same for every call of a client: neither arguments nor time nor counts matter. */
  readonly fixed: boolean
  readonly kinds: readonly Kind[]
  isAbout(kind: Kind, upstream: string, name: string): boolean
  /** How much of one kind at a server it is about, whatever that is called. */
  covers(kind: Kind, upstream: string): 'all' | 'some' | 'none'
}

const asAddress = { address: true }

/** What a rule can be about. */
export type Kind = 'tool' | 'resource' | 'prompt'
const allKinds = ['tool', 'resource', 'prompt'] as const

const members = new Set<string>(
  [
    'name upstream tool resource prompt client principal args hours above until do by message fix risk wait'.split(' '),
    'dedupe cost scopes timeout idempotent'.split(' '),
  ].flat(),
)

/** Throws where it is none. */
export function readRule(rule: GatewayRule): ReadRule {
  check(rule)
  const { name, upstream, tool, client, principal, args = {}, hours, above, until, message, fix } = rule
  const paths = Object.entries(args).map(([path, value]) => [path.split('.'), list(value)] as const)
  const origin = {
    ...(client !== undefined && { client }),
    ...(principal !== undefined && { principal }),
    ...Object.fromEntries(Object.entries(args).map(([path, value]) => [`args.${path}`, value])),
  }
  const when: When = {
    ...(upstream !== undefined && { server: upstream }),
    ...(tool !== undefined && { tool }),
    ...(Object.keys(origin).length > 0 && { origin }),
    ...(hours !== undefined && { hours }),
    ...(above !== undefined && { above: { ...above, by: above.by === 'all' ? 'server' : 'origin' } }),
  }
  const said: Rule = {
    name,
    do: rule.do ?? 'allow',
    when,
    ...(until !== undefined && { until }),
    ...(message !== undefined && { message }),
    ...(fix !== undefined && { fix }),
  }
  // Read in any case: it finds what is wrong with the conditions.
  const [host] = readRules([said])
  const servers = patternsOf(upstream)
  const kinds = kindsOf(rule)
  const about = new Map(kinds.map(kind => [kind, patternsOf(rule[kind])]))
  return {
    rule,
    host: rule.do === undefined ? undefined : host,
    client: patternsOf(client),
    principal: patternsOf(principal),
    args: paths,
    fixed: paths.length === 0 && hours === undefined && above === undefined && until === undefined,
    kinds,
    isAbout: (kind, server, name) => {
      if (!about.has(kind) || !fits(servers, server)) return false
      const patterns = about.get(kind)
      if (kind !== 'resource' || patterns === undefined) return fits(patterns, name)
      return rule.do === 'allow' ? fitsAll(patterns, name, asAddress) : fitsAny(patterns, name, asAddress)
    },
    covers: (kind, server) => {
      if (!about.has(kind) || !fits(servers, server)) return 'none'
      return about.get(kind)?.includes('*') === false ? 'some' : 'all'
    },
  }
}

/** Those that it names; where it names none, all of which what it says can be said. */
function kindsOf(rule: GatewayRule): readonly Kind[] {
  const named = allKinds.filter(kind => rule[kind] !== undefined)
  if (named.length > 0) return named
  return rule.do === 'ask' || rule.do === undefined || ofTools.some(name => rule[name] !== undefined) ? ['tool'] : allKinds
}

/** What only calls have. */
const ofTools = ['args', 'above', 'by', 'risk', 'wait', 'dedupe', 'cost', 'scopes', 'timeout', 'idempotent'] as const

function check(rule: GatewayRule): void {
  const stranger = Object.keys(rule).find(name => !members.has(name))
  if (stranger !== undefined) throw new TypeError(`${clip(stranger)} is not known: there is ${[...members].join(', ')}`)
  if (rule.do !== undefined && !['allow', 'deny', 'ask'].includes(rule.do))
    throw new TypeError(`do is ${clip(String(rule.do))}: give allow, deny or ask`)
  if (rule.by !== undefined && !['client', 'operator', 'either'].includes(rule.by))
    throw new TypeError(`by is ${clip(String(rule.by))}: give client, operator or either`)
  if (rule.above?.by !== undefined && !['client', 'all'].includes(rule.above.by))
    throw new TypeError(`above.by is ${clip(String(rule.above.by))}: give client or all`)
  if (rule.risk !== undefined && !isRisk(rule.risk))
    throw new TypeError(`risk is ${clip(String(rule.risk))}: give ${risks.join(', ')}`)
  const read = (['resource', 'prompt'] as const).find(kind => rule[kind] !== undefined)
  const called = ofTools.find(name => rule[name] !== undefined)
  if (read !== undefined && (called !== undefined || rule.do === undefined || rule.do === 'ask'))
    throw new TypeError(
      `a ${read} is only allowed or denied: ${called ?? 'do: ask'} is for calls of tools, say it in a rule of its own`,
    )
  for (const name of ['dedupe', 'timeout', 'wait'] as const) if (rule[name] !== undefined) toMilliseconds(rule[name], name)
  const { cost, args, scopes } = rule
  if (cost !== undefined && !(isRecord(cost) && Number.isFinite(cost.units) && cost.units >= 0))
    throw new TypeError('cost must be { units } of at least 0, with a label if you like')
  if (args !== undefined && !isRecord(args)) throw new TypeError('args must be an object of patterns by argument')
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string')))
    throw new TypeError('scopes must be a list of texts')
  const general = (['cost', 'scopes', 'timeout', 'idempotent'] as const).find(name => rule[name] !== undefined)
  const some = (['client', 'principal', 'args', 'hours', 'above', 'until'] as const).find(name => rule[name] !== undefined)
  // Left out of account it would be a rule that nobody keeps.
  if (general !== undefined && some !== undefined)
    throw new TypeError(`${general} holds for all calls of a tool: leave out ${some}, or say it in a rule of its own`)
  const says = ['do', 'dedupe', 'cost', 'scopes', 'timeout', 'idempotent'] as const
  if (says.every(name => rule[name] === undefined)) throw new TypeError(`it says nothing: give ${says.join(', ')}`)
}

export function patternsOf(value: string | readonly string[] | undefined): Patterns {
  return value === undefined ? undefined : list(value)
}

function list(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value
}

export function fits(patterns: Patterns, text: string | undefined): boolean {
  return patterns === undefined || (text !== undefined && patterns.some(pattern => matches(pattern, text)))
}
