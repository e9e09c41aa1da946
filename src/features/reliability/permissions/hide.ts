/** Lists that show each caller only what it may use. What is left of a page is nobody else's, and is kept by nobody. */
import type { Asker } from '../../../engine/exchange.ts'
import type { Layer } from '../../../engine/stages.ts'
import { type Awaitable, isRecord } from '../../../jsonrpc/message.ts'
import type { Scopes } from '../../mcp/authorization/messages.ts'

/** One list: the member of its result, what names an entry there, and the scopes of what has that name. */
export interface ListedKind {
  readonly method: string
  readonly member: string
  readonly named: string
  scopes(name: string): Scopes
}

export type Hears = (asker: Asker, name: string, scopes: Scopes) => Awaitable<boolean>

export function hidingLayer(lists: readonly ListedKind[], hears: Hears): Layer {
  const kinds = new Map(lists.map(kind => [kind.method, kind]))
  return {
    // Outside of what keeps the bytes of a page: those are of the whole page.
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
      // A copy, since the page itself is what all callers share; private also where nothing was left out.
      return { ...page, [kind.member]: items.filter((_, i) => shown[i]), cacheScope: 'private' }
    },
  }
}
