/**
 * Server side of the hooks around an inference (MCP Live 0.2 §10). All enabled sets with hooks take part: the answer names the first
 * one with a contribution, and injections of others carry their set in the metadata. Contributions of sets that were disabled meanwhile
 * are dropped.
 */
import type { Trace } from '../../../core/log.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Awaitable } from '../../../jsonrpc/message.ts'
import { blocksOf, type LiveInput, writeBlocks } from '../content/messages.ts'
import type { LiveCaller } from '../hosts/messages.ts'
import {
  type AfterInference,
  type AfterResult,
  afterInference,
  afterInferenceNotice,
  type BeforeInference,
  beforeInference,
  type Position,
  positions,
} from './messages.ts'

/** What a hook gets as its second argument. */
interface HookContext {
  /** Aborted when the host stops waiting. */
  readonly signal: AbortSignal
}

/** What a hook adds to the context of a turn. */
interface InjectionInput {
  /** The name of the source of the content. Default: the name of the set. */
  readonly namespace?: string
  /** Default `beforeUser`, which keeps the start of the prompt stable, so that the host's prompt cache stays valid. */
  readonly position?: Position
  /** The content to add: text or blocks. */
  readonly content: LiveInput
  /** Further facts for the host. */
  readonly metadata?: Record<string, unknown>
}

/** What a hook may return: text, one injection, several, or nothing. */
type HookInjection = string | InjectionInput | readonly InjectionInput[] | undefined
/** A hook that runs before an inference. */
export type BeforeHook = (turn: BeforeInference, context: HookContext) => Awaitable<HookInjection>
/** What a blocking hook changes; text replaces the reply. Ignored for hooks that do not block. */
type ReplyChange =
  | string
  | {
      /** The text that replaces the reply. */
      readonly modifiedResponse?: string
      /** Further facts for the host. */
      readonly metadata?: Record<string, unknown>
    }
  | undefined
/** A hook that runs after an inference. */
export type AfterHook = (turn: AfterInference, context: HookContext) => Awaitable<ReplyChange>

/** A feature set that may have hooks. */
export interface HookedSet {
  readonly name: string
  readonly before: BeforeHook | undefined
  /** `blocking`: the host waits for the result, which may change the reply. */
  readonly after: { readonly run: AfterHook; readonly blocking: boolean } | undefined
}

interface HooksParts {
  readonly sets: () => readonly HookedSet[]
  readonly caller: (exchange: Exchange) => LiveCaller | undefined
  /** Marks the hook as running, so that it cannot request an inference. */
  readonly during: <T>(exchange: Exchange, run: () => Promise<T>) => Promise<T>
  readonly trace: Trace
}

/** Creates the handlers of the hooks. */
export function hooksServer(parts: HooksParts): Side {
  const hosted = (exchange: Exchange): LiveCaller => {
    const caller = parts.caller(exchange)
    if (caller !== undefined) return caller
    throw new McpError('method-not-found', `Only hosts that declare MCP Live can send ${exchange.route.method.name}`)
  }
  const before = async (exchange: Exchange): Promise<object> => {
    const caller = hosted(exchange)
    const offered = parts.sets().filter(set => set.before !== undefined)
    const taking = offered.filter(({ name }) => caller.selected.enabled(name))
    const turn = exchange.params as unknown as BeforeInference
    const said = await each(parts, exchange, taking, async ({ name, before: hook }) =>
      injectionsOf(name, await hook?.(turn, exchange)),
    )
    // A set that was disabled while its hook ran no longer counts (§6.7).
    const counts = said.filter(({ name, value }) => caller.selected.enabled(name) && value.length > 0)
    const [first = { name: offered[0]?.name ?? '' }] = counts
    return {
      featureSet: first.name,
      contextInjections: counts.flatMap(({ name, value }) =>
        value.map(injection => written(injection, caller.dialect.source, name === first.name ? undefined : name)),
      ),
    }
  }
  return {
    handlers: [
      [beforeInference, { offered: () => parts.sets().some(set => set.before !== undefined), execute: before }],
      [
        afterInference,
        { offered: () => parts.sets().some(set => set.after !== undefined), execute: e => rework(parts, hosted(e), e) },
      ],
      [afterInferenceNotice, (exchange: Exchange) => told(parts, exchange)],
    ],
  }
}

/** Runs blocking hooks one after the other; each sees the reply as the previous one left it. */
async function rework(parts: HooksParts, caller: LiveCaller, exchange: Exchange): Promise<AfterResult> {
  let turn = exchange.params as unknown as AfterInference
  const offered = parts.sets().filter(set => set.after !== undefined)
  let result: AfterResult = { featureSet: offered.find(set => set.after?.blocking)?.name ?? offered[0]?.name ?? '' }
  for (const set of offered.filter(({ name }) => caller.selected.enabled(name))) {
    if (set.after?.blocking !== true) {
      void each(parts, exchange, [set], async ({ after }) => after?.run(turn, exchange)).catch(() => undefined)
      continue
    }
    const [said] = await each(parts, exchange, [set], async ({ after }) => after?.run(turn, exchange))
    const change = typeof said?.value === 'string' ? { modifiedResponse: said.value } : said?.value
    if (change === undefined || !caller.selected.enabled(set.name)) continue
    const { modifiedResponse, metadata } = change
    if (modifiedResponse !== undefined) turn = { ...turn, assistantMessage: modifiedResponse }
    result = {
      featureSet: set.name,
      ...(result.modifiedResponse === undefined ? {} : { modifiedResponse: result.modifiedResponse }),
      ...(modifiedResponse === undefined ? {} : { modifiedResponse }),
      ...(metadata === undefined && result.metadata === undefined ? {} : { metadata: { ...result.metadata, ...metadata } }),
    }
  }
  return result
}

// The notification form: results are ignored.
async function told(parts: HooksParts, exchange: Exchange): Promise<void> {
  const caller = parts.caller(exchange)
  if (caller === undefined) return
  const turn = exchange.params as unknown as AfterInference
  const taking = parts.sets().filter(({ name, after }) => after !== undefined && caller.selected.enabled(name))
  await each(parts, exchange, taking, async ({ after }) => after?.run(turn, exchange)).catch(() => undefined)
}

/** Runs all hooks; a failure is traced, and thrown only if all of them fail. */
async function each<T>(
  { during, trace }: HooksParts,
  exchange: Exchange,
  sets: readonly HookedSet[],
  run: (set: HookedSet) => Promise<T>,
): Promise<readonly { readonly name: string; readonly value: T }[]> {
  const outcomes = await Promise.allSettled(sets.map(set => during(exchange, () => run(set))))
  const failed = outcomes.flatMap((outcome, at) =>
    outcome.status === 'rejected' ? [[sets[at]?.name, outcome.reason] as const] : [],
  )
  for (const [featureSet, error] of failed) trace('hook-failed', { featureSet, error }, exchange.caller)
  if (failed.length > 0 && failed.length === sets.length) throw failed[0]?.[1]
  return outcomes.flatMap((outcome, at) =>
    outcome.status === 'fulfilled' ? [{ name: sets[at]?.name as string, value: outcome.value }] : [],
  )
}

type Injection = Required<Pick<InjectionInput, 'namespace' | 'position' | 'content'>> & Pick<InjectionInput, 'metadata'>

// Normalises what a hook returned.
function injectionsOf(name: string, given: HookInjection): readonly Injection[] {
  if (given === undefined || given === '') return []
  const all = typeof given === 'string' ? [{ content: given }] : Array.isArray(given) ? given : [given as InjectionInput]
  return all.map(({ namespace = name, position = 'beforeUser', content, ...more }: InjectionInput) => {
    if (!positions.includes(position))
      throw new TypeError(
        `The hook of "${name}" injects at the unknown position "${String(position)}". The positions are ${positions.join(', ')}`,
      )
    return { namespace, position, content: blocksOf(content, `The hook of "${name}"`), ...more }
  })
}

// Writes an injection in the host's dialect.
function written({ content, metadata, ...rest }: Injection, source: boolean, featureSet: string | undefined) {
  const more = featureSet === undefined ? metadata : { ...metadata, featureSet }
  const blocks = writeBlocks(content as Exclude<typeof content, string | { type: string }>, source)
  return { ...rest, content: blocks, ...(more === undefined ? {} : { metadata: more }) }
}
