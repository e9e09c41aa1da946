/**
 * A running command: the head of a process group of its own. It ends as a whole, step by step: it is given time to end
 * by itself, then SIGTERM, then SIGKILL; and what it leaves behind is ended too.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { within } from '../framing/within.ts'
import { commandEnvironment } from './environment.ts'
import { endGroup, trackGroup } from './group.ts'
import { Stderr } from './stderr.ts'

export interface CommandOptions {
  /** The program. It is looked up on the PATH and never given to a shell. */
  readonly command: string
  readonly args?: readonly string[]
  /** Added to the few variables that a command inherits: PATH, HOME, USER, LOGNAME, SHELL, TERM, LANG, LC_*, TMPDIR. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Where the command's standard error goes: to ours (default), nowhere, or line by line to a function. */
  readonly stderr?: 'inherit' | 'ignore' | ((line: string) => void)
  /** How long the command may take to end by itself once its input is closed. Default 2 s; 300 ms where it never answered. */
  readonly closeMs?: number
  /** How long it may take to end after SIGTERM. Default 2 s. */
  readonly killMs?: number
}

/** How a command ended. Nothing is known of one that never started. */
export interface ExitStatus {
  readonly code?: number
  readonly signal?: NodeJS.Signals
}

export interface RunningCommand {
  readonly pid: number | undefined
  readonly input: Writable
  readonly output: Readable
  readonly stderr: Stderr
  /** Resolves when it runs; rejects if it cannot be started. */
  readonly started: Promise<void>
  /** Resolves when its first process has ended. */
  readonly exited: Promise<ExitStatus>
  /** How it ended, once it has. */
  readonly status: ExitStatus | undefined
  /**
   * Resolves when all of it has ended and its output was read. To be called when its input is closed or it has ended. `soon`: nothing
   * was ever done with it, so that there is nothing for which it could need its time.
   */
  end(soon?: boolean): Promise<void>
}

/** How long a command that never answered may take to end by itself. */
const soonMs = 300

type Child = ChildProcessByStdio<Writable, Readable, Readable>

export function runCommand(options: CommandOptions, clock: Clock): RunningCommand {
  const { stderr: destination = 'inherit', closeMs, killMs = 2000 } = options
  const child = launch(options)
  const { pid } = child
  if (pid !== undefined) trackGroup(pid)
  const started = starting(child, options)
  let status: ExitStatus | undefined
  const exited = exiting(child, started).then(how => {
    status = how
    return how
  })
  const over = new Promise<void>(done => child.once('close', () => done()))
  const stderr = new Stderr(clock, typeof destination === 'function' ? destination : undefined)
  child.stderr.on('data', chunk => stderr.push(chunk)).on('end', () => stderr.end())
  if (destination === 'inherit') forward(child.stderr)

  async function end(soon: boolean): Promise<void> {
    if (pid !== undefined) {
      await endGroup(pid, exited, closeMs ?? (soon ? soonMs : 2000), killMs, clock)
      await within(over, killMs, clock)
    }
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
  }

  let ending: Promise<void> | undefined
  return {
    pid,
    input: child.stdin,
    output: child.stdout,
    stderr,
    started,
    exited,
    get status() {
      return status
    },
    end(soon = false) {
      ending ??= end(soon)
      return ending
    },
  }
}

function launch(options: CommandOptions): Child {
  let child: Child
  try {
    child = spawn(options.command, options.args ?? [], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: commandEnvironment(options.env),
      cwd: options.cwd,
      shell: false,
      // Makes it the head of a group, and keeps the keyboard's Ctrl-C for us: we end it in order.
      detached: process.platform !== 'win32',
      windowsHide: true,
    })
  } catch (cause) {
    throw refusal(options, cause)
  }
  // Where the system is out of descriptors there is a child without streams, which has only an error to tell.
  if (child.stdin !== undefined) return child
  child.on('error', () => {})
  throw refusal(options, new Error('the system has no descriptors left for it'))
}

function starting(child: Child, options: CommandOptions): Promise<void> {
  const started = new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.on('error', cause => reject(refusal(options, cause)))
  })
  // Whoever cares looks at it; nobody has to.
  started.catch(() => {})
  return started
}

function exiting(child: Child, started: Promise<void>): Promise<ExitStatus> {
  return new Promise(resolve => {
    child.once('exit', (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }))
    started.catch(() => resolve({}))
  })
}

/** Passes on to our own standard error, no faster than that is read. */
function forward(from: Readable): void {
  from.on('data', chunk => {
    if (process.stderr.write(chunk)) return
    from.pause()
    process.stderr.once('drain', () => from.resume())
  })
}

function refusal({ command, cwd }: CommandOptions, cause: unknown): ConnectionError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  let why = clip(cause instanceof Error ? cause.message : String(cause))
  if (code === 'ENOENT') {
    why = 'there is no such program. Give its full path, or one that is on the PATH'
    if (cwd !== undefined && !existsSync(cwd)) why = `its folder ${clip(cwd)} does not exist. Correct the option cwd`
  } else if (code === 'EACCES') why = 'it may not be executed. Give it the permission, or start it by its interpreter'
  return new ConnectionError('refused', `Cannot start ${clip(command)}: ${why}`, { cause })
}
