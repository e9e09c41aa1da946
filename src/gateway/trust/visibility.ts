/**
 * Decides what a caller may know of the upstreams, by its client's lists and by rules. Everything that reaches a caller is decided here:
 * lists, reads, subscriptions, events, change notifications, links and completion values.
 */

import { permits, type RequestTarget } from '../../features/mcp/authorization/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { subjectOf } from '../../policy/audit/gateway-audit.ts'
import type { GatewayPolicy, ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { TargetKind } from '../../policy/rules/rule.ts'
import type { Clients } from './clients.ts'
import { policyCallFacts } from './options.ts'
import type { TrustSettings } from './settings.ts'

/** An entry of an upstream, by its own name. */
interface Place {
  readonly upstream: string
  readonly own: string
}

/** What a client can be shown. Rules treat templates as resources. */
type VisibleKind = RequestTarget[0]
type KnownCaller = Pick<Caller, 'principal' | 'carrier'>

const kinds: readonly TargetKind[] = ['tool', 'resource', 'prompt']

/** The kind of entry behind each list, for `list_changed` events. */
const listKinds: ReadonlyMap<unknown, TargetKind> = new Map([
  ['tools', 'tool'],
  ['resources', 'resource'],
  ['prompts', 'prompt'],
])

/** Cached kinds of callers: as many as rules distinguish, usually few. */
const mostKinds = 256

/** Decides, per caller, what of the upstreams may be listed, read and announced. */
export class Visibility {
  readonly clients: Clients
  /** The origin of a prompt or resource by exposed name or address; of a tool only while its upstream is down. */
  readonly originOf: (kind: VisibleKind, exposed: string) => Place | undefined
  policy: GatewayPolicy
  listed: TrustSettings['listed']
  readonly #tools = new Map<string, ToolPolicy>()
  /**
   * The exposed names of the tools that callers of one kind do not see, by their client, by rules that always refuse them, and by missing
   * scopes.
   */
  readonly #hidden = new Map<string, ReadonlySet<string>>()

  constructor(
    clients: Clients,
    policy: GatewayPolicy,
    listed: TrustSettings['listed'],
    originOf: (kind: VisibleKind, exposed: string) => Place | undefined,
  ) {
    this.clients = clients
    this.policy = policy
    this.listed = listed
    this.originOf = originOf
  }

  /** Rules or clients have changed. */
  change(policy: GatewayPolicy, listed: TrustSettings['listed']): void {
    this.policy = policy
    this.listed = listed
    this.#hidden.clear()
  }

  /** The policies of the offered tools, by exposed name. */
  get tools(): ReadonlyMap<string, ToolPolicy> {
    return this.#tools
  }

  /** A tool is offered under this name; without a policy: no longer. */
  offer(exposed: string, policy: ToolPolicy | undefined): void {
    if (policy === undefined) this.#tools.delete(exposed)
    else this.#tools.set(exposed, policy)
    this.#hidden.clear()
  }

  /** Whether anything is hidden from anyone; most gateways check no further. */
  get limits(): boolean {
    return this.clients.restricted || this.policy.decidesReading || (this.listed !== 'all' && this.policy.hides)
  }

  /** Whether the caller's client may see an entry. */
  given(caller: Caller, kind: TargetKind, { upstream, own }: Place): boolean {
    return this.clients.of(caller)?.sees(kind, upstream, own) !== false
  }

  /** The same by exposed name. */
  sees(caller: Caller, kind: VisibleKind, exposed: string): boolean {
    const client = this.clients.of(caller)
    if (client === undefined || client.free) return true
    const policy = kind === 'tool' ? this.#tools.get(exposed) : undefined
    const place = policy === undefined ? this.originOf(kind, exposed) : { upstream: policy.upstream, own: policy.tool }
    return place === undefined || this.given(caller, ruledAs(kind), place)
  }

  /** Whether an entry is in the caller's lists. */
  lists(caller: Caller, kind: VisibleKind, { upstream, own }: Place): boolean {
    const as = ruledAs(kind)
    if (as === 'tool') return this.#seesTool(caller, this.policy.for('tool', upstream, own))
    if (!this.given(caller, as, { upstream, own })) return false
    if (this.listed === 'all' || !this.policy.decidesReading) return true
    return !this.policy.for(as, upstream, own).refusesAll(this.clients.nameOf(caller), subjectOf(caller))
  }

  /** The exposed names of the tools that a caller does not see; one object for all callers of a kind. */
  hiddenFrom(caller: Caller): ReadonlySet<string> {
    const kind = this.#kindOf(caller)
    const known = this.#hidden.get(kind)
    if (known !== undefined) return known
    const hidden = new Set([...this.#tools].flatMap(([exposed, policy]) => (this.#seesTool(caller, policy) ? [] : [exposed])))
    if (this.#hidden.size >= mostKinds) this.#hidden.clear()
    this.#hidden.set(kind, hidden)
    return hidden
  }

  /** Whether one tool is listed to a caller. */
  #seesTool(caller: Caller, policy: ToolPolicy): boolean {
    if (!this.given(caller, 'tool', { upstream: policy.upstream, own: policy.tool })) return false
    if (this.listed === 'all') return true
    const refused = policy.refusesAll(this.clients.nameOf(caller), subjectOf(caller))
    return !refused && permits(caller, policy.say('scopes', undefined))
  }

  /** A key that is equal for callers whom every rule treats the same. */
  #kindOf(caller: Caller): string {
    const client = this.clients.nameOf(caller)
    if (this.listed === 'all') return client
    return `${client}\n${this.policy.tells(subjectOf(caller), scopes => permits(caller, scopes))}`
  }

  /** Whether the caller may read and watch an entry now. */
  reads(caller: Caller, kind: 'resource' | 'prompt', place: Place): boolean {
    if (this.clients.restricted && !this.given(caller, kind, place)) return false
    if (!this.policy.decidesReading) return true
    return this.policy.for(kind, place.upstream, place.own).judge(policyCallFacts(this.clients, caller, {})).do !== 'deny'
  }

  /** The policy of a tool, or for a resource or prompt; undefined where no rule applies or nobody offers it. */
  policyOf(kind: VisibleKind, exposed: string): ToolPolicy | undefined {
    const as = ruledAs(kind)
    if (as === 'tool') return this.#tools.get(exposed)
    const origin = this.policy.decidesReading ? this.originOf(kind, exposed) : undefined
    return origin && this.policy.for(as, origin.upstream, origin.own)
  }

  /** Whether the caller may know that an upstream exists. */
  knows(caller: KnownCaller, upstream: string): boolean {
    return kinds.some(kind => this.#some(caller, kind, upstream))
  }

  /** Whether the caller may see anything of a kind at an upstream. */
  #some(caller: KnownCaller, kind: TargetKind, upstream: string): boolean {
    if (this.clients.of(caller)?.seesSome(kind, upstream) === false) return false
    return (kind === 'tool' && this.listed === 'all') || this.#refused(caller, kind, upstream) !== 'all'
  }

  /** Whether nothing of an upstream is hidden from the caller. */
  all(caller: Caller, upstream: string): boolean {
    if (this.clients.of(caller)?.seesAll(upstream) === false) return false
    return kinds.every(kind => this.#refused(caller, kind, upstream) === 'none')
  }

  /** How much of a kind rules refuse to the caller. */
  #refused(caller: KnownCaller, kind: TargetKind, upstream: string): 'all' | 'some' | 'none' {
    return this.policy.refused(kind, upstream, this.clients.nameOf(caller), subjectOf(caller))
  }

  /** Whether a caller may be told about something that it did not ask for: notifications, event types and events. */
  shows(caller: Caller, kind: 'tool' | 'resource' | 'event', name: string, payload?: unknown): boolean {
    if (!this.limits) return true
    if (kind === 'tool') return !this.hiddenFrom(caller).has(name)
    if (kind === 'event') return this.#showsEvent(caller, name, payload)
    const place = this.originOf('resource', name)
    return place === undefined || this.reads(caller, 'resource', place)
  }

  /** Whether a caller hears of an event. Without a payload: whether there may be one that it hears of. */
  #showsEvent(caller: Caller, name: string, payload: unknown): boolean {
    const at = name.lastIndexOf('/')
    const [upstream, what] = [name.slice(0, at), name.slice(at + 1)]
    if (at <= 0) return true
    if (what === 'resource_updated') {
      const uri = isRecord(payload) ? payload['uri'] : undefined
      if (typeof uri === 'string') return this.reads(caller, 'resource', { upstream, own: uri })
      return payload === undefined && this.#some(caller, 'resource', upstream)
    }
    if (what !== 'list_changed') return true
    const list = isRecord(payload) ? listKinds.get(payload['list']) : undefined
    if (list !== undefined) return this.#some(caller, list, upstream)
    return payload === undefined && this.knows(caller, upstream)
  }
}

function ruledAs(kind: VisibleKind): TargetKind {
  return kind === 'template' ? 'resource' : kind
}
