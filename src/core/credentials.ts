import type { Principal } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'

/**
 * What carriers with headers ask for when a server wants to know who calls. Implemented by the room that knows OAuth; a
 * carrier knows only that a refused request did not run, and may therefore be sent again with better credentials.
 */

/** The headers that carry credentials. */
export type CredentialHeaders = Readonly<Record<string, string>>

/** A response that asks for credentials, or for other ones. */
export interface CredentialRefusal {
  /** 401, or 403 with a challenge. */
  readonly status: number
  /** Returns a response header by its name. */
  readonly header: (name: string) => string | undefined
  /** What the refused request was sent with. */
  readonly sent: CredentialHeaders | undefined
  /** How often this request was refused so far, this time included. */
  readonly times: number
  /** Aborted when the request is no longer wanted. */
  readonly signal: AbortSignal
}

/** Adds credentials to the requests of a client, and reacts when the server refuses them. */
export interface Credentials {
  /** Returns the headers for a request. A promise if something must be signed or fetched first. */
  headers(method: string, url: URL): CredentialHeaders | undefined | Promise<CredentialHeaders | undefined>
  /** Resolves if the request should be sent again; rejects with the reason if not. */
  refused(refusal: CredentialRefusal): Promise<void>
  /** Called with the headers of every other response. Absent: they do not matter. */
  answered?(header: (name: string) => string | undefined): void
}

/** The refusal can be met: credentials are missing or too old (401), or allow too little (403 with a challenge). */
export function wantsCredentials(status: number, challenge: string | null | undefined): boolean {
  return status === 401 || lacksScope(status, challenge)
}

/** The credentials are valid, but do not have a scope that the request requires (RFC 6750 section 3.1). */
export function lacksScope(status: number | undefined, challenge: string | null | undefined): boolean {
  return status === 403 && typeof challenge === 'string' && /insufficient_scope/i.test(challenge)
}

/** A parameter of a challenge, such as `scope` or `error`. Undefined if the challenge does not have it. */
export function challengeParameter(challenge: string | null | undefined, name: string): string | undefined {
  const value = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`, 'i').exec(challenge ?? '')
  const found = value?.[1]?.replace(/\\(.)/g, '$1') ?? value?.[2]
  return found === '' ? undefined : found
}

// The contract between carriers, which see what a request brings, and whoever can tell what that proves.

/** Reads a request header by its lower-case name. */
export type HeaderReader = (name: string) => string | undefined

/** What a carrier knows of a request beyond its headers. */
export interface HttpRequestFacts {
  /** Path and query as they came, or the whole address. */
  readonly url: string
  /** Whether a header came more than once: of some only the first is shown. */
  repeats(name: string): boolean
  /** The network address from which it came, where that is known. */
  readonly address?: string | undefined
}

/** A refusal at the door, as HTTP has it. */
export interface CredentialDenial {
  /** Of the HTTP response. */
  readonly status: number
  /** For people. */
  readonly message: string
  /** With the challenge, where there is one. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The server's side of authorization: who calls, and what a caller without the right credentials is told. */
export interface Authorizer {
  /** Who calls, or why nobody gets in. An answer that is known already comes at once. */
  identify(header: HeaderReader, entrance: HttpRequestFacts): Awaitable<Principal | CredentialDenial | undefined>
  /** Headers of an HTTP refusal that asks for more scopes than the caller has. */
  challenge(principal: Principal | undefined, scopes: readonly string[]): Readonly<Record<string, string>>
  /** The public JSON document at this path, for whoever wants to know where authorization is had (RFC 9728). */
  document(path: string): string | undefined
  /** Grows each time that somebody is shut out: whoever was identified before that is identified anew before it is served. */
  readonly epoch: number
  /**
   * Whether the token by which this principal was let in would let it in now: for what stays open after that. Asks no oftener than for
   * a caller that sends one request after the other; while nothing can be found out, the answer is yes until the token expires.
   */
  holds(principal: Principal): Awaitable<boolean>
}
