/**
 * What a caller may know of the servers behind the gateway: by the lists of its client and by the rules. Whatever reaches a caller,
 * asked for or not, is decided here: lists, reads, subscriptions, events, what has changed, links, values that complete an address.
 */

import { permits } from '../../features/mcp/authorization/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { subjectOf } from '../../policy/audit/call-notes.ts'
import type { GatewayPolicy, ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { TargetKind } from '../../policy/rules/rule.ts'
import type { Clients } from './clients.ts'
import { judgedOf } from './options.ts'
import type { TrustSettings } from './settings.ts'

/** Something of a server, by the name that it has there. */
interface Place {
  readonly upstream: string
  readonly own: string
}

interface VisibilityParts {
  readonly clients: Clients
  readonly views: Views
  readonly policy: () => GatewayPolicy
  readonly listed: () => TrustSettings['listed']
}

const kinds: readonly TargetKind[] = ['tool', 'resource', 'prompt']

/** Decides, per caller, what of the upstreams may be listed, read and told of. */
export class Visibility {
  readonly #parts: VisibilityParts

  constructor(parts: VisibilityParts) {
    this.#parts = parts
  }

  /** Whether anything is kept from anybody; most gateways never look any further. */
  get limits(): boolean {
    return this.#parts.views.differ || this.#parts.policy().decidesReading
  }

  /** Whether its client is given it. What it is not given does not exist for it. */
  given(caller: Caller, kind: TargetKind, { upstream, own }: Place): boolean {
    return this.#parts.clients.of(caller)?.sees(kind, upstream, own) !== false
  }

  /** Whether it stands in its lists. */
  lists(caller: Caller, kind: TargetKind, place: Place): boolean {
    const { policy, views, clients, listed } = this.#parts
    if (kind === 'tool') return views.sees(caller, policy().for('tool', place.upstream, place.own))
    if (!this.given(caller, kind, place)) return false
    if (listed() === 'all' || !policy().decidesReading) return true
    return !policy().for(kind, place.upstream, place.own).refusesAll(clients.nameOf(caller), subjectOf(caller))
  }

  /** Whether it may be read, watched and heard of now. */
  reads(caller: Caller, kind: 'resource' | 'prompt', place: Place): boolean {
    const { policy, clients } = this.#parts
    if (clients.restricted && !this.given(caller, kind, place)) return false
    if (!policy().decidesReading) return true
    return (
      policy()
        .for(kind, place.upstream, place.own)
        .judge(judgedOf(clients, caller, {})).do !== 'deny'
    )
  }

  /** Whether it may know that there is such a server. */
  knows(caller: Pick<Caller, 'principal' | 'carrier'>, upstream: string): boolean {
    return kinds.some(kind => this.some(caller, kind, upstream))
  }

  /** Whether there may be anything of that kind at a server that it can know of. */
  some(caller: Pick<Caller, 'principal' | 'carrier'>, kind: TargetKind, upstream: string): boolean {
    if (this.#parts.clients.of(caller)?.seesSome(kind, upstream) === false) return false
    return (kind === 'tool' && this.#parts.listed() === 'all') || this.#refused(caller, kind, upstream) !== 'all'
  }

  /** Whether nothing of a server is kept from it. */
  all(caller: Caller, upstream: string): boolean {
    if (this.#parts.clients.of(caller)?.seesAll(upstream) === false) return false
    return kinds.every(kind => this.#refused(caller, kind, upstream) === 'none')
  }

  #refused(caller: Pick<Caller, 'principal' | 'carrier'>, kind: TargetKind, upstream: string): 'all' | 'some' | 'none' {
    const { policy, clients } = this.#parts
    return policy().refused(kind, upstream, clients.nameOf(caller), subjectOf(caller))
  }
}

// What of all tools a caller does not see: those that its client is not shown, that rules refuse it whatever it calls them with, and
// whose scopes its token lacks. Found out once for each kind of caller, and anew when a tool comes or goes.

interface ViewsParts {
  readonly clients: Clients
  readonly policy: () => GatewayPolicy
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly listed: () => TrustSettings['listed']
}

/** What all callers of one kind see. */
interface View {
  /** Tools that they do not, by the names that clients know. */
  readonly hidden: ReadonlySet<string>
}

/** Kinds of callers that are remembered: as many as rules can tell apart, as a rule few. */
const mostKinds = 256

/** Caches, per kind of caller, which tools are hidden. */
export class Views {
  readonly #parts: ViewsParts
  readonly #views = new Map<string, View>()

  constructor(parts: ViewsParts) {
    this.#parts = parts
  }

  /** Whether two callers may see different things, or none sees all. */
  get differ(): boolean {
    const { clients, policy, listed } = this.#parts
    return clients.restricted || (listed() !== 'all' && policy().hides)
  }

  /** Tools have come or gone, or rules are others. */
  reset(): void {
    this.#views.clear()
  }

  /** The view of a caller, computed when it is first needed. */
  of(caller: Caller): View {
    const kind = this.#kindOf(caller)
    const known = this.#views.get(kind)
    if (known !== undefined) return known
    const hidden = new Set<string>()
    for (const [exposed, policy] of this.#parts.tools) if (!this.sees(caller, policy)) hidden.add(exposed)
    if (this.#views.size >= mostKinds) this.#views.clear()
    const view: View = { hidden }
    this.#views.set(kind, view)
    return view
  }

  /** Whether one tool is listed to a caller. */
  sees(caller: Caller, policy: ToolPolicy): boolean {
    const { clients, listed } = this.#parts
    const client = clients.nameOf(caller)
    if (clients.get(client)?.sees('tool', policy.upstream, policy.tool) === false) return false
    if (listed() === 'all') return true
    return !policy.refusesAll(client, subjectOf(caller)) && permits(caller, policy.say('scopes', undefined))
  }

  /** Who is of one kind is answered the same by every rule that looks at who calls. */
  #kindOf(caller: Caller): string {
    const { clients, policy, listed } = this.#parts
    const client = clients.nameOf(caller)
    return listed() === 'all' ? client : `${client}\n${policy().tells(subjectOf(caller), scopes => permits(caller, scopes))}`
  }
}
