/** What a verb reads from and writes to. Results go to `output`, everything else to `errors`, so that a pipe gets results only. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { drawn, harmlessJson, say, wantsColours } from './terminal/text.ts'

/** Everything that a verb reads, writes and asks for. */
export interface Io {
  /** Read only where a verb asks the user or takes JSON from a pipe. */
  readonly input: Readable & { readonly isTTY?: boolean | undefined }
  /** Results alone. */
  readonly output: Writable & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined }
  /** Questions, progress, and what is told beside results. */
  readonly errors: Writable & { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined }
  readonly env: Readonly<Record<string, string | undefined>>
  /** Somebody can be asked: both ends are a terminal, and no CI. */
  readonly interactive: boolean
  /** Colours on `output`. */
  readonly colour: boolean
  /** Aborted by Ctrl-C or SIGTERM. Whoever never reads it keeps the signals for itself. */
  readonly signal: AbortSignal
}

/** The part of a process that is used. */
type Process = Pick<NodeJS.Process, 'stdin' | 'stdout' | 'stderr' | 'env' | 'once' | 'exit'>

/** The input and output of a process. */
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

/** Whether it runs in a build, where nobody answers. */
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

/** Resolves when the signal is aborted. */
export function untilInterrupted(signal: AbortSignal): Promise<void> {
  return new Promise(done => {
    if (signal.aborted) return done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}

// How the command ends: one number for scripts, one sentence and its remedy for people, one line of JSON for programs.

/** 0 is success. 1: the words were wrong, or what was wanted failed. 3: sign in first. 4: nobody there. 5: the tool says no. */
export type Exit = 1 | 3 | 4 | 5

/** The code of each exit, for programs. */
const names: Readonly<Record<Exit, string>> = { 1: 'failed', 3: 'auth_needed', 4: 'unreachable', 5: 'tool_error' }

/** A failure that the user can do something about. */
export class CliError extends Error {
  override readonly name = 'CliError'
  /** What the process ends with. */
  readonly exit: Exit
  /** The one thing to do about it. */
  readonly fix: string | undefined

  constructor(message: string, fix?: string, { exit = 1, ...options }: ErrorOptions & { readonly exit?: Exit } = {}) {
    super(message, options)
    this.exit = exit
    this.fix = fix
  }
}

/** What failed, as it is told: for programs one line of JSON, for people lines without control characters. */
export function failureText(error: unknown, json: boolean): string {
  const { exit, message, fix } = cliFailureOf(error)
  if (json)
    return `${harmlessJson(JSON.stringify({ error: { code: names[exit], message, ...(fix !== undefined && { fix }), exit } }))}\n`
  return drawn(fix === undefined ? say`vivarium: ${message}\n` : say`vivarium: ${message}\n  → ${fix}\n`)
}

/** Everything that is thrown, as a failure; what nobody foresaw counts as 1. */
export function cliFailureOf(error: unknown): Pick<CliError, 'exit' | 'message' | 'fix'> {
  const message = plain(error instanceof Error ? error.message : String(error))
  if (!(error instanceof CliError)) return { exit: 1, message, fix: undefined }
  return { exit: error.exit, message, fix: error.fix === undefined ? undefined : plain(error.fix) }
}

/** One line each, whoever's words stand in it. */
function plain(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}

/** Why a file could not be read, behind its name. */
export function readFault(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist'
  if (code === 'EISDIR') return 'is a folder'
  if (code === 'EACCES' || code === 'EPERM') return 'cannot be opened: permission denied'
  return `cannot be opened: ${error instanceof Error ? error.message : String(error)}`
}

/** The text of a file; undefined where it cannot be read. */
export function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Replaces a file of the user as a whole, for nobody else to read. Where that cannot be done all stays as it is: nothing depends on it. */
export function replaceFile(path: string, text: string): void {
  const beside = `${path}.${process.pid}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(beside, text, { mode: 0o600 })
    renameSync(beside, path)
  } catch {
    // What is kept there only saves a question or a wait.
  }
}
