/** All routes that a host has beside those of every console. */
import type { AgentSource } from './agent.ts'
import { chatRoutes } from './chat-routes.ts'
import { grantRoutes } from './grant-routes.ts'
import { inboxRoutes } from './inbox-routes.ts'
import { stateRoutes } from './state-routes.ts'
import type { HostTable } from './table.ts'

/** The routes of conversations, inbox, states, explanations and grants. */
export function hostRoutes(agent: AgentSource): HostTable {
  const parts: readonly ((agent: AgentSource) => HostTable)[] = [chatRoutes, inboxRoutes, stateRoutes, grantRoutes]
  return Object.assign({}, ...parts.map(routes => routes(agent))) as HostTable
}
