/** Runs a single hook of a server: time limit, circuit breaker, failure mode and audit entry. */

import { type Clock, type Duration, durationText, toMilliseconds } from '../../core/clock.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { BeforeInference } from '../../features/live/context-hooks/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { messageOf } from '../../stores/store.ts'
import { DeadlineExceeded, withDeadline } from './limits.ts'
import type { LoopParts, LoopServer } from './ports.ts'

/** The outcome of one hook. */
export interface HookReport {
  /** The server that was called. */
  readonly server: string
  /** The feature set that answered. */
  readonly featureSet?: string
  /** Whether it ran before or after the inference. */
  readonly hook: Hook
  /** `refused`: skipped by the circuit breaker. `dropped`: answered without effect. */
  readonly outcome: 'success' | 'failure' | 'timeout' | 'refused' | 'dropped'
  /** When it began, in milliseconds since the epoch. Absent in turns of earlier versions. */
  readonly began?: number
  /** How long it took, in milliseconds. */
  readonly ms: number
  /** Why it had no effect. */
  readonly why?: Why
}

/** The result of `runHook`. */
interface HookResult<T> {
  readonly value: T | undefined
  readonly report: HookReport
  /** The turn must not continue: the hook failed and its rule is `fail: closed`. */
  readonly closed: boolean
}

type HookTurn = Pick<BeforeInference, 'inferenceId' | 'conversationId'>

/** Runs one hook within its time limit, and audits the outcome. */
export async function runHook<T extends { readonly featureSet: string }>(
  parts: LoopParts,
  server: string,
  hook: Hook,
  turn: HookTurn,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T | undefined>,
): Promise<HookResult<T>> {
  const { clock, breaker } = parts
  const { closed, ms } = ruleFor(parts, server, hook)
  const resting = breaker.refuses(server, hook)
  const began = clock.now()
  const told = (outcome: HookReport['outcome'], said?: Why, featureSet?: string): HookReport => {
    const about = { server, hook, outcome, began, ms: clock.now() - began }
    return noted(parts, turn, { ...about, ...(said && { why: said }), ...(featureSet && { featureSet }) })
  }
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
export function missingHooks(parts: LoopParts, turn: HookTurn, asked: readonly LoopServer[], hook: Hook): readonly HookReport[] {
  return [...parts.hookRules].flatMap(([server, rules]) => {
    if (rules[hook]?.fail !== 'closed' || asked.some(({ name }) => name === server)) return []
    const began = parts.clock.now()
    return [noted(parts, turn, { server, hook, outcome: 'failure', began, ms: 0, why: unasked(server, hook) })]
  })
}

/** Audits a report and returns it. */
function noted(parts: LoopParts, { inferenceId, conversationId }: HookTurn, report: HookReport): HookReport {
  const { hook, began: _, ...about } = report
  parts.audit.note({ ...about, inferenceId, conversation: conversationId, kind: `hook.${hook}` })
  return report
}

/** Why a required hook is missing. */
function unasked(server: string, hook: Hook): Why {
  const kind = hook === 'after' ? 'afterInference that may change answers' : 'beforeInference'
  const message = `The hook of ${server} is required, but the server offers no ${kind} now`
  const fix = `Start ${server} and enable its feature set, or remove hooks.${server}.${hook}.fail`
  return why('HOOK_MISSING', `hooks.${hook}`, message, fix)
}

/** Why a required hook had no effect. */
function withoutEffect(server: string, hook: Hook): Why {
  const message = `${server} answered ${hook}Inference for a feature set that is not enabled`
  return why('HOOK_WITHOUT_EFFECT', `hooks.${hook}`, message, `Enable the feature set that ${server} answers for`)
}

function stopped(server: string, hook: Hook): Why {
  const message = `The turn was stopped while ${server} ran ${hook}Inference`
  return why('TURN_STOPPED', `hooks.${hook}`, message, 'No action is needed')
}

/** Why a hook failed. */
function failure(server: string, hook: Hook, error: unknown, ms: number): Why {
  const name = `${hook}Inference of ${server}`
  if (error instanceof DeadlineExceeded) {
    const fix = `Make ${server} faster, or raise hooks.${server}.${hook}.timeout`
    return why('HOOK_TIMEOUT', `hooks.${hook}.timeout`, `${name} did not answer within ${durationText(ms)}`, fix)
  }
  const message = `${name} failed: ${clip(messageOf(error))}`
  return why('HOOK_FAILED', `hooks.${hook}`, message, `Check the log of ${server}, or disable its hooks`)
}

/** How one hook of a server is treated. */
export interface HookRule {
  /**
   * What happens when the hook fails: `open` continues without it, `closed` ends the turn with an error.
   * @default open
   */
  readonly fail?: 'open' | 'closed'
  /** How long the hook may take. By default 5 s before an inference and 10 s after it. */
  readonly timeout?: Duration
}

/** How the hooks of a server are treated. */
export interface ServerHooks {
  /** The hook that runs before the model is asked (`context/beforeInference`). */
  readonly before?: HookRule
  /** The hook that runs after the model has answered (`context/afterInference`). */
  readonly after?: HookRule
}

/** The rule of a hook, with defaults. */
function ruleFor(
  { hookRules, limits }: LoopParts,
  server: string,
  when: Hook,
): { readonly closed: boolean; readonly ms: number } {
  const { fail, timeout } = hookRules.get(server)?.[when] ?? {}
  const standard = when === 'before' ? limits.beforeMs : limits.afterMs
  const ms = timeout === undefined ? standard : toMilliseconds(timeout, `hooks.${server}.${when}.timeout`)
  return { closed: fail === 'closed', ms }
}

/** Whether a hook runs before or after the inference. */
type Hook = 'before' | 'after'

/** Failures in a row that open the breaker. */
const mostFailures = 3
/** How long it stays open. */
const restMs = 30_000

/** The circuit breaker of all hooks: one that failed several times in a row is skipped for a while. */
export class HookBreaker {
  readonly #clock: Clock
  /** Failures in a row, and until when the hook is skipped. */
  readonly #hooks = new Map<string, { failures: number; until: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Why the hook is skipped; undefined where it may run. */
  refuses(server: string, hook: Hook): Why | undefined {
    const standing = this.#hooks.get(`${hook} ${server}`)
    if (standing === undefined || standing.failures < mostFailures) return undefined
    const left = standing.until - this.#clock.now()
    if (left > 0) return resting(server, hook, standing.failures, left)
    // Lets one trial through; others are still skipped.
    standing.until = this.#clock.now() + restMs
    return undefined
  }

  succeeded(server: string, hook: Hook): void {
    this.#hooks.delete(`${hook} ${server}`)
  }

  failed(server: string, hook: Hook): void {
    const failures = (this.#hooks.get(`${hook} ${server}`)?.failures ?? 0) + 1
    this.#hooks.set(`${hook} ${server}`, { failures, until: this.#clock.now() + restMs })
  }
}

/** Why a hook is skipped. */
function resting(server: string, hook: Hook, failures: number, left: number): Why {
  const message = `${hook}Inference of ${server} failed ${failures} times in a row. It is skipped for ${durationText(left)}`
  return why('HOOKS_RESTING', 'hooks.breaker', message, `Check the log of ${server}, or disable its hooks`)
}
