/**
 * The sessions of permissions: sets of grants that a client presents by one token. A session is one anchor grant plus one grant per
 * scope. Separate, because decisions and the operator's API both use it.
 */

import { digestText } from '../../../core/digest.ts'
import type { Grant, GrantTerms } from '../../../core/grant/grant.ts'
import type { VersionedGrant } from '../../../core/grant/grants.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { PermissionsParts } from './server.ts'

/** A session, as the operator sees it. */
export interface SessionFacts {
  /** Its id, for `revoke` and `extend`. */
  readonly session: string
  /** The granted scopes. */
  readonly scopes: readonly string[]
  /** Milliseconds since the epoch. */
  readonly expires: number
}

const kind = 'permissions'
const source = 'negotiation'

/** Opens, finds, extends and revokes sessions. */
export class PermissionSessions {
  readonly #parts: PermissionsParts

  constructor(parts: PermissionsParts) {
    this.#parts = parts
  }

  /** Opens a session; returns its token. */
  async open(owner: string, id: string, scopes: readonly string[], ttlMs: number, idleMs: number, correlation?: string) {
    const anchor = { effect: 'permit', action: 'session', resource: 'session', idleMs, source, id } as const
    const permits = await Promise.all(scopes.map(scope => permitOf(id, scope)))
    // In one commit, so that a session never has only some of its scopes.
    const grants = await (await this.#parts.grants()).issueAll(owner, [...permits, anchor], ttlMs, { correlation })
    const { expires } = grants.at(-1) as Grant
    const token = await this.#parts.seal.seal({ kind, principal: owner, expiresAt: expires, data: { id } })
    return { token, expires }
  }

  /** The session of a token; undefined if it is unknown, another owner's, revoked or expired. */
  async find(owner: string, token: unknown): Promise<VersionedGrant | undefined> {
    const data = await this.#parts.seal.open(token, { kind, principal: owner }).catch(() => undefined)
    const id = isRecord(data) ? data['id'] : undefined
    return typeof id === 'string' ? this.#anchor(owner, id) : undefined
  }

  /** The current scopes of a session. */
  async scopesOf(owner: string, id: string): Promise<readonly string[]> {
    const name = sessionName(owner, id)
    return (await this.list(owner)).find(({ session }) => session === name)?.scopes ?? []
  }

  /** The grant ids of scopes in a session, whether they exist or not. */
  permits(id: string, scopes: readonly string[]): Promise<readonly string[]> {
    return Promise.all(scopes.map(scope => permitId(id, scope)))
  }

  /** Adds scopes to a session; false if it has ended. */
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

  /** Ends a session; also affects running calls. */
  async revoke(session: string): Promise<boolean> {
    const { owner, id } = split(session)
    const grants = await this.#parts.grants()
    const revoked = await grants.revoke(owner, id)
    for (const grant of await grants.list(owner)) if (grant.id.startsWith(`${id}.`)) await grants.revoke(owner, grant.id)
    return revoked
  }

  /** The sessions of an owner. */
  async list(owner: string): Promise<readonly SessionFacts[]> {
    const all = (await (await this.#parts.grants()).list(owner)).filter(grant => grant.source === source)
    return all
      .filter(({ id }) => !id.includes('.'))
      .map(({ id, expires }) => {
        const scopes = all.filter(grant => grant.id.startsWith(`${id}.`)).map(({ action }) => action)
        return { session: sessionName(owner, id), scopes, expires }
      })
  }

  // The grant that stands for the session itself.
  async #anchor(owner: string, id: string): Promise<VersionedGrant | undefined> {
    const counting = await (await this.#parts.grants()).counting(owner, [id])
    return counting.find(({ grant }) => grant.id === id)
  }
}

async function permitOf(session: string, scope: string): Promise<GrantTerms & { readonly id: string }> {
  // A star would match other scopes too.
  if (scope.includes('*'))
    throw new TypeError(`"${clip(scope)}" cannot be granted: a scope with "*" would match other scopes too`)
  return { effect: 'permit', action: scope, resource: '*', source, id: await permitId(session, scope) }
}

/** The id of a session, for the operator's API. */
export function sessionName(owner: string, id: string): string {
  return `${owner}/${id}`
}

// The reverse of `sessionName`.
function split(session: string): { readonly owner: string; readonly id: string } {
  const [owner, id, more] = session.split('/')
  if (!owner || !id || more !== undefined) throw new TypeError(`"${clip(session)}" is not the name of a permission session`)
  return { owner, id }
}

async function permitId(id: string, scope: string): Promise<string> {
  return `${id}.${(await digestText(scope)).slice(0, 22)}`
}
