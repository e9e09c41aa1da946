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
import { QuestionQueue } from './terminal/questions.ts'
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
    .option('--yes', 'Say yes where the server or its price wants a confirmation')
    .option('--answer <key=value>', 'Fill in a field of what the server asks', { repeated: true })
}

/** Answers what a server asks. */
export interface Asks {
  /** The handlers, for the options of a client. */
  readonly options: Pick<ConnectOptions, 'onElicit' | 'onConfirm' | 'onCost'>
  /** Where the questions are shown: what is shown beside them makes room for them there. */
  readonly screen: Screen
  /** What was declined, a sentence each, with the remedy. */
  readonly declined: readonly string[]
  /** Gives the terminal back. */
  close(): void
}

/** The schema of a form. */
type Form = Readonly<Record<string, unknown>>

/** Answers by the options, else in the terminal, else declines. */
export function createAsks(io: Io, given: QuestionOptions): Asks {
  const declined: string[] = []
  const screen = asideOf(io)
  let reader: LineReader | undefined
  const open = (): LineReader => {
    reader ??= new LineReader({ input: io.input, output: io.errors, screen, interactive: true })
    return reader
  }
  const queue = new QuestionQueue()
  const confirm = async (message: string, signal: AbortSignal | undefined): Promise<boolean> => {
    if (given.yes === true) return true
    if (!io.interactive) {
      declined.push(`${brief(message, 200)} → --yes says yes, or run it in a terminal`)
      return false
    }
    return queue.ask(
      signal ?? new AbortController().signal,
      () => false,
      async shown => {
        screen.line(say` ${screen.paint.warn('?')} ${shown.number}. ${screen.paint.dim('the server asks for your yes:')}`)
        screen.line(foreignText(message.slice(0, 4_000), `   ${foreignMark}`))
        return isYes(await open().ask(`${shown.label(message)}[y]es · [N]o › `, signal))
      },
    )
  }
  const elicit: NonNullable<ConnectOptions['onElicit']> = async (question, { signal }) => {
    const answered = question.mode === 'form' ? fromOptions(question.schema, given) : undefined
    if (answered !== undefined) return answered
    if (!io.interactive) {
      declined.push(`the server asks: ${brief(question.message, 200)} → ${remedyOf(question)}`)
      return { action: 'decline' }
    }
    return queue.ask<ElicitResult>(
      signal,
      () => ({ action: 'cancel' }),
      async shown => {
        screen.line(say` ${screen.paint.warn('?')} ${shown.number}. ${screen.paint.dim('the server asks:')}`)
        screen.line(foreignText(question.message, `   ${foreignMark}`))
        if (question.mode === 'form') return fillForm(screen, open(), { ...question, server: 'the server' }, signal, shown)
        screen.line(say`   ${screen.paint.plain(question.url)}`)
        screen.line(say`   ${screen.paint.dim('It leads to')} ${screen.paint.warn(question.host)}`)
        const opened = await open().ask(`${shown.label(question.host)}have you opened it? [y]es · [N]o › `, signal)
        return { action: isYes(opened) ? 'accept' : 'decline' }
      },
    )
  }
  return {
    screen,
    declined,
    options: {
      onElicit: elicit,
      onConfirm: ({ message }, { signal }) => confirm(message, signal),
      onCost: ({ message }, { signal }) => confirm(message, signal),
    },
    close: () => reader?.close(),
  }
}

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
  if (question.mode === 'url') return `open ${brief(question.url, 200)}, and run it in a terminal`
  const fields = Object.keys(propertiesOf(question.schema))
  if (fields.length === 0 || wantsOnlyYes(question.schema)) return '--yes says yes, or run it in a terminal'
  return `run it in a terminal, or give ${fields
    .slice(0, 6)
    .map(name => `--answer ${brief(name, 40)}=…`)
    .join(' ')}`
}
