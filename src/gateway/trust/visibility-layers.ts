/**
 * Layers that enforce visibility: what a client does not see is missing from its lists and cannot be called, read, watched or heard of, as
 * if it did not exist. `visibility.ts` decides; this file applies the decision to requests.
 */
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

/** The kind of entry behind each list, for `list_changed` events. */
const listKinds: ReadonlyMap<unknown, TargetKind> = new Map([
  ['tools', 'tool'],
  ['resources', 'resource'],
  ['prompts', 'prompt'],
])

/** Whether a caller hears of an event. Without a payload: whether there may be one that it hears of. */
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

/** What a client can be shown. Rules treat templates as resources. */
export type Shown = TargetKind | 'template'

/** What the visibility layers need. */
export interface VisibilityLayersParts {
  readonly clients: Clients
  readonly visibility: Visibility
  readonly views: Views
  /** By exposed name. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly policy: () => GatewayPolicy
  /** The origin of a prompt or resource by exposed name or address; of a tool only while its upstream is down. */
  originOf(kind: Shown, exposed: string): { readonly upstream: string; readonly own: string } | undefined
}

/** All layers; installed only where some caller does not see everything. */
export function visibilityLayers(parts: VisibilityLayersParts): readonly Layer[] {
  return [strangerLayer(parts.clients), listLayer(parts), hiddenLayer(parts), listenLayer(parts)]
}

/** Whether a caller may be told about something that it did not ask for: notifications, event types and events. */
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

/** Each list method with the member that holds its items and their naming member. */
const lists: ReadonlyMap<string, readonly [member: string, named: string]> = new Map([
  ['tools/list', ['tools', 'name']],
  ['prompts/list', ['prompts', 'name']],
  ['resources/list', ['resources', 'uri']],
  ['resources/templates/list', ['resourceTemplates', 'uriTemplate']],
])

/** Filtered pages kept per page, for different kinds of callers. */
const mostPages = 64

/** Filters lists. Filtered pages are cached for each kind of caller. */
function listLayer(parts: VisibilityLayersParts): Layer {
  const { clients, views } = parts
  const pages = new WeakMap<object, Map<object, ListPage>>()
  return {
    // Outside the layer that caches serialised pages, whose bytes are those of the whole page.
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

/** A filtered page, serialised when it is first sent. */
function written({ route: { resultDown } }: Exchange, page: Readonly<Record<string, unknown>>): ListPage {
  return new ListPage(page, () => JSON.stringify(resultDown === undefined ? page : resultDown(page)))
}

/** The page without the items that the caller does not see. */
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

/** Whether the caller's client may see an entry. */
export function sees(parts: VisibilityLayersParts, caller: Caller, kind: Shown, exposed: string): boolean {
  const client = parts.clients.of(caller)
  if (client === undefined || client.free) return true
  const policy = kind === 'tool' ? parts.tools.get(exposed) : undefined
  const place = policy === undefined ? parts.originOf(kind, exposed) : { upstream: policy.upstream, own: policy.tool }
  return place === undefined || parts.visibility.given(caller, kind === 'template' ? 'resource' : kind, place)
}

/** The policy for a resource or prompt; undefined where no rule applies or nobody offers it. */
export function readingOf(parts: VisibilityLayersParts, kind: Read, exposed: string): ToolPolicy | undefined {
  const policy = parts.policy()
  const origin = policy.decidesReading ? parts.originOf(kind, exposed) : undefined
  return origin && policy.for(ruledAs(kind), origin.upstream, origin.own)
}

type Read = Exclude<Shown, 'tool'>

function ruledAs(kind: Read): 'prompt' | 'resource' {
  return kind === 'prompt' ? kind : 'resource'
}

/** Refuses an invisible target in the same way as one that does not exist. */
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

/** Removes invisible resources from a subscription. */
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

/** The params without subscriptions to invisible resources. */
function watched(parts: VisibilityLayersParts, { params, caller }: Exchange): Params {
  const wishes = isRecord(params['notifications']) ? params['notifications'] : {}
  const uris = wishes['resourceSubscriptions']
  if (!Array.isArray(uris)) return params
  const resourceSubscriptions = uris.filter(uri => shows(parts, caller, 'resource', String(uri)))
  return { ...params, notifications: { ...wishes, resourceSubscriptions } }
}

/** The error for a target that does not exist. */
export function targetAbsent(aim: readonly [Shown, string] | undefined): McpError {
  const [kind, name] = aim ?? ['tool', '']
  if (kind === 'tool') return new McpError('unknown-tool', `There is no tool "${clip(name)}"; tools/list names those there are`)
  if (kind === 'prompt')
    return new McpError('unknown-prompt', `There is no prompt "${clip(name)}"; prompts/list names those there are`)
  return new McpError('resource-not-found', `There is no resource "${clip(name)}"; resources/list names those there are`, {
    data: { uri: clip(name) },
  })
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
function strangerLayer(clients: Clients): Layer {
  return {
    stage: 'enter',
    when: ({ caller, route: { method }, id }) => id !== undefined && clients.isStranger(caller) && !open.has(method.name),
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
      ? `you come without a token, and this gateway has no client "${name}"`
      : 'your token is valid, but it belongs to none of the clients that this gateway serves'
  return problem('PERMISSION_DENIED', `The request is refused: ${why}`, {
    suggestion: 'Ask whoever runs the gateway to add you to its clients',
    actor: 'operator',
    details: { client: name },
  })
}
