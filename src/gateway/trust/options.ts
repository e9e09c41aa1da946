/**
 * Tool options that rules add to an exposed tool (confirmation, dedupe, cost, scopes, timeout), in the form in which an author would write
 * them. A tool without rules gets none and its calls take the fast path.
 */
import type { Schema } from '../../core/schema/index.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { ConfirmCaller, ConfirmFacts } from '../../features/reliability/confirmation/server.ts'
import { offeredCost } from '../../features/reliability/cost/messages.ts'
import type { CostFacts } from '../../features/reliability/cost/server.ts'
import { type Params, picked } from '../../jsonrpc/message.ts'
import { subjectOf } from '../../policy/audit/gateway-audit.ts'
import type { CallVerdict, PolicyCallFacts, ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { ToolOptions } from '../../server/api.ts'
import type { Clients } from './clients.ts'
import type { TrustSettings } from './settings.ts'

interface OptionParts {
  readonly settings: TrustSettings
  readonly clients: Clients
  /** Verdicts of calls that were counted: judged again they would count themselves. */
  readonly decided: WeakMap<object, CallVerdict>
  /** Called when a call waits for the operator. */
  readonly waits: NonNullable<ConfirmFacts['onWait']>
}

type FactsOfCall = (args: Params, caller: ConfirmCaller) => PolicyCallFacts

/** Options that the gateway adds to a tool. */
export type AddedOptions = Partial<ToolOptions<Schema, Schema>>

/** The options that rules and clients add to a tool. */
export function toolOptions(parts: OptionParts, policy: ToolPolicy, tool: Tool): AddedOptions {
  const { clients } = parts
  const judged: FactsOfCall = (args, caller) => policyCallFacts(clients, caller, args)
  // Repeating a read does no harm, so it is not deduplicated.
  const dedupe = tool.annotations?.readOnlyHint === true ? undefined : dedupeOf(policy, judged)
  const cost = costFor(policy, tool, clients)
  const { latency } = offeredCost(tool._meta)
  const said = {
    confirm: policy.asks ? confirmOf(policy, judged, parts) : undefined,
    dedupe,
    cost,
    latency: cost && latency,
    scopes: policy.say('scopes', undefined),
    timeout: policy.say('timeout', undefined),
    idempotent: policy.say('idempotent', undefined),
  }
  return picked(said, 'confirm', 'dedupe', 'cost', 'latency', 'scopes', 'timeout', 'idempotent') as AddedOptions
}

/** The facts about a call that rules look at. */
export function policyCallFacts(clients: Clients, caller: ConfirmCaller, args: Params): PolicyCallFacts {
  return { client: clients.nameOf(caller), principal: subjectOf(caller), args }
}

/** The confirmation channel of each approver. */
const channels = { client: undefined, operator: 'queue', either: 'either' } as const

/** Asks for confirmation of calls whose verdict is `ask`, on the channel that the rule names. */
function confirmOf(policy: ToolPolicy, judged: FactsOfCall, { settings, decided, waits }: OptionParts): ConfirmFacts {
  const { approvals = {} } = settings
  return {
    onWait: waits,
    when: (args, caller, call) => {
      const asked = judged(args, caller)
      const verdict = decided.get(call) ?? policy.judge(asked)
      if (verdict.do !== 'ask') return false
      // The caller does not approve its own calls, unless a rule says `approver: client`.
      const { approver = 'operator', message = shownCall(args), risk, wait = approvals.wait } = verdict.by ?? {}
      const channel = channels[approver]
      const { upstream: server, tool } = policy
      return {
        about: { rule: verdict.by?.name ?? 'otherwise', server, tool, client: asked.client, subject: asked.principal },
        ...(message !== undefined && { message }),
        ...(risk !== undefined && { risk }),
        ...(channel !== undefined && { channel }),
        ...(channel !== undefined && wait !== undefined && { wait }),
      }
    },
  }
}

/** Arguments that the question shows. */
const shownArguments = 6

/** A question that shows the arguments which have plain names. */
function shownCall(args: Params): string | undefined {
  const names = Object.keys(args)
  const plain = names.filter(name => /^\w{1,40}$/.test(name)).slice(0, shownArguments)
  if (plain.length === 0) return undefined
  const more = names.length > plain.length ? `, and ${names.length - plain.length} more` : ''
  return `Allow the call with ${plain.map(name => `${name}: {${name}}`).join(', ')}${more}?`
}

/** The dedupe time; a function where it depends on the call. */
function dedupeOf(policy: ToolPolicy, judged: FactsOfCall): AddedOptions['dedupe'] {
  if (!policy.varies('dedupe')) return policy.say('dedupe', undefined)
  return (args: Params, caller: ConfirmCaller) => policy.say('dedupe', judged(args, caller))
}

/** The cost by rule, otherwise as the upstream advertises it. Free calls are counted too where a client has a budget of calls. */
function costFor(policy: ToolPolicy, tool: Tool, clients: Clients): CostFacts | undefined {
  const said = policy.say('cost', undefined)
  if (said !== undefined)
    return { category: 'metered', estimatedUnits: said.units, ...(said.label !== undefined && { unitLabel: said.label }) }
  const { category, units, unitLabel } = offeredCost(tool._meta)
  // An upstream whose cost category needs approval asks for it itself.
  if (category !== undefined && category !== 'free')
    return {
      category: 'metered',
      ...(units !== undefined && { estimatedUnits: units }),
      ...(unitLabel !== undefined && { unitLabel }),
    }
  return clients.countsCalls ? { category: 'free' } : undefined
}
