/** What a client does not see is in none of its lists and cannot be called, read, watched or heard of, as if it were not there. */
import type { Exchange } from '../../engine/exchange.ts'
import { ListPage } from '../../engine/paging.ts'
import type { Layer } from '../../engine/stages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Clients } from './clients.ts'
import { upstreamOfEvent } from './events.ts'
import type { Policy, ToolPolicy } from './policy.ts'
import type { Kind } from './rules.ts'
import type { TrustSettings } from './settings.ts'
import type { Views } from './views.ts'

export interface SightParts {
  readonly clients: Clients
  readonly views: Views
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly policy: () => Policy
  readonly listed: () => TrustSettings['listed']
  /** Where a prompt or a resource, by the name or address that clients see, is from, and its name there; of a tool one that is down. */
  originOf(kind: Kind, exposed: string): { readonly upstream: string; readonly own: string } | undefined
}

/** Of use where somebody does not see all. */
export function sightLayers(parts: SightParts): readonly Layer[] {
  return [listLayer(parts), hiddenLayer(parts), listenLayer(parts)]
}

/** Whether something is told of to a caller, where it is not asked for: what has changed, what can be heard of. */
export function shows(parts: SightParts, caller: Caller, kind: 'tool' | 'resource' | 'event', name: string): boolean {
  if (!parts.views.differ) return true
  if (kind === 'tool') return !parts.views.of(caller).hidden.has(name)
  if (kind === 'resource') return sees(parts, caller, kind, name) && !refused(parts, caller, kind, name)
  const upstream = upstreamOfEvent(name)
  return upstream === undefined || parts.clients.of(caller)?.seesUpstream(upstream) !== false
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

function listLayer(parts: SightParts): Layer {
  const { clients, views } = parts
  const pages = new WeakMap<object, Map<object, ListPage>>()
  return {
    // Outside of what keeps the bytes of a page: those are of the whole page.
    stage: 'enter',
    methods: [...lists.keys()],
    when: ({ route, caller }) => {
      if (!views.differ) return false
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

function seen(
  parts: SightParts,
  { route, caller }: Exchange,
  page: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [member, named] = lists.get(route.method.name) ?? ['', '']
  const items = page[member]
  if (!Array.isArray(items)) return page
  const { hidden } = parts.views.of(caller)
  const kind = member === 'prompts' ? 'prompt' : 'resource'
  const readable = (name: string): boolean =>
    sees(parts, caller, kind, name) && (parts.listed() === 'all' || !refused(parts, caller, kind, name))
  const shows = (item: Readonly<Record<string, unknown>>): boolean => {
    const name = String(item[named])
    return member === 'tools' ? !hidden.has(name) : readable(name)
  }
  return { ...page, [member]: items.filter(shows), cacheScope: 'private' }
}

/** Whether its client is shown it. */
function sees(parts: SightParts, caller: Caller, kind: Kind, exposed: string): boolean {
  const client = parts.clients.of(caller)
  if (client === undefined || client.free) return true
  const policy = kind === 'tool' ? parts.tools.get(exposed) : undefined
  if (policy !== undefined) return client.sees('tool', policy.upstream, policy.tool)
  const origin = parts.originOf(kind, exposed)
  if (origin === undefined) return true
  return kind === 'tool' ? client.seesUpstream(origin.upstream) : client.sees(kind, origin.upstream, origin.own)
}

/** Whether a rule refuses it, whenever it is read. */
function refused(parts: SightParts, caller: Caller, kind: 'prompt' | 'resource', exposed: string): boolean {
  const policy = readingOf(parts, kind, exposed)
  return policy?.refusesAll(parts.clients.nameOf(caller), caller.principal?.subject ?? caller.principal?.id) === true
}

/** What rules say of a resource or a prompt; undefined: nothing, or it is offered by nobody. */
export function readingOf(parts: SightParts, kind: 'prompt' | 'resource', exposed: string): ToolPolicy | undefined {
  const policy = parts.policy()
  const origin = policy.decidesReading ? parts.originOf(kind, exposed) : undefined
  return origin && policy.reading(kind, origin.upstream, origin.own)
}

/** What a request aims at; undefined where it aims at nothing that could be hidden. */
export function aimOf({ route, params }: Exchange): readonly [Kind, string] | undefined {
  switch (route.method.name) {
    case 'tools/call':
      return ['tool', String(params['name'])]
    case 'prompts/get':
      return ['prompt', String(params['name'])]
    case 'resources/read':
    case 'resources/subscribe':
      return ['resource', String(params['uri'])]
    case 'completion/complete': {
      const ref = isRecord(params['ref']) ? params['ref'] : {}
      return ref['uri'] === undefined ? ['prompt', String(ref['name'])] : ['resource', String(ref['uri'])]
    }
    default:
      return undefined
  }
}

function hiddenLayer(parts: SightParts): Layer {
  return {
    stage: 'enter',
    methods: ['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe', 'completion/complete'],
    when: exchange => {
      if (parts.clients.of(exchange.caller)?.free !== false) return false
      const aim = aimOf(exchange)
      return aim !== undefined && !sees(parts, exchange.caller, ...aim)
    },
    run: exchange => {
      throw absent(aimOf(exchange))
    },
  }
}

function listenLayer(parts: SightParts): Layer {
  return {
    stage: 'enter',
    methods: ['subscriptions/listen'],
    when: ({ caller }) => parts.clients.of(caller)?.free === false || parts.policy().decidesReading,
    run: (exchange, next) => {
      exchange.params = watched(parts, exchange)
      return next()
    },
  }
}

/** The same wishes without those for what is not seen. */
function watched(parts: SightParts, { params, caller }: Exchange): Params {
  const wishes = isRecord(params['notifications']) ? params['notifications'] : {}
  const uris = wishes['resourceSubscriptions']
  if (!Array.isArray(uris)) return params
  const heard = (uri: string): boolean => sees(parts, caller, 'resource', uri) && !refused(parts, caller, 'resource', uri)
  const resourceSubscriptions = uris.filter(uri => heard(String(uri)))
  return { ...params, notifications: { ...wishes, resourceSubscriptions } }
}

/** The words of what is not there at all. */
function absent(aim: readonly [Kind, string] | undefined): McpError {
  const [kind, name] = aim ?? ['tool', '']
  if (kind === 'tool') return new McpError('unknown-tool', `There is no tool "${clip(name)}"; tools/list names those there are`)
  if (kind === 'prompt')
    return new McpError('unknown-prompt', `There is no prompt "${clip(name)}"; prompts/list names those there are`)
  return new McpError('resource-not-found', `There is no resource "${clip(name)}"; resources/list names those there are`, {
    data: { uri: clip(name) },
  })
}
