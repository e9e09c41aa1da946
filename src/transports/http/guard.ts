/**
 * Host and Origin checks: what keeps a web page from reaching a local server under its own name (DNS rebinding) or
 * from the visitor's browser. On by default on every listener, before anything else of a request is looked at.
 */
import { clip } from '../../jsonrpc/limits.ts'
import { authority, checkNames, type GuardNames } from './names.ts'
import type { Refusal } from './refusal.ts'

export interface GuardOptions extends GuardNames {
  /** The address listened on; a name or a single address is answered to, a wildcard address is not a name. */
  readonly host?: string
}

/** The parts of a request that the guard looks at; a node:http request is one. */
interface GuardedRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Names and values as they came: the only place where a second Host shows. */
  readonly rawHeaders: readonly string[]
}

export interface Guard {
  check(host: string | undefined, origin: string | undefined): Refusal | undefined
  /** The same for a node:http request, upgrade requests included. */
  checkRequest(request: GuardedRequest): Refusal | undefined
  /** True for an origin that the author listed: it may read answers. */
  lists(origin: string): boolean
}

const webOrigin = /^https?:\/\/(.+)$/
const loopback: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
const wildcardBinds: readonly string[] = ['0.0.0.0', '::', '']

export function createGuard(options: GuardOptions = {}): Guard {
  checkNames(options)
  const hosts = new Set([...loopback, ...(options.hosts ?? []).map(name => name.toLowerCase())])
  if (options.host !== undefined && !wildcardBinds.includes(options.host)) hosts.add(bracketed(options.host.toLowerCase()))
  const origins = new Set((options.origins ?? []).map(origin => origin.toLowerCase().replace(/\/$/, '')))
  let lastGoodHost: string | undefined

  function check(host: string | undefined, origin: string | undefined): Refusal | undefined {
    if (host === undefined || host !== lastGoodHost) {
      const refusal = checkHost(host, hosts)
      if (refusal !== undefined) return refusal
      lastGoodHost = host
    }
    return origin === undefined || lists(origin) || isLoopbackOrigin(origin) ? undefined : badOrigin(origin)
  }

  function lists(origin: string): boolean {
    return origins.size > 0 && (origins.has('*') || origins.has(origin.toLowerCase()))
  }

  return {
    check,
    lists,
    checkRequest({ headers, rawHeaders }) {
      if (countHosts(rawHeaders) > 1) return twoHosts
      return check(single(headers.host) ?? single(headers[':authority']), single(headers.origin))
    },
  }
}

function checkHost(host: string | undefined, allowed: ReadonlySet<string>): Refusal | undefined {
  if (host === undefined || host === '') {
    return { status: 400, message: 'The request has no Host header. Send one (RFC 9112 §3.2)' }
  }
  if (host.includes(',')) return twoHosts
  if (allowed.has('*')) return undefined
  const parts = authority.exec(host.toLowerCase())
  if (parts !== null && (allowed.has(parts[1] ?? '') || allowed.has(parts[0]))) return undefined
  return {
    status: 403,
    message: `Host ${clip(host)} is not one this server answers to. Call it by a loopback name, or list the name in the option hosts (vivarium serve: --hosts)`,
  }
}

const twoHosts: Refusal = { status: 400, message: 'The request has more than one Host header. Send exactly one (RFC 9112 §3.2)' }

/** Pages of this origin would have to be listed. */
function badOrigin(origin: string): Refusal {
  return {
    status: 403,
    message: `This origin may not call the server (CORS). If its pages should, give listen, fetchWith or the adapter the option origins: ['${clip(origin)}']`,
  }
}

function isLoopbackOrigin(origin: string): boolean {
  const host = webOrigin.exec(origin.toLowerCase())?.[1]
  const parts = host === undefined ? null : authority.exec(host)
  return parts !== null && loopback.includes(parts[1] ?? '')
}

/** Hosts in a flat list of raw headers, by length first: almost no other name has four letters. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && (name === 'Host' || name === 'host' || name.toLowerCase() === 'host')) count++
  }
  return count
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

// Cross-origin answers, for origins that the author listed and for no other. Cookies are never invited.

const exposed = 'mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, ratelimit, ratelimit-policy'
const names = /^[\w!#$%&'*+.^`|~-]+(?: *, *[\w!#$%&'*+.^`|~-]+)*$/

/** Headers (flat) that let the page read an answer; none for an origin that is not listed. */
export function corsHeaders(guard: Guard, origin: string | undefined): readonly string[] {
  if (origin === undefined || !guard.lists(origin)) return none
  return ['access-control-allow-origin', origin, 'access-control-expose-headers', exposed, 'vary', 'origin']
}

/** Headers (flat) of the answer to a preflight, or undefined when the origin is not listed or it is no preflight. */
export function preflightHeaders(
  guard: Guard,
  origin: string | undefined,
  method: string | undefined,
  requested: string | undefined,
): string[] | undefined {
  if (origin === undefined || method === undefined || !guard.lists(origin)) return undefined
  const headers = ['access-control-allow-origin', origin, 'access-control-allow-methods', 'GET, POST, DELETE']
  // Parameter headers have names of the author's choice, so the wish is granted as it came, if it is a list of names.
  if (requested !== undefined && requested.length <= 2048 && names.test(requested)) {
    headers.push('access-control-allow-headers', requested)
  }
  headers.push('access-control-max-age', '600', 'vary', 'origin, access-control-request-headers')
  return headers
}

/** Tells whoever looks into a preflight that failed what would let it pass; undefined where it is no preflight. */
export function preflightRefusal(origin: string | undefined, method: string | undefined): Refusal | undefined {
  return origin === undefined || method === undefined ? undefined : badOrigin(origin)
}

const none: readonly string[] = []
