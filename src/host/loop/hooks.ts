/** One hook of one server: called within its time, spared when it keeps failing, and what came of it told to the audit. */

import { type Clock, type Duration, durationText, toMilliseconds } from '../../core/clock.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { LiveConnection } from '../../features/live/client-api.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { DeadlineExceeded, type LoopLimits, withDeadline } from './limits.ts'
import type { LoopAudit, LoopPolicy, OnVisit } from './ports.ts'

/** What hooks need of the loop. */
export interface HookParts {
  readonly clock: Clock
  readonly limits: LoopLimits
  readonly settings: HookSettings
  readonly breaker: Breaker
  readonly policy: LoopPolicy
  readonly audit: LoopAudit
  readonly onVisit: OnVisit | undefined
}

/** As much of a server as its hooks need. */
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

interface Hooked<T> {
  readonly value: T | undefined
  readonly report: HookReport
  /** The turn must not go on without it. */
  readonly closed: boolean
}

interface HookTurn {
  readonly inferenceId: string
  readonly conversationId: string
}

/** Runs one hook within its time limit, and notes its outcome in the audit log. */
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
    // Answered, but for no set that counts: whoever has to look at it has not.
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

/** Servers that must not fail and were not asked: down, without the hook, or with its feature set off. */
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

function noted(parts: HookParts, { inferenceId, conversationId }: HookTurn, report: HookReport): HookReport {
  const { hook, ...about } = report
  parts.audit.note({ ...about, inferenceId, conversation: conversationId, kind: `hook.${hook}` })
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
  /** What a failing hook means: `open` goes on without it, `closed` ends the turn with an error. Default `open`. */
  readonly fail?: 'open' | 'closed'
  /** How long it may take. Default 5 s before an inference, 10 s after one. */
  readonly timeout?: Duration
}

/** How the hooks of a server are treated. */
export interface ServerHooks {
  /** Of `context/beforeInference`. */
  readonly before?: HookRule
  /** Of `context/afterInference`. */
  readonly after?: HookRule
}

type HookSettings = ReadonlyMap<string, ServerHooks>

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

interface Breaker {
  /** Undefined: go on. */
  refuses(server: string, hook: Hook): Why | undefined
  succeeded(server: string, hook: Hook): void
  failed(server: string, hook: Hook): void
}

type Hook = 'before' | 'after'

interface Standing {
  failures: number
  until: number
}

const standardFailures = 3
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
      // One trial: whoever comes meanwhile is still sent away.
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

function resting(server: string, hook: Hook, failures: number, left: number): Why {
  return why(
    'HOOKS_RESTING',
    'hooks.breaker',
    `${hook}Inference of ${server} failed ${failures} times in a row: it is left out for ${durationText(left)}`,
    `Look at why ${server} is slow, or disable its hooks`,
  )
}
