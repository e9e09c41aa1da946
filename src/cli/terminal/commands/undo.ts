/** `/undo`: takes back the last turn, or one and all after it, and says what stays. */
import type { UndoStep } from '../../../host/loop/undo-report.ts'
import { brief } from '../paint.ts'
import type { Command, Session } from '../session.ts'
import { say } from '../text.ts'
import { turnName, turnTopic, whyLines } from '../words.ts'
import { chosenTurn } from './chosen-turn.ts'

export const undo: Command = {
  name: 'undo',
  takes: '[TURN]',
  about: 'takes back the last turn, or one and all after it',
  run: async (session, rest) => {
    const { screen } = session
    const { paint } = screen
    const turn = await chosenTurn(session, rest)
    if (turn === undefined) return undefined
    const stop = screen.work('undoing')
    const { complete, turns, steps } = await turn.undo().finally(stop)
    const more = turns.length > 1 ? ` and the ${turns.length - 1} after it` : ''
    const are = turns.length > 1 ? 'are' : 'is'
    const idle = steps.length > 0 && steps.every(({ outcome }) => outcome === 'nothing')
    const whole = complete
      ? paint.good(`${are} undone${idle ? '; nothing had been done' : ''}`)
      : paint.warn(`${are} undone, but some of it stays`)
    screen.line(say` ${paint.bold(turnName(turn))} ${paint.dim(`${turnTopic(turn)}${more}`)} ${whole}`)
    for (const step of steps) show(session, step)
    return undefined
  },
}

const byWords = {
  transaction: 'by its transaction',
  compensation: 'by a call that takes it back',
  rollback: 'by setting its state back',
}

function show({ screen }: Session, { server = 'host', tool, featureSet, outcome, by, declined, why }: UndoStep): void {
  const { paint } = screen
  const what = [server, tool ?? featureSet ?? ''].filter(text => text !== '').join('.')
  const mark =
    outcome === 'undone' ? paint.good('✓ undone ') : outcome === 'stays' ? paint.bad('✗ stays  ') : paint.dim('· nothing')
  const how = by !== undefined ? byWords[by] : declined !== undefined ? `was not done: ${brief(declined, 100)}` : ''
  screen.line(say`   ${mark} ${paint.name(what)} ${paint.dim(how)}`)
  if (why !== undefined) for (const line of whyLines(paint, why)) screen.line(say`   ${line}`)
}
