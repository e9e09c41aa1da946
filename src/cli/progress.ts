/** How far something is, on standard error: a bar that is drawn over where that is a terminal, else a line now and then. */
import { durationText } from '../core/duration.ts'
import type { Io } from './io.ts'
import { brief, painter, wantsColours } from './terminal/paint.ts'
import { Screen } from './terminal/screen.ts'
import { escaped } from './terminal/text.ts'

export interface Step {
  readonly progress: number
  readonly total?: number
  readonly message?: string
  readonly remainingMs?: number
}

export interface ProgressBar {
  show(step: Step): void
  /** Takes the bar away. */
  end(): void
}

const barWidth = 24
const clearLine = '\r\u001b[K'
/** Where it is no terminal. */
const linesEveryMs = 1_000

export function createProgress(
  { errors, env }: Pick<Io, 'errors' | 'env'>,
  now: () => number = () => performance.now(),
): ProgressBar {
  const drawn = errors.isTTY === true && env['TERM'] !== 'dumb'
  const paint = painter(wantsColours(errors, env))
  let shown = false
  let last = Number.NEGATIVE_INFINITY
  return {
    show(step) {
      const text = stepText(step)
      if (drawn) {
        errors.write(`${clearLine}${paint.dim(text.slice(0, Math.max(20, (errors.columns || 80) - 1)))}`)
        shown = true
      } else if (now() - last >= linesEveryMs) {
        last = now()
        errors.write(`${text}\n`)
      }
    },
    end() {
      if (shown) errors.write(clearLine)
      shown = false
    },
  }
}

/** Shows in a terminal what is waited for, until it is there or has failed. */
export async function whileWaiting<T>({ errors, env }: Pick<Io, 'errors' | 'env'>, label: string, work: Promise<T>): Promise<T> {
  const done = new Screen({ output: errors, env }).work(label)
  try {
    return await work
  } finally {
    done()
  }
}

export function stepText({ progress, total, message, remainingMs }: Step): string {
  const share = total !== undefined && total > 0 ? Math.min(1, Math.max(0, progress / total)) : undefined
  const bar = share === undefined ? `${Number(progress.toFixed(2))}` : `${barOf(share)} ${Math.round(share * 100)} %`
  const left = remainingMs === undefined ? '' : ` · ${durationText(remainingMs)} left`
  return `${bar}${message === undefined ? '' : ` ${escaped(brief(message, 80))}`}${left}`
}

function barOf(share: number): string {
  const full = Math.round(share * barWidth)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
}
