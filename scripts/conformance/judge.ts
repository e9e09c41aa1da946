/**
 * What counts as passed, stricter than the suite: a scenario needs one real success, a warning fails it, a scenario that left no
 * result fails, and a client must have ended by itself with status 0 (where the suite lets it fail, any status).
 */

/** One entry of the suite's checks.json. */
export interface Check {
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  readonly description?: string
  readonly errorMessage?: string
  readonly details?: Readonly<Record<string, unknown>>
}

export interface Failure {
  readonly id: string
  readonly message: string
}

export interface Verdict {
  readonly scenario: string
  /** Checks that succeeded. */
  readonly passed: number
  readonly failures: readonly Failure[]
}

/** Judges one scenario. `checks` is undefined when it wrote none; `extra` are failures that were seen outside its checks. */
export function judge(scenario: string, checks: readonly Check[] | undefined, extra: readonly Failure[] = []): Verdict {
  if (!checks)
    return {
      scenario,
      passed: 0,
      failures: extra.length > 0 ? extra : [{ id: 'did-not-run', message: 'the suite wrote no result' }],
    }
  const succeeded = checks.filter(({ status }) => status === 'SUCCESS')
  const failures = [...checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING').map(describe), ...extra]
  // The check of every message against the schema passes also when nothing else was looked at.
  const evidence = succeeded.some(({ id }) => id !== 'wire-schema-valid')
  if (!evidence && failures.length === 0)
    failures.push({ id: 'no-evidence', message: `no check succeeded${firstReason(checks)}` })
  return { scenario, passed: succeeded.length, failures }
}

function describe({ id, status, errorMessage, description }: Check): Failure {
  return { id, message: `${status === 'WARNING' ? '(warning) ' : ''}${errorMessage ?? description ?? 'no message'}` }
}

function firstReason(checks: readonly Check[]): string {
  const first = checks.find(({ status }) => status !== 'SUCCESS')
  return first ? ` (${first.errorMessage ?? first.description ?? first.id})` : ''
}

/** What the suite's own words say of how the client ended. `suiteFailed`: the suite did not excuse it. */
export function judgeClientEnd(output: string, suiteFailed: boolean): Failure[] {
  const timeout = /Client timed out after (\d+)ms/.exec(output)
  if (timeout) return [{ id: 'client-exit', message: `the client did not end within ${Number(timeout[1]) / 1000} s` }]
  const status = /Client exited with code (-?\d+)/.exec(output)
  if (!status || !suiteFailed) return []
  const words = /\nStderr:\n([\s\S]*?)(?=\nResults saved to|$)/.exec(output)?.[1]?.trim().split('\n').slice(-3).join(' ')
  return [{ id: 'client-exit', message: `the client ended with status ${status[1]}${words ? `: ${words}` : ''}` }]
}

/** A client told to speak one revision offers that one and no other. */
export function judgeOffer(checks: readonly Check[] | undefined, revision: string): Failure[] {
  const sent = checks?.find(({ id }) => id === 'mcp-client-initialization')?.details?.protocolVersionSent
  if (sent === undefined || sent === revision) return []
  return [{ id: 'offered-version', message: `the client offered ${String(sent)} instead of ${revision}` }]
}

/** `server 2025-11-25: 33/33 scenarios, 84/84 checks`. */
export function summarise(title: string, verdicts: readonly Verdict[]): string {
  const good = verdicts.filter(({ failures }) => failures.length === 0).length
  const passed = verdicts.reduce((sum, verdict) => sum + verdict.passed, 0)
  const failed = verdicts.reduce((sum, verdict) => sum + verdict.failures.length, 0)
  return `${title}: ${good}/${verdicts.length} scenarios, ${passed}/${passed + failed} checks`
}
