/** What a caller wants sent, checked once. */
import { OutboundError, type OutboundRequest } from '../../core/outbound.ts'
import { clip } from '../../jsonrpc/limits.ts'

export interface Draft {
  readonly method: string
  readonly headers: Headers
  readonly body: Uint8Array | undefined
  readonly redirect: 'follow' | 'manual' | 'error'
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** What decides about the connection, the framing or the sender's name is the guard's alone. */
const own =
  /^(host|connection|content-length|transfer-encoding|accept-encoding|cookie2?|te|trailer|upgrade|expect|keep-alive|proxy-.*)$/

/** The headers that may go to an origin other than the one they were meant for. */
const harmless = new Set(['accept', 'accept-language', 'mcp-protocol-version', 'user-agent'])

export function draftOf({ method = 'GET', headers, body, redirect = 'follow' }: OutboundRequest): Draft {
  const verb = method.toUpperCase()
  if (!methods.has(verb))
    throw new OutboundError('refused', `The method ${clip(method)} is refused: use ${[...methods].join(', ')}`)
  const list = new Headers(headers)
  for (const name of list.keys())
    if (own.test(name))
      throw new OutboundError('refused', `The header ${clip(name)} is refused: it is set here alone; leave it out`)
  const bytes = body === undefined || body === null ? undefined : bytesOf(body, list)
  if (bytes !== undefined && (verb === 'GET' || verb === 'HEAD'))
    throw new OutboundError('refused', `A ${verb} with a body is refused: leave the body out, or use POST`)
  return { method: verb, headers: list, body: bytes, redirect }
}

/** For another origin: no credentials, and nothing that could be one. */
export function withoutSecrets(draft: Draft): Draft {
  return { ...draft, headers: new Headers([...draft.headers].filter(([name]) => harmless.has(name))) }
}

function bytesOf(body: string | URLSearchParams | Uint8Array, headers: Headers): Uint8Array {
  if (body instanceof Uint8Array) return body
  if (body instanceof URLSearchParams && !headers.has('content-type'))
    headers.set('content-type', 'application/x-www-form-urlencoded;charset=UTF-8')
  return new TextEncoder().encode(String(body))
}
