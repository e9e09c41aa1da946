/** What every way to authorize is told about the server that it is for. */

import type { Clock } from '../../core/clock.ts'
import type { Credentials } from '../../core/credentials.ts'
import type { Outbound } from '../../core/outbound.ts'

export interface AuthorizationContext {
  /** The address of the MCP server, by http or https. */
  readonly server: URL
  /** The way to addresses that a peer chose; `allow` lists special ranges that are meant all the same. */
  readonly reach: (allow: readonly string[]) => Outbound
  /** The revisions that the client speaks, by their ids. */
  readonly revisions: readonly string[]
  readonly clock: Clock
  /** How the client names itself when it registers. */
  readonly clientName: string
  readonly trace: (event: string, detail: unknown) => void
}

/** The same, once it is said what may be reached. */
export interface Surroundings extends AuthorizationContext {
  readonly outbound: Outbound
}

/** A way to authorize, as `connect` takes it. Made by `oauth`, `clientCredentials`, `enterprise`, `workloadIdentity` and `bearer`. */
export interface Authorization {
  authorizer(context: AuthorizationContext): Credentials
}

/** Whether a revision as new as this one is spoken. */
export function speaksSince({ revisions }: AuthorizationContext, first: string): boolean {
  return revisions.some(id => id.startsWith('draft-') || (/^\d/.test(id) && id >= first))
}
