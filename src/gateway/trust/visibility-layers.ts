/** What a client does not see is in none of its lists and cannot be called, read, watched or heard of, as if it were not there. */
import { type Problem, problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ListPage } from '../../engine/paging.ts'
import type { Layer } from '../../engine/stages.ts'
import { aimingMethods, aimOf } from '../../features/mcp/authorization/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { GatewayPolicy, ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { TargetKind } from '../../policy/rules/rule.ts'
import type { Clients } from './clients.ts'
import type { Views, Visibility } from './visibility.ts'

/** Which of the events that are made of what servers say a caller hears of. */
const listKinds: ReadonlyMap<unknown, TargetKind> = new Map([
  ['tools', 'tool'],
  ['resources', 'resource'],
  ['prompts', 'prompt'],
])

/** Without a payload: whether there may be one that it hears of. */
function showsEvent(visibility: Visibility, caller: Caller, name: string, payload: unknown): boolean {
  const at = name.lastIndexOf('/')
  const [upstream, what] = [name.slice(0, at), name.slice(at + 1)]
  if (at <= 0) return true
  if (what === 'resource_updated') {
    const uri = isRecord(payload) ? payload['uri'] : undefined
    if (typeof uri === 'string') return visibility.reads(caller, 'resource', { upstream, own: uri })
    return payload === undefined && visibility.some(caller, 'resource', upstream)
  }
  if (what !== 'list_changed') return true
  const list = isRecord(payload) ? listKinds.get(payload['list']) : undefined
  if (list !== undefined) return visibility.some(caller, list, upstream)
  return payload === undefined && [...listKinds.values()].some(kind => visibility.some(caller, kind, upstream))
}

/** What a client can be shown. Rules speak of templates as of resources. */
export type Shown = TargetKind | 'template'

/** What the layers that hide things need. */
export interface VisibilityLayersParts {
  readonly clients: Clients
  readonly visibility: Visibility
  readonly views: Views
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly policy: () => GatewayPolicy
  /** Where a prompt or a resource, by the name or address that clients see, is from, and its name there; of a tool one that is down. */
  originOf(kind: Shown, exposed: string): { readonly upstream: string; readonly own: string } | undefined
}

/** Of use where somebody does not see all. */
export function visibilityLayers(parts: VisibilityLayersParts): readonly Layer[] {
  return [strangerLayer(parts.clients), listLayer(parts), hiddenLayer(parts), listenLayer(parts)]
}

/** Whether something is told of to a caller, where it is not asked for: what has changed, what can be heard of, what has happened. */
export function shows(
  parts: VisibilityLayersParts,
  caller: Caller,
  kind: 'tool' | 'resource' | 'event',
  name: string,
  payload?: unknown,
): boolean {
  const { visibility } = parts
  if (!visibility.limits) return true
  if (kind === 'tool') return !parts.views.of(caller).hidden.has(name)
  if (kind === 'event') return showsEvent(visibility, caller, name, payload)
  const place = parts.originOf('resource', name)
  return place === undefined || visibility.reads(caller, 'resource', place)
}

/** Lists, their member, and how their items are named. */
const lists: ReadonlyMap<string, readonly [member: string, named: string]> = new Map([
  ['tools/list', ['tools', 'name']],
  ['prompts/list', ['prompts', 'name']],
  ['resources/list', ['resources', 'uri']],
  ['resources/templates/list', ['resourceTemplates', 'uriTemplate']],
])

/** Pages of one list that are kept, for different kinds of callers. */
const mostPages = 64

/** Filters lists. Filtered pages are kept for each kind of caller. */
function listLayer(parts: VisibilityLayersParts): Layer {
  const { clients, views } = parts
  const pages = new WeakMap<object, Map<object, ListPage>>()
  return {
    // Outside of what keeps the bytes of a page: those are of the whole page.
    stage: 'enter',
    methods: [...lists.keys()],
    when: ({ route, caller }) => {
      if (!parts.visibility.limits) return false
      if (clients.of(caller)?.free === false) return true
      return route.method.name === 'tools/list' ? views.of(caller).hidden.size > 0 : parts.policy().decidesReading
    },
    run: async (exchange, next) => {
      const page = await next()
      if (!(page instanceof ListPage)) return isRecord(page) ? seen(parts, exchange, page) : page
      const kind = views.of(exchange.caller)
      const known = pages.get(page) ?? new Map<object, ListPage>()
      pages.set(page, known)
      const made = known.get(kind) ?? written(exchange, seen(parts, exchange, { ...page }))
      if (known.size < mostPages) known.set(kind, made)
      return made
    },
  }
}

/** What is left of a page, written when it is first sent. */
function written({ route: { resultDown } }: Exchange, page: Readonly<Record<string, unknown>>): ListPage {
  return new ListPage(page, () => JSON.stringify(resultDown === undefined ? page : resultDown(page)))
}

/** The page without what its caller does not see. */
function seen(
  parts: VisibilityLayersParts,
  { route, caller }: Exchange,
  page: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [member, named] = lists.get(route.method.name) ?? ['', '']
  const items = page[member]
  if (!Array.isArray(items)) return page
  const { hidden } = parts.views.of(caller)
  const kind = member === 'prompts' ? 'prompt' : member === 'resources' ? 'resource' : 'template'
  const readable = (name: string): boolean => {
    const place = parts.originOf(kind, name)
    return place === undefined || parts.visibility.lists(caller, ruledAs(kind), place)
  }
  const shows = (item: Readonly<Record<string, unknown>>): boolean => {
    const name = String(item[named])
    return member === 'tools' ? !hidden.has(name) : readable(name)
  }
  return { ...page, [member]: items.filter(shows), cacheScope: 'private' }
}

/** Whether its client is given it. */
export function sees(parts: VisibilityLayersParts, caller: Caller, kind: Shown, exposed: string): boolean {
  const client = parts.clients.of(caller)
  if (client === undefined || client.free) return true
  const policy = kind === 'tool' ? parts.tools.get(exposed) : undefined
  const place = policy === undefined ? parts.originOf(kind, exposed) : { upstream: policy.upstream, own: policy.tool }
  return place === undefined || parts.visibility.given(caller, kind === 'template' ? 'resource' : kind, place)
}

/** What rules say of a resource or a prompt; undefined: nothing, or it is offered by nobody. */
export function readingOf(parts: VisibilityLayersParts, kind: Read, exposed: string): ToolPolicy | undefined {
  const policy = parts.policy()
  const origin = policy.decidesReading ? parts.originOf(kind, exposed) : undefined
  return origin && policy.for(ruledAs(kind), origin.upstream, origin.own)
}

type Read = Exclude<Shown, 'tool'>

function ruledAs(kind: Read): 'prompt' | 'resource' {
  return kind === 'prompt' ? kind : 'resource'
}

/** Refuses what the client is not given as if it did not exist. */
function hiddenLayer(parts: VisibilityLayersParts): Layer {
  return {
    stage: 'enter',
    methods: aimingMethods,
    when: exchange => {
      if (parts.clients.of(exchange.caller)?.free !== false) return false
      const aim = aimOf(exchange)
      return aim !== undefined && !sees(parts, exchange.caller, ...aim)
    },
    run: exchange => {
      throw targetAbsent(aimOf(exchange))
    },
  }
}

/** Takes from a subscription what its caller does not see. */
function listenLayer(parts: VisibilityLayersParts): Layer {
  return {
    stage: 'enter',
    methods: ['subscriptions/listen'],
    when: () => parts.visibility.limits,
    run: (exchange, next) => {
      exchange.params = watched(parts, exchange)
      return next()
    },
  }
}

/** The same wishes without those for what is not seen. */
function watched(parts: VisibilityLayersParts, { params, caller }: Exchange): Params {
  const wishes = isRecord(params['notifications']) ? params['notifications'] : {}
  const uris = wishes['resourceSubscriptions']
  if (!Array.isArray(uris)) return params
  const resourceSubscriptions = uris.filter(uri => shows(parts, caller, 'resource', String(uri)))
  return { ...params, notifications: { ...wishes, resourceSubscriptions } }
}

/** The words of what is not there at all. */
export function targetAbsent(aim: readonly [Shown, string] | undefined): McpError {
  const [kind, name] = aim ?? ['tool', '']
  if (kind === 'tool') return new McpError('unknown-tool', `There is no tool "${clip(name)}"; tools/list names those there are`)
  if (kind === 'prompt')
    return new McpError('unknown-prompt', `There is no prompt "${clip(name)}"; prompts/list names those there are`)
  return new McpError('resource-not-found', `There is no resource "${clip(name)}"; resources/list names those there are`, {
    data: { uri: clip(name) },
  })
}

// Callers that are none of the clients which a gateway names: they find nothing in lists, and whatever they ask for is refused.

/** What says nothing of what is behind the gateway; lists come back empty. */
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

/** Refuses callers that are none of the named clients. */
function strangerLayer(clients: Clients): Layer {
  return {
    stage: 'enter',
    when: ({ caller, route: { method }, id }) => id !== undefined && clients.isStranger(caller) && !open.has(method.name),
    run: ({ caller }) => {
      throw unknownClient(clients, caller)
    },
  }
}

function unknownClient(clients: Clients, caller: Caller): Problem {
  const name = clients.nameOf(caller)
  const why =
    caller.principal === undefined
      ? `you come without a token, and this gateway has no client "${name}"`
      : 'your token is valid, but it belongs to none of the clients that this gateway serves'
  return problem('PERMISSION_DENIED', `The request is refused: ${why}`, {
    suggestion: 'Ask whoever runs the gateway to add you to its clients',
    actor: 'operator',
    details: { client: name },
  })
}
