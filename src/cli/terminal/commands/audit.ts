/** `/audit`: the last notes of what the host did and refused, and whether the chain over them holds. */
import type { Noted } from '../../../host/audit/note.ts'
import type { Question } from '../../../host/audit/query.ts'
import type { Command, Session } from '../session.ts'
import { noteLines } from '../words.ts'

const shown = 20
const hourMs = 3_600_000
/** How far back is looked, until there is enough to show. */
const windows = [hourMs / 6, hourMs, 24 * hourMs, 24 * 90 * hourMs]

export const audit: Command = {
  name: 'audit',
  takes: '[server=… kind=… outcome=…]',
  about: 'what was done and refused lately; checks the chain',
  run: async (session, rest) => {
    const { host, screen } = session
    const { paint } = screen
    const wanted = questionOf(rest)
    if (wanted === undefined) {
      screen.line(' Write /audit server=NAME kind=KIND outcome=success|failure|timeout|refused|held|dropped, any of them.')
      return undefined
    }
    for (const noted of await lastNotes(session, wanted)) for (const line of noteLines(paint, noted)) screen.line(` ${line}`)
    const verdict = await host.verifyAudit()
    if (verdict.ok) screen.line(` ${paint.good(`The chain over ${verdict.lines} notes holds.`)}`)
    else
      screen.line(
        ` ${paint.bad('The chain is broken: notes were changed behind the host’s back.')} ${paint.plain(JSON.stringify(verdict))}`,
      )
    return undefined
  },
}

async function lastNotes({ host, now }: Session, wanted: Question): Promise<readonly Noted[]> {
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
      last.splice(0, Math.max(0, last.length - shown))
      if (next === undefined) break
      after = next
    }
    if (last.length === shown || window === windows.at(-1)) return last
  }
  return []
}

const members = ['server', 'kind', 'outcome', 'featureSet', 'conversation'] as const

/** Undefined where it is not understood. */
function questionOf(rest: string): Question | undefined {
  const pairs = rest.split(/\s+/).filter(word => word !== '')
  const read = pairs.map(pair => /^(\w+)=(.+)$/.exec(pair))
  if (read.some(match => match === null || !members.some(name => name === match[1]))) return undefined
  return Object.fromEntries(read.map(match => [match?.[1] ?? '', match?.[2] ?? '']))
}
