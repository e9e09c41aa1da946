/** Where sockets cannot be upgraded by us. */
import { needsNode } from '../../core/required-node.web.ts'

function noUpgrade(): never {
  throw needsNode(
    'Serving WebSockets (wsPath)',
    'Give the requests of the platform to server.fetch, which speaks Streamable HTTP',
  )
}

export const webSocketUpgrade = noUpgrade
export const authorizerGuard = noUpgrade
