/** What was found out about a server: fine, odd or wrong, and what to do about it. */
import { durationText } from '../../core/clock.ts'
import type { Exit, Io } from '../io.ts'
import { asideOf } from '../print.ts'
import type { Screen } from '../terminal/screen.ts'
import { brief } from '../terminal/text.ts'

/** One thing that was found out. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail'
  /** What was looked at, in a word: `command`, `stdout`, `schema`. */
  readonly check: string
  readonly message: string
  /** The one thing to do about it. */
  readonly fix?: string
  /** With which code a failure ends the command. Default 1. */
  readonly exit?: Exit
}

/** Something that is as it should be. */
export const ok = (check: string, message: string): Finding => ({ level: 'ok', check, message })
/** Something odd, with which the server works all the same. */
export const warn = (check: string, message: string, fix: string): Finding => ({ level: 'warn', check, message, fix })
/** Something for which the server does not work. */
export const fail = (check: string, message: string, fix: string, exit: Exit = 1): Finding => ({
  level: 'fail',
  check,
  message,
  fix,
  exit,
})

/** A failure to reach or start the server: the command ends with 4. */
export const noServer = (check: string, message: string, fix: string): Finding => fail(check, message, fix, 4)

/** The code of the first failure; 0 where there is none. */
export function exitOf(findings: readonly Finding[]): number {
  const failed = findings.find(({ level }) => level === 'fail')
  return failed === undefined ? 0 : (failed.exit ?? 1)
}

/** One of those that are waited for. */
interface Wait {
  readonly name: string
  /** After this time it is given up. */
  readonly limitMs: number
  /** What it said last, where it said something. */
  said(): string | undefined
}

/** Who waits longer than this wants to know for what. */
const tellMs = 3_000

/** Shows on standard error which servers are waited for, and what they said last. */
export class WaitDisplay {
  readonly #screen: Screen
  readonly #quiet: boolean
  /** Those that are waited for now. */
  readonly #under: Wait[] = []
  /** Ends what is drawn now. */
  #stop: () => void = () => {}

  constructor(io: Pick<Io, 'errors' | 'env'>, quiet: boolean) {
    this.#screen = asideOf(io)
    this.#quiet = quiet
  }

  /** What is returned ends the waiting. */
  add(wait: Wait): () => void {
    this.#under.push(wait)
    this.#draw()
    const timer = setTimeout(() => this.#tell(wait), tellMs)
    return () => {
      clearTimeout(timer)
      this.#under.splice(this.#under.indexOf(wait), 1)
      this.#draw()
    }
  }

  /** Makes room for lines; the rest is drawn again with the next change. */
  aside(write: () => void): void {
    this.#stop()
    write()
    this.#draw()
  }

  /** Draws a line with all names. */
  #draw(): void {
    this.#stop()
    if (this.#quiet || this.#under.length === 0) return
    this.#stop = this.#screen.work(`waiting for ${brief(this.#under.map(({ name }) => name).join(', '), 80)}`)
  }

  /** Says once of a slow server what it said last. */
  #tell(wait: Wait): void {
    if (this.#quiet) return
    const { name, limitMs } = wait
    const said = wait.said()
    const last = said === undefined ? 'no output so far' : `last output: "${brief(said, 100)}"`
    const text = `${name} has not answered yet (${last}). Waiting up to ${durationText(limitMs)}`
    if (!this.#screen.animated) return this.#screen.line(text)
    this.#stop()
    this.#stop = this.#screen.work(text)
  }
}
