/** Pages that callers were sent to: whoever was, hears that the page has done its work. */

import { Tally } from '../../core/occupancy.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { elicit, elicitationComplete, takesElicitation } from '../../features/mcp/elicitation/messages.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import { type Sharer, sharerOf } from '../shares.ts'
import type { UpstreamCall } from './upstream-call.ts'

const most = 1_000

export class Pages {
  readonly #sent = new Map<string, Exchange>()

  sent(upstream: string, elicitationId: string, { first }: UpstreamCall): void {
    const key = `${upstream}\0${elicitationId}`
    this.#sent.delete(key)
    this.#sent.set(key, first)
    if (this.#sent.size > most) this.#forget()
  }

  /** The oldest of whoever was sent to most of them: nobody makes the gateway forget those of others. */
  #forget(): void {
    const counts = new Tally<Sharer>()
    let [most, busiest]: [number, Sharer | undefined] = [0, undefined]
    for (const { caller } of this.#sent.values()) {
      const sharer = sharerOf(caller)
      counts.add(sharer, 1)
      if (counts.of(sharer) > most) [most, busiest] = [counts.of(sharer), sharer]
    }
    const oldest = [...this.#sent].find(([, { caller }]) => sharerOf(caller) === busiest)?.[0]
    if (oldest !== undefined) this.#sent.delete(oldest)
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

/** Where questions travel in results there is no such refusal: the caller is asked instead. True: it goes to all of them. */
export async function visits(upstreamCall: UpstreamCall, pages: readonly Params[]): Promise<boolean> {
  const { peer, signal } = upstreamCall.first
  if (peer.revision.asks !== 'result' || !takesElicitation(peer, 'url')) return false
  const asked = pages.map(page => upstreamCall.ask(elicit, { ...page, mode: 'url' }, signal))
  const answers = await Promise.all(asked)
  return answers.every(answer => isRecord(answer) && answer['action'] === 'accept')
}
