/**
 * What the gateway says of a tool that its server does not say, by the options that an author would write. A tool that no rule is
 * about gets none, and its calls go the short way.
 */
import type { Duration } from '../../core/clock.ts'
import type { Schema } from '../../core/schema/index.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import type { ConfirmCaller, ConfirmFacts } from '../../features/reliability/confirmation/server.ts'
import { offeredCost } from '../../features/reliability/cost/messages.ts'
import type { CostFacts } from '../../features/reliability/cost/server.ts'
import type { Params } from '../../jsonrpc/message.ts'
import { subjectOf } from '../../policy/audit/call-notes.ts'
import type { CallVerdict, DecidedCalls, PolicyCallFacts, ToolPolicy } from '../../policy/rules/call-policy.ts'
import type { ToolOptions } from '../../server/api.ts'
import type { Clients } from './clients.ts'
import type { TrustSettings } from './settings.ts'

interface OptionParts {
  readonly settings: TrustSettings
  readonly clients: Clients
  readonly decided: DecidedCalls
  /** Told of a call that waits for whoever runs the gateway. */
  readonly waits?: ConfirmFacts['onWait']
}

/** Options of a tool that the gateway adds to what its server says. */
export type AddedOptions = Partial<ToolOptions<Schema, Schema>>

/** The options that rules and clients add to a tool. */
export function toolOptions(parts: OptionParts, policy: ToolPolicy, tool: Tool): AddedOptions {
  const { settings, clients, decided, waits } = parts
  const judged = (args: Params, caller: ConfirmCaller): PolicyCallFacts => judgedOf(clients, caller, args)
  const dedupe = tool.annotations?.readOnlyHint === true ? undefined : dedupeOf(policy, judged)
  const cost = costFor(policy, tool, clients)
  const { latency } = offeredCost(tool._meta)
  const scopes = policy.say('scopes', undefined)
  const timeout = policy.say('timeout', undefined)
  const idempotent = policy.say('idempotent', undefined)
  return {
    ...(policy.asks && { confirm: confirmOf(policy, settings, judged, decided, waits) }),
    ...(dedupe !== undefined && { dedupe }),
    ...(cost !== undefined && { cost }),
    ...(cost !== undefined && latency !== undefined && { latency }),
    ...(scopes !== undefined && { scopes }),
    ...(timeout !== undefined && { timeout }),
    ...(idempotent !== undefined && { idempotent }),
  }
}

/** A call as rules see it. */
export function judgedOf(clients: Clients, caller: ConfirmCaller, args: Params): PolicyCallFacts {
  return { client: clients.nameOf(caller), principal: subjectOf(caller), args }
}

const channels = { client: undefined, operator: 'queue', either: 'either' } as const

/** Asks for confirmation of calls whose verdict is `ask`, by the channel that their rule names. */
function confirmOf(
  policy: ToolPolicy,
  { approvals = {} }: TrustSettings,
  judged: (args: Params, caller: ConfirmCaller) => PolicyCallFacts,
  decided: DecidedCalls,
  waits: ConfirmFacts['onWait'],
): ConfirmFacts {
  return {
    ...(waits !== undefined && { onWait: waits }),
    when: (args, caller, call) => {
      const asked = judged(args, caller)
      const verdict = decided.get(call) ?? policy.judge(asked)
      if (verdict.do !== 'ask') return false
      // Whoever calls does not answer for itself, unless a rule says so in words.
      const { approver = 'operator', message = shownCall(args), risk, wait = approvals.wait } = verdict.by ?? {}
      const channel = channels[approver]
      return {
        about: aboutCall(policy, verdict, asked),
        ...(message !== undefined && { message }),
        ...(risk !== undefined && { risk }),
        ...(channel !== undefined && { channel }),
        ...(channel !== undefined && wait !== undefined && { wait }),
      }
    },
  }
}

/** In the words of the audit log. */
function aboutCall({ upstream, tool }: ToolPolicy, { by }: CallVerdict, { client, principal }: PolicyCallFacts) {
  return { rule: by?.name ?? 'otherwise', server: upstream, tool, client, subject: principal }
}

const shownArguments = 6

/** Whoever is asked sees what for: the arguments, as far as they have plain names. */
function shownCall(args: Params): string | undefined {
  const names = Object.keys(args)
  const plain = names.filter(name => /^\w{1,40}$/.test(name)).slice(0, shownArguments)
  if (plain.length === 0) return undefined
  const more = names.length > plain.length ? `, and ${names.length - plain.length} more` : ''
  return `Shall it be called with ${plain.map(name => `${name}: {${name}}`).join(', ')}${more}?`
}

/** A function where the time depends on the call. */
function dedupeOf(policy: ToolPolicy, judged: (args: Params, caller: ConfirmCaller) => PolicyCallFacts): AddedOptions['dedupe'] {
  if (!policy.varies('dedupe')) return policy.say('dedupe', undefined)
  return (args: Params, caller: ConfirmCaller): Duration | undefined => policy.say('dedupe', judged(args, caller))
}

/** By a rule, else as its server advertises it. Calls are counted where some client has only so many. */
function costFor(policy: ToolPolicy, tool: Tool, clients: Clients): CostFacts | undefined {
  const said = policy.say('cost', undefined)
  if (said !== undefined)
    return { category: 'metered', estimatedUnits: said.units, ...(said.label !== undefined && { unitLabel: said.label }) }
  const { category, units, unitLabel } = offeredCost(tool._meta)
  // Whoever wants an approval asks for it itself.
  if (category !== undefined && category !== 'free')
    return {
      category: 'metered',
      ...(units !== undefined && { estimatedUnits: units }),
      ...(unitLabel !== undefined && { unitLabel }),
    }
  return clients.countsCalls ? { category: 'free' } : undefined
}
