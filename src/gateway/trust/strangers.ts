/** Callers that are none of the clients which a gateway names: they find nothing in lists, and whatever they ask for is refused. */
import { type Problem, problem } from '../../core/problem.ts'
import type { Layer } from '../../engine/stages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import type { Clients } from './clients.ts'

/** What says nothing of what is behind the gateway; lists come back empty. */
const open: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'logging/setLevel',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
])

export function strangerLayer(clients: Clients): Layer {
  return {
    stage: 'enter',
    when: ({ caller, route: { method }, id }) => id !== undefined && clients.isStranger(caller) && !open.has(method.name),
    run: ({ caller }) => {
      throw unknownClient(clients, caller)
    },
  }
}

function unknownClient(clients: Clients, caller: Caller): Problem {
  const name = clients.nameOf(caller)
  const why =
    caller.principal === undefined
      ? `you come without a token, and this gateway has no client "${name}"`
      : 'your token is valid, but it belongs to none of the clients that this gateway serves'
  return problem('PERMISSION_DENIED', `The request is refused: ${why}`, {
    suggestion: 'Ask whoever runs the gateway to add you to its clients',
    actor: 'operator',
    details: { client: name },
  })
}
