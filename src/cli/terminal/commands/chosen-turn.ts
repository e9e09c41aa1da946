/** The turn that a command is about: the last one, or the one with a number. */
import type { Turn } from '../../../host/loop/turn.ts'
import { brief } from '../paint.ts'
import type { Session } from '../session.ts'
import { say } from '../text.ts'

/** Undefined where there is none; that is said already. */
export async function chosenTurn({ conversation, screen }: Session, rest: string): Promise<Turn | undefined> {
  const turns = await conversation.turns()
  const wanted = rest.replace(/^#/, '')
  const found = wanted === '' ? turns.at(-1) : turns.find(({ seq }) => String(seq + 1) === wanted)
  if (found !== undefined) return found
  if (turns.length === 0) screen.line(' Nothing was said yet.')
  else
    screen.line(
      say` There is no turn ${screen.paint.plain(brief(wanted, 20))}: ${turns
        .map(({ seq }) => seq + 1)
        .slice(-20)
        .join(', ')} are there.`,
    )
  return undefined
}
