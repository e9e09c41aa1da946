/**
 * Client side of cost: checks what a call costs before it is sent, and asks the user about calls that are too expensive. A cost that a
 * tool does not declare is unknown, never zero.
 */
import { type Duration, toMilliseconds } from '../../../core/clock.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { type ClientKit, defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaredSettings, extensionCapability } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { Awaitable, Params } from '../../../jsonrpc/message.ts'
import type { Peer } from '../../../revisions/index.ts'
import { clientTasksPort } from '../../mcp/tasks/messages.ts'
import {
  type CallDirectives,
  type CallTool,
  callTool,
  clientToolsPort,
  type Tool,
  type ToolCallExtension,
  type ToolCallOptions,
  toolCalls,
} from '../../mcp/tools/messages.ts'
import { confirmationOf } from '../confirmation/messages.ts'
import {
  type CallUsage,
  type CostCategory,
  isCount,
  type Latency,
  type OfferedCost,
  offeredCost,
  operationalExtension,
  unitsText,
  usageIn,
} from './messages.ts'

export { type CallUsage, type OfferedCost, offeredCost } from './messages.ts'

/** The limit of a call: units, or units and time. */
type CallBudget =
  | number
  | {
      /** The most units that the call may cost. Default: no limit. */
      readonly units?: number
      /** The longest time that the server may work on it. Default: no limit. */
      readonly time?: Duration
    }

/** What the user is asked. */
export interface CostQuestion {
  /** The full text: server, tool and cost. */
  readonly message: string
  /** The name of the tool. */
  readonly tool: string
  /** The arguments of the call. */
  readonly arguments: Params
  /** Undefined if unknown. */
  readonly units: number | undefined
  /** The name of a unit. Undefined if the server states none. */
  readonly unitLabel: string | undefined
  /** The cost category of the tool. Undefined if the server states none. */
  readonly category: CostCategory | undefined
}

/** Asks whether a call may be made at this cost. True: make it. */
type OnCost = (
  question: CostQuestion,
  context: {
    /** Aborted when the call is cancelled. */
    readonly signal: AbortSignal | undefined
  },
) => Awaitable<boolean>

/** One call, as the cost check needs it. */
interface PricedCall {
  readonly server: string
  /** Whether the server enforces the limit that is sent with a call. */
  readonly bounded: boolean
  readonly tool: string
  readonly arguments: Params
  readonly cost: OfferedCost
  /** The tool asks for confirmation anyway, and that question names the cost. */
  readonly confirms: boolean
  readonly budget: CallBudget | undefined
  readonly signal: AbortSignal | undefined
}

/** Options of `connect` for cost. */
export interface CostClientOptions {
  /** Asked before a call that costs more than `costLimit` or its budget, or an unknown amount. Without it such calls are refused. */
  readonly onCost?: OnCost
  /** The most units that a call may cost without asking. Default: no limit. */
  readonly costLimit?: number
}

/** Options of a call. */
export interface CostCallOptions {
  /**
   * The most that the call may cost: units, or `{ units, time }` with the server's time. If the cost is unknown, `onCost` is
   * asked. Default: no limit.
   */
  readonly budget?: CallBudget
}

/** What an answer says about cost. */
export interface CostAnswer {
  /** What the call cost, if the server reports it. */
  readonly cost: CallUsage | undefined
}

interface Deadlines {
  readonly timeout?: Duration
  readonly limits?: { readonly callTimeoutMs?: number }
}

/** A call with `suggestOnly` is not executed, so its cost is not checked. */
type PricedOptions = ToolCallOptions & CostCallOptions & { readonly suggestOnly?: boolean }

const reads: NonNullable<ToolCallExtension['reads']> = { cost: ({ _meta }) => usageIn(_meta) }

/** The client feature: checks costs before calls are sent. */
export const costClient = defineClientFeature<CostClientOptions, unknown, CostClientOptions & Deadlines>({
  name: 'cost',
  uses: [clientToolsPort, clientTasksPort],
  options: { onCost: 'function', costLimit: 'number' },
  setup(kit, { onCost, costLimit, timeout, limits }) {
    if (costLimit !== undefined && !isCount(costLimit))
      throw new TypeError(`costLimit is ${costLimit}: give a finite number of at least 0`)
    // If no timeout is configured, the tool's declared latency decides.
    const waitsAsTold = timeout === undefined && limits?.callTimeoutMs === undefined
    const isPriced = (name: string, budget: CallBudget | undefined): boolean =>
      budget !== undefined ||
      costLimit !== undefined ||
      knowsCosts(kit.session.opened) ||
      kit.port(clientToolsPort).known(name)?._meta?.[operationalExtension] !== undefined
    const around: ToolCallExtension['around'] = next => {
      const priced: CallTool = async (name, args, options: PricedOptions, manner) => {
        const { budget, suggestOnly, ...rest } = options
        const tools = kit.port(clientToolsPort)
        await tools.learn(name, options.signal)
        const { opened } = kit.session
        const tool = tools.known(name)
        const cost = offeredCost(tool?._meta)
        const call = {
          server: opened.serverInfo?.name ?? '',
          tool: name,
          arguments: args ?? {},
          cost,
          confirms: confirmationOf(tool?._meta) !== undefined,
          budget,
          signal: options.signal,
          bounded: knowsCosts(opened),
        }
        const bound = suggestOnly === true ? undefined : await approve(call, onCost, costLimit)
        const meta = bound && { meta: { ...options.meta, ...bound } }
        const [waiting, background] = waitsAsTold ? patient(kit, tool, cost, options) : [{}, {}]
        return next(name, args, { ...rest, ...background, ...meta }, { ...manner, ...waiting })
      }
      return (name, args, options: PricedOptions, manner) =>
        manner?.resumed !== true && isPriced(name, options.budget)
          ? priced(name, args, options, manner)
          : next(name, args, options, manner)
    }
    return {
      side: { capabilities: revision => extensionCapability(revision, operationalExtension) },
      extensions: [extend(toolCalls, { name: 'cost', around, reads })],
    }
  },
})

/** Returns the `_meta` to send; throws if the call must not be sent. */
async function approve(call: PricedCall, onCost: OnCost | undefined, costLimit: number | undefined): Promise<Params | undefined> {
  const { server, tool, arguments: args, cost, budget, signal } = call
  const { units, unitLabel, category } = cost
  const bound = boundOf(budget)
  const refusal = refusalOf(call, bound.max_units, costLimit)
  if (refusal !== undefined) {
    if (onCost === undefined) throw refusal
    const message = `${clip(server)}: ${costsText(call)}. Proceed?`
    if ((await onCost({ message, tool, arguments: args, units, unitLabel, category }, { signal })) !== true)
      throw problem('CONFIRMATION_DECLINED', `The user declined the cost of this call of ${clip(tool)}. It was not sent`)
  }
  // A user who agreed to an unknown cost has set no limit.
  const { max_units, ...rest } = bound
  const sent = refusal !== undefined && units === undefined ? rest : bound
  return Object.keys(sent).length === 0 ? undefined : { [operationalExtension]: sent }
}

/** How long to wait by latency, if no timeout is configured. */
const waitMs: Readonly<Record<Latency, number>> = { instant: 10_000, seconds: 60_000, minutes: 600_000 }

/** Without a configured timeout: waits according to the tool's latency, and runs slow tools as tasks if possible. */
function patient(
  { port }: ClientKit,
  tool: Tool | undefined,
  { latency }: OfferedCost,
  { timeout, task }: ToolCallOptions,
): readonly [Pick<CallDirectives, 'answerMs'>, Pick<ToolCallOptions, 'task'>] {
  if (timeout !== undefined || latency === undefined) return [{}, {}]
  const answerMs = waitMs[latency]
  // Not an option of the call, because a task may take longer than any response.
  if (latency !== 'minutes' || task !== undefined) return [{ answerMs }, {}]
  const support = tool?.execution?.taskSupport
  const tasks = port(clientTasksPort)
  const asked = (support === 'optional' || support === 'required') && tasks.takes(callTool.name)
  return [{ answerMs }, asked || tasks.decides ? { task: true } : {}]
}

/** Whether the server declares the extension. */
function knowsCosts(server: Pick<Peer, 'revision' | 'capabilities'>): boolean {
  return declaredSettings(server, operationalExtension) !== undefined
}

// The limit in its wire form.
function boundOf(budget: CallBudget | undefined): { readonly max_units?: number; readonly deadline_ms?: number } {
  if (budget === undefined) return {}
  const { units, time } = typeof budget === 'number' ? { units: budget } : budget
  if (units !== undefined && !isCount(units)) throw new TypeError(`budget is ${units}: give a finite number of at least 0`)
  return {
    ...(units === undefined ? {} : { max_units: units }),
    ...(time === undefined ? {} : { deadline_ms: toMilliseconds(time, 'budget.time') }),
  }
}

/** Why the call needs approval; undefined if it does not. */
function refusalOf(call: PricedCall, budget: number | undefined, costLimit: number | undefined): Problem | undefined {
  const { category, units } = call.cost
  const most = Math.min(budget ?? Number.POSITIVE_INFINITY, costLimit ?? Number.POSITIVE_INFINITY)
  // A metered tool stops at the limit by itself, if its server supports limits.
  const stops = call.bounded && category !== undefined && budget !== undefined && costLimit === undefined
  const unknown = units === undefined && !stops
  if (most !== Number.POSITIVE_INFINITY && (unknown || (units ?? 0) > most))
    return problem('BUDGET_EXCEEDED', `${costsText(call)}, but at most ${most} are allowed`, {
      suggestion: 'Raise the limit (budget, costLimit), or pass the option onCost to connect',
      details: { max_units: most, ...(units === undefined ? {} : { units }) },
      actor: 'user',
    })
  if (category !== 'requires_approval' || call.confirms) return undefined
  return problem('CONFIRMATION_REQUIRED', `${costsText(call)}, which the user must approve`, {
    suggestion: 'Pass the option onCost to connect',
    actor: 'operator',
  })
}

function costsText({ tool, cost: { units, unitLabel } }: PricedCall): string {
  return `${clip(tool)} costs ${unitsText(units, unitLabel)}`
}
