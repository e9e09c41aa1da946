/** The words of the reference implementation of davioe/mcp-extension-proposals: what it says beside `_meta`, and what that is here. */
import type { Exchange } from '../../../engine/exchange.ts'
import { declaring } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { confirmationExtension } from '../confirmation/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { intentExtension } from '../intent/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { problemExtension } from '../problem/messages.ts'
import { stateExtension } from '../session-state/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'

/** Members of a call's params, or of its `_meta` without a prefix, by the extension whose object they belong to. */
export const bareMembers: readonly (readonly [name: string, extension: string])[] = [
  ['idempotency_key', idempotencyExtension],
  ['idempotency_ttl_seconds', idempotencyExtension],
  ['transaction_id', transactionsExtension],
  ['step_id', transactionsExtension],
  ['confirmation_token', confirmationExtension],
  ['user_confirmed', confirmationExtension],
  ['session_token', permissionsExtension],
  ['session_state', stateExtension],
  ['intent', intentExtension],
]

/** What its servers list where others have an object of extensions. */
export const tokens: ReadonlyMap<string, string> = new Map([
  ['idempotency', idempotencyExtension],
  ['transactions', transactionsExtension],
  ['human_in_the_loop', confirmationExtension],
  ['session_state', stateExtension],
  ['intent_hints', intentExtension],
  ['structured_errors', problemExtension],
])

/** Its peers get told of these without having declared them. */
const assumed: readonly string[] = [
  problemExtension,
  idempotencyExtension,
  transactionsExtension,
  confirmationExtension,
  permissionsExtension,
  intentExtension,
]

/** Of an exchange what is read here, and changed. */
export type BareExchange = Pick<Exchange, 'params' | 'meta' | 'peer'>

/** Puts what a call says in that way where it belongs. Throws where two ways of saying it differ. */
export function takeBare(exchange: BareExchange): void {
  const { params } = exchange
  const meta = exchange.meta ?? {}
  const said: Record<string, unknown> = { ...meta }
  let found = false
  for (const [name, extension] of bareMembers) {
    const values = [params, meta].filter(place => Object.hasOwn(place, name)).map(place => place[name])
    if (values.length === 0) continue
    const there = Object.hasOwn(said, extension) ? said[extension] : {}
    // Whoever reads that key says what is wrong with it.
    if (!isRecord(there)) continue
    if (Object.hasOwn(there, name)) values.push(there[name])
    if (values.some(value => value !== values[0]))
      throw new McpError('invalid-params', `${name} is said twice, and differently: say it once, or the same everywhere`)
    said[extension] = { ...there, [name]: values[0] }
    found = true
  }
  if (found) exchange.params = { ...params, _meta: said }
  // Tokens of state are for those who bring one: others have theirs kept for them.
  exchange.peer = declaring(exchange.peer, Object.hasOwn(said, stateExtension) ? [...assumed, stateExtension] : assumed)
}
