import { digestText } from '../../../core/digest.ts'
import type { Grant, GrantTerms } from '../../../core/grant/grant.ts'
import type { Counting } from '../../../core/grant/grants.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { PermissionsParts } from './server.ts'

/** A name that no grant has: what is presented gives nothing. */
export const noGrant = '~none'

export interface SessionFacts {
  /** Names it to `revoke` and `extend`. */
  readonly session: string
  readonly scopes: readonly string[]
  /** Milliseconds since the epoch. */
  readonly expires: number
}

const kind = 'permissions'
const source = 'negotiation'

/** Sessions of grants that callers present. */
export class PermissionSessions {
  readonly #parts: PermissionsParts

  constructor(parts: PermissionsParts) {
    this.#parts = parts
  }

  /** The token of a new session. */
  async open(owner: string, id: string, scopes: readonly string[], ttlMs: number, idleMs: number, correlation?: string) {
    const anchor = { effect: 'permit', action: 'session', resource: 'session', idleMs, source, id } as const
    const permits = await Promise.all(scopes.map(scope => permitOf(id, scope)))
    // At once, so that there is no session with a part of its scopes, and no scope without its session.
    const grants = await (await this.#parts.grants()).issueAll(owner, [...permits, anchor], ttlMs, { correlation })
    const { expires } = grants.at(-1) as Grant
    const token = await this.#parts.seal.seal({ kind, principal: owner, expiresAt: expires, data: { id } })
    return { token, expires }
  }

  /** The session of a token that this owner presents; undefined for what is unknown, another's, revoked, or over. */
  async find(owner: string, token: unknown): Promise<Counting | undefined> {
    const data = await this.#parts.seal.open(token, { kind, principal: owner }).catch(() => undefined)
    const id = isRecord(data) ? data['id'] : undefined
    return typeof id === 'string' ? this.#anchor(owner, id) : undefined
  }

  /** All that a session gives now. */
  async scopesOf(owner: string, id: string): Promise<readonly string[]> {
    const name = sessionName(owner, id)
    return (await this.list(owner)).find(({ session }) => session === name)?.scopes ?? []
  }

  /** The names of the grants of scopes in a session, whether they exist or not. */
  permits(id: string, scopes: readonly string[]): Promise<readonly string[]> {
    return Promise.all(scopes.map(scope => permitId(id, scope)))
  }

  async extend(session: string, scopes: readonly string[]): Promise<boolean> {
    const { owner, id } = split(session)
    const found = await this.#anchor(owner, id)
    if (found === undefined) return false
    const left = found.grant.expires - this.#parts.clock.now()
    const grants = await this.#parts.grants()
    const permits = await Promise.all(scopes.map(scope => permitOf(id, scope)))
    const held = await Promise.all(permits.map(permit => grants.find(owner, permit.id)))
    const missing = permits.filter((_, at) => held[at] === undefined)
    if (missing.length > 0) await grants.issueAll(owner, missing, left)
    return true
  }

  /** Counts from the next decision on, and for what is under way. */
  async revoke(session: string): Promise<boolean> {
    const { owner, id } = split(session)
    const grants = await this.#parts.grants()
    const revoked = await grants.revoke(owner, id)
    for (const grant of await grants.list(owner)) if (grant.id.startsWith(`${id}.`)) await grants.revoke(owner, grant.id)
    return revoked
  }

  async list(owner: string): Promise<readonly SessionFacts[]> {
    const all = (await (await this.#parts.grants()).list(owner)).filter(grant => grant.source === source)
    return all
      .filter(({ id }) => !id.includes('.'))
      .map(({ id, expires }) => {
        const scopes = all.filter(grant => grant.id.startsWith(`${id}.`)).map(({ action }) => action)
        return { session: sessionName(owner, id), scopes, expires }
      })
  }

  async #anchor(owner: string, id: string): Promise<Counting | undefined> {
    const counting = await (await this.#parts.grants()).counting(owner, [id])
    return counting.find(({ grant }) => grant.id === id)
  }
}

async function permitOf(session: string, scope: string): Promise<GrantTerms & { readonly id: string }> {
  // As a pattern it would stand for others too.
  if (scope.includes('*')) throw new TypeError(`"${clip(scope)}" is no scope to grant: a star stands for more than itself`)
  return { effect: 'permit', action: scope, resource: '*', source, id: await permitId(session, scope) }
}

export function sessionName(owner: string, id: string): string {
  return `${owner}/${id}`
}

function split(session: string): { readonly owner: string; readonly id: string } {
  const [owner, id, more] = session.split('/')
  if (!owner || !id || more !== undefined) throw new TypeError(`"${clip(session)}" names no session of permissions`)
  return { owner, id }
}

async function permitId(id: string, scope: string): Promise<string> {
  return `${id}.${(await digestText(scope)).slice(0, 22)}`
}
