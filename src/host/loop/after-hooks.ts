/**
 * The chain after an inference: hooks that may change the answer run one after the other, each on what the one before made of it;
 * then those that only want to know are told what was said in the end.
 */
import { problem } from '../../core/problem.ts'
import { type Why, why } from '../../core/suggestion.ts'
import type { After } from '../../features/live/context-hooks/client.ts'
import type { AfterInference } from '../../features/live/context-hooks/messages.ts'
import { type HookParts, type HookReport, type HookServer, missingHooks, runHook } from './hooks.ts'

/** What one hook made of an answer. */
export interface AnswerChange {
  readonly server: string
  readonly featureSet: string
  readonly before: string
  readonly after: string
}

interface AfterHooksResult {
  readonly text: string
  readonly changes: readonly AnswerChange[]
  readonly reports: readonly HookReport[]
  /** The answer must not be shown. */
  readonly stopped: Why | undefined
}

/** Whether the answer can still change, or be withheld, so that nobody may see it yet. */
export function holdsAnswers({ settings }: HookParts, servers: readonly HookServer[]): boolean {
  if ([...settings.values()].some(({ after }) => after?.fail === 'closed')) return true
  return servers.some(({ live }) => live?.hooks.after === 'blocking')
}

export async function afterHooks(
  parts: HookParts,
  servers: readonly HookServer[],
  params: AfterInference,
  signal: AbortSignal,
): Promise<AfterHooksResult> {
  let text = params.assistantMessage
  const changes: AnswerChange[] = []
  const reports: HookReport[] = []
  const asked: HookServer[] = []
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

function fitting(after: After | undefined, most: number): After | undefined {
  const length = after?.modifiedResponse?.length ?? 0
  if (length <= most) return after
  throw problem('PAYLOAD_TOO_LARGE', `it made ${length} characters of the answer, the most are limits.changedLength ${most}`)
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
