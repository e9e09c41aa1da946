/** The latest entries of the audit log that fit a question. */
import type { Noted } from '../../../policy/audit/note.ts'
import type { Question } from '../../../policy/audit/query.ts'
import type { Session } from '../session.ts'

const hourMs = 3_600_000
/** How far back is looked, until there is enough to show. */
const windows = [hourMs / 6, hourMs, 24 * hourMs, 24 * 90 * hourMs]

export async function lastNotes(
  { host, now }: Pick<Session, 'host' | 'now'>,
  wanted: Question,
  most: number,
): Promise<readonly Noted[]> {
  for (const window of windows) {
    const last: Noted[] = []
    for (let after: Question['after']; ; ) {
      const { notes, next } = await host.audit({
        ...wanted,
        since: now() - window,
        limit: 1_000,
        ...(after !== undefined && { after }),
      })
      last.push(...notes)
      last.splice(0, Math.max(0, last.length - most))
      if (next === undefined) break
      after = next
    }
    if (last.length === most || window === windows.at(-1)) return last
  }
  return []
}
