/**
 * Decides what a caller may know of the upstreams, by its client's lists and by rules. Everything that reaches a caller is decided here:
 * lists, reads, subscriptions, events, change notifications, links and completion values.
 */

import { permits } from '../../features/mcp/authorization/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { subjectOf } from '../../policy/audit/call-notes.ts'
import type { GatewayPolicy, ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { TargetKind } from '../../policy/rules/rule.ts'
import type { Clients } from './clients.ts'
import { judgedOf } from './options.ts'
import type { TrustSettings } from './settings.ts'

/** An entry of an upstream, by its own name. */
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

/** Decides, per caller, what of the upstreams may be listed, read and announced. */
export class Visibility {
  readonly #parts: VisibilityParts

  constructor(parts: VisibilityParts) {
    this.#parts = parts
  }

  /** Whether anything is hidden from anyone; most gateways check no further. */
  get limits(): boolean {
    return this.#parts.views.differ || this.#parts.policy().decidesReading
  }

  /** Whether the caller's client may see an entry. */
  given(caller: Caller, kind: TargetKind, { upstream, own }: Place): boolean {
    return this.#parts.clients.of(caller)?.sees(kind, upstream, own) !== false
  }

  /** Whether an entry is in the caller's lists. */
  lists(caller: Caller, kind: TargetKind, place: Place): boolean {
    const { policy, views, clients, listed } = this.#parts
    if (kind === 'tool') return views.sees(caller, policy().for('tool', place.upstream, place.own))
    if (!this.given(caller, kind, place)) return false
    if (listed() === 'all' || !policy().decidesReading) return true
    return !policy().for(kind, place.upstream, place.own).refusesAll(clients.nameOf(caller), subjectOf(caller))
  }

  /** Whether the caller may read and watch an entry now. */
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

  /** Whether the caller may know that an upstream exists. */
  knows(caller: Pick<Caller, 'principal' | 'carrier'>, upstream: string): boolean {
    return kinds.some(kind => this.some(caller, kind, upstream))
  }

  /** Whether the caller may see anything of a kind at an upstream. */
  some(caller: Pick<Caller, 'principal' | 'carrier'>, kind: TargetKind, upstream: string): boolean {
    if (this.#parts.clients.of(caller)?.seesSome(kind, upstream) === false) return false
    return (kind === 'tool' && this.#parts.listed() === 'all') || this.#refused(caller, kind, upstream) !== 'all'
  }

  /** Whether nothing of an upstream is hidden from the caller. */
  all(caller: Caller, upstream: string): boolean {
    if (this.#parts.clients.of(caller)?.seesAll(upstream) === false) return false
    return kinds.every(kind => this.#refused(caller, kind, upstream) === 'none')
  }

  /** How much of a kind rules refuse to the caller. */
  #refused(caller: Pick<Caller, 'principal' | 'carrier'>, kind: TargetKind, upstream: string): 'all' | 'some' | 'none' {
    const { policy, clients } = this.#parts
    return policy().refused(kind, upstream, clients.nameOf(caller), subjectOf(caller))
  }
}

// Views: the tools that a caller does not see, by its client, by rules that always refuse it, and by missing scopes. Computed once per kind
// of caller and again when tools or rules change.

interface ViewsParts {
  readonly clients: Clients
  readonly policy: () => GatewayPolicy
  /** By exposed name. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly listed: () => TrustSettings['listed']
}

/** What all callers of one kind see. */
interface View {
  /** Hidden tools by exposed name. */
  readonly hidden: ReadonlySet<string>
}

/** Cached kinds of callers: as many as rules distinguish, usually few. */
const mostKinds = 256

/** Caches, per kind of caller, which tools are hidden. */
export class Views {
  readonly #parts: ViewsParts
  readonly #views = new Map<string, View>()

  constructor(parts: ViewsParts) {
    this.#parts = parts
  }

  /** Whether some caller may not see everything. */
  get differ(): boolean {
    const { clients, policy, listed } = this.#parts
    return clients.restricted || (listed() !== 'all' && policy().hides)
  }

  /** Tools or rules have changed. */
  reset(): void {
    this.#views.clear()
  }

  /** The view of a caller, computed on first use. */
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

  /** A key that is equal for callers whom every rule treats the same. */
  #kindOf(caller: Caller): string {
    const { clients, policy, listed } = this.#parts
    const client = clients.nameOf(caller)
    return listed() === 'all' ? client : `${client}\n${policy().tells(subjectOf(caller), scopes => permits(caller, scopes))}`
  }
}
