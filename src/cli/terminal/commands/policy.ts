/** `/allow`: a later yes to what was refused. It counts for exactly that, the next time that it is asked for. */

import { isRecord } from '../../../jsonrpc/message.ts'
import type { ApprovalQuestion } from '../../../policy/approvals/question.ts'
import type { TerminalCommand, TerminalSession } from '../terminal.ts'
import { say } from '../text.ts'
import { spanText } from '../words.ts'

export const allow: TerminalCommand = {
  name: 'allow',
  takes: '[N]',
  about: 'a later yes to what was refused; without N to the last one',
  run: async (session, rest) => {
    const { screen, questions } = session
    const { paint } = screen
    const at = rest === '' ? 1 : Number(rest)
    const question = questions.refused[at - 1]
    if (question === undefined) {
      screen.line(questions.refused.length === 0 ? ' Nothing was refused since the start.' : ' These were refused:')
      for (const [n, { text }] of questions.refused.entries()) screen.line(say` ${n + 1}. ${paint.plain(text)}`)
      return undefined
    }
    questions.allow(question)
    const now = await allowNow(session, question)
    screen.line(
      say` ${paint.good('✓')} ${paint.plain(question.text)} ${now ? 'Yes.' : 'Yes, the next time that it is asked for.'}`,
    )
    return undefined
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

export const budgets: TerminalCommand = {
  name: 'budgets',
  aliases: ['budget'],
  about: 'what servers may spend, and what is left of it',
  run: async ({ host, screen, now }) => {
    const { paint } = screen
    const rows = await host.budgets()
    if (rows.length === 0)
      screen.line(' There are no budgets: nothing is limited, all is counted (/cost). Write host.budgets in the config.')
    for (const { limit, server, featureSet, used, resetsAt } of rows) {
      const { name, counts, most, warnAt = 0.8 } = limit
      const whose = featureSet !== undefined ? `${server}/${featureSet}` : (server ?? 'all together')
      const amount = `${rounded(used)} of ${rounded(most)} ${counts}`
      const mark = used >= most ? paint.bad(amount) : used >= most * warnAt ? paint.warn(amount) : paint.good(amount)
      screen.line(
        say` ${paint.name(name.padEnd(16))} ${paint.plain(whose.padEnd(20))} ${mark} ${paint.dim(`· anew in ${spanText(resetsAt - now())}`)}`,
      )
    }
    return undefined
  },
}

/** Money has cents, and no more of them than anybody reads. */
function rounded(amount: number): string {
  return String(Number(amount.toFixed(4)))
}
