/**
 * Which requests reach the console at all. Stricter than the guard of the MCP endpoint, which lets any loopback origin in: the host and the
 * origin must be exactly ours, because other programs of this machine serve pages too.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { ConsoleFailure } from './failure.ts'

/** The parts of a request that the guard reads. */
export interface GuardedRequest {
  readonly method: string
  /** The request target as it was sent. */
  readonly url: string
  readonly headers: IncomingHttpHeaders
}

/** The longest request target. */
const mostUrl = 4_096

/** The host and origin under which a console on this port is reached. */
export function hostOf(port: number): string {
  return `127.0.0.1:${port}`
}

/** The address to which a request by another name of this machine is sent; undefined where it is not to be redirected. */
export function redirectOf({ method, url, headers }: GuardedRequest, port: number): string | undefined {
  const isOther = headers.host === `localhost:${port}`
  return method === 'GET' && url === '/' && isOther ? `http://${hostOf(port)}/` : undefined
}

/** Throws unless the request comes from our own page, or from a program that sends no origin. */
export function checkRequest({ method, url, headers }: GuardedRequest, port: number): void {
  const host = hostOf(port)
  if (headers.host !== host) throw refused(`The host of the request is not ${host}.`, `Open http://${host}/`)
  if (
    !/^\/(?!\/)[\x21-\x7e]*$/.test(url) ||
    url.length > mostUrl ||
    /\\|\/\.{1,2}(?:\/|$)|%2e%2e|%2e\.|\.%2e|%5c|%00/i.test(pathOf(url))
  )
    throw new ConsoleFailure('NOT_FOUND', 'The path is not valid.', `Open http://${host}/`)
  const origin = `http://${host}`
  const site = headers['sec-fetch-site']
  const isApi = pathOf(url).startsWith('/api/') || pathOf(url) === '/api'
  if (isApi && site !== undefined && site !== 'same-origin' && site !== 'none')
    throw refused('Another site sent the request.', `Use the page at ${origin}/`)
  if (headers.origin !== undefined && headers.origin !== origin)
    throw refused(`The origin of the request is not ${origin}.`, `Use the page at ${origin}/`)
  if (method === 'GET') return
  if (method !== 'POST' && method !== 'DELETE')
    throw new ConsoleFailure(
      'METHOD_REFUSED',
      `The console takes no ${shownMethod(method)} requests.`,
      'Use GET, POST or DELETE.',
    )
  // A program that shows its session in a header instead of a cookie cannot be tricked by a page, so it needs no origin.
  if (headers.origin === undefined && headers.authorization === undefined)
    throw refused('The request has no origin.', `Use the page at ${origin}/`)
  if (headers['x-vivarium'] !== '1') throw refused('The header x-vivarium is missing.', 'Send x-vivarium: 1')
  if (headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() !== 'application/json')
    throw new ConsoleFailure('MEDIA_TYPE_REFUSED', 'The body is not declared as JSON.', 'Send content-type: application/json')
}

/** The path of a request target, still encoded. */
export function pathOf(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? ''
}

function shownMethod(method: string): string {
  return /^[A-Z]{1,16}$/.test(method) ? method : 'such'
}

function refused(message: string, fix: string): ConsoleFailure {
  return new ConsoleFailure('ORIGIN_REFUSED', message, fix)
}
