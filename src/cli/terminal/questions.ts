/**
 * Questions to the user: may a server do this, what does it want to know, may it use the model. Where nobody sits before the
 * terminal the answer is no, and a line says so; nothing ever waits for a pipe. There is one question on the screen at a time.
 */

import { AnsweredElsewhere } from '../../console/beside.ts'
import { unlessAborted } from '../../core/deadlines.ts'
import type { ElicitResult } from '../../features/mcp/elicitation/messages.ts'
import type { OnServerQuestion, ServerQuestion } from '../../host/loop/answers/answers.ts'
import type { OnSampleReview } from '../../host/loop/answers/sampling.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ApprovalAnswer, ApprovalQuestion, OnApproval } from '../../policy/approvals/question.ts'
import { fillForm } from './form.ts'
import type { LineReader } from './reader.ts'
import type { Screen } from './screen.ts'
import { brief, escaped, foreignMark, foreignText, say } from './text.ts'
import { spanText } from './words.ts'

/** A plain question, asked below some lines. Undefined: there is nobody to ask. */
export type Confirm = (text: string, lines: readonly string[], signal?: AbortSignal) => Promise<boolean | undefined>

/** Refusals that are remembered. */
const most = 20
/** Characters that are shown of what is agreed to. */
const payloadLength = 1_500
/** Of questions that nobody gives up. */
const never = new AbortController().signal

/** Answers for a host, asked in the terminal one after the other. */
export class Questions {
  /** What was refused since the start, the latest first. */
  readonly refused: ApprovalQuestion[] = []
  readonly #screen: Screen
  readonly #reader: LineReader
  readonly #queue = new QuestionQueue()
  /** The digests of what is allowed the next time that it is asked. */
  readonly #allowed = new Set<string>()

  constructor(screen: Screen, reader: LineReader) {
    this.#screen = screen
    this.#reader = reader
  }

  /** The next time that exactly this is asked, the answer is yes. */
  allow(question: ApprovalQuestion): void {
    this.#allowed.add(question.digest)
    this.refused.splice(this.refused.indexOf(question), 1)
  }

  /** Asks whether something may be done. */
  readonly onApproval: OnApproval = async (question, { signal }) => {
    const screen = this.#screen
    if (this.#allowed.delete(question.digest)) {
      screen.line(say` ${screen.paint.good('✓')} ${question.text} Approved by your /allow.`)
      // A feature set is not asked for again: its yes has to last.
      return question.about === 'set' ? true : { yes: true, for: 0 }
    }
    const late = (): ApprovalAnswer => {
      if (answeredElsewhere(signal)) return false
      screen.line(say` ${screen.paint.bad('Refused')}, because it waited too long behind other questions: ${question.text}`)
      return false
    }
    const answer = await this.#queue.ask(signal, late, shown => this.#approval(question, signal, shown))
    if (answeredElsewhere(signal) ? refusedElsewhere(signal) : !(typeof answer === 'boolean' ? answer : answer.yes))
      this.#refuse(question)
    return answer
  }

  /** Asks a plain question. */
  readonly confirm: Confirm = (text, lines, signal = never) => {
    const ask = (shown: ShownQuestion) => confirmOn(this.#screen, this.#reader, text, lines, shown, signal)
    return this.#queue.ask<boolean | undefined>(signal, () => undefined, ask)
  }

  /** Asks what a server wants to know. */
  readonly onElicit: OnServerQuestion = (question, { signal }) => {
    const ask = (shown: ShownQuestion) => this.#elicitation(question, signal, shown)
    return this.#queue.ask<ElicitResult>(signal, () => ({ action: 'cancel' }), ask)
  }

  /** Asks whether a server may use the model, or get its answer. */
  readonly onSampleReview: OnSampleReview = (review, { signal }) =>
    this.#queue.ask(
      signal,
      () => ({ yes: false }),
      async shown => ({ yes: await this.#sampling(review, signal, shown) }),
    )

  #refuse(question: ApprovalQuestion): void {
    const same = this.refused.findIndex(({ digest }) => digest === question.digest)
    if (same !== -1) this.refused.splice(same, 1)
    this.refused.unshift(question)
    this.refused.splice(most)
  }

  async #approval(question: ApprovalQuestion, signal: AbortSignal, shown: ShownQuestion): Promise<ApprovalAnswer> {
    const screen = this.#screen
    const { paint } = screen
    screen.line(say` ${paint.warn('?')} ${shown.number}. ${paint.bold(question.text)}`)
    for (const { label, payload } of question.scopes) {
      const whole = payload === undefined ? '' : JSON.stringify(payload)
      // The sentence shows only the beginning of what is long.
      if (question.text.includes(label) && question.text.includes(whole)) continue
      showPayload(screen, 'on ', whole === '' ? label : `${label} ${whole}`)
    }
    const [what, whole] = wholeOf(question)
    if (!question.text.includes(whole)) showPayload(screen, what, whole)
    if (question.flaw !== undefined) screen.line(say`   ${paint.warn(`Warning: ${question.flaw}`)}`)
    if (!this.#reader.interactive) {
      screen.line(say`   ${paint.bad('Refused')}: without a terminal, nobody can be asked. /allow approves it for the next time.`)
      return { yes: false, reason: 'The host runs without a terminal, so nobody could be asked' }
    }
    for (const { covers, text } of question.wider) screen.line(say`   ${paint.dim(`${letters[covers]}: ${text}`)}`)
    const wider = question.wider.map(({ covers }) => ` · ${letters[covers]}`).join('')
    const yes = question.lastsMs > 0 ? `[y]es to exactly this, ${lasting(question)} · [o]nce` : '[y]es, once'
    const choices = `${shown.label(topicOf(question))}${yes}${wider} · [N]o › `
    const said = await letterOf(screen, this.#reader, choices, signal)
    const chosen = question.wider.find(({ covers }) => said === covers[0] || said === covers)
    if (chosen !== undefined) return { yes: true, covers: chosen.covers }
    if (said === 'o' || said === 'once') return { yes: true, for: 0 }
    if (said === 'y' || said === 'yes') return true
    if (answeredElsewhere(signal)) return false
    screen.line(say`   ${paint.bad('Refused.')} ${paint.dim('/allow approves it for the next time')}`)
    return false
  }

  async #elicitation(question: ServerQuestion, signal: AbortSignal, shown: ShownQuestion): Promise<ElicitResult> {
    const screen = this.#screen
    const { paint } = screen
    screen.line(say` ${paint.warn('?')} ${shown.number}. ${paint.name(question.server)} ${paint.dim('asks:')}`)
    screen.line(foreignText(question.message, `   ${foreignMark}`))
    if (question.mode === 'url') {
      screen.line(say`   ${question.url}`)
      screen.line(say`   ${paint.dim('The link leads to')} ${paint.warn(question.domain ?? '')}`)
    }
    if (!this.#reader.interactive) {
      screen.line(say`   ${paint.bad('Declined')}: without a terminal, nobody can be asked.`)
      return { action: 'decline' }
    }
    if (question.mode === 'form') {
      const filled = await fillForm(screen, this.#reader, question, signal, shown)
      if (signal.aborted) tellWithdrawn(screen, signal)
      return filled
    }
    const label = shown.label(`${question.server} asks for ${question.domain ?? 'an address'}`)
    const said = await yesOrNo(screen, this.#reader, `${label}have you opened the link? [y]es · [N]o › `, signal)
    return { action: said ? 'accept' : 'decline' }
  }

  async #sampling(review: Parameters<OnSampleReview>[0], signal: AbortSignal, shown: ShownQuestion): Promise<boolean> {
    const screen = this.#screen
    const { paint } = screen
    const isPrompt = review.stage === 'prompt'
    const wish = isPrompt ? `asks ${review.model} for an answer` : 'gets this answer'
    screen.line(say` ${paint.warn('?')} ${shown.number}. ${paint.name(review.server)} ${paint.bold(wish)}`)
    if (isPrompt && review.params.systemPrompt !== undefined)
      showPayload(screen, 'instructions: ', JSON.stringify(review.params.systemPrompt))
    showPayload(screen, '', JSON.stringify(isPrompt ? review.params.messages : review.result))
    if (!this.#reader.interactive) {
      screen.line(say`   ${paint.bad('Refused')}: without a terminal, nobody can be asked.`)
      return false
    }
    return yesOrNo(screen, this.#reader, `${shown.label(`${review.server} ${wish}`)}[y]es · [N]o › `, signal)
  }
}

/** What is agreed to, as far as the sentence may show only the beginning of it. */
function wholeOf({ asked: { kind, payload } }: ApprovalQuestion): readonly [string, string] {
  const { description, definition } = isRecord(payload) ? payload : {}
  if (kind === 'set') return ['description: ', typeof description === 'string' ? description : '']
  if (kind === 'definition') return ['new definition: ', JSON.stringify(definition) ?? '']
  return ['with ', JSON.stringify(payload) ?? '']
}

/** A yes counts for all of it: whoever reads only the beginning is told so. */
function showPayload(screen: Screen, what: string, whole: string): void {
  const { paint } = screen
  screen.line(say`   ${paint.dim(what)}${paint.dim(brief(whole, payloadLength))}`)
  const hidden = whole.length - payloadLength
  if (hidden > 0)
    screen.line(say`   ${paint.warn(`Warning: the last ${hidden} characters are not shown; your approval includes them`)}`)
}

/** How long a plain yes counts. */
function lasting({ about, lastsMs }: ApprovalQuestion): string {
  const most = spanText(lastsMs)
  return about === 'set' || about === 'definition' ? `until it changes (at most ${most})` : `for ${most}`
}

/** In a few words, for the line in which the answer is typed. */
function topicOf({ asked, about, scopes }: ApprovalQuestion): string {
  const { server, tool, featureSet } = asked
  if (about === 'scope') return `${server} on ${scopes[0]?.label ?? asked.scope?.label ?? 'a scope'}`
  if (tool !== undefined) return `${server}.${tool}`
  return about === 'push' ? `an event of ${featureSet ?? server}` : `${featureSet ?? about} of ${server}`
}

/** How the wider answers are chosen, by what they cover. */
const letters = { tool: '[t]his tool', scope: 'this [s]cope' } as const

/** The lines stand between the question and its answer. Undefined: there is nobody to ask. */
export async function confirmOn(
  screen: Screen,
  reader: LineReader,
  text: string,
  lines: readonly string[],
  shown?: ShownQuestion,
  signal: AbortSignal = never,
): Promise<boolean | undefined> {
  if (!reader.interactive) return undefined
  const { paint } = screen
  const number = shown === undefined ? '' : `${shown.number}. `
  screen.line(say` ${paint.warn('?')} ${number}${paint.bold(text)}`)
  for (const line of lines) screen.line(say`   ${line}`)
  return yesOrNo(screen, reader, `${shown?.label(text) ?? '   '}[y]es · [N]o › `, signal)
}

/** What is no yes is no. */
async function yesOrNo(screen: Screen, reader: LineReader, prompt: string, signal: AbortSignal): Promise<boolean> {
  const said = await letterOf(screen, reader, prompt, signal)
  return said === 'y' || said === 'yes'
}

/** What was typed, in small letters. */
async function letterOf(screen: Screen, reader: LineReader, prompt: string, signal: AbortSignal): Promise<string> {
  const said = (await reader.ask(prompt, signal))?.trim().toLowerCase()
  if (said === undefined && signal.aborted) tellWithdrawn(screen, signal)
  return said ?? ''
}

/** Says why a question left the screen. */
function tellWithdrawn(screen: Screen, { reason }: AbortSignal): void {
  const what = reason instanceof AnsweredElsewhere ? `${reason.message}, in the console.` : 'The question was withdrawn.'
  screen.line(say`   ${screen.paint.dim(what)}`)
}

/** Whether somebody was faster, in the web console. */
function answeredElsewhere({ reason }: AbortSignal): boolean {
  return reason instanceof AnsweredElsewhere
}

function refusedElsewhere({ reason }: AbortSignal): boolean {
  return reason instanceof AnsweredElsewhere && !reason.answer.yes
}

/** Behind it there is room for the choices, on a line of most terminals. */
const topicLength = 36

/** A question while it is on the screen. */
export interface ShownQuestion {
  readonly number: number
  /** The beginning of its prompt: the number, what it is about, and how many others wait. */
  label(about: string): string
}

/** Lets one question onto the screen at a time. */
export class QuestionQueue {
  #asked = 0
  #waiting = 0
  /** Resolves when all questions so far are over. */
  #last: Promise<unknown> = Promise.resolve()

  /** Shows a question once those before it are over. Where its asker gives up while it waits, it is `unanswered` and never shown. */
  async ask<T>(signal: AbortSignal, unanswered: () => T, show: (question: ShownQuestion) => Promise<T>): Promise<T> {
    const before = this.#last
    const over = Promise.withResolvers<void>()
    this.#last = Promise.all([before, over.promise])
    this.#waiting++
    try {
      await unlessAborted(before, signal).catch(() => undefined)
      this.#waiting--
      return signal.aborted ? unanswered() : await show(this.#next())
    } finally {
      over.resolve()
    }
  }

  #next(): ShownQuestion {
    const number = ++this.#asked
    return {
      number,
      label: about => {
        const others = this.#waiting === 0 ? '' : ` (${this.#waiting} more ${this.#waiting === 1 ? 'waits' : 'wait'})`
        return `   ${number}. ${brief(escaped(about), topicLength)}${others}: `
      },
    }
  }
}
