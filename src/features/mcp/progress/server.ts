/** Telling the caller how far its call has come, if it asked to know. */
import type { Progress } from '../../../engine/calls.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import type { Id, Params } from '../../../jsonrpc/message.ts'
import { isId, isRecord } from '../../../jsonrpc/message.ts'
import { progress, progressPort } from './messages.ts'
import { progressReceiver } from './receiver.ts'

/** Progress of calls, told and heard. */
export const progressFeature = defineServerFeature<object>({
  name: 'progress',
  setup: () => ({
    sides: [progressReceiver()],
    provides: provide(progressPort, {
      asked: exchange => progressToken(exchange) !== undefined,
      progress: sendProgress,
      along: sendAlong,
    }),
  }),
})

/** Highest value told so far per exchange: progress must rise. */
const told = new WeakMap<Exchange, number>()

/** Those whose values only count what was told. */
const counted = new WeakSet<Exchange>()

/** Less than any step that means something, and enough to rise. */
const hardly = 1e-6

/** False when nobody asked, the value is none or does not rise, or `allow` says that it is too much. `meta` goes along. */
export function sendProgress(exchange: Exchange, given: Progress, allow: () => boolean, meta?: () => Params): boolean {
  const token = progressToken(exchange)
  if (token === undefined || !Number.isFinite(given.progress)) return false
  const before = told.get(exchange) ?? Number.NEGATIVE_INFINITY
  // What was counted is no measure for what is measured now; it goes on from there.
  const shift = given.progress <= before && counted.has(exchange)
  if (!(shift || given.progress > before) || !allow()) return false
  const value = shift ? before + hardly : given.progress
  told.set(exchange, value)
  // JSON has no word for a total that is no number.
  const { total, ...open } = given
  const step = total !== undefined && Number.isFinite(total) && !shift ? given : { ...open, progress: value }
  const shown = exchange.peer.revision.dialect ? inPercent(exchange, step) : step
  if (shown === undefined) return false
  const params = { progressToken: token, ...shown, ...(meta === undefined ? {} : { _meta: meta() }) }
  return exchange.notify(progress, params, { merge: `progress ${token}`, spare: true })
}

/**
 * Tells something for which there is no measure, so the value only rises: by one where no progress was told before. False when
 * nobody asked, or nobody takes it.
 */
function sendAlong(exchange: Exchange, more: { readonly message?: string; readonly _meta?: Params }, spare = false): boolean {
  const token = progressToken(exchange)
  if (token === undefined) return false
  const before = told.get(exchange)
  const counting = before === undefined || (counted.has(exchange) && Number.isInteger(before))
  if (before === undefined) counted.add(exchange)
  const value = counting ? (before ?? 0) + 1 : (before ?? 0) + hardly
  told.set(exchange, value)
  const params = { progressToken: token, progress: value, ...more }
  return exchange.notify(progress, params, spare ? { merge: `progress ${token}`, spare } : undefined)
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

/** The token under which progress is to be told; undefined where nobody asked. The dialect has none: whoever declared support hears of every request, by its id. */
export function progressToken(exchange: Exchange): Id | undefined {
  if (exchange.peer.revision.dialect) {
    const dialect = exchange.peer.capabilities['dialect']
    return isRecord(dialect) && dialect['supportsProgress'] === true ? exchange.id : undefined
  }
  const token = exchange.meta?.['progressToken']
  return isId(token) ? token : undefined
}
