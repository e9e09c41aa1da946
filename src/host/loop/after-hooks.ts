/**
 * The chain after an inference: hooks that may change the answer run one after the other, each on what the one before made of it;
 * then those that only want to know are told what was said in the end.
 */
import { type Why, why } from '../../core/why.ts'
import type { AfterInference } from '../../features/live/context-hooks/messages.ts'
import { type HookParts, type HookReport, type HookServer, runHook } from './hook-run.ts'

/** What one hook made of an answer. */
export interface Change {
  readonly server: string
  readonly featureSet: string
  readonly before: string
  readonly after: string
}

export interface Chained {
  readonly text: string
  readonly changes: readonly Change[]
  readonly reports: readonly HookReport[]
  /** The answer must not be shown. */
  readonly stopped: Why | undefined
}

/** Whether the answer can still change, so that nobody may see it yet. */
export function holdsAnswers(servers: readonly HookServer[]): boolean {
  return servers.some(({ live }) => live?.hooks.after === 'blocking')
}

export async function afterHooks(
  parts: HookParts,
  servers: readonly HookServer[],
  params: AfterInference,
  signal: AbortSignal,
): Promise<Chained> {
  let text = params.assistantMessage
  const changes: Change[] = []
  const reports: HookReport[] = []
  for (const { name, live } of servers) {
    if (live?.hooks.after !== 'blocking') continue
    const seen = { ...params, assistantMessage: text }
    const { value, report, closed } = await runHook(parts, name, 'after', params, signal, inner =>
      live.afterInference(seen, { signal: inner }),
    )
    reports.push(report)
    if (closed) return { text, changes, reports, stopped: withheld(name, report.why) }
    if (value?.modifiedResponse === undefined || value.modifiedResponse === text) continue
    changes.push({ server: name, featureSet: value.featureSet, before: text, after: value.modifiedResponse })
    text = value.modifiedResponse
  }
  tell(parts, servers, { ...params, assistantMessage: text })
  return { text, changes, reports, stopped: undefined }
}

/** Nobody waits for them. */
function tell(parts: HookParts, servers: readonly HookServer[], params: AfterInference): void {
  const never = new AbortController().signal
  for (const { name, live } of servers) {
    if (live?.hooks.after === 'told')
      void runHook(parts, name, 'after', params, never, signal => live.afterInference(params, { signal }))
  }
}

function withheld(server: string, cause: Why | undefined): Why {
  const said = cause?.message ?? `afterInference of ${server} failed`
  return why(
    'ANSWER_WITHHELD',
    `hooks.${server}.after.fail`,
    `The answer is not shown, because ${server} must look at it first: ${said}`,
    cause?.fix ?? `Make ${server} work, or let its hook fail open`,
  )
}
