/** What would become of a call, and why: for whoever writes rules. */
import { problemText } from '../../core/problem.ts'
import type { Params } from '../../jsonrpc/message.ts'
import type { Clients } from './clients.ts'
import { callDenied } from './gate.ts'
import { type TrustSettings, unnamed } from './settings.ts'
import type { GatewayPolicy } from './tool-policy.ts'

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
