/** Lists that page by themselves, honour what the server lets us keep, and end: pages and items are bounded. */
import type { SendOptions } from '../engine/calls.ts'
import type { Method } from '../engine/method.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { ResultCache } from './cache.ts'
import type { Session } from './session.ts'

const maxPages = 64
const maxItems = 10_000

type ListMethod = Method<{ readonly cursor?: string | undefined }, object>

export async function* listAll<T>(session: Session, cache: ResultCache, method: ListMethod, member: string, options: SendOptions): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined
  let count = 0
  for (let page = 0; page < maxPages; page++) {
    const params: Params = cursor === undefined ? {} : { cursor }
    const result = (await fetchKept(session, cache, method as Method, params, options)) as Readonly<Record<string, unknown>>
    const items = result[member]
    if (!Array.isArray(items)) throw new McpError('invalid-result', `The server answered ${method.name} without an array of ${member}`)
    for (const item of items) {
      if (++count > maxItems) throw new McpError('invalid-result', `The server lists more than ${maxItems} ${member}`)
      yield item
    }
    // Only absence ends the list: an empty cursor is a cursor.
    if (result['nextCursor'] === undefined || result['nextCursor'] === null) return
    cursor = String(result['nextCursor'])
  }
  throw new McpError('invalid-result', `The server's list of ${member} has more than ${maxPages} pages`)
}

/** From the cache if it may be, else from the server. */
export async function fetchKept(session: Session, cache: ResultCache, method: Method, params: Params, options: SendOptions): Promise<unknown> {
  const kept = cache.get(method.name, params)
  if (kept !== undefined) return kept
  const result = await session.request(method, params, options)
  cache.put(method.name, params, result)
  return result
}
