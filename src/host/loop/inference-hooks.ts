/**
 * Hooks around an inference (MCP Live 0.2 §10). Before it, all servers are asked in parallel, and injections stand in the order of the
 * servers, so that the same answers give the same prompt. After it, blocking hooks may change the answer in turn. Limits and refusals
 * are reported per injection.
 */

import { problem } from '../../core/problem.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { HookAnswerChange } from '../../features/live/context-hooks/client.ts'
import type { AfterInference, BeforeInference, Injection, Position } from '../../features/live/context-hooks/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { blocksTokens } from '../models/model.ts'
import { type HookReport, missingHooks, runHook } from './hooks.ts'
import type { LoopParts, LoopServer } from './ports.ts'

/** Content that a server injected into a prompt. */
export interface InjectedContext {
  readonly server: string
  readonly featureSet: string
  readonly namespace: string
  readonly position: Position
  readonly content: readonly LiveBlock[]
  /** An estimate. */
  readonly tokens: number
}

interface HooksResult {
  readonly reports: readonly HookReport[]
  /** Why there must be no inference, or its answer must not be shown: a hook with `fail: closed` failed. */
  readonly stopped: Why | undefined
}

/** Images and audio count by size divided by this. */
const mediaFactor = 64
/** Injections per server. */
const mostInjections = 100
/** Blocks per server; each gets its own marks, however short it is. */
const mostBlocks = 200
const longestNamespace = 256

/** Runs the before-hooks of all servers in parallel, and collects what they inject, in prompt order within each position. */
export async function beforeHooks(
  parts: LoopParts,
  servers: readonly LoopServer[],
  params: BeforeInference,
  signal: AbortSignal,
): Promise<HooksResult & { readonly injected: readonly InjectedContext[] }> {
  const asked = servers.filter(({ live }) => live?.hooks.before === true)
  const answers = await Promise.all(
    asked.map(({ name, live }) =>
      runHook(parts, name, 'before', params, signal, async inner => live?.beforeInference(params, { signal: inner })),
    ),
  )
  const missing = missingHooks(parts, params, asked, 'before')
  const stopped = [...answers.filter(({ closed }) => closed).map(({ report }) => report), ...missing][0]?.why
  const reports = [...answers.map(({ report }) => report), ...missing]
  const offered = answers.flatMap(({ value, report: { server } }) => {
    const { featureSet = '', injections = [] } = value ?? {}
    if (injections.length > mostInjections)
      reports.push(dropped(parts, params, server, featureSet, tooMany(server, injections.length)))
    return injections.slice(0, mostInjections).map(injection => ({ server, featureSet, injection }))
  })
  const injected: InjectedContext[] = []
  const budget = new InjectionQuota(parts)
  for (const { server, featureSet, injection } of offered) {
    const refusal = budget.refuses(server, injection)
    const verdict = refusal === undefined ? await allowed(parts, server, featureSet, injection) : { why: refusal }
    if (verdict.why !== undefined) reports.push(dropped(parts, params, server, featureSet, verdict.why))
    else {
      const { namespace, position, content } = injection
      injected.push({ server, featureSet, namespace, position, content, tokens: blocksTokens(content) })
      const { inferenceId, conversationId: conversation } = params
      const about = { server, featureSet, inferenceId, conversation, kind: 'inject', detail: clip(namespace) }
      parts.audit.note({ ...about, outcome: 'success', rule: verdict.rule })
    }
  }
  return { injected, reports, stopped }
}

/** Asks the policy. Injections that need a question are left out, because asking would block the turn. */
async function allowed(
  parts: LoopParts,
  server: string,
  featureSet: string,
  { namespace, position }: Injection,
): Promise<{ readonly why: Why } | { readonly why?: undefined; readonly rule: string }> {
  const verdict = await parts.policy.decide({ kind: 'inject', server, featureSet, payload: { namespace, position } })
  if (verdict.do === 'deny' || verdict.do === 'hold') return { why: verdict.why }
  if (verdict.do !== 'ask') return { rule: verdict.rule }
  const message = `The injection of ${server} needs an approval, but the user is not asked during a turn`
  const fix = `Allow injections of ${featureSet} for ${server} in the policy`
  return { why: why('INJECTION_NEEDS_APPROVAL', verdict.rule, message, fix) }
}

/** Audits and reports a dropped injection. */
function dropped(parts: LoopParts, params: BeforeInference, server: string, featureSet: string, said: Why): HookReport {
  const { inferenceId, conversationId: conversation } = params
  parts.audit.note({ server, featureSet, inferenceId, conversation, kind: 'inject', outcome: 'dropped', why: said })
  return { server, featureSet, hook: 'before', outcome: 'dropped', began: parts.clock.now(), ms: 0, why: said }
}

/** Counts the size of injections against the limits. */
class InjectionQuota {
  readonly #parts: LoopParts
  readonly #servers = new Map<string, { length: number; blocks: number }>()
  #all = 0

  constructor(parts: LoopParts) {
    this.#parts = parts
  }

  /** Why an injection exceeds a limit; counts it where it does not. */
  refuses(server: string, { namespace, content }: Injection): Why | undefined {
    const { injectionLength, serverInjections, allInjections } = this.#parts.limits
    if (namespace.length > longestNamespace) return unnamed(server)
    const length = lengthOf(content)
    const before = this.#servers.get(server) ?? { length: 0, blocks: 0 }
    const blocks = before.blocks + content.length
    if (blocks > mostBlocks) return tooMany(server, blocks)
    const ofServer = before.length + length
    const all = this.#all + length
    const sizes = [
      ['injectionLength', length, injectionLength],
      ['serverInjections', ofServer, serverInjections],
      ['allInjections', all, allInjections],
    ] as const
    const [limit, , most] = sizes.find(([, size, allowed]) => !(size <= allowed)) ?? []
    if (limit === undefined) {
      this.#servers.set(server, { length: ofServer, blocks })
      this.#all = all
      return undefined
    }
    const message = `An injection of ${server} (${clip(namespace)}, ${length} characters) is larger than ${most} characters (the limit)`
    return why(
      'INJECTION_TOO_LARGE',
      `limits.${limit}`,
      message,
      `Correct ${server} so that it injects less, or raise limits.${limit}`,
    )
  }
}

/** The refusal of too many injections. */
function tooMany(server: string, count: number): Why {
  const message = `${server} injects ${count} items, more than ${mostInjections} injections or ${mostBlocks} blocks (the limits)`
  return why('TOO_MANY_INJECTIONS', 'injections', message, `Correct ${server} so that it combines them`)
}

/** The refusal of a long namespace. */
function unnamed(server: string): Why {
  const message = `The namespace of an injection of ${server} is longer than ${longestNamespace} characters (the limit)`
  return why('NAMESPACE_INVALID', 'injections', message, `Correct ${server} so that it uses a short name`)
}

/** The size of content in characters. */
function lengthOf(content: readonly LiveBlock[]): number {
  return content.reduce((sum, block) => {
    if (block.type === 'text') return sum + block.text.length
    const { type: _, ...said } = block
    // All other members of a block are in the prompt as well.
    const words = Object.entries(said).map(([name, value]) => (name === 'data' ? value.length / mediaFactor : value.length))
    return sum + Math.ceil(words.reduce((all, one) => all + one, 0))
  }, 0)
}

// After-hooks: blocking ones run one after the other, each on the text of the previous one; then the others are notified of the final text.

/** A change of an answer by one hook. */
export interface AnswerChange {
  /** The server that changed the answer. */
  readonly server: string
  /** The feature set that changed the answer. */
  readonly featureSet: string
  /** The answer before the change. */
  readonly before: string
  /** The answer after the change. */
  readonly after: string
}

/** Whether a hook can still change or withhold the answer, so that it must not be streamed. */
export function holdsAnswers({ hookRules }: LoopParts, servers: readonly LoopServer[]): boolean {
  if ([...hookRules.values()].some(({ after }) => after?.fail === 'closed')) return true
  return servers.some(({ live }) => live?.hooks.after === 'blocking')
}

/** Runs the blocking after-hooks one after the other, then notifies the servers that only listen. */
export async function afterHooks(
  parts: LoopParts,
  servers: readonly LoopServer[],
  params: AfterInference,
  signal: AbortSignal,
): Promise<HooksResult & { readonly text: string; readonly changes: readonly AnswerChange[] }> {
  let text = params.assistantMessage
  const changes: AnswerChange[] = []
  const reports: HookReport[] = []
  const asked: LoopServer[] = []
  for (const server of servers) {
    const { name, live } = server
    if (live?.hooks.after !== 'blocking') continue
    asked.push(server)
    const seen = { ...params, assistantMessage: text }
    const { value, report, closed } = await runHook(parts, name, 'after', params, signal, async inner =>
      fitting(await live.afterInference(seen, { signal: inner }), parts.limits.changedLength),
    )
    reports.push(report)
    if (closed) return { text, changes, reports, stopped: withheld(name, report.why) }
    if (value?.modifiedResponse === undefined || value.modifiedResponse === text) continue
    changes.push({ server: name, featureSet: value.featureSet, before: text, after: value.modifiedResponse })
    text = value.modifiedResponse
  }
  const [missing, ...more] = missingHooks(parts, params, asked, 'after')
  if (missing !== undefined)
    return { text, changes, reports: [...reports, missing, ...more], stopped: withheld(missing.server, missing.why) }
  tell(parts, servers, { ...params, assistantMessage: text })
  return { text, changes, reports, stopped: undefined }
}

/** Rejects a changed answer that is too long. */
function fitting(after: HookAnswerChange | undefined, most: number): HookAnswerChange | undefined {
  const length = after?.modifiedResponse?.length ?? 0
  if (length <= most) return after
  throw problem('PAYLOAD_TOO_LARGE', `the changed answer has ${length} characters, more than ${most} (limits.changedLength)`)
}

/** Notifies without waiting. */
function tell(parts: LoopParts, servers: readonly LoopServer[], params: AfterInference): void {
  const never = new AbortController().signal
  for (const { name, live } of servers) {
    if (live?.hooks.after === 'told')
      void runHook(parts, name, 'after', params, never, signal => live.afterInference(params, { signal }))
  }
}

/** Why an answer is withheld. */
function withheld(server: string, cause: Why | undefined): Why {
  const {
    message: said = `afterInference of ${server} failed`,
    fix = `Correct the error of ${server}, or let its hook fail open`,
  } = cause ?? {}
  const message = `The answer is not shown, because ${server} must check it first: ${said}`
  return why('ANSWER_WITHHELD', `hooks.${server}.after.fail`, message, fix)
}
