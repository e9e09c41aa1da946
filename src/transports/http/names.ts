/**
 * The host names and origins that a guard allows. They are checked when they are given, because a name in the wrong form would
 * never match and fail silently. Separate from the guard, so that commands can check options without loading it.
 */
import { clip } from '../../jsonrpc/limits.ts'

/** The host names and origins that a server accepts in addition to loopback. */
export interface GuardNames {
  /** Host names to accept: `api.example.com` (any port) or `api.example.com:8443`. `*`: any. Default: loopback names only. */
  readonly hosts?: readonly string[]
  /** Origins of web pages that may call and read answers (CORS): `https://app.example.com`. `*`: any. Default: loopback origins only. */
  readonly origins?: readonly string[]
}

/** A host with an optional port, in lower case; an IPv6 address in brackets. */
export const authority = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_-](?:[a-z0-9._-]{0,252}))(?::(\d{1,5}))?$/
/** An origin; browser extensions have schemes of their own, and pages without an origin send `null`. */
const origin = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/\s]+\/?|null)$/

/** Throws a TypeError with an example if a name has the wrong form. */
export function checkNames({ hosts, origins }: GuardNames): void {
  checkEach('hosts', hosts, authority, "['api.example.com']")
  checkEach('origins', origins, origin, "['https://app.example.com']")
}

function checkEach(option: string, given: unknown, form: RegExp, example: string): void {
  if (given === undefined) return
  if (!Array.isArray(given))
    throw new TypeError(`${option} is ${clip(JSON.stringify(given) ?? '')}: give a list such as ${example}`)
  for (const name of given) {
    if (name === '*' || (typeof name === 'string' && form.test(name.toLowerCase()))) continue
    throw new TypeError(
      `${option} has ${clip(JSON.stringify(name) ?? 'undefined')}: give names such as ${example}, or ['*'] for any`,
    )
  }
}

/** True if a listener bound to this host is reachable from this machine only. Undefined stands for the default, loopback. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host === undefined || host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
