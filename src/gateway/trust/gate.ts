/** The gate of a gateway: what a rule refuses is refused with the rule and the fix. A call that no rule concerns passes without a stop. */
import { durationText } from '../../core/duration.ts'
import { type Problem, problem } from '../../core/problem.ts'
import type { Exchange } from '../../engine/exchange.ts'
import type { Layer, Next } from '../../engine/stages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../jsonrpc/message.ts'
import { upstreamCallKey } from '../bridge/upstream-call.ts'
import type { Clients } from './clients.ts'
import { judgedOf } from './options.ts'
import type { CallVerdict, DecidedCalls, PolicyCallFacts, ToolPolicy } from './tool-policy.ts'

interface GateParts {
  readonly clients: Clients
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly decided: DecidedCalls
}

function policyOf({ tools }: GateParts, { params }: Exchange): ToolPolicy | undefined {
  return tools.get(params['name'] as string)
}

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
      if (policy === undefined || exchange.isCompensation || !(policy.decides || policy.counts)) return false
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

function judged({ clients }: GateParts, { caller, params, carried }: Exchange): PolicyCallFacts {
  const call = judgedOf(clients, caller, (params['arguments'] ?? {}) as Params)
  return carried?.[upstreamCallKey] === undefined ? call : { ...call, begun: true }
}

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
