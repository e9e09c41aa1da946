/** Lists that page by themselves, honour what the server lets us keep, and end: pages and items are bounded. */
import type { SendOptions } from '../engine/calls.ts'
import type { Method } from '../engine/method.ts'
import { isInputRequired } from '../features/mcp/input-required/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import type { ResultCache } from './cache.ts'
import type { Session } from './session.ts'

export interface ListLimits {
  readonly pages: number
  readonly items: number
}

/** Where lists come from. */
export interface Lister {
  readonly session: Session
  readonly cache: ResultCache
  readonly limits: ListLimits
}

/** One list, and the capability that promises it; an optional one may be missing without a word about it. */
export interface ListSource {
  readonly method: ListMethod
  readonly member: string
  readonly capability: 'tools' | 'prompts' | 'resources'
  readonly optional?: boolean
}

type ListMethod = Method<{ readonly cursor?: string | undefined }, object>

export async function* listAll<T>(lister: Lister, source: ListSource, options: SendOptions): AsyncGenerator<T, void, undefined> {
  const { pages, items } = lister.limits
  const { method, member } = source
  let params: Params = {}
  let count = 0
  for (let page = 0; page < pages; page++) {
    const result = await fetchKept(lister, method as Method, params, options).catch(error => empty(error, lister, source))
    const list = isRecord(result) ? result[member] : undefined
    if (!isRecord(result) || !Array.isArray(list)) {
      throw new McpError('invalid-result', `The server answered ${method.name} without an array of ${member}`)
    }
    for (const item of list) {
      if (++count > items)
        throw new McpError('invalid-result', `The server lists more than ${items} ${member}, which is the limit`)
      yield item
    }
    // Only absence ends the list: an empty cursor is a cursor. Some servers write absence as null.
    const cursor = result['nextCursor']
    if (cursor === undefined || cursor === null) return
    if (typeof cursor !== 'string') throw new McpError('invalid-result', `The server's cursor in ${method.name} is not a string`)
    params = { cursor }
  }
  throw new McpError('invalid-result', `The server's list of ${member} has more than ${pages} pages, which is the limit`)
}

/**
 * A server that knows no such method has an empty list, whatever it declared: whoever reads one list after the other must not lose the
 * others by it. One that was declared is traced.
 */
function empty(error: unknown, { session }: Lister, { method, member, capability, optional }: ListSource): unknown {
  const { capabilities, revision } = session.opened
  if (!(error instanceof McpError && error.code === revision.errors['method-not-found'])) throw error
  if (optional !== true && capabilities[capability] !== undefined)
    session.engine.trace('list-missing', { method: method.name, capability })
  return { [member]: [] }
}

/** From the cache if it may be, else from the server. */
export async function fetchKept(
  { session, cache }: Lister,
  method: Method,
  params: Params,
  options: SendOptions,
): Promise<unknown> {
  const place = cache.place(method.name, params, options.meta)
  const kept = cache.get(place)
  if (kept !== undefined) return kept
  const result = await session.request(method, params, options)
  if (!isInputRequired(result)) cache.put(place, result)
  return result
}
