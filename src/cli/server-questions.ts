/**
 * What a server asks while it works: forms, pages, a yes to a call, a price. Answered in the terminal, by `--yes` and `--answer`, or
 * declined; and what was declined is told by its name, with what would have answered it.
 */
import type { ConnectOptions } from '../client/api.ts'
import type { ElicitResult, ElicitValue } from '../features/mcp/elicitation/messages.ts'
import { missingArguments, propertiesOf, readArguments } from './arguments.ts'
import type { Io } from './io.ts'
import { asideOf } from './print.ts'
import type { CommandLike } from './program.ts'
import { fillForm, wantsOnlyYes } from './terminal/form.ts'
import { QuestionQueue, type ShownQuestion } from './terminal/questions.ts'
import { LineReader } from './terminal/reader.ts'
import type { Screen } from './terminal/screen.ts'
import { brief, foreignMark, foreignText, say } from './terminal/text.ts'

/** The options by which questions are answered beforehand. */
export interface QuestionOptions {
  /** Say yes to confirmations and prices. */
  readonly yes?: boolean
  /** Fields of forms, as `key=value`. */
  readonly answer?: readonly string[]
}

/** Declares `--yes` and `--answer`. */
export function askOptions(command: CommandLike): CommandLike {
  return command
    .option('--yes', 'Answer yes when the server, or the price of a call, requires a confirmation')
    .option('--answer <key=value>', 'Fill in a field of a form that the server sends', { repeated: true })
}

/** The schema of a form. */
type Form = Readonly<Record<string, unknown>>

/** Answers what a server asks: by the options, else in the terminal, else declines. */
export class ServerQuestions {
  /** Where the questions are shown: what is shown beside them makes room for them there. */
  readonly screen: Screen
  /** What was declined, a sentence each, with the remedy. */
  readonly declined: string[] = []
  readonly #io: Io
  readonly #given: QuestionOptions
  readonly #queue = new QuestionQueue()
  /** Undefined until something is asked: until then the input belongs to the command. */
  #reader: LineReader | undefined = undefined

  constructor(io: Io, given: QuestionOptions) {
    this.#io = io
    this.#given = given
    this.screen = asideOf(io)
  }

  /** The handlers, for the options of a client. */
  readonly options: Required<Pick<ConnectOptions, 'onElicit' | 'onConfirm' | 'onCost'>> = {
    onElicit: (question, { signal }) => this.#elicit(question, signal),
    onConfirm: ({ message }, { signal }) => this.#confirm(message, signal),
    onCost: ({ message }, { signal }) => this.#confirm(message, signal),
  }

  /** Gives the terminal back. */
  close(): void {
    this.#reader?.close()
  }

  get #open(): LineReader {
    const { input, errors: output } = this.#io
    this.#reader ??= new LineReader({ input, output, screen: this.screen, interactive: true })
    return this.#reader
  }

  async #confirm(message: string, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#given.yes === true) return true
    if (!this.#io.interactive) {
      this.declined.push(`${brief(message, 200)} → Pass --yes to approve, or run the command in a terminal`)
      return false
    }
    const { screen } = this
    const ask = async (shown: ShownQuestion): Promise<boolean> => {
      screen.line(say` ${screen.paint.warn('?')} ${shown.number}. ${screen.paint.dim('the server asks for your confirmation:')}`)
      screen.line(foreignText(message.slice(0, 4_000), `   ${foreignMark}`))
      return isYes(await this.#open.ask(`${shown.label(message)}[y]es · [N]o › `, signal))
    }
    return this.#queue.ask(signal ?? new AbortController().signal, () => false, ask)
  }

  async #elicit(question: ClientQuestion, signal: AbortSignal): Promise<ElicitResult> {
    const answered = question.mode === 'form' ? fromOptions(question.schema, this.#given) : undefined
    if (answered !== undefined) return answered
    if (!this.#io.interactive) {
      this.declined.push(`the server asks: ${brief(question.message, 200)} → ${remedyOf(question)}`)
      return { action: 'decline' }
    }
    const { screen } = this
    const { paint } = screen
    const ask = async (shown: ShownQuestion): Promise<ElicitResult> => {
      screen.line(say` ${paint.warn('?')} ${shown.number}. ${paint.dim('the server asks:')}`)
      screen.line(foreignText(question.message, `   ${foreignMark}`))
      if (question.mode === 'form') return fillForm(screen, this.#open, { ...question, server: 'the server' }, signal, shown)
      screen.line(say`   ${question.url}`)
      screen.line(say`   ${paint.dim('The link leads to')} ${paint.warn(question.host)}`)
      const opened = await this.#open.ask(`${shown.label(question.host)}have you opened the link? [y]es · [N]o › `, signal)
      return { action: isYes(opened) ? 'accept' : 'decline' }
    }
    return this.#queue.ask<ElicitResult>(signal, () => ({ action: 'cancel' }), ask)
  }
}

/** What a client is asked. */
type ClientQuestion = Parameters<NonNullable<ConnectOptions['onElicit']>>[0]

/** Whether a line is a yes. */
function isYes(line: string | undefined): boolean {
  return /^y(es)?$/i.test(line?.trim() ?? '')
}

/** Only what fills in the whole form: half an answer is none. */
function fromOptions(schema: Form, { answer = [], yes }: QuestionOptions): ElicitResult | undefined {
  const fields = propertiesOf(schema)
  const own = answer.filter(word => Object.hasOwn(fields, word.split('=')[0]?.replace(/:$/, '') ?? ''))
  if (yes === true && own.length === 0 && wantsOnlyYes(schema)) return { action: 'accept', content: { confirm: true } }
  const content = readArguments(own, schema)
  if (missingArguments(schema, content).length > 0) return undefined
  // A form without fields wants a yes, and so does one that asks only that.
  if (own.length === 0 && !(yes === true && Object.keys(fields).length === 0)) return undefined
  return { action: 'accept', content: content as Readonly<Record<string, ElicitValue>> }
}

/** What would have answered a question. */
function remedyOf(
  question: { readonly mode: 'form'; readonly schema: Form } | { readonly mode: 'url'; readonly url: string },
): string {
  if (question.mode === 'url') return `Open ${brief(question.url, 200)}, and run the command in a terminal`
  const fields = Object.keys(propertiesOf(question.schema))
  if (fields.length === 0 || wantsOnlyYes(question.schema)) return 'Pass --yes to approve, or run the command in a terminal'
  return `Run the command in a terminal, or pass ${fields
    .slice(0, 6)
    .map(name => `--answer ${brief(name, 40)}=…`)
    .join(' ')}`
}
