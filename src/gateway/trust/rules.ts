/** Rules, read once: which calls each is about, so that a call is held only against those that can be about it. */
import { toMilliseconds } from '../../core/duration.ts'
import { matches } from '../../core/grant/pattern.ts'
import { isRisk, risks } from '../../features/reliability/confirmation/messages.ts'
import { type ReadRule as HostRule, readRules } from '../../host/policy/conditions.ts'
import type { Rule, When } from '../../host/policy/rule.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { GatewayRule } from './settings.ts'

type Patterns = readonly string[] | undefined

/** One rule, ready to be asked. */
export interface ReadRule {
  readonly rule: GatewayRule
  /** The same in the words of the policy of hosts, which weighs them: undefined where it decides nothing. */
  readonly host: HostRule | undefined
  readonly client: Patterns
  readonly principal: Patterns
  readonly args: readonly (readonly [path: readonly string[], patterns: readonly string[]])[]
  /** It is the same for every call of a client: neither arguments nor time nor counts matter. */
  readonly fixed: boolean
  aboutTool(upstream: string, tool: string): boolean
}

const members = new Set<string>(
  [
    'name upstream tool client principal args hours above until do by message fix risk wait'.split(' '),
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
    ...(above !== undefined && { above }),
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
  const [servers, tools] = [patternsOf(upstream), patternsOf(tool)]
  return {
    rule,
    host: rule.do === undefined ? undefined : host,
    client: patternsOf(client),
    principal: patternsOf(principal),
    args: paths,
    fixed: paths.length === 0 && hours === undefined && above === undefined && until === undefined,
    aboutTool: (server, name) => fits(servers, server) && fits(tools, name),
  }
}

function check(rule: GatewayRule): void {
  const stranger = Object.keys(rule).find(name => !members.has(name))
  if (stranger !== undefined) throw new TypeError(`${clip(stranger)} is not known: there is ${[...members].join(', ')}`)
  if (rule.do !== undefined && !['allow', 'deny', 'ask'].includes(rule.do))
    throw new TypeError(`do is ${clip(String(rule.do))}: give allow, deny or ask`)
  if (rule.by !== undefined && !['client', 'operator', 'either'].includes(rule.by))
    throw new TypeError(`by is ${clip(String(rule.by))}: give client, operator or either`)
  if (rule.risk !== undefined && !isRisk(rule.risk))
    throw new TypeError(`risk is ${clip(String(rule.risk))}: give ${risks.join(', ')}`)
  for (const name of ['dedupe', 'timeout', 'wait'] as const) if (rule[name] !== undefined) toMilliseconds(rule[name], name)
  const { cost, args, scopes } = rule
  if (cost !== undefined && !(isRecord(cost) && Number.isFinite(cost.units) && cost.units >= 0))
    throw new TypeError('cost must be { units } of at least 0, with a label if you like')
  if (args !== undefined && !isRecord(args)) throw new TypeError('args must be an object of patterns by argument')
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string')))
    throw new TypeError('scopes must be a list of texts')
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

/** Whether the arguments are those that a rule is about. What allows must fit all members of a list, what does not one. */
export function fitsArguments({ args, rule }: ReadRule, given: unknown): boolean {
  return args.every(([path, patterns]) => {
    const value = valueAt(given, path)
    if (!Array.isArray(value)) return fitsValue(patterns, value)
    return rule.do === 'allow'
      ? value.length > 0 && value.every(each => fitsValue(patterns, each))
      : value.some(each => fitsValue(patterns, each))
  })
}

function valueAt(given: unknown, path: readonly string[]): unknown {
  let value = given
  for (const name of path) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

function fitsValue(patterns: readonly string[], value: unknown): boolean {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  return typeof text === 'string' && fits(patterns, text)
}
