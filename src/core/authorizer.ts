/** The contract between carriers, which see what a request brings, and whoever can tell what that proves. */
import type { Principal } from '../jsonrpc/connection.ts'
import type { Awaitable } from '../jsonrpc/message.ts'

/** Reads a request header by its lower-case name. */
export type HeaderReader = (name: string) => string | undefined

/** What a carrier knows of a request beyond its headers. */
export interface Entrance {
  /** Path and query as they came, or the whole address. */
  readonly url: string
  /** Whether a header came more than once: of some only the first is shown. */
  repeats(name: string): boolean
}

/** A refusal at the door, as HTTP has it. */
export interface Denial {
  readonly status: number
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Authorizer {
  /** Who calls, or why nobody gets in. An answer that is known already comes at once. */
  identify(header: HeaderReader, entrance: Entrance): Awaitable<Principal | Denial | undefined>
  /** Headers of an HTTP refusal that asks for more scopes than the caller has. */
  challenge(principal: Principal | undefined, scopes: readonly string[]): Readonly<Record<string, string>>
  /** The public JSON document at this path, for whoever wants to know where authorization is had (RFC 9728). */
  document(path: string): string | undefined
}
