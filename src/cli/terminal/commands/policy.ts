/** `/allow`: a later yes to what was refused. It counts for exactly that, the next time that it is asked for. */

import type { InboxRecord } from '../../../host/inbox/options.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import type { ApprovalQuestion } from '../../../policy/approvals/question.ts'
import type { AuditQuestion, Noted } from '../../../policy/audit/host-audit.ts'
import type { TerminalCommand, TerminalSession } from '../terminal.ts'
import { brief, foreignMark, say } from '../text.ts'
import { clockText, showNote, showWhy, spanText } from '../words.ts'

/** `/allow`: a later yes to what was refused. */
const allow: TerminalCommand = {
  name: 'allow',
  takes: '[N]',
  about: 'approves a refused question afterwards; without N the last one',
  run: async (session, rest) => {
    const { screen, questions } = session
    const { paint } = screen
    const at = rest === '' ? 1 : Number(rest)
    const question = questions.refused[at - 1]
    if (question === undefined) {
      screen.line(questions.refused.length === 0 ? ' Nothing has been refused since the start.' : ' Refused questions:')
      for (const [n, { text }] of questions.refused.entries()) screen.line(say` ${n + 1}. ${text}`)
      return
    }
    questions.allow(question)
    const now = await allowNow(session, question)
    screen.line(say` ${paint.good('✓')} ${question.text} ${now ? 'Approved.' : 'Approved for the next time.'}`)
  },
}

/** What nobody asks for again is done at once. */
async function allowNow({ host }: TerminalSession, { about, asked }: ApprovalQuestion): Promise<boolean> {
  if (about === 'set') {
    // Asked once more, in the same words: the yes is one to what was declared then, and to nothing that the server declares later.
    const verdict = await host.policy.decide(asked)
    return verdict.do === 'ask' ? (await host.policy.approve(asked, verdict)).yes : verdict.do === 'allow'
  }
  if (about !== 'definition' || !isRecord(asked.payload)) return false
  // The one that was shown: by now the server may have put another in its place, which nobody has seen.
  const { digest } = asked.payload
  const held = host.heldTools.find(each => each.server === asked.server && each.digest === digest)
  if (held === undefined) return false
  await host.approveTool(held)
  return true
}

/** `/budgets`: what servers may spend, and what is left. */
const budgets: TerminalCommand = {
  name: 'budgets',
  aliases: ['budget'],
  about: 'shows what servers may spend, and what is left',
  run: async ({ host, screen, now }) => {
    const { paint } = screen
    const rows = await host.budgets()
    if (rows.length === 0)
      screen.line(' There are no budgets: spending is counted (/cost), not limited. To limit it, add host.budgets to the config.')
    for (const { limit, server, featureSet, used, resetsAt } of rows) {
      const { name, counts, most, warnAt = 0.8 } = limit
      const whose = featureSet !== undefined ? `${server}/${featureSet}` : (server ?? 'in total')
      const amount = `${rounded(used)} of ${rounded(most)} ${counts}`
      const mark = used >= most ? paint.bad(amount) : used >= most * warnAt ? paint.warn(amount) : paint.good(amount)
      screen.line(
        say` ${paint.name(name.padEnd(16))} ${whose.padEnd(20)} ${mark} ${paint.dim(`· resets in ${spanText(resetsAt - now())}`)}`,
      )
    }
  },
}

/** Money has cents, and no more of them than anybody reads. */
function rounded(amount: number): string {
  return String(Number(amount.toFixed(4)))
}

// `/inbox`: events that servers pushed, what they say, and what became of them; those that were not even accepted too.

/** The most lines that are shown. */
const shown = 20

/** `/inbox`: events, and `/inbox replay` for one that was given up. */
const inbox: TerminalCommand = {
  name: 'inbox',
  aliases: ['events'],
  takes: '[replay SERVER EVENT]',
  about: 'lists events: handled, waiting, refused or given up',
  run: async (session, rest) => {
    const { host, screen } = session
    const [verb, server = '', eventId = ''] = rest.split(/\s+/)
    if (verb === 'replay') {
      const done = await host.inbox.replay(server, eventId)
      screen.line(
        done ? ' The event is retried.' : ' There is no given-up event with this name. Write /inbox replay SERVER EVENT.',
      )
      return
    }
    // The store may hold events of servers that the config no longer names.
    const noted = await lastNotes(session, { kind: 'push' }, 1_000)
    const names = new Set([...host.servers.map(({ name }) => name), ...noted.map(note => note.server)])
    const records = (await Promise.all([...names].map(name => host.inbox.list({ server: name, limit: 1_000 })))).flat()
    const turnedAway = await lastNotes(session, { kind: 'push', outcome: 'refused' }, shown)
    const rows = [
      ...records.map(record => ({ at: record.at, show: () => showRecord(session, record) })),
      ...turnedAway.map(noted => ({ at: noted.at, show: () => showRefused(session, noted) })),
    ]
    if (rows.length === 0) screen.line(' No server has pushed anything yet.')
    for (const { show } of rows.toSorted((a, b) => a.at - b.at).slice(-shown)) show()
  },
}

/** The colour of each state. */
const marks = { waiting: 'warn', done: 'good', refused: 'bad', dead: 'bad' } as const

/** An event that was accepted. */
function showRecord({ screen }: TerminalSession, record: InboxRecord): void {
  const { at, state, server, featureSet, eventId, inferenceId, preview, notBefore, attempts, why } = record
  const { paint } = screen
  const tried = attempts.length > 1 ? `, ${attempts.length} attempts` : ''
  const until = notBefore === undefined ? '' : `, not before ${clockText(notBefore)}`
  screen.line(
    say` ${paint.dim(clockText(at))} ${paint[marks[state]](state.padEnd(7))} ${paint.name(`${server}/${featureSet}`)} ${brief(eventId, 60)} ${paint.dim(`${inferenceId}${tried}${until}`)}`,
  )
  if (preview !== '') screen.line(say`   ${foreignMark}${paint.dim(brief(preview, screen.width - 6))}`)
  showWhy(screen, why)
}

/** One that its server was told no about: it is nowhere but in the audit log. */
function showRefused({ screen }: TerminalSession, { at, server, featureSet, eventId = '', detail, why }: Noted): void {
  const { paint } = screen
  screen.line(
    say` ${paint.dim(clockText(at))} ${paint.bad('refused')} ${paint.name(`${server}/${featureSet ?? ''}`)} ${brief(eventId, 60)} ${paint.dim(detail ?? 'not accepted')}`,
  )
  showWhy(screen, why)
}

/** `/audit`: the last notes of the audit log, and whether its chain holds. */
const audit: TerminalCommand = {
  name: 'audit',
  takes: '[server=… kind=… outcome=…]',
  about: 'lists recent actions and refusals, and verifies the audit log',
  run: async (session, rest) => {
    const { host, screen } = session
    const { paint } = screen
    const wanted = questionOf(rest)
    if (wanted === undefined) {
      screen.line(' Write /audit with any of server=NAME, kind=KIND, outcome=success|failure|timeout|refused|held|dropped.')
      return
    }
    for (const noted of await lastNotes(session, wanted, shown)) showNote(screen, noted)
    const verdict = await host.verifyAudit()
    if (verdict.ok)
      screen.line(say` ${paint.good(`The audit log is intact: ${verdict.lines} ${verdict.lines === 1 ? 'entry' : 'entries'}.`)}`)
    else screen.line(say` ${paint.bad('The audit log was changed outside the host:')} ${JSON.stringify(verdict)}`)
  },
}

/** What `/audit` can filter by. */
const members = ['server', 'kind', 'outcome', 'featureSet', 'conversation'] as const

/** Undefined where it is not understood. */
function questionOf(rest: string): AuditQuestion | undefined {
  const pairs = rest.split(/\s+/).filter(word => word !== '')
  const read = pairs.map(pair => /^(\w+)=(.+)$/.exec(pair))
  if (read.some(match => match === null || !members.some(name => name === match[1]))) return
  return Object.fromEntries(read.map(match => [match?.[1] ?? '', match?.[2] ?? '']))
}

/** In milliseconds. */
const hourMs = 3_600_000
/** How far back is looked, until there is enough to show. */
const windows = [hourMs / 6, hourMs, 24 * hourMs, 24 * 90 * hourMs]

/** The last notes that fit, looked for further and further back. */
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

/** What servers did, may do and were refused. */
export const policyCommands = { allow, budgets, inbox, audit }
