/** The shape of the route table of a host. */
import type { HostApi } from '../contract/host-api.ts'
import type { Route } from '../routes.ts'

/** Routes of a host, held against the contract by the compiler. */
export type HostTable = {
  readonly [Key in keyof HostApi]?: Route<HostApi[Key]['answer']>
}

/** A route that takes nothing and changes nothing. */
export const nothing = { query: {}, body: {}, status: 200, writes: false } as const
