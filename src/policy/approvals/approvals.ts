/**
 * What somebody answered, kept on the store: approvals and refusals of exactly one thing, and grants for a time. They answer what
 * would be asked; what a rule or a blacklist refuses they never open, also where those came later.
 */

import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import { canonicalJson } from '../../core/digest.ts'
import type { Grant, GrantTerms } from '../../core/grant/grant.ts'
import { Grants } from '../../core/grant/grants.ts'
import { matches } from '../../core/scope.ts'
import { clip, echo } from '../../jsonrpc/limits.ts'
import { entriesUnder, prefixedStore, type Store } from '../../stores/store.ts'
import type { AskVerdict } from '../judge.ts'
import { type Asked, initiatingServers, type Kind } from '../rules/rule.ts'

/** What a temporary grant covers. `*` stands for any characters. */
export interface GrantFor {
  /** The server that it applies to. */
  readonly server: string
  /** The kind of request. Default: all kinds that the user is asked about. */
  readonly kind?: Kind
  /** The feature set. Default: all. */
  readonly featureSet?: string
  /** The tool. Default: all. Only for requests of kind `tool`. */
  readonly tool?: string
}

/** An answer that is kept. */
export interface StoredApproval {
  /** The id, for `revoke`. */
  readonly id: string
  /** The server that it applies to. */
  readonly server: string
  /** Whether it allows or refuses. */
  readonly effect: 'allow' | 'deny'
  /** The kind of request that it applies to. */
  readonly kind: string
  /** Undefined where it is about one single thing, known by its digest. */
  readonly featureSet?: string
  /** The tool that it applies to. Absent: any. */
  readonly tool?: string
  /** Identifies the single request that it applies to. Absent: any that fits the other members. */
  readonly digest?: string
  /** How far an answer to a question reaches. */
  readonly covers?: Covers
  /** When it ends, in milliseconds since the epoch. */
  readonly expires: number
}

/**
 * An answer of the user that is kept.
 * @deprecated Use `StoredApproval`.
 */
export type Kept = StoredApproval

const yearMs = 366 * 86_400_000

/** The answers and grants that are kept, by server. */
export class Approvals {
  readonly #grants: Grants
  readonly #store: Store
  /** Of feature sets, which are selected without waiting. By server. */
  readonly #sets = new Map<string, readonly Grant[]>()

  constructor(store: Store, clock: Clock, id: () => string) {
    this.#store = prefixedStore(store, 'policy/')
    this.#grants = new Grants({ store: this.#store, clock, id, mostMs: yearMs })
  }

  /** Reads what was answered about feature sets. */
  async load(): Promise<void> {
    const owners = new Set<string>()
    for await (const { key } of entriesUnder(this.#store, 'grant/')) owners.add(key.split('/')[1] ?? '')
    this.#sets.clear()
    for (const owner of owners) await this.#loadSets(owner)
  }

  /** Reads anew what was answered about the feature sets of one server. */
  refresh(server: string): Promise<void> {
    return this.#loadSets(ownerOf(server))
  }

  async #loadSets(owner: string): Promise<void> {
    const grants = (await this.#grants.list(owner)).filter(({ action }) => matches(action, 'set'))
    if (grants.length > 0) this.#sets.set(owner, grants)
    else this.#sets.delete(owner)
  }

  /** What was answered to this, if anything was. Of several answers a refusal counts. */
  async find(asked: Asked, asking: AskVerdict, bound: ApprovalBinding): Promise<StoredApproval | undefined> {
    return answer(
      (await this.#grants.counting(ownerOf(asked.server), [])).map(({ grant }) => grant),
      asked,
      asking,
      bound,
    )
  }

  /** The same for a feature set, at once. */
  findSet(asked: Asked, asking: AskVerdict, bound: ApprovalBinding): StoredApproval | undefined {
    const now = this.#grants.clock.now()
    const alive = (this.#sets.get(ownerOf(asked.server)) ?? []).filter(({ expires }) => expires > now)
    return answer(alive, asked, asking, bound)
  }

  /** Whether anything was answered about feature sets of a server. */
  hasSets(server: string): boolean {
    return this.#sets.has(ownerOf(server))
  }

  /** When the next answer about a feature set ends. */
  nextEnd(): number {
    return Math.min(...[...this.#sets.values()].flat().map(({ expires }) => expires), Number.POSITIVE_INFINITY)
  }

  /** Keeps an answer: to exactly this, or to what it covers beyond. */
  async keep(
    { server, kind }: Asked,
    bound: ApprovalBinding,
    covers: Covers,
    yes: boolean,
    forMs: number,
  ): Promise<readonly StoredApproval[]> {
    const effect = yes ? 'permit' : 'forbid'
    const digests = covers === 'scope' ? (bound.scope ?? []) : [covers === 'tool' ? (bound.tool ?? bound.call) : bound.call]
    const action = covers === 'call' ? kind : covers
    const stored: StoredApproval[] = []
    for (const digest of digests)
      stored.push(await this.#issue(server, { effect, action, resource: `${covers}-digest/${digest}` }, forMs))
    return stored
  }

  async grant({ server, kind, featureSet, tool }: GrantFor, forMs: number): Promise<StoredApproval> {
    const resource = tool === undefined ? `set/${featureSet ?? '*'}` : `tool/${tool}`
    return this.#issue(server, { effect: 'permit', action: tool === undefined ? (kind ?? '*') : 'tool', resource }, forMs)
  }

  async #issue(server: string, terms: Omit<GrantTerms, 'source' | 'standing'>, forMs: number): Promise<StoredApproval> {
    const owner = ownerOf(server)
    const grant = await this.#grants.issue(owner, { ...terms, standing: true, source: 'approval' }, Math.min(forMs, yearMs))
    if (matches(grant.action, 'set')) await this.#loadSets(owner)
    return storedApprovalOf(grant)
  }

  async list(server: string): Promise<readonly StoredApproval[]> {
    return (await this.#grants.list(ownerOf(server))).map(storedApprovalOf)
  }

  async revoke(server: string, id: string): Promise<boolean> {
    const revoked = await this.#grants.revoke(ownerOf(server), id)
    await this.#loadSets(ownerOf(server))
    return revoked
  }
}

function answer(grants: readonly Grant[], asked: Asked, asking: AskVerdict, bound: ApprovalBinding): StoredApproval | undefined {
  const exact = grants.filter(({ resource }) => isBound(resource, bound))
  const wide = grants.filter(({ action, resource }) => matches(action, asking.about) && isFor(resource, asked, asking))
  const found = [...exact, ...wide]
  const grant = found.find(({ effect }) => effect === 'forbid') ?? found.find(({ effect }) => effect === 'permit')
  return grant === undefined ? scopesAnswer(grants, bound) : storedApprovalOf(grant)
}

function isBound(resource: string, { call, tool }: ApprovalBinding): boolean {
  return resource === `call-digest/${call}` || (tool !== undefined && resource === `tool-digest/${tool}`)
}

/** One refused scope is enough for a no, and a yes needs all of them. */
function scopesAnswer(grants: readonly Grant[], { scope = [] }: ApprovalBinding): StoredApproval | undefined {
  const found = scope.map(digest => grants.filter(({ resource }) => resource === `scope-digest/${digest}`))
  const forbidden = found.flat().find(({ effect }) => effect === 'forbid')
  if (forbidden !== undefined) return storedApprovalOf(forbidden)
  const [first] = found[0] ?? []
  return first !== undefined && found.every(each => each.length > 0) ? storedApprovalOf(first) : undefined
}

/** What was allowed for a time without a question, by name. */
function isFor(resource: string, asked: Asked, { flaw, forOthers }: AskVerdict): boolean {
  // What is spelled in an unusual way, or what another server's event wants, was not what anybody had in mind who allowed it all.
  if (flaw !== undefined || forOthers === true) return false
  if (resource.startsWith('tool/')) return asked.tool !== undefined && matches(resource, `tool/${asked.tool}`)
  return resource.startsWith('set/') && matches(resource, `set/${asked.featureSet ?? ''}`)
}

function storedApprovalOf({ id, owner, effect, action, resource, expires }: Grant): StoredApproval {
  const at = resource.indexOf('/')
  const [what, name] = [resource.slice(0, at), resource.slice(at + 1)]
  const covers = /^(call|tool|scope)-digest$/.exec(what)?.[1] as Covers | undefined
  const about = covers !== undefined ? { digest: name, covers } : what === 'tool' ? { tool: name } : { featureSet: name }
  const server = decodeURIComponent(owner.slice(1))
  return { id, server, effect: effect === 'forbid' ? 'deny' : 'allow', kind: action, ...about, expires }
}

/** A key of stores, whatever the name of the server. */
function ownerOf(server: string): string {
  return `~${encodeURIComponent(server.toWellFormed())}`
}

// What an answer is bound to. A plain yes counts for exactly what was asked: this server (the one that is connected under the name),
// this definition of the tool, these arguments, asked for in this conversation by whoever began the turn. Only where the user chose
// something wider, which the question showed in words, does a yes count for more.

/**
 * How far an approval reaches. `call`: exactly what was asked. `tool`: every call of this tool, whatever its arguments. `scope`:
 * everything that the feature set does in these scopes.
 */
export type Covers = 'call' | 'tool' | 'scope'

/** A wider answer that the user may choose, and what it covers. */
export interface WiderAnswer {
  /** Pass it as `covers` of the answer. */
  readonly covers: Exclude<Covers, 'call'>
  /** What it covers, as a sentence. Show it before the user chooses. */
  readonly text: string
}

/** The digests of the answers that count for this, by how far they reach. Of `scope` one for each scope: all are needed. */
interface ApprovalBinding {
  readonly call: string
  readonly tool?: string
  readonly scope?: readonly string[]
}

/** `identity`: what is connected under the name of the server. */
export function boundOf(asked: Asked, asking: AskVerdict, identity: string | undefined): ApprovalBinding {
  const { kind, server, featureSet, tool, definition, payload, scope, tags, origin, begunBy, conversation } = asked
  const thing = { kind, server, identity, featureSet, tool, definition, payload, scope, tags, origin }
  const wider = widerAnswers(asked, asking)
  const offered = (covers: Covers): boolean => wider.some(one => one.covers === covers)
  return {
    call: bindingDigest({ covers: 'call', ...thing, begunBy, conversation }),
    ...(offered('tool') && {
      tool: bindingDigest({ covers: 'tool', server, identity, tool, definition, begunBy: initiatingServers(begunBy) }),
    }),
    ...(offered('scope') && {
      scope: asking.scopes.map(each => bindingDigest({ covers: 'scope', server, identity, featureSet, scope: each })),
    }),
  }
}

/** An unusual spelling is approved as it is or not at all: nobody has it in mind who approves more. */
export function widerAnswers(asked: Asked, { about, scopes, flaw }: AskVerdict): readonly WiderAnswer[] {
  if (flaw !== undefined) return []
  const answers: WiderAnswer[] = []
  if (asked.kind === 'tool' && asked.definition !== undefined) answers.push({ covers: 'tool', text: everyCall(asked) })
  if (about === 'scope' && scopes.length > 0) {
    const places = scopes.map(({ label, payload }) => echo(label) + (payload === undefined ? '' : ` (${echo(payload)})`))
    const who = `${clip(asked.featureSet ?? '')} of ${clip(asked.server)}`
    const text = `everything that ${who} does on ${places.join(', ')}, with any of its tools or on its own initiative`
    answers.push({ covers: 'scope', text })
  }
  return answers
}

function everyCall({ server, tool = '', begunBy }: Asked): string {
  const servers = initiatingServers(begunBy).map(each => clip(each))
  const turns = servers.length === 0 ? 'turns that you start' : `turns that events of ${servers.join(' and ')} start`
  return `every call of the tool ${clip(tool)} of ${clip(server)}, with any arguments, in all ${turns}`
}

/** SHA-256 over canonical JSON. */
export function bindingDigest(bound: unknown): string {
  return hash('sha256', canonicalJson(bound) ?? '', 'base64url')
}
