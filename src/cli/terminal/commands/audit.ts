/** `/audit`: the last notes of what the host did and refused, and whether the chain over them holds. */
import type { Question } from '../../../policy/audit/query.ts'
import type { Command } from '../session.ts'
import { say } from '../text.ts'
import { noteLines } from '../words.ts'
import { lastNotes } from './last-notes.ts'

const shown = 20

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
    for (const noted of await lastNotes(session, wanted, shown))
      for (const line of noteLines(paint, noted)) screen.line(say` ${line}`)
    const verdict = await host.verifyAudit()
    if (verdict.ok) screen.line(say` ${paint.good(`The chain over ${verdict.lines} notes holds.`)}`)
    else
      screen.line(
        say` ${paint.bad('The chain is broken: notes were changed behind the host’s back.')} ${paint.plain(JSON.stringify(verdict))}`,
      )
    return undefined
  },
}

const members = ['server', 'kind', 'outcome', 'featureSet', 'conversation'] as const

/** Undefined where it is not understood. */
function questionOf(rest: string): Question | undefined {
  const pairs = rest.split(/\s+/).filter(word => word !== '')
  const read = pairs.map(pair => /^(\w+)=(.+)$/.exec(pair))
  if (read.some(match => match === null || !members.some(name => name === match[1]))) return undefined
  return Object.fromEntries(read.map(match => [match?.[1] ?? '', match?.[2] ?? '']))
}
