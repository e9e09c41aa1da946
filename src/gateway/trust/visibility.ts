/**
 * What a caller may know of the servers behind the gateway: by the lists of its client and by the rules. Whatever reaches a caller,
 * asked for or not, is decided here: lists, reads, subscriptions, events, what has changed, links, values that complete an address.
 */
import type { Caller } from '../../jsonrpc/connection.ts'
import type { TargetKind } from '../../policy/rules/rule.ts'
import { type Clients, subjectOf } from './clients.ts'
import { judgedOf } from './options.ts'
import type { TrustSettings } from './settings.ts'
import type { GatewayPolicy } from './tool-policy.ts'
import type { Views } from './views.ts'

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
