/**
 * What the default log of servers, clients, hosts and gateways writes in the process of the tests: kept instead of printed. A line at
 * level `error` that nobody declared is a defect of the product or of the test, and fails the test during which it was written.
 */

export interface LogLine {
  readonly level: string
  readonly event: string
  /** All of it, with the frames of a stack. */
  readonly text: string
}

/** Of a failure that a test provokes on purpose: the name of the event, and words that stand in the line. */
interface Expected {
  readonly event: string
  readonly words: RegExp
}

const line = /^\d{4}-\d\d-\d\dT[\d:.]+Z vivarium (debug|info|warn|error) (\S+)/

export class LogLines {
  #kept: LogLine[] = []
  #ofFile: Expected[] = []
  #ofTest: Expected[] | undefined = undefined

  /** False: it is no line of a log of ours. */
  take(text: unknown): boolean {
    const found = typeof text === 'string' ? line.exec(text) : null
    if (found === null) return false
    const [, level = '', event = ''] = found
    this.#kept.push({ level, event, text: text as string })
    return true
  }

  /** Outside of tests it holds for all of the file. */
  expect(event: string, words = /(?:)/): void {
    const list = this.#ofTest ?? this.#ofFile
    list.push({ event, words })
  }

  beginFile(): void {
    this.#ofFile = []
    this.#ofTest = undefined
  }

  beginTest(): void {
    this.#ofTest = []
  }

  /** What was written since the last time. */
  end(): { readonly all: readonly LogLine[]; readonly undeclared: readonly LogLine[] } {
    const [all, expected] = [this.#kept, [...this.#ofFile, ...(this.#ofTest ?? [])]]
    this.#kept = []
    this.#ofTest = undefined
    const isExpected = ({ event, text }: LogLine): boolean => expected.some(each => each.event === event && each.words.test(text))
    return { all, undeclared: all.filter(each => each.level === 'error' && !isExpected(each)) }
  }
}

/** One for the process, which several files of tests may share. */
const place = Symbol.for('vivarium.test.log-lines')
const shared = globalThis as { [place]?: LogLines }
shared[place] ??= new LogLines()
export const logLines: LogLines = shared[place]

/**
 * This file, or where it is called within a test this test, makes something fail on purpose, and the log says so.
 * @example expectLog('handler-failed', /out of ink/)
 */
export function expectLog(event: string, words?: RegExp): void {
  logLines.expect(event, words)
}
