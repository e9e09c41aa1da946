/**
 * Lists in pages with sealed cursors, and their encoded bytes kept per wire and page. A cursor holds a position that
 * stays good while entries come and go; nobody but us can make one.
 */
import type { Catalog } from '../core/catalog.ts'
import { HandleError, type HandlePurpose, type Seal } from '../core/handle.ts'
import { McpError } from '../jsonrpc/error.ts'
import type { Awaitable } from '../jsonrpc/message.ts'
import type { Exchange } from './exchange.ts'
import { EncodedResult } from './outcome.ts'

/** How long, and for whom, clients may keep a result. */
export interface CacheHint {
  readonly ttlMs: number
  readonly cacheScope: 'public' | 'private'
}

/**
 * One page of a list: canonical members to look at, and the text that goes out if nobody makes another result of them. They are
 * shared by all who ask, so they are frozen: whoever wants others makes a copy, `{ ...page, tools: page.tools.filter(…) }`.
 */
export class ListPage extends EncodedResult {
  constructor(members: Readonly<Record<string, unknown>>, write: () => string) {
    super(write)
    Object.freeze(Object.assign(this, members))
  }
}

/** Makes pages of lists. */
export interface Paging {
  /** One page of a catalog as the result of a list method: `{ [member]: [...], nextCursor? }`. */
  list<Entry>(exchange: Exchange, catalog: Catalog<Entry>, member: string, show: (entry: Entry) => object): Awaitable<ListPage>
  /** The same of a list that is only known by asking: nothing is kept, `read` gives what follows a position (0 at first). */
  walk(exchange: Exchange, member: string, read: ReadPage): Promise<ListPage>
}

/** A position is any JSON value; `next` is undefined on the last page. */
type ReadPage = (after: unknown, limit: number) => Promise<{ readonly items: readonly object[]; readonly next: unknown }>

interface PagingOptions {
  readonly seal: Seal
  readonly pageSize: number
  readonly cache: CacheHint
  /** How long a cursor can be used. */
  readonly cursorMs: number
  readonly now: () => number
}

const kind = 'cursor'

/** Pages with cursors that this server alone can make and read. */
export function createPaging(options: PagingOptions): Paging {
  const { seal, pageSize } = options
  const encode = (exchange: Exchange, member: string, items: readonly object[], next: string | undefined): ListPage => {
    const { resultDown } = exchange.route
    const list = Object.freeze(items.map(item => Object.freeze(item)))
    const result = { [member]: list, ...(next === undefined ? {} : { nextCursor: next }), ...options.cache }
    return new ListPage(result, () => JSON.stringify(resultDown === undefined ? result : resultDown(result)))
  }
  return {
    list: (exchange, catalog, member, show) => {
      const cursor = exchange.params['cursor'] as string | undefined
      const { snapshot } = catalog
      const single = !exchange.route.revision.pages || snapshot.entries.length <= pageSize
      if (cursor === undefined && single) {
        return snapshot.memo(`${member} ${exchange.route.revision.id}`, () =>
          encode(exchange, member, snapshot.entries.map(show), undefined),
        )
      }
      return page(exchange, cursor, async after => {
        const { entries, next } = snapshot.page(after as number, pageSize)
        const token = next === undefined ? undefined : await sealed(exchange, next)
        return encode(exchange, member, entries.map(show), token)
      })
    },
    walk: (exchange, member, read) => {
      const limit = exchange.route.revision.pages ? pageSize : Number.POSITIVE_INFINITY
      return page(exchange, exchange.params['cursor'] as string | undefined, async after => {
        const { items, next } = await read(after, limit)
        return encode(exchange, member, items, next === undefined ? undefined : await sealed(exchange, next))
      })
    },
  }

  /** A cursor of one list is none of another, and nobody's but its caller's. */
  function purpose({ route, caller }: Exchange): HandlePurpose {
    return { kind, audience: route.method.name, principal: caller.principal?.id }
  }

  function sealed(exchange: Exchange, position: unknown): Promise<string> {
    return seal.seal({ ...purpose(exchange), expiresAt: options.now() + options.cursorMs, data: position })
  }

  async function page(
    exchange: Exchange,
    cursor: string | undefined,
    make: (after: unknown) => Promise<ListPage>,
  ): Promise<ListPage> {
    if (cursor === undefined) return make(0)
    try {
      const position = await seal.open(cursor, purpose(exchange))
      return make(position)
    } catch (error) {
      if (error instanceof HandleError)
        throw new McpError(
          'invalid-params',
          'params.cursor was not issued by this server, or has expired; start again without a cursor',
        )
      throw error
    }
  }
}
