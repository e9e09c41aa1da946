/**
 * What a server asks while it works: forms, pages, a yes to a call, a price. Answered in the terminal, by `--yes` and `--answer`, or
 * declined; and what was declined is told by its name, with what would have answered it.
 */
import type { ConnectOptions } from '../client/options.ts'
import type { ElicitResult, ElicitValue } from '../features/mcp/elicitation/messages.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { missingArguments, readArguments } from './arguments.ts'
import type { Io } from './io.ts'
import type { CommandLike } from './program.ts'
import { propertiesOf } from './signature.ts'
import { fillForm } from './terminal/form.ts'
import { brief } from './terminal/paint.ts'
import { Reader } from './terminal/reader.ts'
import { Screen } from './terminal/screen.ts'

export interface AskOptions {
  readonly yes?: boolean
  readonly answer?: readonly string[]
}

export function askOptions(command: CommandLike): CommandLike {
  return command
    .option('--yes', 'Say yes where the server or its price wants a confirmation')
    .option('--answer <key=value>', 'Fill in a field of what the server asks', { repeated: true })
}

export interface Asks {
  readonly options: Pick<ConnectOptions, 'onElicit' | 'onConfirm' | 'onCost'>
  /** Where the questions are shown: what is shown beside them makes room for them there. */
  readonly screen: Screen
  /** What was declined, a sentence each, with the remedy. */
  readonly declined: readonly string[]
  close(): void
}

type Form = Readonly<Record<string, unknown>>

export function createAsks(io: Io, given: AskOptions): Asks {
  const declined: string[] = []
  const screen = new Screen({ output: io.errors, env: io.env })
  let reader: Reader | undefined
  const open = (): Reader => {
    reader ??= new Reader({
      input: io.input,
      output: io.errors,
      screen,
      interactive: true,
      prompt: '',
      interrupted: () => reader?.refuse(),
      complete: async () => [],
    })
    return reader
  }
  const confirm = async (message: string, signal: AbortSignal | undefined): Promise<boolean> => {
    if (given.yes === true) return true
    if (!io.interactive) {
      declined.push(`${brief(message, 200)} → --yes says yes, or run it in a terminal`)
      return false
    }
    screen.line(` ${screen.paint.warn('?')} ${screen.paint.bold(brief(message, 600))}`)
    return /^y(es)?$/i.test((await open().ask('   [y]es · [N]o › ', signal))?.trim() ?? '')
  }
  const elicit: NonNullable<ConnectOptions['onElicit']> = async (question, { signal }) => {
    const answered = question.mode === 'form' ? fromOptions(question.schema, given) : undefined
    if (answered !== undefined) return answered
    if (!io.interactive) {
      declined.push(`the server asks: ${brief(question.message, 200)} → ${remedyOf(question)}`)
      return { action: 'decline' }
    }
    screen.line(` ${screen.paint.warn('?')} ${screen.paint.bold(question.message)}`)
    if (question.mode === 'form') return fillForm(screen, open(), question.schema, signal)
    screen.line(`   ${screen.paint.plain(question.url)}`)
    const opened = await open().ask('   Have you opened it? [y]es · [N]o › ', signal)
    return { action: /^y(es)?$/i.test(opened?.trim() ?? '') ? 'accept' : 'decline' }
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

/** Only what fills in the whole form: half an answer is none. */
function fromOptions(schema: Form, { answer = [], yes }: AskOptions): ElicitResult | undefined {
  const fields = propertiesOf(schema)
  const own = answer.filter(word => Object.hasOwn(fields, word.split('=')[0]?.replace(/:$/, '') ?? ''))
  if (yes === true && own.length === 0 && wantsOnlyYes(fields)) return { action: 'accept', content: { confirm: true } }
  const content = readArguments(own, schema)
  if (missingArguments(schema, content).length > 0) return undefined
  // A form without fields wants a yes, and so does one that asks only that.
  if (own.length === 0 && !(yes === true && Object.keys(fields).length === 0)) return undefined
  return { action: 'accept', content: content as Readonly<Record<string, ElicitValue>> }
}

/** The question of a server whose client has no other way to be asked for a confirmation. */
function wantsOnlyYes(fields: Form): boolean {
  const { confirm } = fields
  return Object.keys(fields).length === 1 && isRecord(confirm) && confirm['type'] === 'boolean'
}

function remedyOf(
  question: { readonly mode: 'form'; readonly schema: Form } | { readonly mode: 'url'; readonly url: string },
): string {
  if (question.mode === 'url') return `open ${brief(question.url, 200)}, and run it in a terminal`
  const fields = Object.keys(propertiesOf(question.schema))
  if (fields.length === 0 || wantsOnlyYes(propertiesOf(question.schema))) return '--yes says yes, or run it in a terminal'
  return `run it in a terminal, or give ${fields
    .slice(0, 6)
    .map(name => `--answer ${brief(name, 40)}=…`)
    .join(' ')}`
}
