/** `/cost`: what went into the prompt of a turn and from whom, and what servers spent in all. */
import type { PromptSection } from '../../../host/loop/prompt.ts'
import type { Turn } from '../../../host/loop/turn.ts'
import type { Command, Session } from '../session.ts'
import { say } from '../text.ts'
import { costLine } from '../words.ts'
import { chosenTurn } from './chosen-turn.ts'

export const cost: Command = {
  name: 'cost',
  takes: '[TURN]',
  about: 'what each part of the prompt cost, and what was spent in all',
  run: async (session, rest) => {
    const turn = await chosenTurn(session, rest)
    if (turn === undefined) return undefined
    showTurn(session, turn)
    await showAll(session)
    return undefined
  },
}

function showTurn({ screen }: Session, turn: Turn): void {
  const { paint } = screen
  screen.line(say` ${paint.bold(costLine(turn))}`)
  for (const section of turn.prompt?.sections ?? []) {
    const changed = section.changed === true ? paint.warn(' changed: what the provider had cached is lost from here') : ''
    screen.line(say`   ${String(section.tokens).padStart(7)} ${paint.plain(nameOf(section))}${changed}`)
  }
  const leftOut = turn.prompt?.leftOut ?? 0
  if (leftOut > 0) screen.line(say`   ${paint.warn(`${leftOut} earlier turns found no room`)}`)
}

function nameOf({ from, featureSet, namespace, position }: PromptSection): string {
  if (namespace === undefined) return from
  return `${from}/${featureSet ?? ''} (${[namespace, position ?? ''].join(', ')})`
}

async function showAll({ screen, conversation, host }: Session): Promise<void> {
  const { paint } = screen
  const costs = (await conversation.turns()).map(turn => turn.cost)
  const sum = (pick: (one: Turn['cost']) => number): number => costs.reduce((total, one) => total + pick(one), 0)
  const money = sum(one => one.money ?? 0)
  screen.line(
    say` ${paint.bold(`all ${costs.length} turns`)} ${paint.plain(`${sum(one => one.inputTokens)} + ${sum(one => one.outputTokens)} tokens${money > 0 ? `, ${money.toFixed(4)} $` : ''}`)}`,
  )
  for (const { server, featureSet, tokens, requests } of await host.spent())
    screen.line(
      say`   ${paint.name(server === 'host' ? 'you' : `${server}/${featureSet}`)} ${paint.dim(`asked the model ${requests === 1 ? 'once' : `${requests} times`}, ${Math.round(tokens)} tokens`)}`,
    )
}
