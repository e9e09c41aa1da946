/** Writing results: JSON as one value, and for people lines whose foreign words cannot command a terminal. */
import { writeFile } from 'node:fs/promises'
import { durationText } from '../core/clock.ts'
import type { ContentBlock } from '../features/mcp/content/messages.ts'
import type { Io } from './io.ts'
import { clearLine, Screen } from './terminal/screen.ts'
import {
  brief,
  drawn,
  escaped,
  foreignMark,
  foreignText,
  harmlessJson,
  type Paint,
  painter,
  say,
  type TerminalText,
  type Words,
} from './terminal/text.ts'

/** Writes results and notes of one command. */
export interface Printer {
  readonly paint: Paint
  /** One line of the result. */
  line(text?: Words): void
  /** Several lines that a server wrote: marked where a person reads them, as they are in a pipe. */
  foreign(text: string): TerminalText
  /** Lines within the columns of the output, broken between words, each behind the same mark. */
  wrapped(text: string, mark: string): TerminalText
  /** One JSON value, or one line of many where `compact`. */
  json(value: unknown, compact?: boolean): void
  /** Beside the result: on standard error. */
  readonly aside: Screen
}

/** What is told beside results, on standard error. */
export function asideOf({ errors, env }: Pick<Io, 'errors' | 'env'>): Screen {
  return new Screen({ output: errors, env })
}

/** A printer for the output of the command. */
export function printerOf(io: Io): Printer {
  const { output, colour } = io
  const mark = output.isTTY === true ? foreignMark : ''
  return {
    paint: painter(colour),
    line: (text = '') => void output.write(`${drawn(text)}\n`),
    foreign: text => foreignText(text, mark),
    wrapped: (text, before) => wrapped(text, Math.min(120, Math.max(40, output.columns ?? 100)), before),
    json: (value, compact = false) =>
      void output.write(`${harmlessJson(compact ? JSON.stringify(value) : JSON.stringify(value, null, 2))}\n`),
    aside: asideOf(io),
  }
}

/** Lines of at most so many columns, broken between words, each behind the same mark. */
function wrapped(text: string, width: number, mark: string): TerminalText {
  const available = Math.max(20, width - mark.length)
  const lines: string[] = []
  for (const paragraph of text.split('\n')) {
    let line = ''
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > available) {
        lines.push(line)
        line = word
      } else line = line === '' ? word : `${line} ${word}`
    }
    lines.push(line)
  }
  return foreignText(lines.join('\n'), mark)
}

/** In the largest unit that makes a number above 1. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** One report of progress. */
interface Step {
  readonly progress: number
  readonly total?: number
  readonly message?: string
  /** As the server estimates it. */
  readonly remainingMs?: number
}

/** In characters. */
const barWidth = 24
/** Where it is no terminal. */
const linesEveryMs = 1_000

/** A bar in a terminal; elsewhere a line now and then. */
export function createProgress(io: Pick<Io, 'errors' | 'env'>) {
  const { errors } = io
  const { animated, paint } = asideOf(io)
  let shown = false
  let last = Number.NEGATIVE_INFINITY
  let said = ''
  return {
    /** Replaces what is shown. */
    show(step: Step): void {
      const text = stepText(step)
      if (animated) {
        errors.write(`${clearLine}${paint.dim(text.slice(0, Math.max(20, (errors.columns || 80) - 1)))}`)
        shown = true
      } else if (text !== said && performance.now() - last >= linesEveryMs) {
        last = performance.now()
        said = text
        errors.write(`${text}\n`)
      }
    },
    /** Takes the bar away. */
    end(): void {
      if (shown) errors.write(clearLine)
      shown = false
    },
  }
}

/** A step as a line. */
function stepText({ progress, total, message, remainingMs }: Step): string {
  const share = total !== undefined && total > 0 ? Math.min(1, Math.max(0, progress / total)) : undefined
  // Without a total the number often only counts the reports: the words say more.
  const count = message === undefined ? `${Number(progress.toFixed(2))}` : ''
  const bar = share === undefined ? count : `${barOf(share)} ${Math.round(share * 100)} %`
  const left = remainingMs === undefined ? '' : ` · ${durationText(remainingMs)} left`
  return `${[bar, message === undefined ? '' : escaped(brief(message, 80))].filter(part => part !== '').join(' ')}${left}`
}

/** A bar that is filled by a share. */
function barOf(share: number): string {
  const full = Math.round(share * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
}

// What servers give, for people: text as it is, everything else by what it is and how large.

/** A block as lines. */
export function blockText(block: ContentBlock, printer: Printer): TerminalText {
  const { paint } = printer
  switch (block.type) {
    case 'text':
      return printer.foreign(block.text)
    case 'image':
    case 'audio':
      return paint.dim(`[${block.type} ${block.mimeType}, ${sizeText(bytesIn(block.data))}]`)
    case 'resource':
      if (block.resource.text !== undefined) return printer.foreign(block.resource.text)
      return paint.dim(
        `[${block.resource.uri}: ${block.resource.mimeType ?? 'bytes'}, ${sizeText(bytesIn(block.resource.blob ?? ''))}]`,
      )
    case 'resource_link':
      return say`${paint.dim('→')} ${paint.name(block.uri)} ${paint.dim([block.name, block.mimeType].filter(Boolean).join(', '))}`
    default:
      return paint.dim(JSON.stringify(block))
  }
}

/** How many bytes base64 stands for. */
function bytesIn(base64: string): number {
  return Math.floor((base64.length * 3) / 4) - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0)
}

/** Writes a file; gives its name and size. */
export async function saveFile(file: string, data: string | Uint8Array): Promise<string> {
  await writeFile(file, data)
  return `${file}, ${sizeText(typeof data === 'string' ? Buffer.byteLength(data) : data.length)}`
}
