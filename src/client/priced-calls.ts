/** Calls whose cost counts, or that say what they are for: looked at before they are sent, and what is suggested after. */
import { declared } from '../engine/extensions.ts'
import { takesTask } from '../features/mcp/tasks/client.ts'
import { tasksExtension } from '../features/mcp/tasks/messages.ts'
import { callTool } from '../features/mcp/tools/messages.ts'
import { type CostClient, knowsCosts, offeredCost, waitFor } from '../features/reliability/cost/client.ts'
import { operationalExtension } from '../features/reliability/cost/messages.ts'
import { intentMeta, type OnSuggestion } from '../features/reliability/intent/client.ts'
import type { Params } from '../jsonrpc/message.ts'
import type { Peer } from '../revisions/index.ts'
import type { RequestOptions } from './options.ts'
import { following, type ToolOutcome } from './outcome.ts'
import type { CallToolOptions, ToolCaller } from './tool-calls.ts'

export interface Pricing {
  readonly costs: CostClient
  readonly intent: boolean
  readonly onSuggestion: OnSuggestion | undefined
  /** Nobody said how long to wait: then the tool does. */
  readonly waitsAsTold: boolean
}

type Call = (caller: ToolCaller, name: string, args: Params | undefined, options: CallToolOptions) => Promise<ToolOutcome>

/** Cheap: every call is asked. */
export function isPriced(pricing: Pricing, { session, book }: ToolCaller, name: string, options: CallToolOptions): boolean {
  const { budget, intent, suggestOnly } = options
  if (budget !== undefined || intent !== undefined || suggestOnly === true || pricing.costs.watches) return true
  return knowsCosts(session.opened) || book.get(name)?.tool._meta?.[operationalExtension] !== undefined
}

export async function callPriced(
  pricing: Pricing,
  caller: ToolCaller,
  call: Call,
  name: string,
  args: Params | undefined,
  options: CallToolOptions,
): Promise<ToolOutcome> {
  const { opened } = caller.session
  const server = opened.serverInfo?.name ?? ''
  const { budget, intent, suggestOnly, ...rest } = options
  const said = intentMeta(options, pricing.intent, opened)
  if (caller.book.get(name) === undefined) await caller.list(false, options.signal)
  const about = caller.book.get(name)?.tool._meta
  const known = { server, tool: name, arguments: args ?? {} }
  const bound =
    // What is not done costs nothing.
    suggestOnly === true
      ? undefined
      : await pricing.costs.approve({ ...known, about, budget, signal: options.signal, bounded: knowsCosts(opened) })
  const meta = said === undefined && bound === undefined ? options.meta : { ...options.meta, ...bound, ...said }
  const [by, background] = pricing.waitsAsTold ? patient(caller, name, options) : [caller, {}]
  const outcome = await call(by, name, args, { ...rest, ...background, ...(meta === undefined ? {} : { meta }) })
  const { suggestion } = outcome
  if (said === undefined || suggestion === undefined || intent === undefined) return outcome
  if ((await pricing.onSuggestion?.(suggestion, { ...known, intent })) !== true) return outcome
  // What the server does not list is not called because it says so.
  if (caller.book.get(suggestion.tool) === undefined) return outcome
  // One step: without an intent nothing more is suggested.
  const { output: _, idempotencyKey: __, task: ___, ...again } = rest
  const next = budget === undefined ? again : { ...again, budget }
  const followed = await callPriced(pricing, caller, call, suggestion.tool, suggestion.arguments ?? args, next)
  return following(followed, suggestion)
}

/** How a call is made where neither it nor the host says how long to wait: what takes minutes runs in the background if it can. */
function patient(
  caller: ToolCaller,
  name: string,
  options: CallToolOptions,
): readonly [ToolCaller, Pick<CallToolOptions, 'task'>] {
  const { book, session } = caller
  const tool = book.get(name)?.tool
  const cost = offeredCost(tool?._meta)
  const waitMs = options.timeout === undefined ? waitFor(cost) : undefined
  if (waitMs === undefined) return [caller, {}]
  // Not as an option of the call: a task may take longer than any answer.
  const waiting = { ...caller, sendOptions: (given: RequestOptions) => ({ ...caller.sendOptions(given), timeoutMs: waitMs }) }
  if (cost.latency !== 'minutes' || options.task !== undefined) return [waiting, {}]
  const { peer } = session.opened.conversation
  const support = tool?.execution?.taskSupport
  const asked = (support === 'optional' || support === 'required') && takesTask(peer, callTool.name)
  return [waiting, asked || letsTask(session.opened) ? { task: true } : {}]
}

/** Where the server decides what becomes a task, and has some. */
function letsTask({ revision, capabilities }: Pick<Peer, 'revision' | 'capabilities'>): boolean {
  return revision.era === 'request' && declared({ revision, capabilities }, tasksExtension) !== undefined
}
