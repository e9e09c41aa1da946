/** Hides list entries that a caller may not use. The filtered page is private to the caller and never cached for others. */
import type { Asker } from '../../../engine/exchange.ts'
import type { Layer } from '../../../engine/stages.ts'
import { type Awaitable, isRecord } from '../../../jsonrpc/message.ts'
import type { Scopes } from '../../mcp/authorization/messages.ts'

/** One list: where its entries are, how they are named, and their scopes. */
export interface ListedKind {
  readonly method: string
  /** The member of the result that holds the entries. */
  readonly member: string
  /** The member of an entry that names it. */
  readonly named: string
  /** The scopes of an entry. */
  scopes(name: string): Scopes
}

/** Whether a caller may see an entry. */
export type Hears = (asker: Asker, name: string, scopes: Scopes) => Awaitable<boolean>

/** Creates the layer that filters lists. */
export function hidingLayer(lists: readonly ListedKind[], hears: Hears): Layer {
  const kinds = new Map(lists.map(kind => [kind.method, kind]))
  return {
    // Outside of the layer that caches serialised pages, because those are complete.
    stage: 'enter',
    methods: [...kinds.keys()],
    run: async (exchange, next) => {
      const page = await next()
      const kind = kinds.get(exchange.route.method.name)
      const items = isRecord(page) && kind !== undefined ? page[kind.member] : undefined
      if (kind === undefined || !isRecord(page) || !Array.isArray(items)) return page
      const shown = await Promise.all(
        items.map(item => {
          const name = String(item[kind.named])
          return hears(exchange, name, kind.scopes(name))
        }),
      )
      // A copy, because the page is shared; always private, even if nothing was hidden.
      return { ...page, [kind.member]: items.filter((_, i) => shown[i]), cacheScope: 'private' }
    },
  }
}
