/** Hides list entries that a caller may not use. The filtered page is private to the caller and never cached for others. */
import type { Layer } from '../../../engine/stages.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { AuthorizationPort, GrantedRights } from '../../mcp/authorization/messages.ts'
import { listPrompts } from '../../mcp/prompts/messages.ts'
import { listResources, listResourceTemplates } from '../../mcp/resources/messages.ts'
import { listTools } from '../../mcp/tools/messages.ts'

/** By method: the member of the result that holds the entries, the member of an entry that names it, and what it is. */
const lists = new Map([
  [listTools.name, { member: 'tools', named: 'name', kind: 'tool' }],
  [listPrompts.name, { member: 'prompts', named: 'name', kind: 'prompt' }],
  [listResources.name, { member: 'resources', named: 'uri', kind: 'resource' }],
  [listResourceTemplates.name, { member: 'resourceTemplates', named: 'uriTemplate', kind: 'template' }],
] as const)

/** Creates the layer that filters lists. `hears`: whether a caller may see an entry. */
export function hidingLayer({ needs }: AuthorizationPort, hears: GrantedRights['hears']): Layer {
  return {
    // Outside of the layer that caches serialised pages, because those are complete.
    stage: 'enter',
    methods: [...lists.keys()],
    run: async (exchange, next) => {
      const page = await next()
      const list = lists.get(exchange.route.method.name)
      const items = isRecord(page) && list !== undefined ? page[list.member] : undefined
      if (list === undefined || !isRecord(page) || !Array.isArray(items)) return page
      const shown = await Promise.all(
        items.map(item => {
          const name = String(item[list.named])
          return hears(exchange, name, needs([list.kind, name]))
        }),
      )
      // A copy, because the page is shared; always private, even if nothing was hidden.
      return { ...page, [list.member]: items.filter((_, i) => shown[i]), cacheScope: 'private' }
    },
  }
}
