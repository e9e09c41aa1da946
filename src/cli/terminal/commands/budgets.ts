/** `/budgets`: what each budget allows, what of it is spent in the present window, and when the next one begins. */
import type { Command } from '../session.ts'
import { say } from '../text.ts'
import { spanText } from '../words.ts'

export const budgets: Command = {
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
