/** What a verb reads from and writes to. Results go to `output`, everything else to `errors`, so that a pipe gets results only. */
import type { Readable, Writable } from 'node:stream'
import { wantsColours } from './terminal/text.ts'

export interface Io {
  readonly input: Readable & { readonly isTTY?: boolean | undefined }
  readonly output: Writable & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined }
  readonly errors: Writable & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Somebody can be asked: both ends are a terminal, and no CI. */
  readonly interactive: boolean
  /** Colours on `output`. */
  readonly colour: boolean
  /** Aborted by Ctrl-C or SIGTERM. Whoever never reads it keeps the signals for itself. */
  readonly signal: AbortSignal
}

type Process = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'once' | 'exit'>

export function processIo(process: Process): Io {
  const { stdin, stdout, stderr, env } = process
  let signal: AbortSignal | undefined
  return {
    input: stdin,
    output: stdout,
    errors: stderr,
    env,
    interactive: stdin.isTTY === true && stdout.isTTY === true && !isCi(env),
    colour: wantsColours(stdout, env),
    get signal() {
      signal ??= interrupted(process)
      return signal
    },
  }
}

/** Why everything ends: the user wanted it. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  /** What the process ends with, as shells count it: 128 and the number of the signal. */
  readonly exit: number
  constructor(exit = 130) {
    super('Interrupted')
    this.exit = exit
  }
}

function isCi({ CI }: Readonly<Record<string, string | undefined>>): boolean {
  return CI !== undefined && CI !== '' && CI !== 'false' && CI !== '0'
}

/** The first Ctrl-C asks for an end, the second one is it. */
function interrupted(process: Process): AbortSignal {
  const abort = new AbortController()
  const stop = (code: number) => () => {
    if (abort.signal.aborted) process.exit(code)
    abort.abort(new Interrupted(code))
    process.once('SIGINT', () => process.exit(130))
  }
  process.once('SIGINT', stop(130))
  process.once('SIGTERM', stop(143))
  return abort.signal
}

export function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise(done => {
    if (signal.aborted) return done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}
