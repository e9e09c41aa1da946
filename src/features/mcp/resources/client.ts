/** The client's side of resources: listing and reading them, and hearing that the list or a content is another one now. */
import { defineClientFeature, type RequestOptions, withArray, wrapRead } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { cachePort, type ListSource } from '../caching/messages.ts'
import { questionsPort } from '../input-required/messages.ts'
import { clientSubscriptionsPort } from '../subscriptions/messages.ts'
import {
  type ClientResources,
  clientResourcesPort,
  listResources,
  listResourceTemplates,
  type ReadResourceResult,
  type Resource,
  type ResourceTemplate,
  readResource,
  resourcesChanged,
  resourcesChangedDialect,
  resourceUpdated,
} from './messages.ts'

/** The resources of a server. */
export interface ResourcesClientApi extends ClientResources {
  /**
   * Iterates all resources. Pages are fetched as needed, and cached as long as the server allows.
   * @example for await (const { uri, name } of mcp.resources()) console.log(uri, name)
   */
  resources(options?: RequestOptions): AsyncGenerator<Resource, void, undefined>
  /** Iterates all resource templates. */
  resourceTemplates(options?: RequestOptions): AsyncGenerator<ResourceTemplate, void, undefined>
}

const resourceList: ListSource = { method: listResources, member: 'resources', capability: 'resources' }
// Many servers have resources and never heard of templates.
const templateList: ListSource = {
  method: listResourceTemplates,
  member: 'resourceTemplates',
  capability: 'resources',
  optional: true,
}

/** Lists and reads resources. */
export const resourcesClient = defineClientFeature<object, ClientResources>({
  name: 'resources',
  provides: clientResourcesPort,
  uses: [cachePort, questionsPort, clientSubscriptionsPort],
  options: {},
  setup(kit) {
    const known = new KnownResources()
    const read = async (uri: string, options: RequestOptions): Promise<ReadResourceResult> => {
      const send = kit.send(options)
      const first = await kit.port(cachePort).fetch(readResource, { uri }, send)
      // What came of questions is for this call only.
      const again = (more: Params): Promise<unknown> => kit.session.request(readResource, { uri, ...more }, send)
      const result = await kit.port(questionsPort).settle(first, again, send)
      return withArray<ReadResourceResult>(result, readResource.name, 'contents')
    }
    const client: ResourcesClientApi = {
      resources: async function* (options) {
        known.clear()
        for await (const resource of kit.port(cachePort).list<Resource>(resourceList, kit.send(options))) {
          known.learn(resource)
          yield resource
        }
      },
      resourceTemplates: async function* (options) {
        yield* kit.port(cachePort).list<ResourceTemplate>(templateList, kit.send(options))
      },
      readResource: (uri, options = {}) => wrapRead(kit, options, sent => read(uri, sent)),
    }
    const onListChanged = (): void => {
      for (const { name } of [listResources, listResourceTemplates]) kit.port(cachePort).drop(name)
      kit.port(clientSubscriptionsPort).announce('resources')
    }
    const onUpdated = (uri: string): void => {
      kit.port(cachePort).drop(readResource.name, uri)
      kit.port(clientSubscriptionsPort).announce('updated', uri)
    }
    return { client, port: client, side: resourcesSide({ onListChanged, onUpdated, uriOf: id => known.uriOf(id) }) }
  },
})

interface ResourcesSideOptions {
  readonly onListChanged: (exchange: Exchange) => void
  readonly onUpdated: (uri: string, exchange: Exchange) => void
  /** The dialect names a resource by its URI or its name: the URI of one we know. */
  readonly uriOf?: (id: string) => string | undefined
}

/** What hears that resources changed, whichever way the wire says it. */
export function resourcesSide({ onListChanged, onUpdated, uriOf = () => undefined }: ResourcesSideOptions): Side {
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

const maxKnown = 10_000

/** The resources that this client has listed: one wire names them by their names instead of their URIs. */
class KnownResources {
  readonly #uris = new Set<string>()
  /** Null: several have that name. */
  readonly #byName = new Map<string, string | null>()

  /** A new list begins. */
  clear(): void {
    this.#uris.clear()
    this.#byName.clear()
  }

  learn(resource: Resource): void {
    if (!isRecord(resource) || typeof resource.uri !== 'string' || this.#uris.size >= maxKnown) return
    const { uri, name } = resource
    this.#uris.add(uri)
    if (typeof name === 'string') this.#byName.set(name, this.#byName.has(name) && this.#byName.get(name) !== uri ? null : uri)
  }

  /** The URI behind an id: itself, or that of the one resource with this name. */
  uriOf(id: string): string | undefined {
    return this.#uris.has(id) ? id : (this.#byName.get(id) ?? undefined)
  }
}
