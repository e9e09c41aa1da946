/** Pages that callers were sent to: whoever was, hears that the page has done its work. */

import type { Exchange } from '../../engine/exchange.ts'
import { elicit, elicitationComplete, takesElicitation } from '../../features/mcp/elicitation/messages.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
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

/** By which a call is refused until pages were visited (2025-11-25 client/elicitation). */
const pagesFirst = -32042
const mostPages = 16

/** The pages that a refusal names; undefined where it names none. */
export function pagesIn(error: unknown): readonly Params[] | undefined {
  if (!(error instanceof McpError) || error.code !== pagesFirst || !isRecord(error.data)) return undefined
  const { elicitations } = error.data
  if (!Array.isArray(elicitations) || elicitations.length === 0 || elicitations.length > mostPages) return undefined
  const pages = elicitations.filter(page => isRecord(page) && elicit.params.check({ ...page, mode: 'url' }) === undefined)
  return pages.length === elicitations.length ? pages : undefined
}

/** Where questions travel in results there is no such refusal: the caller is asked instead. True: it goes to all of them. */
export async function visits(flight: Flight, pages: readonly Params[]): Promise<boolean> {
  const { peer, signal } = flight.first
  if (peer.revision.asks !== 'result' || !takesElicitation(peer, 'url')) return false
  const asked = pages.map(page => flight.ask(elicit, { ...page, mode: 'url' }, signal))
  const answers = await Promise.all(asked)
  return answers.every(answer => isRecord(answer) && answer['action'] === 'accept')
}
