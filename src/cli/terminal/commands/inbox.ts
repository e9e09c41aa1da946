/** `/inbox`: events that servers pushed, what they say, and what became of them; those that were not even accepted too. */

import type { InboxRecord } from '../../../host/inbox/options.ts'
import type { AuditQuestion, Noted } from '../../../policy/audit/book.ts'
import type { TerminalCommand, TerminalSession } from '../terminal.ts'
import { brief, foreignMark, say } from '../text.ts'
import { clockText, noteLines, whyLines } from '../words.ts'

const shown = 20

export const inbox: TerminalCommand = {
  name: 'inbox',
  aliases: ['events'],
  takes: '[replay SERVER EVENT]',
  about: 'events that woke the agent, or wait, or were refused or given up',
  run: async (session, rest) => {
    const { host, screen } = session
    const [verb, server = '', eventId = ''] = rest.split(/\s+/)
    if (verb === 'replay') {
      const done = await host.inbox.replay(server, eventId)
      screen.line(done ? ' It is tried again.' : ' No event of that name was given up. Write /inbox replay SERVER EVENT.')
      return undefined
    }
    const records = (
      await Promise.all(host.servers.map(async ({ name }) => host.inbox.list({ server: name, limit: 1_000 })))
    ).flat()
    const turnedAway = await lastNotes(session, { kind: 'push', outcome: 'refused' }, shown)
    const rows = [
      ...records.map(record => ({ at: record.at, show: () => showRecord(session, record) })),
      ...turnedAway.map(noted => ({ at: noted.at, show: () => showRefused(session, noted) })),
    ]
    if (rows.length === 0) screen.line(' No server has pushed anything yet.')
    for (const { show } of rows.toSorted((a, b) => a.at - b.at).slice(-shown)) show()
    return undefined
  },
}

const marks = { waiting: 'warn', done: 'good', refused: 'bad', dead: 'bad' } as const

function showRecord({ screen }: TerminalSession, record: InboxRecord): void {
  const { at, state, server, featureSet, eventId, inferenceId, preview, notBefore, attempts, why } = record
  const { paint } = screen
  const tried = attempts.length > 1 ? `, ${attempts.length} attempts` : ''
  const until = notBefore === undefined ? '' : `, not before ${clockText(notBefore)}`
  screen.line(
    say` ${paint.dim(clockText(at))} ${paint[marks[state]](state.padEnd(7))} ${paint.name(`${server}/${featureSet}`)} ${paint.plain(brief(eventId, 60))} ${paint.dim(`${inferenceId}${tried}${until}`)}`,
  )
  if (preview !== '') screen.line(say`   ${foreignMark}${paint.dim(brief(preview, screen.width - 6))}`)
  if (why !== undefined) for (const line of whyLines(paint, why)) screen.line(say` ${line}`)
}

/** One that its server was told no about: it is nowhere but in the audit log. */
function showRefused({ screen }: TerminalSession, { at, server, featureSet, eventId = '', detail, why }: Noted): void {
  const { paint } = screen
  screen.line(
    say` ${paint.dim(clockText(at))} ${paint.bad('refused')} ${paint.name(`${server}/${featureSet ?? ''}`)} ${paint.plain(brief(eventId, 60))} ${paint.dim(detail ?? 'not accepted')}`,
  )
  if (why !== undefined) for (const line of whyLines(paint, why)) screen.line(say` ${line}`)
}

export const audit: TerminalCommand = {
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
function questionOf(rest: string): AuditQuestion | undefined {
  const pairs = rest.split(/\s+/).filter(word => word !== '')
  const read = pairs.map(pair => /^(\w+)=(.+)$/.exec(pair))
  if (read.some(match => match === null || !members.some(name => name === match[1]))) return undefined
  return Object.fromEntries(read.map(match => [match?.[1] ?? '', match?.[2] ?? '']))
}

const hourMs = 3_600_000
/** How far back is looked, until there is enough to show. */
const windows = [hourMs / 6, hourMs, 24 * hourMs, 24 * 90 * hourMs]

async function lastNotes(
  { host, now }: Pick<TerminalSession, 'host' | 'now'>,
  wanted: AuditQuestion,
  most: number,
): Promise<readonly Noted[]> {
  for (const window of windows) {
    const last: Noted[] = []
    for (let after: AuditQuestion['after']; ; ) {
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
