/** A turn while it runs: who woke it, what each hook put in, what is called and what came of it, the answer, and the price. */

import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import type { Host } from '../../host/host.ts'
import type { PlannedCall } from '../../host/loop/conversation-log.ts'
import type { Turn, TurnPart } from '../../host/loop/turn.ts'
import { textIn } from '../../host/models/model.ts'
import { serverLine } from './commands/servers.ts'
import type { Screen } from './screen.ts'
import type { TerminalSession } from './terminal.ts'
import { brief, foreignMark, say, type Words } from './text.ts'
import { costLine, showWhy, turnName, turnTopic } from './words.ts'

/** Resolves when the turn is over, whatever became of it. */
export async function showTurn(
  screen: Screen,
  inbox: Host['inbox'],
  turn: Turn,
  { now, resumed }: { readonly now: () => number; readonly resumed: boolean },
): Promise<void> {
  const began = now()
  if (resumed)
    screen.line(say` ${screen.paint.warn('↻')} ${screen.paint.bold('continues with')} ${screen.paint.dim(turnTopic(turn))}`)
  if (turn.from.kind === 'event') await showEvent(screen, inbox, turn.from)
  const shown = new ShownTurn(screen)
  try {
    for await (const part of turn) shown.part(part)
  } finally {
    shown.end()
  }
  screen.line(screen.paint.dim(` ${costLine(turn)} · ${now() - began} ms`))
  screen.line()
}

/** The event that woke the agent. */
async function showEvent(
  screen: Screen,
  inbox: Host['inbox'],
  { server, featureSet, eventId }: Extract<Turn['from'], { kind: 'event' }>,
): Promise<void> {
  const { paint } = screen
  const record = await inbox.get(server, eventId)
  screen.line(
    say` ${paint.warn('◆')} ${paint.name(featureSet)} ${paint.bold('wakes the agent')} ${paint.dim(`(${server}, event ${brief(eventId)})`)}`,
  )
  // A turn may be over before it is shown: then only the beginning of what its event said is left.
  const said = record?.event === undefined ? (record?.preview ?? '') : textIn(record.event.content)
  if (said !== '') screen.line(say`   ${foreignMark}${paint.dim(brief(said, screen.width - 6))}`)
}

/** How a turn ended that has no answer. */
const endings = {
  cancelled: '■ stopped',
  interrupted: '■ interrupted: continues at the next attempt or start',
  failed: '✗ no answer',
}

/** A turn on the screen, part by part. */
class ShownTurn {
  readonly #screen: Screen
  /** Ends the spinner. */
  #stop: () => void

  constructor(screen: Screen) {
    this.#screen = screen
    this.#stop = screen.work('thinking')
  }

  /** Ends what is drawn, also where the turn has failed. */
  end(): void {
    this.#stop()
    this.#screen.endLine()
  }

  /** Shows one part of the turn. */
  part(part: TurnPart): void {
    const { paint } = this.#screen
    switch (part.type) {
      case 'hook':
        return this.#hook(part.report)
      case 'prompt':
        for (const { from, featureSet, namespace, position, content, tokens } of part.prompt.sections) {
          if (namespace === undefined) continue
          const where =
            position === 'system' ? 'to the system' : position === 'afterUser' ? 'after your message' : 'before your message'
          const what = brief(textIn(content ?? []), 70)
          this.#line(
            say`${paint.name('+')} ${paint.name(featureSet ?? from)} ${paint.dim(`added ${tokens} tokens ${where}: ${what}`)}`,
          )
        }
        return
      case 'text':
        this.#stop()
        return this.#screen.stream(part.delta)
      case 'call':
        this.#line(
          say`${paint.name('→')} ${paint.name(callName(part.call))} ${paint.dim(brief(JSON.stringify(part.call.arguments), 200))}`,
        )
        this.#work(callName(part.call))
        return
      case 'progress':
        return this.#work(`${brief(part.message ?? '', 60)} ${Math.round(part.progress * 100) / 100}`)
      case 'result':
        return this.#result(part)
      case 'answer':
        for (const { server, featureSet } of part.changes)
          this.#line(
            say`${paint.warn('~')} ${paint.name(featureSet)} ${paint.dim(`of ${server} changed the answer before it was shown`)}`,
          )
        return
      case 'ended':
        this.#line(paint.bad(endings[part.status]))
        if (part.status !== 'cancelled') showWhy(this.#screen, part.why)
    }
  }

  /** Only hooks that did not succeed are worth a line. */
  #hook({ server, featureSet, hook, outcome, why }: Extract<TurnPart, { type: 'hook' }>['report']): void {
    if (outcome === 'success') return
    const { paint } = this.#screen
    this.#line(say`${paint.warn('!')} ${paint.name(featureSet ?? server)} ${paint.warn(`${hook}Inference: ${outcome}`)}`)
    showWhy(this.#screen, why)
  }

  #result({ call, outcome }: Extract<TurnPart, { type: 'result' }>): void {
    const { paint } = this.#screen
    const done = outcome.status === 'done'
    const mark = done ? paint.good('✓') : paint.bad(`✗ ${outcome.status}`)
    this.#line(say`${mark} ${paint.dim(`${callName(call)}, ${outcome.ms} ms`)}`)
    showWhy(this.#screen, outcome.why)
    this.#work('thinking')
  }

  /** Shows what takes its time now. */
  #work(label: string): void {
    this.#stop()
    this.#stop = this.#screen.work(label)
  }

  #line(text: Words): void {
    this.#screen.line(say` ${text}`)
  }
}

/** A tool by its server and feature set. */
function callName({ server, tool, featureSet }: PlannedCall): string {
  const of = server === undefined ? '' : `${server}.`
  return `${of}${tool}${featureSet === undefined || featureSet === server ? '' : ` (${featureSet})`}`
}

// What is shown first: what this is, who is there, and what was said before.

/** What the first lines tell. */
interface WelcomeOptions {
  readonly model: ModelInfo
  /** Where everything is kept. */
  readonly place: string
  /** Lines worth trying, for whoever is here for the first time. */
  readonly examples: readonly string[]
}

/** Turns from before that are shown again. */
const recalled = 3

/** The first lines: model, store, servers, and the last turns or what to try. */
export async function welcome(session: TerminalSession, { model, place, examples }: WelcomeOptions): Promise<void> {
  const { screen, host, conversation } = session
  const { paint } = screen
  const offline = model.id === 'offline-assistant' ? ' (no key is set: ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL)' : ''
  screen.line(say`${paint.bold('Vivarium')}, a live MCP host: servers can wake the agent, add to its prompt and undo their work.`)
  screen.line(say` ${paint.dim('model')}  ${paint.name(model.id)}${paint.dim(offline)}`)
  screen.line(say` ${paint.dim('store')}  ${place}`)
  for (const server of host.servers) {
    const sets = [...(server.live?.featureSets ?? [])].filter(([, { enabled }]) => enabled).map(([name]) => name)
    screen.line(say` ${serverLine(paint, server)} ${paint.dim(sets.join(', '))}`)
    if (server.status !== 'up') showWhy(screen, server.why, '  ')
  }
  const turns = await conversation.turns()
  if (turns.length > 0) showBefore(session, turns)
  else if (examples.length > 0) {
    screen.line(say` ${paint.dim('Try:')}`)
    for (const example of examples) screen.line(say`   ${example}`)
  }
  screen.line(say` ${paint.dim('/help shows the commands, Ctrl-D ends.')}`)
  screen.line()
}

/** The last turns of the conversation. */
function showBefore({ screen }: TerminalSession, turns: readonly Turn[]): void {
  const { paint } = screen
  screen.line(say` ${paint.bold(`From before: ${turns.length} turn${turns.length === 1 ? '' : 's'}`)}${paint.dim('; the last:')}`)
  for (const turn of turns.slice(-recalled)) {
    screen.line(say`   ${paint.dim(`${turnName(turn)}:`)} ${turnTopic(turn)}`)
    screen.line(say`     ${paint.dim(turn.answer === undefined ? `(${turn.status})` : brief(turn.answer, 100))}`)
  }
}
