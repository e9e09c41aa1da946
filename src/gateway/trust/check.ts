/** Validates trust settings: each mistake has a path, a message and a fix. Used by `createGateway` and, with lines, by the file reader. */
import { handedOutTokens, oauth } from '../../auth/resource/options.ts'
import { toMilliseconds } from '../../core/clock.ts'
import { watchedLength } from '../../features/mcp/resources/messages.ts'
import type { PlacedValue } from '../../host/config/read.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { readTargetRule, type WrittenRule } from '../../policy/rules/call-policy.ts'
import { readOtherwise } from '../../policy/rules/otherwise.ts'
import { mostWatched, namesServer, shortestToken, type TrustSettings, trustMembers, unnamed } from './settings.ts'

interface TrustFault {
  /** Member names and list indices from the top. */
  readonly path: readonly (string | number)[]
  readonly message: string
  readonly fix: string
}

type Tell = (path: readonly (string | number)[], message: string, fix: string) => void

/** All mistakes; empty where there are none. */
export function faultsIn(settings: unknown): readonly TrustFault[] {
  const faults: TrustFault[] = []
  const tell: Tell = (path, message, fix) => faults.push({ path, message, fix })
  if (!isRecord(settings)) return [{ path: [], message: 'Settings must be an object', fix: `Use ${trustMembers.join(', ')}` }]
  known(settings, trustMembers, [], tell)
  if (settings['auth'] !== undefined) checkAuth(settings['auth'], tell)
  checkClients(settings['clients'] ?? {}, tell)
  checkRules(settings['rules'] ?? [], tell)
  checkTogether(settings, tell)
  checkOtherwise(settings['otherwise'], tell)
  oneOf(settings['listed'], ['callable', 'all'], ['listed'], tell)
  oneOf(settings['pins'], ['block', 'warn', 'off'], ['pins'], tell)
  checkAudit(settings['audit'], tell)
  checkApprovals(settings['approvals'], tell)
  oneOf(settings['provenance'], [true, false], ['provenance'], tell)
  checkEvents(settings['events'], tell)
  return faults
}

/** Throws the first mistake. */
export function checkTrust(settings: unknown): void {
  const [first] = faultsIn(settings)
  if (first !== undefined) throw new TypeError(`${placeText(first.path)}${first.message}. ${first.fix}`)
}

/** The path as text: `rules[0].when.client: `. */
function placeText(path: TrustFault['path']): string {
  return path.length === 0
    ? ''
    : `${path
        .map(part => (typeof part === 'number' ? `[${part}]` : clip(part)))
        .join('.')
        .replaceAll('.[', '[')}: `
}

/** `auth`: either fixed tokens or an authorization server. */
function checkAuth(auth: unknown, tell: Tell): void {
  if (!isRecord(auth)) return tell(['auth'], 'auth must be an object', 'Use { issuer, resource } or { tokens }')
  if (auth['tokens'] !== undefined) {
    if (auth['issuer'] === undefined) known(auth, ['tokens', 'resource'], ['auth'], tell)
    const { resource } = auth
    const read = (): unknown => handedOutTokens({ issuer: '', resource: resource as string, verify: () => undefined })
    attempt(read, ['auth', 'resource'], 'Set the URL that clients use for the gateway', tell)
    return checkTokens(auth['tokens'], tell)
  }
  attempt(() => oauth(auth as never), ['auth'], 'Use { issuer, resource, scopes? }, as for oauth()', tell)
}

function checkTokens(tokens: unknown, tell: Tell): void {
  const path = ['auth', 'tokens']
  if (!isRecord(tokens)) return tell(path, 'tokens must be an object', 'Write one token for each client name')
  const seen = new Set<unknown>()
  for (const [client, token] of Object.entries(tokens)) {
    const place = [...path, client]
    if (typeof token !== 'string' || token.length < shortestToken)
      tell(place, `A token must have at least ${shortestToken} characters`, 'Create one with: openssl rand -base64 32')
    else if (seen.has(token)) tell(place, 'Two clients have the same token', 'Give each client its own token')
    seen.add(token)
  }
}

const patternMembers = ['principals', 'oauthClients', 'upstreams', 'tools', 'resources', 'prompts']
const clientMembers = [...patternMembers, 'budget']

function checkClients(clients: unknown, tell: Tell): void {
  if (!isRecord(clients))
    return tell(['clients'], 'clients must be an object', 'Write the settings of each client under its name')
  for (const [name, client] of Object.entries(clients)) {
    const path = ['clients', name]
    if (!isRecord(client)) {
      tell(path, 'A client must be an object', `Use ${clientMembers.join(', ')}`)
      continue
    }
    known(client, clientMembers, path, tell)
    for (const member of patternMembers) texts(client[member], [...path, member], tell)
    for (const member of ['tools', 'resources', 'prompts'])
      for (const pattern of [client[member] ?? []].flat())
        if (typeof pattern === 'string' && !namesServer.test(pattern))
          tell(
            [...path, member],
            `${clip(pattern)} does not name a server`,
            `Write it as server/${clip(pattern)}, or */${clip(pattern)}`,
          )
    const { budget } = client
    const budgets = budget === undefined ? [] : Array.isArray(budget) ? budget : [budget]
    for (const [i, each] of budgets.entries())
      checkBudget(each, Array.isArray(budget) ? [...path, 'budget', i] : [...path, 'budget'], tell)
  }
}

function checkBudget(budget: unknown, path: readonly (string | number)[], tell: Tell): void {
  const fix = 'Use { units, per } or { calls, per }, such as { units: 100, per: 1h }'
  if (!isRecord(budget)) return tell(path, 'A budget must be an object', fix)
  known(budget, ['units', 'calls', 'per'], path, tell)
  const { units, calls, per } = budget
  const most = units ?? calls
  if ((units === undefined) === (calls === undefined) || !(typeof most === 'number' && most > 0 && most <= 1e9))
    tell(path, 'A budget must have either units or calls, above 0 and at most 1000000000', fix)
  attempt(() => toMilliseconds(per as never, 'per'), [...path, 'per'], 'Use a duration such as 1h', tell)
}

/** Reads each rule in the same way as the gateway does. */
function checkRules(rules: unknown, tell: Tell): void {
  if (!Array.isArray(rules)) return tell(['rules'], 'rules must be a list', 'Write each rule as { name, when, do }')
  const names = new Set<unknown>()
  for (const [i, rule] of rules.entries()) {
    const name = isRecord(rule) ? rule['name'] : undefined
    if (typeof name !== 'string' || name === '') tell(['rules', i], 'A rule has no name', 'Give each rule its own name')
    else if (names.has(name))
      tell(['rules', i], `Two rules are named ${clip(JSON.stringify(name))}`, 'Give each rule its own name')
    else attempt(() => readTargetRule(rule as WrittenRule), ['rules', i], `Correct rule ${clip(name)}`, tell)
    names.add(name)
  }
}

/** Mistakes that only the combination shows: a rule about an unknown client, a token for one, or two kinds of auth. */
function checkTogether({ auth, clients, rules }: Readonly<Record<string, unknown>>, tell: Tell): void {
  const tokens = isRecord(auth) && isRecord(auth['tokens']) ? auth['tokens'] : undefined
  if (tokens !== undefined && isRecord(auth) && auth['issuer'] !== undefined)
    tell(['auth'], 'auth has both tokens and issuer, which cannot be combined', 'Remove one of them')
  const names = [...Object.keys(isRecord(clients) ? clients : {}), ...Object.values(unnamed)]
  const there = `Use one of the clients ${names.join(', ')}`
  if (isRecord(clients))
    for (const name of Object.keys(tokens ?? {}))
      if (!names.includes(name)) tell(['auth', 'tokens', name], 'The token is for a client that does not exist', there)
  for (const [i, rule] of Array.isArray(rules) ? rules.entries() : []) {
    if (!isRecord(rule)) continue
    if (clients === undefined && auth === undefined) continue
    const { when } = rule
    const [path, named] = isRecord(when)
      ? [['rules', i, 'when', 'client'], when['client']]
      : [['rules', i, 'client'], rule['client']]
    for (const client of [named ?? []].flat())
      if (typeof client === 'string' && !client.includes('*') && !names.includes(client))
        tell(path, `The client ${clip(client)} does not exist`, there)
  }
}

function checkOtherwise(otherwise: unknown, tell: Tell): void {
  if (!isRecord(otherwise)) return oneOf(otherwise, ['allow', 'ask', 'deny'], ['otherwise'], tell)
  attempt(() => readOtherwise(otherwise), ['otherwise'], 'Use allow, ask or deny, for all kinds or for each: { tool: ask }', tell)
}

function checkAudit(audit: unknown, tell: Tell): void {
  if (audit === undefined || typeof audit === 'boolean') return
  if (!isRecord(audit)) return tell(['audit'], 'audit must be true, false or an object', 'Use { keep: 90d }')
  known(audit, ['keep', 'lines', 'arguments', 'must'], ['audit'], tell)
  for (const name of ['arguments', 'must'] as const)
    if (audit[name] !== undefined && typeof audit[name] !== 'boolean')
      tell(['audit', name], `audit.${name} must be true or false`, 'Write true, or remove it')
  const { keep } = audit
  if (keep !== undefined)
    attempt(() => toMilliseconds(keep as never, 'keep'), ['audit', 'keep'], 'Use a duration such as 90d', tell)
}

function checkApprovals(approvals: unknown, tell: Tell): void {
  if (approvals === undefined) return
  if (!isRecord(approvals)) return tell(['approvals'], 'approvals must be an object', 'Use { wait: 30s }')
  known(approvals, ['wait'], ['approvals'], tell)
  const { wait } = approvals
  if (wait !== undefined)
    attempt(() => toMilliseconds(wait as never, 'wait'), ['approvals', 'wait'], 'Use a duration such as 30s', tell)
}

function checkEvents(events: unknown, tell: Tell): void {
  if (events === undefined || typeof events === 'boolean') return
  if (!isRecord(events))
    return tell(['events'], 'events must be true, false or an object', 'Write the URIs to watch for each server')
  for (const [upstream, uris] of Object.entries(events)) {
    const fits = Array.isArray(uris) && uris.length <= mostWatched && uris.every(isAddress)
    if (!fits)
      tell(
        ['events', upstream],
        `The value must be a list of up to ${mostWatched} resource URIs`,
        'Write each URI as that server lists it, such as [note://1]',
      )
  }
}

function isAddress(uri: unknown): boolean {
  return typeof uri === 'string' && uri.length <= watchedLength && URL.canParse(uri)
}

function texts(value: unknown, path: readonly (string | number)[], tell: Tell): void {
  const list = typeof value === 'string' ? [value] : value
  if (value === undefined) return
  if (!Array.isArray(list) || !list.every(text => typeof text === 'string' && text !== '' && text.length <= 256))
    tell(
      path,
      'The value must be a string or a list of strings, each of up to 256 characters',
      'An asterisk matches any characters',
    )
}

function oneOf(value: unknown, allowed: readonly unknown[], path: readonly string[], tell: Tell): void {
  if (value !== undefined && !allowed.includes(value))
    tell(path, `${path.join('.')} cannot be ${clip(String(value))}`, `Use one of ${allowed.join(', ')}`)
}

/** Reports unknown members: a misspelled one would otherwise be ignored silently. */
function known(value: object, allowed: readonly string[], path: readonly (string | number)[], tell: Tell): void {
  for (const name of Object.keys(value))
    if (!allowed.includes(name)) tell([...path, name], `"${clip(name)}" is not a known setting`, `Use ${allowed.join(', ')}`)
}

/** Reports what the check throws. */
function attempt(check: () => void, path: readonly (string | number)[], fix: string, tell: Tell): void {
  try {
    check()
  } catch (error) {
    tell(path, error instanceof Error ? error.message : String(error), fix)
  }
}

// Trust settings of a file, with mistakes reported at their lines.

type TellFault = (at: PlacedValue, rule: string, message: string, fix: string) => void

/** Reads the trust settings of a file; those with mistakes are reported and left out. */
export function readTrust(members: ReadonlyMap<string, PlacedValue>, tell: TellFault): TrustSettings {
  const settings: Record<string, unknown> = {}
  for (const name of trustMembers) {
    const placed = members.get(name)
    if (placed === undefined) continue
    const faults = faultsIn({ [name]: placed.value })
    for (const fault of faults) tell(placeOf(placed, fault), ruleOf(fault), fault.message, fault.fix)
    if (faults.length === 0) settings[name] = placed.value
  }
  return settings
}

/** The closest place in the file to a fault's path. */
function placeOf(top: PlacedValue, { path }: TrustFault): PlacedValue {
  let at = top
  for (const part of path.slice(1)) {
    const next = typeof part === 'number' ? at.items?.[part] : at.members?.get(part)
    if (next === undefined) return at
    at = next
  }
  return at
}

/** The rule name of a fault: the first two names of its path. */
function ruleOf({ path }: TrustFault): string {
  return `gateway.${path
    .filter(part => typeof part === 'string')
    .slice(0, 2)
    .join('.')}`
}
