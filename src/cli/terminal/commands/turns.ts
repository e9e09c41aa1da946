/** The turn that a command is about: the last one, or the one with a number. */

import type { PromptSection } from '../../../host/loop/prompt.ts'
import type { Turn } from '../../../host/loop/turn.ts'
import type { UndoStep } from '../../../host/loop/undo-steps.ts'
import type { TreeNode } from '../../../host/state/book.ts'
import type { TerminalCommand, TerminalSession } from '../terminal.ts'
import { brief, say } from '../text.ts'
import { clockText, costLine, showNote, showWhy, turnName, turnTopic } from '../words.ts'

/** Undefined where there is none; that is said already. */
async function chosenTurn({ conversation, screen }: TerminalSession, rest: string): Promise<Turn | undefined> {
  const turns = await conversation.turns()
  const wanted = rest.replace(/^#/, '')
  const found = wanted === '' ? turns.at(-1) : turns.find(({ seq }) => String(seq + 1) === wanted)
  if (found !== undefined) return found
  if (turns.length === 0) screen.line(' There are no turns yet.')
  else
    screen.line(
      say` There is no turn ${brief(wanted, 20)}. Turns: ${turns
        .map(({ seq }) => seq + 1)
        .slice(-20)
        .join(', ')}.`,
    )
  return undefined
}

/** `/why`: what happened, and by which rule. */
const whyCommand: TerminalCommand = {
  name: 'why',
  takes: '[TURN | EVENT | INFERENCE]',
  about: 'explains what happened and by which rule; without an id, in the last turn',
  run: async (session, rest) => {
    const { host, screen } = session
    const isTurn = rest === '' || /^#?\d+$/.test(rest)
    const turn = isTurn ? await chosenTurn(session, rest) : undefined
    if (turn === undefined && isTurn) return
    const id = turn?.inferenceId ?? rest
    if (turn !== undefined)
      screen.line(say` ${screen.paint.bold(turnName(turn))} ${screen.paint.dim(`${turnTopic(turn)}, ${turn.status}, ${id}`)}`)
    const { notes, joined } = await host.explain(id)
    if (notes.length === 0) screen.line(say` There is no record of ${brief(id)}. /inbox and /audit show ids.`)
    for (const noted of notes) showNote(screen, noted)
    const others = joined.filter(other => other !== id)
    if (others.length > 0) screen.line(say` ${screen.paint.dim(`related: ${others.map(other => brief(other, 60)).join(', ')}`)}`)
  },
}

/** `/cost`: what a turn cost, and all of them. */
const cost: TerminalCommand = {
  name: 'cost',
  takes: '[TURN]',
  about: 'shows what each part of the prompt cost, and the total',
  run: async (session, rest) => {
    const turn = await chosenTurn(session, rest)
    if (turn === undefined) return
    showTurnCost(session, turn)
    await showTotalCost(session)
  },
}

/** What one turn cost, by the parts of its prompt. */
function showTurnCost({ screen }: TerminalSession, turn: Turn): void {
  const { paint } = screen
  screen.line(say` ${paint.bold(costLine(turn))}`)
  for (const section of turn.prompt?.sections ?? []) {
    const changed = section.changed === true ? paint.warn(' changed: the provider’s cache is lost from here') : ''
    screen.line(say`   ${String(section.tokens).padStart(7)} ${sectionName(section)}${changed}`)
  }
  const leftOut = turn.prompt?.leftOut ?? 0
  if (leftOut > 0) screen.line(say`   ${paint.warn(`${leftOut} earlier turns did not fit`)}`)
}

/** A part of the prompt, and who put it in. */
function sectionName({ from, featureSet, namespace, position }: PromptSection): string {
  if (namespace === undefined) return from
  return `${from}/${featureSet ?? ''} (${[namespace, position ?? ''].join(', ')})`
}

/** What was spent in all, and by whom. */
async function showTotalCost({ screen, conversation, host }: TerminalSession): Promise<void> {
  const { paint } = screen
  const costs = (await conversation.turns()).map(turn => turn.cost)
  const sum = (pick: (one: Turn['cost']) => number): number => costs.reduce((total, one) => total + pick(one), 0)
  const money = sum(one => one.money ?? 0)
  screen.line(
    say` ${paint.bold(`all ${costs.length} turns`)} ${`${sum(one => one.inputTokens)} + ${sum(one => one.outputTokens)} tokens${money > 0 ? `, ${money.toFixed(4)} $` : ''}`}`,
  )
  for (const { server, featureSet, tokens, requests } of await host.spent())
    screen.line(
      say`   ${paint.name(server === 'host' ? 'you' : `${server}/${featureSet}`)} ${paint.dim(`asked the model ${requests === 1 ? 'once' : `${requests} times`}, ${Math.round(tokens)} tokens`)}`,
    )
}

/** `/undo`: takes turns back. */
const undo: TerminalCommand = {
  name: 'undo',
  takes: '[TURN]',
  about: 'undoes the last turn, or one turn and all after it',
  run: async (session, rest) => {
    const { screen } = session
    const { paint } = screen
    const turn = await chosenTurn(session, rest)
    if (turn === undefined) return
    const stop = screen.work('undoing')
    const { complete, turns, steps } = await turn.undo().finally(stop)
    const more = turns.length > 1 ? ` and the ${turns.length - 1} after it` : ''
    const are = turns.length > 1 ? 'are' : 'is'
    const idle = steps.length > 0 && steps.every(({ outcome }) => outcome === 'nothing')
    const whole = complete
      ? paint.good(`${are} undone${idle ? '; there was nothing to undo' : ''}`)
      : paint.warn(`${are} undone, but some effects remain`)
    screen.line(say` ${paint.bold(turnName(turn))} ${paint.dim(`${turnTopic(turn)}${more}`)} ${whole}`)
    for (const step of steps) showUndoStep(session, step)
  },
}

/** How something was undone. */
const byWords = {
  transaction: 'by its transaction',
  compensation: 'by a compensating call',
  rollback: 'by restoring its state',
}

/** What became of one effect of a turn. */
function showUndoStep(
  { screen }: TerminalSession,
  { server = 'host', tool, featureSet, outcome, by, declined, why }: UndoStep,
): void {
  const { paint } = screen
  const what = [server, tool ?? featureSet ?? ''].filter(text => text !== '').join('.')
  const mark =
    outcome === 'undone' ? paint.good('✓ undone ') : outcome === 'stays' ? paint.bad('✗ remains') : paint.dim('· nothing')
  const how = by !== undefined ? byWords[by] : declined !== undefined ? `was not done: ${brief(declined, 100)}` : ''
  screen.line(say`   ${mark} ${paint.name(what)} ${paint.dim(how)}`)
  showWhy(screen, why, '   ')
}

/** The last checkpoints that are shown. */
const shown = 15

/** `/state`: checkpoints of feature sets. */
const state: TerminalCommand = {
  name: 'state',
  takes: '[SET [CHECKPOINT]]',
  about: 'shows checkpoints of feature sets, their content and differences',
  run: async (session, rest) => {
    const { host, screen } = session
    const [set = '', checkpoint] = rest.split(/\s+/)
    const sets = (await host.state.sets()).filter(({ server, featureSet }) => set === '' || set === featureSet || set === server)
    if (sets.length === 0)
      screen.line(set === '' ? ' No server has stored a state yet.' : say` The feature set ${brief(set)} has stored no state.`)
    for (const { server, featureSet } of sets) {
      const tree = await host.state.tree(server, featureSet)
      screen.line(
        say` ${screen.paint.name(`${server}/${featureSet}`)} ${screen.paint.dim(`${tree.length} checkpoint${tree.length === 1 ? '' : 's'}`)}`,
      )
      if (checkpoint !== undefined) await showDifference(session, server, featureSet, tree, checkpoint)
      else await showTree(session, server, featureSet, tree)
    }
  },
}

/** The checkpoints of a set, and the content of the current one. */
async function showTree(
  { host, screen }: TerminalSession,
  server: string,
  set: string,
  tree: readonly TreeNode[],
): Promise<void> {
  const { paint } = screen
  for (const { checkpoint, parent, at, state: stored, current } of tree.slice(-shown)) {
    const mark = current ? paint.good('▶') : ' '
    const from = parent === null ? 'the first' : `after ${brief(parent, 24)}`
    screen.line(
      say`  ${mark} ${brief(checkpoint, 40)} ${paint.dim(`${clockText(at)} ${from}${stored === 'kept' ? '' : `, ${stored}`}`)}`,
    )
  }
  const head = tree.find(({ current }) => current)
  if (head === undefined)
    screen.line(say`    ${paint.dim('current: before the first checkpoint; the next call carries no state')}`)
  if (head?.state !== 'kept') return
  const content = await host.state.at(server, set, head.checkpoint)
  screen.line(say`    ${paint.dim(brief(JSON.stringify(content), 400))}`)
}

/** What a checkpoint changed. */
async function showDifference(
  { host, screen }: TerminalSession,
  server: string,
  set: string,
  tree: readonly TreeNode[],
  wanted: string,
): Promise<void> {
  const node =
    tree.find(({ checkpoint }) => checkpoint === wanted) ?? tree.find(({ checkpoint }) => checkpoint.startsWith(wanted))
  if (node === undefined) return screen.line(say`   There is no checkpoint ${brief(wanted)}.`)
  if (node.state !== 'kept') return screen.line('   The server keeps its content.')
  const parent = tree.find(({ checkpoint }) => checkpoint === node.parent)
  if (parent?.state !== 'kept')
    return screen.line(say`   ${brief(JSON.stringify(await host.state.at(server, set, node.checkpoint)), 2_000)}`)
  for (const step of await host.state.diff(server, set, parent.checkpoint, node.checkpoint))
    screen.line(say`   ${brief(JSON.stringify(step), 300)}`)
}

/** What turns did, cost and changed. */
export const turnCommands = { why: whyCommand, cost, undo, state }
