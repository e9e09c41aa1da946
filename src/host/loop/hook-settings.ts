/** How a host treats the hooks of a server. */
import { type Duration, toMilliseconds } from '../../core/duration.ts'
import type { LoopLimits } from './limits.ts'

export interface HookRule {
  /** What a failing hook means: `open` goes on without it, `closed` ends the turn with an error. Default `open`. */
  readonly fail?: 'open' | 'closed'
  /** How long it may take. Default 5 s before an inference, 10 s after one. */
  readonly timeout?: Duration
}

export interface ServerHooks {
  /** Of `context/beforeInference`. */
  readonly before?: HookRule
  /** Of `context/afterInference`. */
  readonly after?: HookRule
}

export type HookSettings = ReadonlyMap<string, ServerHooks>

export function ruleFor(
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
