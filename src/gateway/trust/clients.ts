/** Who calls, by a name that rules know; and what of all upstreams that one sees. */
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { fits, fitsAll, fitsAny } from '../../policy/rules/conditions.ts'
import type { Patterns, TargetKind } from '../../policy/rules/rule.ts'
import { type ClientBudget, type GatewayClientSettings, unnamed } from './settings.ts'

/** A client as callers are held against it. */
interface KnownClient {
  readonly name: string
  readonly settings: GatewayClientSettings
  /** It sees everything. */
  readonly free: boolean
  readonly budgets: readonly ClientBudget[]
  sees(kind: TargetKind, upstream: string, name: string): boolean
  /** Whether there may be anything of that kind that it sees. */
  seesSome(kind: TargetKind, upstream: string): boolean
  /** Whether there is nothing of that server that it does not see. */
  seesAll(upstream: string): boolean
}

/** Callers whose names are remembered. */
const remembered = 10_000

/** Names callers by the `clients` of the settings, and says what each of them sees. */
export class Clients {
  #known: ReadonlyMap<string, KnownClient> = new Map()
  /** Clients are named: whoever is none of them sees nothing. */
  #given = false
  readonly #names = new Map<string, string>()
  /** Somebody does not see all. */
  restricted = false
  /** Somebody may make only so many calls. */
  countsCalls = false

  constructor(settings?: Readonly<Record<string, GatewayClientSettings>>) {
    this.change(settings)
  }

  /** From now on these are the ones. */
  change(settings: Readonly<Record<string, GatewayClientSettings>> | undefined): void {
    this.#known = new Map(Object.entries(settings ?? {}).map(([name, client]) => [name, read(name, client)]))
    this.#given = settings !== undefined
    this.#names.clear()
    this.restricted = this.#given
    this.countsCalls = this.all().some(({ budgets }) => budgets.some(({ calls }) => calls !== undefined))
  }

  /** The clients of the settings. */
  all(): readonly KnownClient[] {
    return [...this.#known.values()]
  }

  /** Undefined: no clients are named, so that everybody sees everything. */
  get(name: string): KnownClient | undefined {
    return this.#known.get(name) ?? (this.#given ? nobody : undefined)
  }

  /** Clients are named, and this caller is none of them. */
  isStranger(caller: Pick<Caller, 'principal' | 'carrier'>): boolean {
    return this.of(caller) === nobody
  }

  /** The client that a caller is: the first that names it. */
  nameOf({ principal, carrier }: Pick<Caller, 'principal' | 'carrier'>): string {
    if (principal === undefined) return carrier === 'stdio' || carrier === 'memory' ? unnamed.pipe : unnamed.http
    const known = this.#names.get(principal.id)
    if (known !== undefined) return known
    const name = this.#find(principal)
    if (this.#names.size >= remembered) this.#names.clear()
    this.#names.set(principal.id, name)
    return name
  }

  /** The client that a caller is; undefined: no clients are named. */
  of(caller: Pick<Caller, 'principal' | 'carrier'>): KnownClient | undefined {
    return this.get(this.nameOf(caller))
  }

  /** By the patterns of each client; without patterns by the name of its token. */
  #find({ id, subject = id, client, issuer }: Principal): string {
    for (const [name, { settings }] of this.#known) {
      const [subjects, clients] = [patternsOf(settings.principals), patternsOf(settings.oauthClients)]
      if (subjects === undefined && clients === undefined) {
        if (issuer === tokenIssuer && subject === name) return name
      } else if (fits(subjects, subject) && fits(clients, client)) return name
    }
    // Never a name that the token chose: it could be that of somebody else.
    return unnamed.token
  }
}

/** Vouches for those who have a token of the gateway's own settings. No authorization server has such a name: theirs are URLs. */
export const tokenIssuer = 'gateway tokens'

/** Whoever is none of the clients that are named. */
const nobody: KnownClient = {
  name: '',
  settings: {},
  free: false,
  budgets: [],
  sees: () => false,
  seesSome: () => false,
  seesAll: () => false,
}

/** Reads the lists of a client once. */
function read(name: string, settings: GatewayClientSettings): KnownClient {
  const { tools, resources, prompts } = settings
  const upstreams = patternsOf(settings.upstreams)
  const lists: Readonly<Record<TargetKind, Chosen>> = {
    tool: chosen(tools),
    resource: chosen(resources, true),
    prompt: chosen(prompts),
  }
  return {
    name,
    settings,
    free: upstreams === undefined && [tools, resources, prompts].every(said => said === undefined),
    budgets: budgetsOf(settings),
    sees: (kind, upstream, own) => {
      if (!fits(upstreams, upstream)) return false
      const list = lists[kind]
      // Whoever is given some tools of a server is not given what else it has; whoever is given all of them is.
      return list === undefined ? lists.tool?.(upstream, '*') !== false : list(upstream, own)
    },
    seesSome: (kind, upstream) => {
      if (!fits(upstreams, upstream)) return false
      const said = patternsOf({ tool: tools, resource: resources, prompt: prompts }[kind])
      return said === undefined ? lists.tool?.(upstream, '*') !== false : reaches(said, upstream)
    },
    seesAll: upstream => {
      const all = [tools, resources, prompts].flatMap(said => patternsOf(said) ?? [])
      const left = all.filter(pattern => pattern.startsWith('!')).map(pattern => pattern.slice(1))
      if (!fits(upstreams, upstream) || (left.length > 0 && reaches(left, upstream))) return false
      return Object.values(lists).every(list => list?.(upstream, '*') !== false)
    },
  }
}

function patternsOf(said: Patterns | undefined): readonly string[] | undefined {
  return typeof said === 'string' ? [said] : said
}

/** Whether something is among those that are meant; undefined where nothing is said of them. */
type Chosen = ((upstream: string, own: string) => boolean) | undefined

function chosen(said: GatewayClientSettings['tools'], address = false): Chosen {
  const patterns = patternsOf(said)
  if (patterns === undefined) return undefined
  const allowed = patterns.filter(pattern => !pattern.startsWith('!'))
  const denied = patterns.filter(pattern => pattern.startsWith('!')).map(pattern => pattern.slice(1))
  // Only exceptions, so everything else; an empty list is nothing at all.
  const all = allowed.length === 0 && denied.length > 0
  return (upstream, own) => {
    const as = { before: `${upstream}/`, address }
    return !fitsAny(denied, own, as) && (all || fitsAll(allowed, own, as))
  }
}

/** Whether names of this server can be among those that are meant. */
function reaches(patterns: readonly string[], upstream: string): boolean {
  const allowed = patterns.filter(pattern => !pattern.startsWith('!'))
  if (allowed.length === 0) return patterns.length > 0
  return allowed.some(pattern => {
    const [fixed = ''] = pattern.split('*', 1)
    const open = fixed !== pattern && `${upstream}/`.startsWith(fixed)
    return open || fixed.startsWith(`${upstream}/`)
  })
}

function budgetsOf({ budget = [] }: GatewayClientSettings): readonly ClientBudget[] {
  return 'per' in budget ? [budget] : budget
}
