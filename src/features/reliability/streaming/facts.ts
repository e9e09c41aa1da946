/** What a call that streams is called, whoever speaks of it. */
import type { Exchange } from '../../../engine/exchange.ts'

const ids = new WeakMap<Exchange, string>()

/** The name of the operation that a call is. */
export function operationId(exchange: Exchange): string {
  let id = ids.get(exchange)
  if (id === undefined) {
    id = crypto.randomUUID()
    ids.set(exchange, id)
  }
  return id
}

/** The call is made again: it goes on with that operation. */
export function nameOperation(exchange: Exchange, id: string): void {
  ids.set(exchange, id)
}
