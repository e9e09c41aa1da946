/**
 * Runs the command of a stdio server: its environment, its process group, its standard error and its end. A command ends in
 * steps: time to exit by itself, then SIGTERM, then SIGKILL, and the same for processes that it leaves behind. Knows nothing of
 * frames or connections.
 */

import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { type Buckets, createBuckets } from '../../core/bucket.ts'
import type { Clock } from '../../core/clock.ts'
import { settlesWithin } from '../../core/deadlines.ts'
import { redact } from '../../core/redact.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { Lines } from '../framing/lines.ts'

/** Which program to start, and how. */
export interface CommandOptions {
  /** The program. It is looked up on the PATH and never passed to a shell. */
  readonly command: string
  readonly args?: readonly string[]
  /** Added to the few inherited variables: PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG, LC_*, TMPDIR. */
  readonly env?: Readonly<Record<string, string>>
  /** The working directory. Default: that of this process. */
  readonly cwd?: string
  /** Where standard error goes: to ours (default), nowhere, or line by line to a function. */
  readonly stderr?: 'inherit' | 'ignore' | ((line: string) => void)
  /** How long the command may take to exit once its input is closed. Default 2 s; 300 ms if it never answered. */
  readonly closeMs?: number
  /** How long it may take to exit after SIGTERM. Default 2 s. */
  readonly killMs?: number
}

/** How a command exited. Empty if it never started. */
export interface ExitStatus {
  readonly code?: number
  readonly signal?: NodeJS.Signals
}

/** How long a command that never answered may take to exit by itself. */
const soonMs = 300

type Child = ChildProcessByStdio<Writable, Readable, Readable>

/** A program that was started. */
export class RunningCommand {
  readonly pid: number | undefined
  readonly input: Writable
  readonly output: Readable
  readonly stderr: Stderr
  /** Resolves when the command runs; rejects if it cannot be started. */
  readonly started: Promise<void>
  /** Resolves when the command itself, not its children, has exited. */
  readonly exited: Promise<ExitStatus>
  /** How it exited; undefined while it runs. */
  status: ExitStatus | undefined = undefined
  readonly #child: Child
  readonly #options: CommandOptions
  readonly #clock: Clock
  /** Its output was read. */
  readonly #over: Promise<void>
  #ending: Promise<void> | undefined = undefined

  /** Starts the program. Throws a ConnectionError if that fails at once. */
  constructor(options: CommandOptions, clock: Clock) {
    const { stderr: destination = 'inherit' } = options
    const child = launch(options)
    this.#child = child
    this.#options = options
    this.#clock = clock
    this.pid = child.pid
    if (child.pid !== undefined) trackGroup(child.pid)
    this.input = child.stdin
    this.output = child.stdout
    this.started = starting(child, options)
    this.exited = exiting(child, this.started).then(how => {
      this.status = how
      return how
    })
    this.#over = new Promise(done => child.once('close', () => done()))
    const stderr = new Stderr(clock, typeof destination === 'function' ? destination : undefined)
    this.stderr = stderr
    child.stderr.on('data', chunk => stderr.push(chunk)).on('end', () => stderr.end())
    if (destination === 'inherit') forward(child.stderr)
  }

  /**
   * Ends the command; resolves when its whole group has exited and its output was read. Call it when its input is closed or it
   * has exited. `soon`: the command never answered, so it gets less time.
   */
  end(soon = false): Promise<void> {
    this.#ending ??= this.#end(soon)
    return this.#ending
  }

  async #end(soon: boolean): Promise<void> {
    const { closeMs = soon ? soonMs : 2000, killMs = 2000 } = this.#options
    if (this.pid !== undefined) {
      await endGroup(this.pid, this.exited, closeMs, killMs, this.#clock)
      await settlesWithin(this.#over, killMs, this.#clock)
    }
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy()
  }
}

/** Spawns the process. Throws a ConnectionError if that fails at once. */
function launch(options: CommandOptions): Child {
  let child: Child
  try {
    child = spawn(options.command, options.args ?? [], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: commandEnvironment(options.env),
      cwd: options.cwd,
      shell: false,
      // Starts a new process group, and keeps Ctrl-C of the terminal from reaching the command: we end it in order.
      detached: process.platform !== 'win32',
      windowsHide: true,
    })
  } catch (cause) {
    throw refusal(options, cause)
  }
  // If the system is out of file descriptors, Node returns a child without streams that only emits an error.
  if (child.stdin !== undefined) return child
  child.on('error', () => {})
  throw refusal(options, new Error('the system has no descriptors left for it'))
}

function starting(child: Child, options: CommandOptions): Promise<void> {
  const started = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.on('error', cause => reject(refusal(options, cause)))
  })
  // Avoids an unhandled rejection when nobody waits for the start.
  started.catch(() => {})
  return started
}

/** The exit status; empty if the command never started. */
function exiting(child: Child, started: Promise<void>): Promise<ExitStatus> {
  return new Promise(resolve => {
    child.once('exit', (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }))
    started.catch(() => resolve({}))
  })
}

/** Copies to our standard error, no faster than that is read. */
function forward(from: Readable): void {
  from.on('data', chunk => {
    if (process.stderr.write(chunk)) return
    from.pause()
    process.stderr.once('drain', () => from.resume())
  })
}

/** The error for a command that cannot be started, with what to correct. */
function refusal({ command, cwd }: CommandOptions, cause: unknown): ConnectionError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  let why = clip(cause instanceof Error ? cause.message : String(cause))
  if (code === 'ENOENT') {
    why = 'the program does not exist. Give its full path, or a program on the PATH'
    if (cwd !== undefined && !existsSync(cwd)) why = `its folder ${clip(cwd)} does not exist. Correct the option cwd`
  } else if (code === 'EACCES') why = 'permission to execute it is denied. Make it executable, or start it with its interpreter'
  return new ConnectionError('refused', `Cannot start ${clip(command)}: ${why}`, { cause })
}

// The environment of a command: a short allowlist of inherited variables, so that our secrets do not leak, and what the caller
// adds.

const posix = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'TMPDIR']
const windows = [
  'PATH',
  'PATHEXT',
  'COMSPEC',
  'SYSTEMROOT',
  'SYSTEMDRIVE',
  'WINDIR',
  'PROGRAMFILES',
  'APPDATA',
  'LOCALAPPDATA',
  'USERPROFILE',
  'USERNAME',
  'HOMEDRIVE',
  'HOMEPATH',
  'TEMP',
  'TMP',
  'PROCESSOR_ARCHITECTURE',
]

/** Selects from `ambient` by the allowlist of the platform, then adds `given`. */
export function commandEnvironment(
  given: Readonly<Record<string, string>> = {},
  ambient: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const allowed = new Set(platform === 'win32' ? windows : posix)
  const environment: Record<string, string> = {}
  for (const [name, value] of Object.entries(ambient)) {
    // Variable names on Windows are case-insensitive.
    const known = platform === 'win32' ? name.toUpperCase() : name
    const isAllowed = allowed.has(known) || (platform !== 'win32' && name.startsWith('LC_'))
    // Some shells export functions as variables that begin with `()`, and execute them when they start.
    if (isAllowed && value !== undefined && !value.startsWith('()')) environment[name] = value
  }
  return Object.assign(environment, given)
}

// The command and everything it started: on POSIX its process group, on Windows its process tree. Signals go to all of it, and
// no group outlives this process.

const isWindows = process.platform === 'win32'
const pollMs = 20

/** Groups to kill when this process exits. */
const open = new Set<number>()

/** Kills the group when this process exits, until `endGroup` removes it. */
function trackGroup(pid: number): void {
  if (open.size === 0) process.on('exit', killAll)
  open.add(pid)
}

function killAll(): void {
  for (const pid of open) signalGroup(pid, 'SIGKILL')
}

/** Sends a signal; false if no process is left. Signal 0 only checks. */
function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  if (isWindows && signal !== 0) {
    // Windows has no polite signal for console programs and no process groups, so `taskkill` ends the tree.
    return spawnSync('taskkill', ['/pid', `${pid}`, '/T', '/F'], { windowsHide: true }).status === 0
  }
  try {
    return process.kill(isWindows ? pid : -pid, signal)
  } catch {
    return false
  }
}

/**
 * Ends a group in steps: time to exit by itself, SIGTERM, SIGKILL; then the same for processes that outlive its leader.
 * `exited` settles when the leader has exited.
 */
async function endGroup(pid: number, exited: Promise<unknown>, closeMs: number, killMs: number, clock: Clock): Promise<void> {
  if (!(await settlesWithin(exited, closeMs, clock))) {
    signalGroup(pid, 'SIGTERM')
    if (!(await settlesWithin(exited, killMs, clock))) signalGroup(pid, 'SIGKILL')
  }
  await settlesWithin(exited, killMs, clock)
  await killRemaining(pid, killMs, clock)
  open.delete(pid)
  if (open.size === 0) process.off('exit', killAll)
}

/** Ends processes of the group that are still running after its leader. */
async function killRemaining(pid: number, graceMs: number, clock: Clock): Promise<void> {
  if (!signalGroup(pid, 'SIGTERM')) return
  const end = clock.now() + graceMs
  while (clock.now() < end && signalGroup(pid, 0)) await settlesWithin(new Promise(() => {}), pollMs, clock)
  signalGroup(pid, 'SIGKILL')
}

// Standard error of a command, line by line, with the last lines kept for error messages. If a command floods it, what exceeds
// the rate limit is counted and dropped without decoding.

/** The most bytes of a line; longer ones are replaced by a note. */
const lineBytes = 64 * 1024
const tailLines = 20
const tailChars = 1000
const quotedLines = 8
const newline = 0x0a
/** Bytes per second, and in one burst, that are processed. */
const heard = { perSecond: 128 * 1024, burst: 1024 * 1024 } as const
/** The last dropped bytes are kept: they may be the reason why the command exits. */
const lastBytes = 4 * 1024

/** Collects the lines of standard error, rate-limited. */
export class Stderr {
  /** The last lines, oldest first. */
  readonly tail: string[] = []
  readonly #lines: Lines
  readonly #buckets: Buckets
  readonly #add: (line: string) => void
  /** Lines dropped since the last processed one. */
  #left = 0
  /** The last dropped bytes; undefined while nothing is dropped. */
  #dropped: Buffer | undefined = undefined

  constructor(clock: Clock, onLine: (line: string) => void = () => {}) {
    this.#buckets = createBuckets({ ...heard, clock })
    const add = (line: string) => {
      this.tail.push(clip(line, tailChars))
      if (this.tail.length > tailLines) this.tail.shift()
      onLine(line)
    }
    const note = {
      'too-large': `[a line of more than ${lineBytes} bytes]`,
      'not-utf8': '[a line that is not valid UTF-8]',
      'not-text': '',
    }
    this.#add = add
    this.#lines = new Lines({ frame: add, fault: fault => add(note[fault.kind]) }, lineBytes)
  }

  /** Takes a chunk; drops it while the rate is exceeded. */
  push(chunk: Buffer): void {
    if (this.#dropped === undefined) {
      if (this.#buckets.take('bytes', chunk.length) === 0) this.#lines.push(chunk)
      else this.#drop(chunk)
      return
    }
    // Processing continues only at the start of a line.
    const broken = this.#dropped.at(-1) !== newline
    const start = broken ? chunk.indexOf(newline) + 1 : 0
    if ((broken && start === 0) || this.#buckets.take('bytes', chunk.length) > 0) return this.#drop(chunk)
    if (broken) this.#left++
    this.#note()
    this.#lines.push(chunk.subarray(start))
  }

  /** The stream has ended: the last dropped lines are processed after all. */
  end(): void {
    if (this.#dropped !== undefined) {
      const last = this.#dropped.subarray(this.#dropped.indexOf(newline) + 1)
      this.#left -= newlines(last)
      this.#note()
      this.#lines.push(last)
    }
    this.#lines.end()
  }

  #drop(chunk: Buffer): void {
    // The part of a line that came before the first dropped byte is reported as a line.
    if (this.#dropped === undefined) this.#lines.end()
    this.#left += newlines(chunk)
    this.#dropped = Buffer.concat([this.#dropped ?? Buffer.alloc(0), chunk.subarray(-lastBytes)]).subarray(-lastBytes)
  }

  /** Reports how many lines were dropped. */
  #note(): void {
    this.#dropped = undefined
    this.#add(`[… ${this.#left} lines left out]`)
    this.#left = 0
  }

  /** The last lines for an error message: short, without secrets, and without stack frames, which explain least. */
  quote(secrets: readonly string[] = []): string {
    const telling = this.tail.filter(line => !/^\s+at\s/.test(line)).slice(-quotedLines)
    return telling.map(line => clip(redact(line.trim(), secrets))).join(' | ')
  }
}

function newlines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(newline); at !== -1; at = bytes.indexOf(newline, at + 1)) count++
  return count
}
