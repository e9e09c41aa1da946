/**
 * Forms of davioe/mcp-extension-proposals that both sides share: its members without a prefix, and the extensions they belong to here.
 */
import type { Exchange } from '../../../engine/exchange.ts'
import { withDeclared } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { confirmationExtension } from '../confirmation/messages.ts'
import { idempotencyExtension } from '../idempotency/messages.ts'
import { intentExtension } from '../intent/messages.ts'
import { permissionsExtension } from '../permissions/messages.ts'
import { problemExtension } from '../problem/messages.ts'
import { stateExtension } from '../session-state/messages.ts'
import { transactionsExtension } from '../transactions/messages.ts'

/** Members of a call's params, or of `_meta` without a prefix, and the extension they belong to. */
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

/** The extension tokens that its servers list. */
export const tokens: ReadonlyMap<string, string> = new Map([
  ['idempotency', idempotencyExtension],
  ['transactions', transactionsExtension],
  ['human_in_the_loop', confirmationExtension],
  ['session_state', stateExtension],
  ['intent_hints', intentExtension],
  ['structured_errors', problemExtension],
])

/** Extensions that its clients support without declaring them. */
const assumed: readonly string[] = [
  problemExtension,
  idempotencyExtension,
  transactionsExtension,
  confirmationExtension,
  permissionsExtension,
  intentExtension,
]

/** The part of an exchange that is read and changed. */
type BareExchange = Pick<Exchange, 'params' | 'meta' | 'peer'>

/** Moves such members to their extensions. Throws if two places contradict each other. */
export function takeBare(exchange: BareExchange): void {
  const { params } = exchange
  const meta = exchange.meta ?? {}
  const said: Record<string, unknown> = { ...meta }
  let found = false
  for (const [name, extension] of bareMembers) {
    const values = [params, meta].filter(place => Object.hasOwn(place, name)).map(place => place[name])
    if (values.length === 0) continue
    const there = Object.hasOwn(said, extension) ? said[extension] : {}
    // An invalid value is reported by the feature that reads it.
    if (!isRecord(there)) continue
    if (Object.hasOwn(there, name)) values.push(there[name])
    if (values.some(value => value !== values[0]))
      throw new McpError('invalid-params', `${name} is given twice with different values. Give it once`)
    said[extension] = { ...there, [name]: values[0] }
    found = true
  }
  if (found) exchange.params = { ...params, _meta: said }
  // State tokens are only for clients that send one; for others the server keeps the state.
  exchange.peer = withDeclared(exchange.peer, Object.hasOwn(said, stateExtension) ? [...assumed, stateExtension] : assumed)
}
