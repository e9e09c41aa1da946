/** One hook of one server: called within its time, spared when it keeps failing, and what came of it told to the audit. */
import type { LiveConnection } from '../../client/live-handlers.ts'
import type { Clock } from '../../core/clock.ts'
import { durationText } from '../../core/duration.ts'
import { type Why, why } from '../../core/why.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Breaker } from './breaker.ts'
import { TimeIsUp, within } from './deadline.ts'
import { type HookSettings, ruleFor } from './hook-settings.ts'
import type { LoopLimits } from './limits.ts'
import type { LoopAudit, LoopPolicy, OnVisit } from './ports.ts'

export interface HookParts {
  readonly clock: Clock
  readonly limits: LoopLimits
  readonly settings: HookSettings
  readonly breaker: Breaker
  readonly policy: LoopPolicy
  readonly audit: LoopAudit
  readonly onVisit: OnVisit | undefined
}

export interface HookServer {
  readonly name: string
  readonly live: LiveConnection | undefined
}

/** What came of one hook. */
export interface HookReport {
  readonly server: string
  readonly featureSet?: string
  readonly hook: 'before' | 'after'
  readonly outcome: 'success' | 'failure' | 'timeout' | 'refused' | 'dropped'
  readonly ms: number
  readonly why?: Why
}

export interface Hooked<T> {
  readonly value: T | undefined
  readonly report: HookReport
  /** The turn must not go on without it. */
  readonly closed: boolean
}

export interface HookTurn {
  readonly inferenceId: string
  readonly conversationId: string
}

export async function runHook<T extends { readonly featureSet: string }>(
  parts: HookParts,
  server: string,
  hook: 'before' | 'after',
  turn: HookTurn,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T | undefined>,
): Promise<Hooked<T>> {
  const { clock, breaker } = parts
  const { closed, ms } = ruleFor(parts.settings, parts.limits, server, hook)
  const resting = breaker.refuses(server, hook)
  const began = clock.now()
  const told = (outcome: HookReport['outcome'], said?: Why, featureSet?: string): HookReport =>
    noted(parts, turn, {
      server,
      hook,
      outcome,
      ms: clock.now() - began,
      ...(said && { why: said }),
      ...(featureSet && { featureSet }),
    })
  if (resting !== undefined) return { value: undefined, report: told('refused', resting), closed }
  const leave = parts.onVisit?.(server, turn.inferenceId)
  try {
    const value = await within(clock, ms, signal, work)
    breaker.succeeded(server, hook)
    // Answered, but for no set that counts: whoever has to look at it has not.
    if (value === undefined && closed) return { value, report: told('dropped', withoutEffect(server, hook)), closed }
    return { value, report: told('success', undefined, value?.featureSet), closed: false }
  } catch (error) {
    if (signal.aborted) told('failure', stopped(server, hook))
    signal.throwIfAborted()
    breaker.failed(server, hook)
    const late = error instanceof TimeIsUp
    return { value: undefined, report: told(late ? 'timeout' : 'failure', failure(server, hook, error, ms)), closed }
  } finally {
    leave?.()
  }
}

/** Servers that must not fail and were not asked: down, without the hook, or with its feature set off. */
export function absent(
  parts: HookParts,
  turn: HookTurn,
  asked: readonly HookServer[],
  hook: 'before' | 'after',
): readonly HookReport[] {
  return [...parts.settings].flatMap(([server, rules]) => {
    if (rules[hook]?.fail !== 'closed' || asked.some(({ name }) => name === server)) return []
    return [noted(parts, turn, { server, hook, outcome: 'failure', ms: 0, why: unasked(server, hook) })]
  })
}

function noted(parts: HookParts, { inferenceId, conversationId }: HookTurn, report: HookReport): HookReport {
  const { server, featureSet, hook, outcome, ms } = report
  parts.audit.note({
    server,
    ...(featureSet && { featureSet }),
    inferenceId,
    conversation: conversationId,
    kind: `hook.${hook}`,
    outcome,
    ms,
    ...(report.why && { why: report.why }),
  })
  return report
}

function unasked(server: string, hook: 'before' | 'after'): Why {
  const kind = hook === 'after' ? 'afterInference that may change answers' : 'beforeInference'
  return why(
    'HOOK_MISSING',
    `hooks.${hook}`,
    `${server} must not be passed over, and offers no ${kind} now`,
    `Bring ${server} up and enable its feature set, or take hooks.${server}.${hook}.fail away`,
  )
}

function withoutEffect(server: string, hook: 'before' | 'after'): Why {
  return why(
    'HOOK_WITHOUT_EFFECT',
    `hooks.${hook}`,
    `${server} answered ${hook}Inference for a feature set that is not enabled`,
    `Enable the feature set that ${server} answers for`,
  )
}

function stopped(server: string, hook: 'before' | 'after'): Why {
  const message = `The turn was stopped while ${server} worked on ${hook}Inference`
  return why('TURN_STOPPED', `hooks.${hook}`, message, 'Nothing needs to be done')
}

function failure(server: string, hook: 'before' | 'after', error: unknown, ms: number): Why {
  const name = `${hook}Inference`
  if (error instanceof TimeIsUp)
    return why(
      'HOOK_TIMEOUT',
      `hooks.${hook}.timeout`,
      `${name} of ${server} gave no answer within ${durationText(ms)}`,
      `Make ${server} faster, or give hooks.${server}.${hook}.timeout more time`,
    )
  const said = clip(error instanceof Error ? error.message : String(error))
  return why(
    'HOOK_FAILED',
    `hooks.${hook}`,
    `${name} of ${server} failed: ${said}`,
    `Look into the log of ${server}, or disable its hooks`,
  )
}
