/**
 * Rule enforcement: the layers that refuse tool calls (`decideLayer`) and reads (`readingLayer`) with the rule's name and a fix, and
 * `explain`, which judges a call without making it.
 */
import { durationText } from '../../core/clock.ts'
import { type Problem, problem, problemText } from '../../core/problem.ts'
import { compensation, type Exchange, retryState } from '../../engine/exchange.ts'
import type { Layer, Next } from '../../engine/stages.ts'
import { aimOf } from '../../features/mcp/authorization/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../jsonrpc/message.ts'
import type { CallVerdict, PolicyCallFacts, ToolPolicy } from '../../policy/rules/call-policy.ts'
import { upstreamCallKey } from '../bridge/upstream-call.ts'
import { policyCallFacts } from './options.ts'
import { unnamed } from './settings.ts'
import type { Visibility } from './visibility.ts'

/** The layer that refuses tool calls by rule, and counts them where rules have rates. `decided`: the verdicts of calls that were counted. */
export function decideLayer({ clients, tools }: Visibility, decided: WeakMap<object, CallVerdict>): Layer {
  const policyOf = ({ params }: Exchange): ToolPolicy | undefined => {
    const policy = tools.get(params['name'] as string)
    return policy?.decides === true || policy?.counts === true ? policy : undefined
  }
  const judged = (exchange: Exchange): PolicyCallFacts => {
    const { caller, params } = exchange
    const call = policyCallFacts(clients, caller, (params['arguments'] ?? {}) as Params)
    // A continued call was counted at its start.
    return exchange.get(retryState)?.[upstreamCallKey] === undefined ? call : { ...call, begun: true }
  }
  // Throws where the call is refused, otherwise counts it.
  const decide = (policy: ToolPolicy, exchange: Exchange, next: Next): Awaitable<unknown> => {
    const call = judged(exchange)
    const verdict = policy.judge(call)
    if (verdict.do === 'deny') throw callDenied(policy, verdict)
    if (policy.counts) {
      decided.set(exchange, verdict)
      policy.took(call)
    }
    return next()
  }
  // Waits until the counts that are shared with other processes are known.
  const counted = async (policy: ToolPolicy, exchange: Exchange, next: Next, first: Promise<void>): Promise<unknown> => {
    // Calls that waited for the same counts may have used up the rate meanwhile.
    for (let ready: Promise<void> | undefined = first; ready !== undefined; ready = policy.ready(judged(exchange))) await ready
    return decide(policy, exchange, next)
  }
  return {
    stage: 'decide',
    methods: ['tools/call'],
    concerns: exchange => policyOf(exchange) !== undefined,
    when: exchange => {
      const policy = policyOf(exchange)
      // Compensations are never refused: they undo a call that was allowed.
      if (policy === undefined || exchange.get(compensation) !== undefined) return false
      return policy.counts || policy.judge(judged(exchange)).do === 'deny'
    },
    run: (exchange, next) => {
      const policy = policyOf(exchange)
      if (policy === undefined) return next()
      const ready = policy.counts ? policy.ready(judged(exchange)) : undefined
      return ready === undefined ? decide(policy, exchange, next) : counted(policy, exchange, next, ready)
    },
  }
}

/** The problem for a refused call. */
export function callDenied({ tool, upstream }: ToolPolicy, { by, waitMs }: CallVerdict): Problem {
  const what = `${clip(tool)} of ${clip(upstream)}`
  const details = { rule: by?.name ?? 'otherwise', upstream, tool }
  if (waitMs !== undefined && waitMs > 0 && by?.do === 'hold')
    return problem('PERMISSION_DENIED', by.message ?? `Rule ${clip(by.name)} currently holds calls of ${what}`, {
      suggestion: by.fix ?? `Try again in ${durationText(waitMs)}`,
      details,
    })
  if (waitMs !== undefined && waitMs > 0)
    return problem(
      'RATE_LIMIT_EXCEEDED',
      by?.message ?? `Rule ${clip(by?.name ?? '')} allows no more calls of ${what} at this rate`,
      {
        retryAfter: waitMs,
        suggestion: by?.fix ?? `Try again in ${Math.ceil(waitMs / 1000)} s`,
        details,
      },
    )
  const message = by?.message ?? (by === undefined ? `No rule allows ${what}` : `Rule ${clip(by.name)} denies ${what}`)
  return problem('PERMISSION_DENIED', message, {
    suggestion: by?.fix ?? 'Ask the operator of the gateway for a rule that allows it',
    actor: 'operator',
    details,
  })
}

// Explaining: what a rule author asks about a call that nobody makes.

/** A hypothetical call. */
export interface Explaining {
  /** The name of the upstream. */
  readonly upstream: string
  /** The tool's name at the upstream. */
  readonly tool: string
  /** Default: `anonymous` for rules; what clients may see is not considered then. */
  readonly client?: string
  /** The subject of the caller's token. */
  readonly principal?: string
  /** The arguments of the call. Default: none. */
  readonly args?: Params
}

/** What would happen to a call. */
export interface ExplainedCall {
  /** The effect. `hidden`: the client does not see the tool. */
  readonly do: 'allow' | 'deny' | 'ask' | 'hidden'
  /** The rule that decides; `otherwise` where none applies, `clients` where the client does not see the tool. */
  readonly rule: string
  /** False: the caller does not find the tool in lists. */
  readonly listed?: false
  /** All rules that apply to the call. */
  readonly about: readonly string[]
  /** The error message that the caller would get. */
  readonly message?: string
  /** Equal calls within this time are executed once. */
  readonly dedupe?: string | number
  /** The cost of the call. */
  readonly units?: number
  /** The scopes that the call needs. */
  readonly scopes?: readonly string[]
}

/** Judges a call without making it, counting it or asking anybody. */
export function explain({ clients, policy, listed }: Visibility, call: Explaining): ExplainedCall {
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

// Rules about resources and prompts: reading, subscribing, and completing arguments.

/** The layer that refuses resources and prompts by rule. */
export function readingLayer(visibility: Visibility): Layer {
  // The verdict on a read; undefined where no rule is about it.
  const verdictOn = (exchange: Exchange): readonly [ToolPolicy, CallVerdict] | undefined => {
    const aim = visibility.policy.decidesReading ? aimOf(exchange) : undefined
    const policy = aim && visibility.policyOf(...aim)
    return policy && [policy, policy.judge(policyCallFacts(visibility.clients, exchange.caller, {}))]
  }
  return {
    stage: 'decide',
    methods: ['resources/read', 'resources/subscribe', 'prompts/get', 'completion/complete'],
    when: exchange => verdictOn(exchange)?.[1].do === 'deny',
    run: (exchange, next) => {
      const said = verdictOn(exchange)
      if (said?.[1].do === 'deny') throw callDenied(...said)
      return next()
    },
  }
}
