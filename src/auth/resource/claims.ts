/** What a token says → who it is, or why it is not good here. One place for JWTs and for what an issuer tells of other tokens. */
import { isScope } from '../../core/scope.ts'
import type { Principal } from '../../jsonrpc/connection.ts'

interface Expected {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly now: number
}

/** How far our clock and the issuer's may differ. */
export const skewMs = 60_000

type Claims = Readonly<Record<string, unknown>>

/** A principal, or what is wrong with the token in the words that its bearer is told. */
export function principalOf(claims: Claims, { issuer, audiences, now }: Expected): Principal | string {
  const { iss, sub, exp, nbf } = claims
  if (iss !== issuer) return 'it is of another issuer'
  if (!namesOneOf(claims['aud'], audiences)) return 'it was made for another audience'
  // Without a subject all users of a client would be one.
  if (typeof sub !== 'string' || sub === '') return 'it names no subject'
  // Whoever cannot check the proof that belongs to it must not take such a token as one of a bearer (RFC 9449 §7.1).
  if (claims['cnf'] !== undefined) return 'it is bound to a key, and only bearer tokens are taken here'
  if (exp !== undefined && !(typeof exp === 'number' && exp * 1000 + skewMs > now)) return 'it has expired'
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf * 1000 - skewMs <= now)) return 'it is not valid yet'
  const expiresAt = exp === undefined ? undefined : exp * 1000
  return toPrincipal({ issuer, subject: sub, client: clientOf(claims), scopes: scopesOf(claims), expiresAt, claims })
}

/** The three parts as one text; no two triples have the same. */
export function toPrincipal(parts: Omit<Principal, 'id'>): Principal {
  return { id: JSON.stringify([parts.issuer, parts.subject, parts.client ?? null]), ...parts }
}

function namesOneOf(aud: unknown, audiences: readonly string[]): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.some(each => typeof each === 'string' && audiences.includes(each))
}

/** RFC 9068 calls it `client_id`; issuers that are older than that have names of their own. */
function clientOf(claims: Claims): string | undefined {
  for (const name of ['client_id', 'azp', 'cid', 'appid']) {
    const client = claims[name]
    if (typeof client === 'string' && client !== '') return client
  }
  return undefined
}

/** `scope` is one text, `scp` mostly a list; each is seen in both forms. What is no scope grants nothing. */
function scopesOf(claims: Claims): readonly string[] {
  const found = claims['scope'] ?? claims['scp']
  const all: readonly unknown[] = typeof found === 'string' ? found.split(' ') : Array.isArray(found) ? found : []
  return all.filter(isScope)
}
