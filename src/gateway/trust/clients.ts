/** Who calls, by a name that rules know; and what of all upstreams that one sees. */
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { fitsAll, fitsAny } from './readings.ts'
import { fits, type Kind, patternsOf } from './rules.ts'
import { type ClientBudget, type ClientSettings, unnamed } from './settings.ts'

/** A client as callers are held against it. */
export interface KnownClient {
  readonly name: string
  readonly settings: ClientSettings
  /** It sees everything. */
  readonly free: boolean
  readonly budgets: readonly ClientBudget[]
  seesUpstream(upstream: string): boolean
  sees(kind: Kind, upstream: string, name: string): boolean
}

/** Callers whose names are remembered. */
const remembered = 10_000

export class Clients {
  #known: ReadonlyMap<string, KnownClient> = new Map()
  readonly #names = new Map<string, string>()
  /** Somebody does not see all. */
  restricted = false
  /** Somebody may make only so many calls. */
  countsCalls = false

  constructor(settings?: Readonly<Record<string, ClientSettings>>) {
    this.change(settings)
  }

  /** From now on these are the ones. */
  change(settings: Readonly<Record<string, ClientSettings>> = {}): void {
    this.#known = new Map(Object.entries(settings).map(([name, client]) => [name, read(name, client)]))
    this.#names.clear()
    this.restricted = [...this.#known.values()].some(({ free }) => !free)
    this.countsCalls = this.all().some(({ budgets }) => budgets.some(({ calls }) => calls !== undefined))
  }

  all(): readonly KnownClient[] {
    return [...this.#known.values()]
  }

  get(name: string): KnownClient | undefined {
    return this.#known.get(name)
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

  of(caller: Pick<Caller, 'principal' | 'carrier'>): KnownClient | undefined {
    return this.#known.get(this.nameOf(caller))
  }

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

/** Vouches for those who have a token of the gateway's own settings. */
export const tokenIssuer = 'https://gateway.invalid/tokens'

function read(name: string, settings: ClientSettings): KnownClient {
  const { tools, resources, prompts } = settings
  const upstreams = patternsOf(settings.upstreams)
  const lists: Readonly<Record<Kind, Chosen>> = { tool: chosen(tools), resource: chosen(resources), prompt: chosen(prompts) }
  return {
    name,
    settings,
    free: upstreams === undefined && [tools, resources, prompts].every(said => said === undefined),
    budgets: budgetsOf(settings),
    seesUpstream: upstream => fits(upstreams, upstream),
    sees: (kind, upstream, own) => {
      if (!fits(upstreams, upstream)) return false
      const list = lists[kind]
      // Whoever is given some tools of a server is not given what else it has; whoever is given all of them is.
      return list === undefined ? lists.tool?.(upstream, '*') !== false : list(upstream, own)
    },
  }
}

/** Whether something is among those that are meant; undefined where nothing is said of them. */
type Chosen = ((upstream: string, own: string) => boolean) | undefined

function chosen(said: ClientSettings['tools']): Chosen {
  const patterns = patternsOf(said)
  if (patterns === undefined) return undefined
  const allowed = patterns.filter(pattern => !pattern.startsWith('!'))
  const denied = patterns.filter(pattern => pattern.startsWith('!')).map(pattern => pattern.slice(1))
  // Only exceptions, so everything else; an empty list is nothing at all.
  const all = allowed.length === 0 && denied.length > 0
  return (upstream, own) => !fitsAny(denied, own, `${upstream}/`) && (all || fitsAll(allowed, own, `${upstream}/`))
}

function budgetsOf({ budget = [] }: ClientSettings): readonly ClientBudget[] {
  return 'per' in budget ? [budget] : budget
}
