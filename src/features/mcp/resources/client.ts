/** The client's side of resources: hearing that the list or a content is another one now. */
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { resourcesChanged, resourcesChangedDialect, resourceUpdated } from './messages.ts'

export interface ResourcesClientOptions {
  readonly onListChanged: (exchange: Exchange) => void
  readonly onUpdated: (uri: string, exchange: Exchange) => void
  /** The dialect names a resource by its URI or its name: the URI of one we know. */
  readonly uriOf?: (id: string) => string | undefined
}

export function resourcesClient({ onListChanged, onUpdated, uriOf = () => undefined }: ResourcesClientOptions): Side {
  return {
    handlers: [
      [resourcesChanged, onListChanged],
      [resourceUpdated, (exchange: Exchange) => onUpdated(exchange.params['uri'] as string, exchange)],
      [
        resourcesChangedDialect,
        (exchange: Exchange) => {
          const uris = ((exchange.params['updated'] ?? []) as readonly string[]).map(uriOf)
          for (const uri of uris) if (uri !== undefined) onUpdated(uri, exchange)
          // What we do not know must be new, or we have never listed.
          if (uris.length === 0 || uris.includes(undefined)) onListChanged(exchange)
        },
      ],
    ],
  }
}
