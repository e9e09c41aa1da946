/** Runs a single hook of a server: time limit, circuit breaker, failure mode and audit entry. */

import { type Clock, type Duration, durationText, toMilliseconds } from '../../core/clock.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { DeadlineExceeded, type LoopLimits, withDeadline } from './limits.ts'
import type { LoopAudit, LoopPolicy, OnVisit } from './ports.ts'

/** What hooks need from the loop. */
export interface HookParts {
  readonly clock: Clock
  readonly limits: LoopLimits
  /** Hook rules by server. */
  readonly settings: HookSettings
  /** Skips hooks that keep failing. */
  readonly breaker: Breaker
  readonly policy: LoopPolicy
  readonly audit: LoopAudit
  readonly onVisit: OnVisit | undefined
}

/** The part of a server that hooks need. */
export interface HookServer {
  readonly name: string
  readonly live: LiveConnection | undefined
}

/** The outcome of one hook. */
export interface HookReport {
  readonly server: string
  readonly featureSet?: string
  readonly hook: 'before' | 'after'
  /** `refused`: skipped by the circuit breaker. `dropped`: answered without effect. */
  readonly outcome: 'success' | 'failure' | 'timeout' | 'refused' | 'dropped'
  readonly ms: number
  readonly why?: Why
}

/** The result of `runHook`. */
interface Hooked<T> {
  readonly value: T | undefined
  readonly report: HookReport
  /** The turn must not continue: the hook failed and its rule is `fail: closed`. */
  readonly closed: boolean
}

interface HookTurn {
  readonly inferenceId: string
  readonly conversationId: string
}

/** Runs one hook within its time limit, and audits the outcome. */
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
    const value = await withDeadline(clock, ms, signal, work)
    breaker.succeeded(server, hook)
    // An answer for a disabled feature set counts as none, so a required hook has failed.
    if (value === undefined && closed) return { value, report: told('dropped', withoutEffect(server, hook)), closed }
    return { value, report: told('success', undefined, value?.featureSet), closed: false }
  } catch (error) {
    if (signal.aborted) told('failure', stopped(server, hook))
    signal.throwIfAborted()
    breaker.failed(server, hook)
    const late = error instanceof DeadlineExceeded
    return { value: undefined, report: told(late ? 'timeout' : 'failure', failure(server, hook, error, ms)), closed }
  } finally {
    leave?.()
  }
}

/** Reports required hooks of servers that were not asked: down, without the hook, or with a disabled feature set. */
export function missingHooks(
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

/** Audits a report and returns it. */
function noted(parts: HookParts, { inferenceId, conversationId }: HookTurn, report: HookReport): HookReport {
  const { hook, ...about } = report
  parts.audit.note({ ...about, inferenceId, conversation: conversationId, kind: `hook.${hook}` })
  return report
}

/** Why a required hook is missing. */
function unasked(server: string, hook: 'before' | 'after'): Why {
  const kind = hook === 'after' ? 'afterInference that may change answers' : 'beforeInference'
  return why(
    'HOOK_MISSING',
    `hooks.${hook}`,
    `${server} must not be passed over, and offers no ${kind} now`,
    `Bring ${server} up and enable its feature set, or take hooks.${server}.${hook}.fail away`,
  )
}

/** Why a required hook had no effect. */
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

/** Why a hook failed. */
function failure(server: string, hook: 'before' | 'after', error: unknown, ms: number): Why {
  const name = `${hook}Inference`
  if (error instanceof DeadlineExceeded)
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

/** How one hook of a server is treated. */
export interface HookRule {
  /** When the hook fails: `open` continues without it, `closed` ends the turn with an error. Default `open`. */
  readonly fail?: 'open' | 'closed'
  /** The time limit. Default 5 s before an inference, 10 s after. */
  readonly timeout?: Duration
}

/** How the hooks of a server are treated. */
export interface ServerHooks {
  /** The rule for `context/beforeInference`. */
  readonly before?: HookRule
  /** The rule for `context/afterInference`. */
  readonly after?: HookRule
}

/** By server. */
type HookSettings = ReadonlyMap<string, ServerHooks>

/** The rule of a hook, with defaults. */
function ruleFor(
  settings: HookSettings,
  limits: LoopLimits,
  server: string,
  when: 'before' | 'after',
): { readonly closed: boolean; readonly ms: number } {
  const rule = settings.get(server)?.[when]
  const standard = when === 'before' ? limits.beforeMs : limits.afterMs
  return {
    closed: rule?.fail === 'closed',
    ms: rule?.timeout === undefined ? standard : toMilliseconds(rule.timeout, `hooks.${server}.${when}.timeout`),
  }
}

/** The circuit breaker of all hooks. */
interface Breaker {
  /** Why the hook is skipped; undefined where it may run. */
  refuses(server: string, hook: Hook): Why | undefined
  succeeded(server: string, hook: Hook): void
  failed(server: string, hook: Hook): void
}

type Hook = 'before' | 'after'

/** Failures in a row, and until when the hook is skipped. */
interface Standing {
  failures: number
  until: number
}

/** Failures in a row that open the breaker. */
const standardFailures = 3
/** How long it stays open. */
const standardRestMs = 30_000

/** A circuit breaker: a hook that failed several times in a row is skipped for a while. */
export function createBreaker(clock: Clock, failures = standardFailures, restMs = standardRestMs): Breaker {
  const hooks = new Map<string, Standing>()
  return {
    refuses: (server, hook) => {
      const standing = hooks.get(`${hook} ${server}`)
      if (standing === undefined || standing.failures < failures) return undefined
      const left = standing.until - clock.now()
      if (left > 0) return resting(server, hook, standing.failures, left)
      // Lets one trial through; others are still skipped.
      standing.until = clock.now() + restMs
      return undefined
    },
    succeeded: (server, hook) => void hooks.delete(`${hook} ${server}`),
    failed: (server, hook) => {
      const standing = hooks.get(`${hook} ${server}`) ?? { failures: 0, until: 0 }
      standing.failures += 1
      standing.until = clock.now() + restMs
      hooks.set(`${hook} ${server}`, standing)
    },
  }
}

/** Why a hook is skipped. */
function resting(server: string, hook: Hook, failures: number, left: number): Why {
  return why(
    'HOOKS_RESTING',
    'hooks.breaker',
    `${hook}Inference of ${server} failed ${failures} times in a row: it is left out for ${durationText(left)}`,
    `Look at why ${server} is slow, or disable its hooks`,
  )
}
