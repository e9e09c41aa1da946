/** Who calls, by a name that rules know; and what of all upstreams that one sees. */
import { matches } from '../../core/grant/pattern.ts'
import type { Caller, Principal } from '../../jsonrpc/connection.ts'
import { fits, patternsOf } from './rules.ts'
import { type ClientBudget, type ClientSettings, unnamed } from './settings.ts'

/** A client as callers are held against it. */
export interface KnownClient {
  readonly name: string
  readonly settings: ClientSettings
  /** It sees everything. */
  readonly free: boolean
  readonly budgets: readonly ClientBudget[]
  seesUpstream(upstream: string): boolean
  seesTool(upstream: string, tool: string): boolean
}

/** Callers whose names are remembered. */
const remembered = 10_000

export class Clients {
  readonly #known: ReadonlyMap<string, KnownClient>
  readonly #names = new Map<string, string>()
  /** Somebody does not see all. */
  readonly restricted: boolean
  /** Somebody may make only so many calls. */
  readonly countsCalls: boolean

  constructor(settings: Readonly<Record<string, ClientSettings>> = {}) {
    this.#known = new Map(Object.entries(settings).map(([name, client]) => [name, read(name, client)]))
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
  const upstreams = patternsOf(settings.upstreams)
  const tools = patternsOf(settings.tools)
  const allowed = tools?.filter(pattern => !pattern.startsWith('!')) ?? []
  const denied = tools?.filter(pattern => pattern.startsWith('!')).map(pattern => pattern.slice(1)) ?? []
  // Only exceptions, so everything else; an empty list is nothing at all.
  const noneNamed = tools === undefined || (allowed.length === 0 && denied.length > 0)
  const seesUpstream = (upstream: string): boolean => fits(upstreams, upstream)
  return {
    name,
    settings,
    free: upstreams === undefined && tools === undefined,
    budgets: budgetsOf(settings),
    seesUpstream,
    seesTool: (upstream, tool) => {
      if (!seesUpstream(upstream)) return false
      const whole = `${upstream}/${tool}`
      if (denied.some(pattern => matches(pattern, whole))) return false
      return noneNamed || allowed.some(pattern => matches(pattern, whole))
    },
  }
}

function budgetsOf({ budget = [] }: ClientSettings): readonly ClientBudget[] {
  return 'per' in budget ? [budget] : budget
}
