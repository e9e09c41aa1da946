/**
 * What is written, and in what order: whole lines above the prompt, words of an answer as they come, and a spinner while there is
 * nothing to show. On outputs that are no terminal only lines are written.
 */
import { type Clock, realClock } from '../../core/clock.ts'
import { drawn, escaped, foreignMark, foreignText, type Paint, painter, type Words, wantsColours } from './text.ts'

/** Where text is written. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/** What stands below the last line and has to make room for another. */
interface Below {
  /** It stands there now. */
  shown(): boolean
  /** Makes room. */
  hide(): void
  /** Comes back below the new line. */
  show(): void
}

/** What a screen writes to, and what decides about colours and motion. */
interface ScreenOptions {
  readonly output: Output
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
}

/** Of the spinner. */
const frames = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏']
/** How long a frame of the spinner is shown. */
const frameMs = 90
/** What takes less is not worth a flicker. */
const waitMs = 150
/** Moves to the beginning of the line and deletes it. */
export const clearLine = '\r\u001b[K'

/** Writes lines, streams answers, and shows a spinner, each making room for the other. */
export class Screen {
  readonly paint: Paint
  /** It is a terminal on which things can move. */
  readonly animated: boolean
  readonly #output: Output
  readonly #clock: Clock
  #below: Below | undefined = undefined
  /** A streamed line has not ended yet. */
  #open = false
  /** What takes its time now. */
  #label: string | undefined = undefined
  #spun = false
  #frame = 0
  /** Ends the timer of the spinner. */
  #cancel: () => void = () => {}

  constructor({ output, env = {}, clock = realClock }: ScreenOptions) {
    this.#output = output
    this.#clock = clock
    this.animated = output.isTTY === true && env['TERM'] !== 'dumb'
    this.paint = painter(wantsColours(output, env))
  }

  /** In columns, and never less than 40. */
  get width(): number {
    return Math.max(40, this.#output.columns ?? 100)
  }

  set below(below: Below) {
    this.#below = below
  }

  /** A line of its own. */
  line(text: Words = ''): void {
    this.#aside(() => {
      this.#endLine()
      this.#output.write(`${drawn(text)}\n`)
    })
  }

  /** A line beside the point. */
  note(text: Words): void {
    this.line(this.paint.dim(text))
  }

  /** A line that deserves attention and tells of no failure. */
  warn(text: Words): void {
    this.line(this.paint.warn(text))
  }

  /** Words of an answer: each of its lines is marked as one that somebody else wrote. */
  stream(delta: string): void {
    if (delta === '') return
    this.#aside(() => {
      const [first = '', ...rest] = delta.replace(/\r\n?/g, '\n').split('\n')
      this.#output.write(drawn(foreignText(first, this.#open ? '' : ` ${foreignMark}`)))
      for (const line of rest) this.#output.write(`\n${drawn(foreignText(line, ` ${foreignMark}`))}`)
      this.#open = true
    })
  }

  /** Makes room for a prompt. */
  settle(): void {
    this.#wipe()
    this.endLine()
  }

  /** Ends a streamed line, so that the next one begins anew. */
  endLine(): void {
    if (this.#open) this.#aside(() => this.#endLine())
  }

  /** Shows that something takes its time. What is returned ends it. */
  work(label: string): () => void {
    this.#label = label
    this.#cancel()
    if (this.animated) this.#cancel = this.#clock.setTimeout(() => this.#spin(), this.#spun ? 0 : waitMs, true)
    return () => {
      if (this.#label !== label) return
      this.#cancel()
      this.#wipe()
      this.#label = undefined
    }
  }

  /** Shows what is waited for, until it is there or has failed. */
  during<T>(label: string, work: Promise<T>): Promise<T> {
    return work.finally(this.work(label))
  }

  /** Draws a frame now and then, while nothing else is below the lines. */
  #spin(): void {
    if (this.#label === undefined || this.#open) return
    if (this.#below?.shown() !== true) this.#draw(this.#label)
    this.#cancel = this.#clock.setTimeout(() => this.#spin(), frameMs, true)
  }

  #draw(label: string): void {
    this.#frame = (this.#frame + 1) % frames.length
    const text = ` ${frames[this.#frame]} ${escaped(label)}`
    this.#output.write(`${clearLine}${this.paint.dim(text.slice(0, this.width - 1))}`)
    this.#spun = true
  }

  /** Takes away the spinner that is drawn now. */
  #wipe(): void {
    if (this.#spun) this.#output.write(clearLine)
    this.#spun = false
  }

  /** Writes above the prompt and the spinner. */
  #aside(write: () => void): void {
    this.#wipe()
    this.#below?.hide()
    write()
    if (!this.#open) this.#below?.show()
  }

  #endLine(): void {
    if (this.#open) this.#output.write('\n')
    this.#open = false
  }
}
