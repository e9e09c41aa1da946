/** The token that a request brings (RFC 6750 §2.1): in the Authorization header, once, and nowhere else. */
import type { Entrance, HeaderReader } from '../../core/authorizer.ts'

/** Undefined when there is none. `fault`: something was brought that is no such token. */
export type Brought = { readonly token: string } | { readonly fault: string } | undefined

/** Longer ones are not looked at. */
const longestToken = 16 * 1024

const tokenSyntax = /^[A-Za-z0-9\-._~+/]+=*$/

export function bearerOf(header: HeaderReader, entrance: Entrance): Brought {
  if (holdsToken(entrance.url))
    return { fault: 'A token in the address is not taken: it would stand in logs. Send it in the Authorization header' }
  const value = header('authorization')
  if (value === undefined) return undefined
  if (entrance.repeats('authorization')) return { fault: 'The request has more than one Authorization header. Send one' }
  // The scheme is written in any case, and one that is not ours is as good as none.
  if (!/^bearer(?: |$)/i.test(value)) return undefined
  const token = value.slice(7).trimStart()
  if (token.length > longestToken) return { fault: `The token is longer than ${longestToken} characters` }
  return tokenSyntax.test(token) ? { token } : { fault: 'The Authorization header does not hold one bearer token' }
}

function holdsToken(url: string): boolean {
  const at = url.indexOf('?')
  return at !== -1 && new URLSearchParams(url.slice(at)).has('access_token')
}
