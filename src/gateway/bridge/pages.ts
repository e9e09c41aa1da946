/** Pages that callers were sent to: whoever was, hears that the page has done its work. */

import type { Exchange } from '../../engine/exchange.ts'
import { elicitationComplete } from '../../features/mcp/elicitation/messages.ts'
import type { Flight } from './flight.ts'

const most = 1_000

export class Pages {
  readonly #sent = new Map<string, Exchange>()

  sent(upstream: string, elicitationId: string, { first }: Flight): void {
    const key = `${upstream}\0${elicitationId}`
    this.#sent.delete(key)
    this.#sent.set(key, first)
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > most && oldest !== undefined) this.#sent.delete(oldest)
  }

  done(upstream: string, elicitationId: string): void {
    const key = `${upstream}\0${elicitationId}`
    const exchange = this.#sent.get(key)
    if (exchange === undefined) return
    this.#sent.delete(key)
    if (!exchange.notify(elicitationComplete, { elicitationId }))
      exchange.engine.notify(exchange.conversation, elicitationComplete, { elicitationId })
  }
}
