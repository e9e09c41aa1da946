/**
 * The gate of a gateway: what a client does not see is not in its lists and cannot be called, as if it were not there; what a rule
 * refuses is refused with the rule and the fix. A call that neither concerns passes without a stop.
 */
import { type Problem, problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Side } from '../../engine/plan.ts'
import type { Layer } from '../../engine/stages.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { Clients, KnownClient } from './clients.ts'
import { judgedOf } from './options.ts'
import type { ToolPolicy, Verdict } from './policy.ts'

export interface GateParts {
  readonly clients: Clients
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  /** The server that a prompt or a resource, by name or address, is from. */
  upstreamOf(kind: 'prompt' | 'resource', exposed: string): string | undefined
  /** A call was refused by a rule. */
  refused(policy: ToolPolicy, exchange: Exchange, verdict: Verdict): void
}

export function gateSide(parts: GateParts): Side {
  const layers = [decideLayer(parts), ...(parts.clients.restricted ? [listLayer(parts), hiddenLayer(parts)] : [])]
  return { layers }
}

function policyOf({ tools }: GateParts, { params }: Exchange): ToolPolicy | undefined {
  return tools.get(params['name'] as string)
}

function decideLayer(parts: GateParts): Layer {
  const judge = (policy: ToolPolicy, { caller, params }: Exchange): Verdict =>
    policy.judge(judgedOf(parts.clients, caller, (params['arguments'] ?? {}) as Params))
  return {
    stage: 'decide',
    methods: ['tools/call'],
    concerns: exchange => {
      const policy = policyOf(parts, exchange)
      return policy !== undefined && (policy.decides || policy.counts)
    },
    when: exchange => {
      const policy = policyOf(parts, exchange)
      if (policy === undefined || exchange.unwinds || !(policy.decides || policy.counts)) return false
      return policy.counts || judge(policy, exchange).do === 'deny'
    },
    run: (exchange, next) => {
      const policy = policyOf(parts, exchange)
      if (policy === undefined) return next()
      const verdict = judge(policy, exchange)
      if (verdict.do === 'deny') {
        parts.refused(policy, exchange, verdict)
        throw denied(policy, verdict)
      }
      policy.took(judgedOf(parts.clients, exchange.caller, (exchange.params['arguments'] ?? {}) as Params))
      return next()
    },
  }
}

/** Why a call is refused. */
export function denied({ tool, upstream }: ToolPolicy, { by, waitMs }: Verdict): Problem {
  const what = `${clip(tool)} of ${clip(upstream)}`
  const details = { rule: by?.name ?? 'otherwise', upstream, tool }
  if (waitMs !== undefined && waitMs > 0)
    return problem('RATE_LIMIT_EXCEEDED', by?.message ?? `Rule ${clip(by?.name ?? '')} allows no more calls of ${what} now`, {
      retryAfter: waitMs,
      suggestion: by?.fix ?? `Try again in ${Math.ceil(waitMs / 1000)} s`,
      details,
    })
  const message = by?.message ?? (by === undefined ? `No rule allows ${what}` : `Rule ${clip(by.name)} refuses ${what}`)
  return problem('PERMISSION_DENIED', message, {
    suggestion: by?.fix ?? 'Ask whoever runs the gateway for a rule that allows it',
    actor: 'operator',
    details,
  })
}

/** Lists, their member, and how their items are named. */
const lists: ReadonlyMap<string, readonly [member: string, named: string]> = new Map([
  ['tools/list', ['tools', 'name']],
  ['prompts/list', ['prompts', 'name']],
  ['resources/list', ['resources', 'uri']],
  ['resources/templates/list', ['resourceTemplates', 'uriTemplate']],
])

function listLayer(parts: GateParts): Layer {
  return {
    // Outside of what keeps the bytes of a page: those are of the whole page.
    stage: 'enter',
    methods: [...lists.keys()],
    when: ({ caller }) => parts.clients.of(caller)?.free === false,
    run: async (exchange, next) => {
      const page = await next()
      const client = parts.clients.of(exchange.caller)
      const [member, named] = lists.get(exchange.route.method.name) ?? ['', '']
      const items = isRecord(page) ? page[member] : undefined
      if (client === undefined || !isRecord(page) || !Array.isArray(items)) return page
      const kind = member === 'tools' ? 'tool' : member === 'prompts' ? 'prompt' : 'resource'
      const seen = items.filter(item => sees(parts, client, kind, String(item[named])))
      return { ...page, [member]: seen, cacheScope: 'private' }
    },
  }
}

type Kind = 'tool' | 'prompt' | 'resource'

function sees(parts: GateParts, client: KnownClient, kind: Kind, exposed: string): boolean {
  if (kind === 'tool') {
    const policy = parts.tools.get(exposed)
    return policy === undefined || client.seesTool(policy.upstream, policy.tool)
  }
  const upstream = parts.upstreamOf(kind, exposed)
  return upstream === undefined || client.seesUpstream(upstream)
}

/** What a request aims at; undefined where it aims at nothing that could be hidden. */
function aimOf({ route, params }: Exchange): readonly [Kind, string] | undefined {
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

function hiddenLayer(parts: GateParts): Layer {
  const hides = (exchange: Exchange): boolean => {
    const client = parts.clients.of(exchange.caller)
    const aim = client === undefined || client.free ? undefined : aimOf(exchange)
    return client !== undefined && aim !== undefined && !sees(parts, client, ...aim)
  }
  return {
    stage: 'enter',
    methods: [
      'tools/call',
      'prompts/get',
      'resources/read',
      'resources/subscribe',
      'completion/complete',
      'subscriptions/listen',
    ],
    when: exchange => (exchange.route.method.name === 'subscriptions/listen' ? listens(parts, exchange) : hides(exchange)),
    run: (exchange, next) => {
      if (exchange.route.method.name !== 'subscriptions/listen') throw absent(aimOf(exchange))
      exchange.params = watched(parts, exchange)
      return next()
    },
  }
}

function listens({ clients }: GateParts, { caller }: Exchange): boolean {
  return clients.of(caller)?.free === false
}

/** The same wishes without those for what is not seen. */
function watched(parts: GateParts, { params, caller }: Exchange): Params {
  const client = parts.clients.of(caller)
  const wishes = isRecord(params['notifications']) ? params['notifications'] : {}
  const uris = wishes['resourceSubscriptions']
  if (client === undefined || !Array.isArray(uris)) return params
  const resourceSubscriptions = uris.filter(uri => sees(parts, client, 'resource', String(uri)))
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
