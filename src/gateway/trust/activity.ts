/**
 * Who calls and what that comes to, for the operator: per client the calls, failures and refusals since the start of the process, and
 * what is left of its budgets. Separate from the audit log, which is kept longer and read line by line.
 */
import { type Clock, toMilliseconds } from '../../core/clock.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { GatewayAuditEntry } from '../../policy/audit/gateway-audit.ts'
import type { Server } from '../../server/api.ts'
import type { Clients } from './clients.ts'

/** A client and its calls since the start of the process. */
export interface GatewayClient {
  /** A client of the settings, or `local`, `anonymous`, `unlisted`. */
  readonly name: string
  /** Whether the settings name it. */
  readonly configured: boolean
  /** The upstreams of which it sees something, as far as `clients` decides it. */
  readonly upstreams: readonly string[]
  /** Calls that reached their upstream and ended. */
  readonly calls: number
  /** Calls that failed. */
  readonly failures: number
  /** Requests that were refused before. */
  readonly refused: number
  /** Its first and last call or refusal, in milliseconds since the epoch. */
  readonly first?: number
  /** Its last call or refusal, in milliseconds since the epoch. */
  readonly last?: number
  /** The last subjects of its tokens, newest first. */
  readonly subjects: readonly string[]
  /** Refusals by rule, or by code where no rule refused; most frequent first. */
  readonly refusals: readonly GatewayRefusals[]
}

/** Refusals of one kind. */
interface GatewayRefusals {
  /** The rule, or the code where no rule refused. */
  readonly why: string
  /** How many. */
  readonly times: number
}

/** A budget of a client in its current window. */
export interface GatewayBudget {
  /** `CLIENT.N`, in the order of the settings. */
  readonly name: string
  /** The client whose budget it is. */
  readonly client: string
  /** What is counted. */
  readonly unit: 'calls' | 'units'
  /** Spent and reserved. */
  readonly used: number
  /** The limit. */
  readonly most: number
  /** The length of the window in milliseconds. */
  readonly perMs: number
  /** When the window ends, in milliseconds since the epoch. */
  readonly resetsAt: number
}

/** The reading side of clients and budgets. */
export interface ClientsControl {
  /** Who calls, since the start of this process: clients of the settings first. */
  clients(): readonly GatewayClient[]
  /** The budgets of all clients, as far as they are spent by all processes on the store. */
  budgets(): Promise<readonly GatewayBudget[]>
}

interface Tally {
  calls: number
  failures: number
  refused: number
  readonly first: number
  last: number
  readonly subjects: Set<string>
  readonly refusals: Map<string, number>
}

const mostSubjects = 20
/** Reasons of refusals that are told apart; codes are few, rules as many as somebody wrote. */
const mostReasons = 200
const mostListed = 20

/** Counts calls per client. Client names come from the settings, so there are few. */
export class ClientActivity {
  readonly #clock: Clock
  readonly #tallies = new Map<string, Tally>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts an entry of the audit log. */
  take({ outcome, more = {} }: GatewayAuditEntry): void {
    const { client, subject, ms, rule, code, times = 1 } = more
    if (typeof client !== 'string' || outcome === 'begun') return
    const tally = this.#of(client)
    tally.last = this.#clock.now()
    if (outcome === 'refused') {
      tally.refused += Number(times)
      const why = String(rule ?? code ?? 'refused')
      if (tally.refusals.has(why) || tally.refusals.size < mostReasons)
        tally.refusals.set(why, (tally.refusals.get(why) ?? 0) + Number(times))
    } else if (ms !== undefined) {
      tally.calls++
      if (outcome === 'failure') tally.failures++
    }
    if (typeof subject === 'string') remember(tally.subjects, clip(subject))
  }

  /** The clients of the settings, and all others that called. */
  list(clients: Clients, upstreams: readonly string[]): readonly GatewayClient[] {
    const configured = clients.names()
    const others = [...this.#tallies.keys()].filter(name => !configured.includes(name))
    return [...configured, ...others].map(name => {
      const { calls = 0, failures = 0, refused = 0, first, last, subjects, refusals } = this.#tallies.get(name) ?? {}
      const known = clients.get(name)
      const sees = (upstream: string): boolean =>
        known === undefined || (['tool', 'resource', 'prompt'] as const).some(kind => known.seesSome(kind, upstream))
      return {
        name,
        configured: configured.includes(name),
        upstreams: upstreams.filter(sees),
        ...{ calls, failures, refused },
        ...(first !== undefined && last !== undefined && { first, last }),
        subjects: [...(subjects ?? [])].reverse(),
        refusals: [...(refusals ?? [])]
          .map(([why, times]) => ({ why, times }))
          .sort((one, other) => other.times - one.times)
          .slice(0, mostListed),
      }
    })
  }

  #of(client: string): Tally {
    const now = this.#clock.now()
    const fresh = { calls: 0, failures: 0, refused: 0, first: now, last: now, subjects: new Set<string>() }
    const tally = this.#tallies.get(client) ?? { ...fresh, refusals: new Map<string, number>() }
    this.#tallies.set(client, tally)
    return tally
  }
}

/** The newest last, and the oldest forgotten. */
function remember(subjects: Set<string>, subject: string): void {
  subjects.delete(subject)
  subjects.add(subject)
  const [oldest] = subjects
  if (subjects.size > mostSubjects && oldest !== undefined) subjects.delete(oldest)
}

/** The budgets of all clients of the settings. */
export async function budgetsOf(clients: Clients, server: Server | undefined): Promise<readonly GatewayBudget[]> {
  if (server === undefined) return []
  const found: GatewayBudget[] = []
  for (const client of clients.names())
    for (const [i, budget] of (clients.get(client)?.budgets ?? []).entries()) {
      const name = budgetName(client, i)
      const { remaining, resetsAt } = await server.budgets.shared({ ...budget, name })
      const most = budget.calls ?? budget.units ?? 0
      const unit = budget.calls === undefined ? 'units' : 'calls'
      found.push({ name, client, unit, used: most - remaining, most, perMs: toMilliseconds(budget.per, 'per'), resetsAt })
    }
  return found
}

/** The name under which a budget of a client is counted. */
export function budgetName(client: string, index: number): string {
  return `${client}.${index}`
}
