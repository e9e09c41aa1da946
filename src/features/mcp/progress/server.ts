/** Telling the caller how far its call has come, if it asked to know. */
import type { Progress } from '../../../engine/calls.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Id } from '../../../jsonrpc/message.ts'
import { isId, isRecord } from '../../../jsonrpc/message.ts'
import { progress } from './messages.ts'

/** Highest value told so far per exchange: progress must rise. */
const told = new WeakMap<Exchange, number>()

/** False when nobody asked, the value is none or does not rise, or `allow` says that it is too much. */
export function sendProgress(exchange: Exchange, given: Progress, allow: () => boolean): boolean {
  const token = tokenOf(exchange)
  if (token === undefined || !Number.isFinite(given.progress)) return false
  if (!(given.progress > (told.get(exchange) ?? Number.NEGATIVE_INFINITY)) || !allow()) return false
  told.set(exchange, given.progress)
  // JSON has no word for a total that is no number.
  const { total, ...open } = given
  const step = total === undefined || Number.isFinite(total) ? given : open
  const shown = exchange.peer.revision.id === 's3' ? inPercent(exchange, step) : step
  return (
    shown !== undefined &&
    exchange.notify(progress, { progressToken: token, ...shown }, { merge: `progress ${token}`, spare: true })
  )
}

const percents = new WeakMap<Exchange, number>()

/** The dialect knows percent alone, which never fall: without a total only the message is news. */
function inPercent(exchange: Exchange, { progress: done, total, message }: Progress): Progress | undefined {
  const before = percents.get(exchange) ?? 0
  const percent = total === undefined || total <= 0 ? before : Math.max(before, Math.min(100, (100 * done) / total))
  percents.set(exchange, percent)
  if (message === undefined) return percent === before ? undefined : { progress: percent, total: 100 }
  return { progress: percent, total: 100, message }
}

/** The dialect has no tokens: whoever declared support hears of every request, by its id. */
function tokenOf(exchange: Exchange): Id | undefined {
  if (exchange.peer.revision.id === 's3') {
    const dialect = exchange.peer.capabilities['dialect']
    return isRecord(dialect) && dialect['supportsProgress'] === true ? exchange.id : undefined
  }
  const token = exchange.meta?.['progressToken']
  return isId(token) ? token : undefined
}
