/** Named clients: which client a caller is, and what of the upstreams that client may see. */
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { fits, fitsAll, fitsAny } from '../../policy/rules/conditions.ts'
import type { Patterns, TargetKind } from '../../policy/rules/rule.ts'
import { type TrustSettings, unnamed } from './settings.ts'

type ClientSettings = NonNullable<TrustSettings['clients']>[string]

/** A client of the settings, prepared for lookups. */
interface KnownClient {
  readonly name: string
  readonly settings: ClientSettings
  /** It sees everything. */
  readonly free: boolean
  readonly budgets: readonly Exclude<NonNullable<ClientSettings['budget']>, readonly unknown[]>[]
  /** Whether it sees one entry, by the name at the upstream. */
  sees(kind: TargetKind, upstream: string, name: string): boolean
  /** Whether it may see anything of that kind at the upstream. */
  seesSome(kind: TargetKind, upstream: string): boolean
  /** Whether it sees everything of the upstream. */
  seesAll(upstream: string): boolean
}

type KnownCaller = Pick<Caller, 'principal' | 'carrier'>

/** Callers whose client is cached. */
const remembered = 10_000

/** Maps callers to the `clients` of the settings. */
export class Clients {
  #known: ReadonlyMap<string, KnownClient> = new Map()
  /** Client names by principal id. */
  readonly #names = new Map<string, string>()
  /** Clients are configured: a caller that is none of them sees nothing. */
  restricted = false
  /** Some client has a budget of calls. */
  countsCalls = false

  constructor(settings: TrustSettings['clients']) {
    this.change(settings)
  }

  /** Replaces the clients. */
  change(settings: TrustSettings['clients']): void {
    this.#known = new Map(Object.entries(settings ?? {}).map(([name, client]) => [name, read(name, client)]))
    this.restricted = settings !== undefined
    this.#names.clear()
    this.countsCalls = [...this.#known.values()].some(({ budgets }) => budgets.some(({ calls }) => calls !== undefined))
  }

  /** The client of a name; undefined: no clients are configured, so everybody sees everything. */
  get(name: string): KnownClient | undefined {
    return this.#known.get(name) ?? (this.restricted ? nobody : undefined)
  }

  /** The names of the clients, in the order of the settings. */
  names(): readonly string[] {
    return [...this.#known.keys()]
  }

  /** Whether clients are configured and this caller is none of them. */
  isUnknownClient(caller: KnownCaller): boolean {
    return this.of(caller) === nobody
  }

  /** The name of the client that a caller is: the first that matches. */
  nameOf({ principal, carrier }: KnownCaller): string {
    if (principal === undefined) return carrier === 'stdio' || carrier === 'memory' ? unnamed.pipe : unnamed.http
    const known = this.#names.get(principal.id)
    if (known !== undefined) return known
    const name = this.#find(principal)
    if (this.#names.size >= remembered) this.#names.clear()
    this.#names.set(principal.id, name)
    return name
  }

  /** The client that a caller is; undefined: no clients are configured. */
  of(caller: KnownCaller): KnownClient | undefined {
    return this.get(this.nameOf(caller))
  }

  /** Matches the patterns of each client; a client without patterns matches the fixed token of its name. */
  #find({ id, subject = id, client, issuer }: Principal): string {
    for (const [name, { settings }] of this.#known) {
      const [subjects, clients] = [patternsOf(settings.principals), patternsOf(settings.oauthClients)]
      if (subjects === undefined && clients === undefined) {
        if (issuer === tokenIssuer && subject === name) return name
      } else if (fits(subjects, subject) && fits(clients, client)) return name
    }
    // Never a name from the token: it could equal that of a client.
    return unnamed.token
  }
}

/** The issuer of fixed tokens. It is no URL, so no authorization server can have the same. */
export const tokenIssuer = 'gateway tokens'

/** A caller that is none of the configured clients. */
const nobody: KnownClient = {
  name: '',
  settings: {},
  free: false,
  budgets: [],
  sees: () => false,
  seesSome: () => false,
  seesAll: () => false,
}

/** Prepares the settings of a client. */
function read(name: string, settings: ClientSettings): KnownClient {
  const upstreams = patternsOf(settings.upstreams)
  const { tools: tool, resources: resource, prompts: prompt, budget = [] } = settings
  const said = { tool: patternsOf(tool), resource: patternsOf(resource), prompt: patternsOf(prompt) }
  const lists: Readonly<Record<TargetKind, ListFilter>> = {
    tool: chosen(said.tool),
    resource: chosen(said.resource, true),
    prompt: chosen(said.prompt),
  }
  return {
    name,
    settings,
    free: [upstreams, ...Object.values(said)].every(patterns => patterns === undefined),
    budgets: 'per' in budget ? [budget] : budget,
    sees: (kind, upstream, own) => {
      if (!fits(upstreams, upstream)) return false
      const list = lists[kind]
      // Without a list of its own, a kind is visible only where all tools of the upstream are.
      return list === undefined ? lists.tool?.(upstream, '*') !== false : list(upstream, own)
    },
    seesSome: (kind, upstream) => {
      if (!fits(upstreams, upstream)) return false
      const patterns = said[kind]
      return patterns === undefined ? lists.tool?.(upstream, '*') !== false : reaches(patterns, upstream)
    },
    seesAll: upstream => {
      const left = excludedBy(Object.values(said).flatMap(patterns => patterns ?? []))
      if (!fits(upstreams, upstream) || (left.length > 0 && reaches(left, upstream))) return false
      return Object.values(lists).every(list => list?.(upstream, '*') !== false)
    },
  }
}

/** One pattern or a list, as a list. */
function patternsOf(said: Patterns | undefined): readonly string[] | undefined {
  return typeof said === 'string' ? [said] : said
}

/** Whether an entry is on a client's list; undefined where there is no list. */
type ListFilter = ((upstream: string, own: string) => boolean) | undefined

/** Compiles a list. `!` excludes. */
function chosen(patterns: readonly string[] | undefined, address = false): ListFilter {
  if (patterns === undefined) return undefined
  const [allowed, denied] = [includedBy(patterns), excludedBy(patterns)]
  // Only exclusions: everything else is included. An empty list includes nothing.
  const all = allowed.length === 0 && denied.length > 0
  return (upstream, own) => {
    const as = { before: `${upstream}/`, address }
    return !fitsAny(denied, own, as) && (all || fitsAll(allowed, own, as))
  }
}

/** Whether patterns can match anything of this upstream. */
function reaches(patterns: readonly string[], upstream: string): boolean {
  const allowed = includedBy(patterns)
  if (allowed.length === 0) return patterns.length > 0
  return allowed.some(pattern => {
    const [fixed = ''] = pattern.split('*', 1)
    const open = fixed !== pattern && `${upstream}/`.startsWith(fixed)
    return open || fixed.startsWith(`${upstream}/`)
  })
}

function includedBy(patterns: readonly string[]): readonly string[] {
  return patterns.filter(pattern => !pattern.startsWith('!'))
}

function excludedBy(patterns: readonly string[]): readonly string[] {
  return patterns.filter(pattern => pattern.startsWith('!')).map(pattern => pattern.slice(1))
}
