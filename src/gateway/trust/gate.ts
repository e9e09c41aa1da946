/** The gate of a gateway: what a rule refuses is refused with the rule and the fix. A call that no rule concerns passes without a stop. */
import { durationText } from '../../core/clock.ts'
import { type Problem, problem, problemText } from '../../core/problem.ts'
import { carried, compensation, type Exchange } from '../../engine/exchange.ts'
import type { Layer, Next } from '../../engine/stages.ts'
import { aimOf } from '../../features/mcp/authorization/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../jsonrpc/message.ts'
import type { CallVerdict, DecidedCalls, GatewayPolicy, PolicyCallFacts, ToolPolicy } from '../../policy/rules/call-policy.ts'
import { upstreamCallKey } from '../bridge/upstream-call.ts'
import type { Clients } from './clients.ts'
import { judgedOf } from './options.ts'
import { type TrustSettings, unnamed } from './settings.ts'
import { readingOf, type VisibilityLayersParts } from './visibility-layers.ts'

interface GateParts {
  readonly clients: Clients
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly decided: DecidedCalls
}

function policyOf({ tools }: GateParts, { params }: Exchange): ToolPolicy | undefined {
  return tools.get(params['name'] as string)
}

/** The layer that refuses tool calls by rule, and counts them where rules have rates. */
export function decideLayer(parts: GateParts): Layer {
  return {
    stage: 'decide',
    methods: ['tools/call'],
    concerns: exchange => {
      const policy = policyOf(parts, exchange)
      return policy !== undefined && (policy.decides || policy.counts)
    },
    when: exchange => {
      const policy = policyOf(parts, exchange)
      if (policy === undefined || exchange.get(compensation) !== undefined || !(policy.decides || policy.counts)) return false
      return policy.counts || policy.judge(judged(parts, exchange)).do === 'deny'
    },
    run: (exchange, next) => {
      const policy = policyOf(parts, exchange)
      if (policy === undefined) return next()
      const ready = policy.counts ? policy.ready(judged(parts, exchange)) : undefined
      return ready === undefined ? decide(parts, policy, exchange, next) : counted(parts, policy, exchange, next, ready)
    },
  }
}

function judged({ clients }: GateParts, exchange: Exchange): PolicyCallFacts {
  const { caller, params } = exchange
  const call = judgedOf(clients, caller, (params['arguments'] ?? {}) as Params)
  return exchange.get(carried)?.[upstreamCallKey] === undefined ? call : { ...call, begun: true }
}

/** Waits until the counts that are shared with other processes are known. */
async function counted(
  parts: GateParts,
  policy: ToolPolicy,
  exchange: Exchange,
  next: Next,
  first: Promise<void>,
): Promise<unknown> {
  // Others that waited for the same may have used it up.
  for (let ready: Promise<void> | undefined = first; ready !== undefined; ready = policy.ready(judged(parts, exchange)))
    await ready
  return decide(parts, policy, exchange, next)
}

/** Throws where the call is refused; counts it where it is let in. */
function decide(parts: GateParts, policy: ToolPolicy, exchange: Exchange, next: Next): Awaitable<unknown> {
  const call = judged(parts, exchange)
  const verdict = policy.judge(call)
  if (verdict.do === 'deny') throw callDenied(policy, verdict)
  if (policy.counts) {
    parts.decided.set(exchange, verdict)
    policy.took(call)
  }
  return next()
}

/** Why a call is refused. */
export function callDenied({ tool, upstream }: ToolPolicy, { by, waitMs }: CallVerdict): Problem {
  const what = `${clip(tool)} of ${clip(upstream)}`
  const details = { rule: by?.name ?? 'otherwise', upstream, tool }
  if (waitMs !== undefined && waitMs > 0 && by?.do === 'hold')
    return problem('PERMISSION_DENIED', by.message ?? `Rule ${clip(by.name)} holds calls of ${what} now`, {
      suggestion: by.fix ?? `Try again in ${durationText(waitMs)}`,
      details,
    })
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

// What would become of a call, and why: for whoever writes rules.

/** A call that nobody makes. */
export interface Explaining {
  readonly upstream: string
  /** Its own name at that server. */
  readonly tool: string
  /** Default: `anonymous`, as far as rules look at it; what clients see is left out of account then. */
  readonly client?: string
  readonly principal?: string
  readonly args?: Params
}

/** What would become of a call. */
export interface ExplainedCall {
  readonly do: 'allow' | 'deny' | 'ask' | 'hidden'
  /** The rule that counts; `otherwise` where none is about it, `clients` where that client does not see the tool. */
  readonly rule: string
  /** False: its caller does not find it in lists. */
  readonly listed?: false
  /** All rules that are about it. */
  readonly about: readonly string[]
  /** What its caller would read. */
  readonly message?: string
  /** What else holds for it: equal calls within this time are one, it costs so much, it needs these scopes. */
  readonly dedupe?: string | number
  readonly units?: number
  readonly scopes?: readonly string[]
}

interface ExplainParts {
  readonly clients: Clients
  readonly policy: GatewayPolicy
  readonly listed: TrustSettings['listed']
}

/** Judges a call without making it, counting it or asking anybody. */
export function explain({ clients, policy, listed }: ExplainParts, call: Explaining): ExplainedCall {
  const { upstream, tool, client = unnamed.http, principal, args = {} } = call
  const known = call.client === undefined ? undefined : clients.get(call.client)
  const own = policy.for('tool', upstream, tool)
  const judged = { client, principal, args }
  const about = own.about(judged).map(({ rule }) => rule.name)
  if (known?.sees('tool', upstream, tool) === false) return { do: 'hidden', rule: 'clients', listed: false, about }
  const verdict = own.judge(judged)
  const [dedupe, cost, scopes] = [own.say('dedupe', judged), own.say('cost', undefined), own.say('scopes', undefined)]
  return {
    do: verdict.do,
    rule: verdict.by?.name ?? 'otherwise',
    ...(listed !== 'all' && own.refusesAll(client, principal) && { listed: false as const }),
    about,
    ...(verdict.do === 'deny' && { message: problemText(callDenied(own, verdict)) }),
    ...(dedupe !== undefined && { dedupe }),
    ...(cost !== undefined && { units: cost.units }),
    ...(scopes !== undefined && { scopes }),
  }
}

// What rules refuse of resources and prompts: reading them, watching them, and having their arguments completed.

/** The layer that refuses resources and prompts by rule. */
export function readingLayer(parts: VisibilityLayersParts): Layer {
  return {
    stage: 'decide',
    methods: ['resources/read', 'resources/subscribe', 'prompts/get', 'completion/complete'],
    when: exchange => parts.policy().decidesReading && verdictOn(parts, exchange)?.[1].do === 'deny',
    run: (exchange, next) => {
      const said = verdictOn(parts, exchange)
      if (said?.[1].do === 'deny') throw callDenied(...said)
      return next()
    },
  }
}

/** What rules say of a read; undefined where none is about it. */
function verdictOn(parts: VisibilityLayersParts, exchange: Exchange): readonly [ToolPolicy, CallVerdict] | undefined {
  const [kind, name] = aimOf(exchange) ?? []
  if (kind === undefined || name === undefined || kind === 'tool') return undefined
  const policy = readingOf(parts, kind, name)
  return policy && [policy, policy.judge(judgedOf(parts.clients, exchange.caller, {}))]
}
