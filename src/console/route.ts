/** What a route is: the role that it needs, what it takes, and what it gives. */
import type { Awaitable } from '../jsonrpc/message.ts'
import type { ConsoleApi, ConsoleRoute } from './contract/api.ts'
import type { Role } from './contract/session.ts'
import type { OpenSession } from './login.ts'
import type { Members } from './query.ts'

/** A request that passed the guard, with its session. */
export interface ApiRequest {
  readonly session: OpenSession
  /** Whether it may see exact arguments and definitions. */
  readonly whole: boolean
  readonly names: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | number>>
  readonly body: Readonly<Record<string, unknown>>
}

/** A route of the table. `any`: every session; `none`: no session is needed. */
export interface Route<Answer = object | undefined> {
  readonly role: Role | 'any' | 'none'
  readonly query: Members
  readonly body: Members
  /** The status of a success. */
  readonly status: 200 | 202 | 204
  /** Whether it changes something, which is then written down. */
  readonly writes: boolean
  /** A success is written down by what it does, so only refusals are noted. */
  readonly notesItself?: true
  answer(request: ApiRequest): Awaitable<Answer>
}

/** Routes by method and path; the compiler holds them against the contract. */
export type Table = {
  readonly [Key in keyof ConsoleApi]?: Route<ConsoleApi[Key] extends ConsoleRoute ? ConsoleApi[Key]['answer'] : never>
}

/** A route that takes nothing and changes nothing. */
export const nothing = { query: {}, body: {}, status: 200, writes: false } as const
