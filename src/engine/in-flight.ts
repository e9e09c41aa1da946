/** How many calls are being handled: per conversation, per principal where each call is a conversation of its own, and in all. */
import { Tally } from '../core/tally.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Exchange } from './exchange.ts'
import type { Limits } from './limits.ts'

export class InFlight {
  readonly #limits: Limits
  /** Of stateless calls: whatever else one principal sends at once is not held against another one. */
  readonly #principals = new Tally<string>()
  #all = 0
  /** Made once: in a flood each would cost more, by its stack, than all the rest of a refusal. */
  readonly #ofConnection: McpError
  readonly #ofPrincipal: McpError
  readonly #ofAll: McpError

  constructor(limits: Limits) {
    const { callsPerConversation, calls } = limits
    this.#limits = limits
    this.#ofConnection = tooMany(`${callsPerConversation} calls of this connection`, 'callsPerConversation')
    this.#ofPrincipal = tooMany(`${callsPerConversation} calls of yours`, 'callsPerConversation')
    this.#ofAll = tooMany(`${calls} calls`, 'calls')
  }

  /** Running calls are never dropped; new ones are refused while there are too many. */
  refusal({ conversation, route, caller }: Exchange): McpError | undefined {
    if (route.method.lasting === true || route.method.instant === true) return undefined
    const { callsPerConversation, calls } = this.#limits
    if (conversation.inFlight >= callsPerConversation) return this.#ofConnection
    if (
      caller.principal !== undefined &&
      isAlone(conversation) &&
      this.#principals.of(caller.principal.id) >= callsPerConversation
    )
      return this.#ofPrincipal
    return this.#all >= calls ? this.#ofAll : undefined
  }

  enter(exchange: Exchange): void {
    this.#count(exchange, 1)
  }

  leave(exchange: Exchange): void {
    this.#count(exchange, -1)
  }

  #count({ conversation, route, caller }: Exchange, by: 1 | -1): void {
    if (route.method.lasting === true) return
    this.#all += by
    if (caller.principal !== undefined && isAlone(conversation)) this.#principals.add(caller.principal.id, by)
  }
}

/** Nothing is remembered from one call to the next: who sends them is all that they have in common. */
function isAlone({ connection, session }: Exchange['conversation']): boolean {
  return connection === undefined && session === undefined
}

function tooMany(what: string, limit: keyof Limits): McpError {
  return new McpError('busy', `${what} are in flight, which is the limit (${limit}); wait for one to end`, {
    data: { retryAfterMs: 1000 },
  })
}
