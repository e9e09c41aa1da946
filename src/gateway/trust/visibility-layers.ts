/**
 * Layers that enforce visibility: what a client does not see is missing from its lists and cannot be called, read, watched or heard of, as
 * if it did not exist. `visibility.ts` decides; this file applies the decision to requests.
 */
import { type Problem, problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ListPage } from '../../engine/paging.ts'
import type { Layer } from '../../engine/stages.ts'
import { aimingMethods, aimOf, type RequestTarget } from '../../features/mcp/authorization/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Clients } from './clients.ts'
import type { Visibility } from './visibility.ts'

/** All layers; installed only where some caller does not see everything. */
export function visibilityLayers(visibility: Visibility): readonly Layer[] {
  return [unknownClientLayer(visibility.clients), listLayer(visibility), hiddenLayer(visibility), listenLayer(visibility)]
}

type ListFacts = readonly [member: string, named: string, kind: RequestTarget[0]]

/** Each list method with the member that holds its items, their naming member, and what they are. */
const lists: ReadonlyMap<string, ListFacts> = new Map<string, ListFacts>([
  ['tools/list', ['tools', 'name', 'tool']],
  ['prompts/list', ['prompts', 'name', 'prompt']],
  ['resources/list', ['resources', 'uri', 'resource']],
  ['resources/templates/list', ['resourceTemplates', 'uriTemplate', 'template']],
])

/** Filtered pages kept per page, for different kinds of callers. */
const mostPages = 64

/** Filters lists. Filtered pages are cached for each kind of caller. */
function listLayer(visibility: Visibility): Layer {
  const pages = new WeakMap<object, Map<object, ListPage>>()
  return {
    // Outside the layer that caches serialised pages, whose bytes are those of the whole page.
    stage: 'enter',
    methods: [...lists.keys()],
    when: ({ route, caller }) => {
      if (!visibility.limits) return false
      if (visibility.clients.of(caller)?.free === false) return true
      if (route.method.name === 'tools/list') return visibility.hiddenFrom(caller).size > 0
      return visibility.policy.decidesReading
    },
    run: async (exchange, next) => {
      const page = await next()
      if (!(page instanceof ListPage)) return isRecord(page) ? seen(visibility, exchange, page) : page
      const kind = visibility.hiddenFrom(exchange.caller)
      const known = pages.get(page) ?? new Map<object, ListPage>()
      pages.set(page, known)
      const made = known.get(kind) ?? written(exchange, seen(visibility, exchange, { ...page }))
      if (known.size < mostPages) known.set(kind, made)
      return made
    },
  }
}

/** A filtered page, serialised when it is first sent. */
function written({ route: { resultDown } }: Exchange, page: Readonly<Record<string, unknown>>): ListPage {
  return new ListPage(page, () => JSON.stringify(resultDown === undefined ? page : resultDown(page)))
}

/** The page without the items that the caller does not see. */
function seen(
  visibility: Visibility,
  { route, caller }: Exchange,
  page: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [member, named, kind] = lists.get(route.method.name) as ListFacts
  const items = page[member]
  if (!Array.isArray(items)) return page
  const hidden = visibility.hiddenFrom(caller)
  const shows = (item: Readonly<Record<string, unknown>>): boolean => {
    const name = String(item[named])
    if (kind === 'tool') return !hidden.has(name)
    const place = visibility.originOf(kind, name)
    return place === undefined || visibility.lists(caller, kind, place)
  }
  return { ...page, [member]: items.filter(shows), cacheScope: 'private' }
}

/** Refuses an invisible target in the same way as one that does not exist. */
function hiddenLayer(visibility: Visibility): Layer {
  return {
    stage: 'enter',
    methods: aimingMethods,
    when: exchange => {
      if (visibility.clients.of(exchange.caller)?.free !== false) return false
      const aim = aimOf(exchange)
      return aim !== undefined && !visibility.sees(exchange.caller, ...aim)
    },
    run: exchange => {
      throw targetAbsent(aimOf(exchange))
    },
  }
}

/** Removes invisible resources from a subscription. */
function listenLayer(visibility: Visibility): Layer {
  return {
    stage: 'enter',
    methods: ['subscriptions/listen'],
    when: () => visibility.limits,
    run: (exchange, next) => {
      exchange.params = watched(visibility, exchange)
      return next()
    },
  }
}

/** The params without subscriptions to invisible resources. */
function watched(visibility: Visibility, { params, caller }: Exchange): Params {
  const wishes = isRecord(params['notifications']) ? params['notifications'] : {}
  const uris = wishes['resourceSubscriptions']
  if (!Array.isArray(uris)) return params
  const resourceSubscriptions = uris.filter(uri => visibility.shows(caller, 'resource', String(uri)))
  return { ...params, notifications: { ...wishes, resourceSubscriptions } }
}

/** The error for a target that does not exist. */
export function targetAbsent(aim: RequestTarget | undefined): McpError {
  const [kind, name] = aim ?? ['tool', '']
  if (kind === 'tool')
    return new McpError('unknown-tool', `There is no tool "${clip(name)}"; tools/list lists the available tools`)
  if (kind === 'prompt')
    return new McpError('unknown-prompt', `There is no prompt "${clip(name)}"; prompts/list lists the available prompts`)
  return new McpError(
    'resource-not-found',
    `There is no resource "${clip(name)}"; resources/list lists the available resources`,
    {
      data: { uri: clip(name) },
    },
  )
}

// Callers that are none of the configured clients: their lists are empty and other requests are refused.

/** Methods that reveal nothing of the upstreams. */
const open: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'server/discover',
  'logging/setLevel',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
])

/** Refuses callers that are none of the configured clients. */
function unknownClientLayer(clients: Clients): Layer {
  return {
    stage: 'enter',
    when: ({ caller, route: { method }, id }) => id !== undefined && clients.isUnknownClient(caller) && !open.has(method.name),
    run: ({ caller }) => {
      throw unknownClient(clients, caller)
    },
  }
}

/** The refusal, with how to get access. */
function unknownClient(clients: Clients, caller: Caller): Problem {
  const name = clients.nameOf(caller)
  const why =
    caller.principal === undefined
      ? `it has no token, and this gateway has no client "${name}"`
      : 'its token is valid, but the gateway has no client for it'
  return problem('PERMISSION_DENIED', `The request was refused: ${why}`, {
    suggestion: 'Ask the operator of the gateway to add you to its clients',
    actor: 'operator',
    details: { client: name },
  })
}
