/** What is shown first: what this is, who is there, and what was said before. */
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import type { Turn } from '../../host/loop/turn.ts'
import { serverLine } from './commands/servers.ts'
import type { TerminalSession } from './terminal.ts'
import { brief, say } from './text.ts'
import { turnName, turnTopic, whyLines } from './words.ts'

interface WelcomeOptions {
  readonly model: ModelInfo
  /** Where everything is kept. */
  readonly place: string
  /** Lines worth trying, for whoever is here for the first time. */
  readonly examples: readonly string[]
}

/** Turns from before that are shown again. */
const recalled = 3

export async function welcome(session: TerminalSession, { model, place, examples }: WelcomeOptions): Promise<void> {
  const { screen, host, conversation } = session
  const { paint } = screen
  const offline = model.id === 'offline-assistant' ? ' (no key is set: ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL)' : ''
  screen.line(say`${paint.bold('Vivarium')}, a live MCP host: servers can wake the agent, shape what it sees, and be undone.`)
  screen.line(say` ${paint.dim('model')}  ${paint.name(model.id)}${paint.dim(offline)}`)
  screen.line(say` ${paint.dim('store')}  ${paint.plain(place)}`)
  for (const server of host.servers) {
    const sets = [...(server.live?.featureSets ?? [])].filter(([, { enabled }]) => enabled).map(([name]) => name)
    screen.line(say` ${serverLine(paint, server)} ${paint.dim(sets.join(', '))}`)
    if (server.status !== 'up' && server.why !== undefined)
      for (const line of whyLines(paint, server.why)) screen.line(say`  ${line}`)
  }
  const turns = await conversation.turns()
  if (turns.length > 0) showBefore(session, turns)
  else if (examples.length > 0) {
    screen.line(say` ${paint.dim('Try:')}`)
    for (const example of examples) screen.line(say`   ${paint.plain(example)}`)
  }
  screen.line(say` ${paint.dim('/help shows the commands, Ctrl-D ends.')}`)
  screen.line()
}

function showBefore({ screen }: TerminalSession, turns: readonly Turn[]): void {
  const { paint } = screen
  screen.line(say` ${paint.bold(`From before: ${turns.length} turn${turns.length === 1 ? '' : 's'}`)}${paint.dim('; the last:')}`)
  for (const turn of turns.slice(-recalled)) {
    screen.line(say`   ${paint.dim(`${turnName(turn)}:`)} ${paint.plain(turnTopic(turn))}`)
    screen.line(say`     ${paint.dim(turn.answer === undefined ? `(${turn.status})` : brief(turn.answer, 100))}`)
  }
}
