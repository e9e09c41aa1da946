/**
 * What the user types: lines for the conversation, answers to questions, and the wish to stop. A question takes the next line only
 * where somebody sits before it; what was typed before it was asked stays what it was meant for.
 */
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline'
import { Writable } from 'node:stream'
import type { Output, Screen } from './screen.ts'
import { escaped, say } from './text.ts'

/** Where lines come from and what else is typed. */
interface ReaderOptions {
  readonly input: NodeJS.ReadableStream
  readonly output: Output
  readonly screen: Screen
  /** Somebody sits before it: lines are edited, and questions can be asked. */
  readonly interactive: boolean
  /** Stands before what is typed. Default nothing. */
  readonly prompt?: string
  /** Told of Ctrl-C, where it is a key and no signal. Default: it refuses the question that is open. */
  readonly interrupted?: () => void
  /** What Tab proposes for a line. Default nothing. */
  readonly complete?: (line: string) => Promise<readonly string[]>
}

/** The question that is open. */
interface Asking {
  readonly prompt: string
  /** Undefined: there is no answer. */
  readonly answered: (line: string | undefined) => void
}

/** Lines that are read ahead from a pipe. */
const mostAhead = 256

/** Reads lines, and asks questions between them. */
export class LineReader {
  readonly #options: Required<ReaderOptions>
  readonly #lines: Interface
  readonly #gate: Gate
  /** Lines that nobody has asked for yet. */
  readonly #ahead: string[] = []
  /** Whoever waits for the next line of the conversation. */
  #waiting: ((line: string | undefined) => void) | undefined = undefined
  #asking: Asking | undefined = undefined
  /** Resolves when all questions so far are over. */
  #questions: Promise<unknown> = Promise.resolve()
  #over = false
  #busy = false
  /** What was half typed when a question came. */
  #put = ''

  constructor(options: ReaderOptions) {
    const { input, output, screen, interactive, prompt = '' } = options
    const { interrupted = () => void this.refuse(), complete = async () => [] } = options
    this.#options = { input, output, screen, interactive, prompt, interrupted, complete }
    this.#gate = new Gate(output)
    this.#lines = createInterface({
      input,
      ...(interactive && {
        output: this.#gate,
        completer: (line: string, done: CompletionCallback) => this.#complete(line, done),
      }),
      terminal: interactive,
      prompt,
      historySize: 500,
    })
    this.#lines.on('line', line => this.#line(line))
    this.#lines.on('close', () => this.#end())
    this.#lines.on('SIGINT', interrupted)
    if (interactive) screen.below = { shown: () => this.#gate.open, hide: () => this.#hide(), show: () => this.#show() }
  }

  /** While something is shown that takes its time only questions have a prompt. */
  set busy(busy: boolean) {
    this.#busy = busy
    this.#hide()
    this.#show()
  }

  /** Whether questions can be asked. */
  get interactive(): boolean {
    return this.#options.interactive && !this.#over
  }

  /** Whether the user has typed something that is not sent yet. */
  get halfTyped(): boolean {
    return this.#lines.line !== ''
  }

  /** The input has ended. */
  get over(): boolean {
    return this.#over
  }

  /** The next line for the conversation; undefined when there will be none. */
  async next(): Promise<string | undefined> {
    const ahead = this.#ahead.shift()
    if (ahead !== undefined) {
      if (this.#ahead.length === 0 && !this.#over) this.#lines.resume()
      this.#options.screen.line(say`${this.#options.prompt}${ahead}`)
      return ahead
    }
    if (this.#over) return undefined
    return new Promise(resolve => {
      this.#waiting = line => {
        this.#waiting = undefined
        resolve(line)
      }
      this.#show()
    })
  }

  /** Asks, one question after the other. Undefined: there was no answer, and there will be none. */
  ask(prompt: string, signal?: AbortSignal): Promise<string | undefined> {
    const asked = this.#questions.then(() => this.#ask(prompt, signal))
    this.#questions = asked
    return asked
  }

  #ask(prompt: string, signal: AbortSignal | undefined): Promise<string | undefined> {
    if (!this.interactive || signal?.aborted) return Promise.resolve(undefined)
    return new Promise(resolve => {
      const settle = (line: string | undefined): void => {
        signal?.removeEventListener('abort', gaveUp)
        this.#hide()
        this.#asking = undefined
        this.#lines.setPrompt(this.#options.prompt)
        this.#type(this.#put)
        this.#show()
        resolve(line)
      }
      const gaveUp = (): void => settle(undefined)
      signal?.addEventListener('abort', gaveUp, { once: true })
      this.#hide()
      this.#put = this.#lines.line
      this.#type('')
      this.#asking = { prompt, answered: settle }
      // A form of a server may stand in it.
      this.#lines.setPrompt(escaped(prompt))
      this.#show()
    })
  }

  /** No to the question that is open, if there is one. */
  refuse(): boolean {
    const { answered } = this.#asking ?? {}
    answered?.(undefined)
    return answered !== undefined
  }

  /** Forgets what is half typed. */
  clear(): void {
    this.#hide()
    this.#type('')
    this.#show()
  }

  /** Ends reading; an open question is refused. */
  close(): void {
    this.#lines.close()
  }

  /** A line is the answer to a question, the next line of the conversation, or kept for later. */
  #line(line: string): void {
    const { answered } = this.#asking ?? {}
    if (answered !== undefined) return answered(line)
    if (this.#waiting !== undefined) {
      const echo = !this.#options.interactive
      if (echo) this.#options.screen.line(say`${this.#options.prompt}${line}`)
      this.#waiting(line)
      this.#gate.open = this.#shown
      return
    }
    this.#ahead.push(line)
    if (this.#ahead.length >= mostAhead) this.#lines.pause()
  }

  #end(): void {
    this.#over = true
    this.#asking?.answered(undefined)
    if (this.#waiting !== undefined && this.#options.interactive) this.#gate.write('\n')
    this.#waiting?.(undefined)
  }

  /** Whether there is a prompt now. */
  get #shown(): boolean {
    return this.#asking !== undefined || (this.#waiting !== undefined && !this.#busy)
  }

  /** What is typed while there is no prompt waits, unseen, for the next one. */
  #show(): void {
    if (!this.#shown || !this.#options.interactive || this.#over) return
    this.#options.screen.settle()
    this.#gate.open = true
    this.#lines.prompt(true)
  }

  /** Takes away the prompt and what is typed. */
  #hide(): void {
    if (!this.#gate.open || this.#over) return
    const { rows } = this.#lines.getCursorPos()
    if (rows > 0) moveCursor(this.#gate, 0, -rows)
    cursorTo(this.#gate, 0)
    clearScreenDown(this.#gate)
    this.#gate.open = false
  }

  #type(line: string): void {
    // A question that the end of the input refuses: readline takes nothing any more.
    if (this.#over) return
    // The documented way to replace what is typed: delete to both ends, then write.
    const open = this.#gate.open
    this.#gate.open = false
    this.#lines.write(null, { ctrl: true, name: 'e' })
    this.#lines.write(null, { ctrl: true, name: 'u' })
    if (line !== '') this.#lines.write(line)
    this.#gate.open = open
  }

  #complete(line: string, done: CompletionCallback): void {
    if (this.#asking !== undefined) return done(null, [[], line])
    this.#options.complete(line).then(
      // They would be written as they are.
      found => done(null, [found.filter(word => escaped(word) === word), line]),
      () => done(null, [[], line]),
    )
  }
}

/** How readline is told what Tab proposes. */
type CompletionCallback = (error: null, found: [string[], string]) => void

/** Lets through what readline draws only while there is a prompt. */
class Gate extends Writable {
  open = false
  readonly #output: Output

  constructor(output: Output) {
    super({ decodeStrings: false })
    this.#output = output
  }

  get columns(): number {
    return this.#output.columns ?? 80
  }

  override _write(chunk: string | Buffer, _: string, done: () => void): void {
    if (this.open) this.#output.write(chunk.toString())
    done()
  }
}

/** What Ctrl-C can do. */
interface InterruptParts {
  readonly now: () => number
  /** Says no to an open question. False: there is none. */
  readonly refuse: () => boolean
  /** Stops the turn under way. False: there is none. */
  readonly cancel: () => boolean
  /** Forgets what is half typed. False: nothing is. */
  readonly clear: () => boolean
  /** Says how to end. */
  readonly tell: () => void
  /** Ends the terminal. */
  readonly end: () => void
}

/** A second one within this time means the end. */
const twiceMs = 2_000

/** Ctrl-C refuses a question, clears the line, stops the turn, or ends, in this order. */
export function createInterrupts(parts: InterruptParts) {
  let last = Number.NEGATIVE_INFINITY
  return {
    /** Something else was typed in between. */
    reset: (): void => {
      last = Number.NEGATIVE_INFINITY
    },
    /** Ctrl-C was pressed, or a signal came. */
    interrupt: (): void => {
      const now = parts.now()
      if (now - last < twiceMs) return parts.end()
      if (parts.refuse() || parts.clear()) return
      last = now
      if (!parts.cancel()) parts.tell()
    },
  }
}
