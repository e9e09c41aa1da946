/** All routes that a host has beside those of every console. */

import type { Table } from '../route.ts'
import type { AgentSource } from './agent.ts'
import { chatRoutes } from './chat-routes.ts'
import { grantRoutes } from './grant-routes.ts'
import { inboxRoutes } from './inbox-routes.ts'
import { stateRoutes } from './state-routes.ts'

/** The routes of conversations, inbox, states, explanations and grants. */
export function hostRoutes(agent: AgentSource): Table {
  const parts: readonly ((agent: AgentSource) => Table)[] = [chatRoutes, inboxRoutes, stateRoutes, grantRoutes]
  return Object.assign({}, ...parts.map(routes => routes(agent))) as Table
}
