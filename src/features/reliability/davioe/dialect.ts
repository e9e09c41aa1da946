/** The words of the reference implementation of davioe/mcp-extension-proposals: what it says beside `_meta`, and what that is here. */
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
export const assumed: readonly string[] = [
  problemExtension,
  idempotencyExtension,
  transactionsExtension,
  confirmationExtension,
  permissionsExtension,
  intentExtension,
]
