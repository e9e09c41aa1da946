/**
 * What somebody answered, kept on the store: approvals and refusals of exactly one thing, and grants for a time. They answer what
 * would be asked; what a rule or a blacklist refuses they never open, also where those came later.
 */
import type { Clock } from '../../core/clock.ts'
import type { Grant, GrantTerms } from '../../core/grant/grant.ts'
import { Grants } from '../../core/grant/grants.ts'
import { matches } from '../../core/grant/pattern.ts'
import type { Store } from '../../stores/store.ts'
import { storeWithin } from '../../stores/within.ts'
import type { Asking } from './judge.ts'
import type { Asked, Kind } from './rule.ts'

/** What a temporary grant covers. Stars stand for any characters. */
export interface GrantFor {
  readonly server: string
  /** Default all that may be asked about. */
  readonly kind?: Kind
  /** Default all. */
  readonly featureSet?: string
  /** Default all. Only of `tool`. */
  readonly tool?: string
}

/** An answer that is kept. */
export interface Kept {
  readonly id: string
  readonly server: string
  readonly effect: 'allow' | 'deny'
  readonly kind: string
  /** Undefined where it is about one single thing, known by its digest. */
  readonly featureSet?: string
  readonly tool?: string
  readonly digest?: string
  readonly expires: number
}

const yearMs = 366 * 86_400_000

export class Approvals {
  readonly #grants: Grants
  readonly #store: Store
  /** Of feature sets, which are selected without waiting. By server. */
  readonly #sets = new Map<string, readonly Grant[]>()

  constructor(store: Store, clock: Clock, id: () => string) {
    this.#store = storeWithin(store, 'policy/')
    this.#grants = new Grants({ store: this.#store, clock, id, mostMs: yearMs })
  }

  /** Reads what was answered about feature sets. */
  async load(): Promise<void> {
    const owners = new Set<string>()
    for (let after: string | undefined; ; ) {
      const page = await this.#store.scan('grant/', after === undefined ? {} : { after })
      for (const { key } of page) owners.add(key.split('/')[1] ?? '')
      after = page.at(-1)?.key
      if (after === undefined) break
    }
    this.#sets.clear()
    for (const owner of owners) await this.#loadSets(owner)
  }

  async #loadSets(owner: string): Promise<void> {
    const grants = (await this.#grants.list(owner)).filter(({ action }) => matches(action, 'set'))
    if (grants.length > 0) this.#sets.set(owner, grants)
    else this.#sets.delete(owner)
  }

  /** What was answered to this, if anything was. Of several answers a refusal counts. */
  async find(asked: Asked, asking: Asking, digest: string): Promise<Kept | undefined> {
    return answer(
      (await this.#grants.counting(ownerOf(asked.server), [])).map(({ grant }) => grant),
      asked,
      asking,
      digest,
    )
  }

  /** The same for a feature set, at once. */
  findSet(asked: Asked, asking: Asking, digest: string): Kept | undefined {
    const now = this.#grants.clock.now()
    const alive = (this.#sets.get(ownerOf(asked.server)) ?? []).filter(({ expires }) => expires > now)
    return answer(alive, asked, asking, digest)
  }

  /** When the next answer about a feature set ends. */
  nextEnd(): number {
    return Math.min(...[...this.#sets.values()].flat().map(({ expires }) => expires), Number.POSITIVE_INFINITY)
  }

  /** Keeps an answer to exactly this. */
  async keep(asked: Asked, kind: Kind, digest: string, yes: boolean, forMs: number): Promise<Kept> {
    return this.#issue(asked.server, { effect: yes ? 'permit' : 'forbid', action: kind, resource: `digest/${digest}` }, forMs)
  }

  async grant({ server, kind, featureSet, tool }: GrantFor, forMs: number): Promise<Kept> {
    const resource = tool === undefined ? `set/${featureSet ?? '*'}` : `tool/${tool}`
    return this.#issue(server, { effect: 'permit', action: tool === undefined ? (kind ?? '*') : 'tool', resource }, forMs)
  }

  async #issue(server: string, terms: Omit<GrantTerms, 'source' | 'standing'>, forMs: number): Promise<Kept> {
    const owner = ownerOf(server)
    const grant = await this.#grants.issue(owner, { ...terms, standing: true, source: 'approval' }, Math.min(forMs, yearMs))
    if (matches(grant.action, 'set')) await this.#loadSets(owner)
    return keptOf(grant)
  }

  async list(server: string): Promise<readonly Kept[]> {
    return (await this.#grants.list(ownerOf(server))).map(keptOf)
  }

  async revoke(server: string, id: string): Promise<boolean> {
    const revoked = await this.#grants.revoke(ownerOf(server), id)
    await this.#loadSets(ownerOf(server))
    return revoked
  }
}

function answer(grants: readonly Grant[], asked: Asked, asking: Asking, digest: string): Kept | undefined {
  const found = grants.filter(({ action, resource }) => matches(action, asking.about) && isFor(resource, asked, asking, digest))
  const grant = found.find(({ effect }) => effect === 'forbid') ?? found.find(({ effect }) => effect === 'permit')
  return grant && keptOf(grant)
}

function isFor(resource: string, asked: Asked, { flaw }: Asking, digest: string): boolean {
  if (resource.startsWith('digest/')) return resource === `digest/${digest}`
  // What is spelled in an unusual way was not what anybody had in mind who allowed it all.
  if (flaw !== undefined) return false
  if (resource.startsWith('tool/')) return asked.tool !== undefined && matches(resource, `tool/${asked.tool}`)
  return matches(resource, `set/${asked.featureSet ?? ''}`)
}

function keptOf({ id, owner, effect, action, resource, expires }: Grant): Kept {
  const at = resource.indexOf('/')
  const [what, name] = [resource.slice(0, at), resource.slice(at + 1)]
  const about = what === 'digest' ? { digest: name } : what === 'tool' ? { tool: name } : { featureSet: name }
  const server = decodeURIComponent(owner.slice(1))
  return { id, server, effect: effect === 'forbid' ? 'deny' : 'allow', kind: action, ...about, expires }
}

/** A key of stores, whatever the name of the server. */
function ownerOf(server: string): string {
  return `~${encodeURIComponent(server.toWellFormed())}`
}
