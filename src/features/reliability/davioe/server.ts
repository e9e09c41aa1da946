/**
 * Taking calls as clients of that implementation make them: keys beside the arguments, or in `_meta` without a prefix. What is answered
 * is the common form. Loaded only where an author wants the profile.
 */
import type { Exchange } from '../../../engine/exchange.ts'
import { declaring } from '../../../engine/extensions.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { stateExtension } from '../session-state/messages.ts'
import { assumed, bareMembers } from './dialect.ts'

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
