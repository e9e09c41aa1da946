/** `/why`: how something came about: a turn, an event, an inference, step by step and with the reasons. */
import { brief } from '../paint.ts'
import type { Command, Session } from '../session.ts'
import { say } from '../text.ts'
import { noteLines, turnName, turnTopic } from '../words.ts'
import { chosenTurn } from './chosen-turn.ts'

export const why: Command = {
  name: 'why',
  takes: '[TURN | EVENT | INFERENCE]',
  about: 'what happened and by which rule; without an id of the last turn',
  run: async (session, rest) => {
    const { host, screen } = session
    const turn = rest === '' || /^#?\d+$/.test(rest) ? await chosenTurn(session, rest) : undefined
    if (turn === undefined && (rest === '' || /^#?\d+$/.test(rest))) return undefined
    const id = turn?.inferenceId ?? rest
    if (turn !== undefined)
      screen.line(say` ${screen.paint.bold(turnName(turn))} ${screen.paint.dim(`${turnTopic(turn)}, ${turn.status}, ${id}`)}`)
    const { notes, joined } = await host.explain(id)
    if (notes.length === 0) unknown(session, id)
    for (const noted of notes) for (const line of noteLines(screen.paint, noted)) screen.line(say` ${line}`)
    const others = joined.filter(other => other !== id)
    if (others.length > 0)
      screen.line(say` ${screen.paint.dim(`belongs to ${others.map(other => brief(other, 60)).join(', ')}`)}`)
    return undefined
  },
}

function unknown({ screen }: Session, id: string): void {
  screen.line(say` Nothing is noted under ${screen.paint.plain(brief(id))}. /inbox and /audit show ids.`)
}
