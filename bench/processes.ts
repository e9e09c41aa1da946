/**
 * Child processes and what /proc says of them. Every child is remembered until it is gone, so that no way of
 * ending the bench (finish, failure, Ctrl-C, watchdog) leaves one behind.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface Child {
  readonly pid: number
  readonly process: ChildProcessWithoutNullStreams
  /** Rejects when the process ends; never resolves. Race it against anything that waits for an answer. */
  readonly gone: Promise<never>
  stop(): Promise<void>
}

const alive = new Set<ChildProcessWithoutNullStreams>()
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Starts a script of this folder with the Node that runs the bench. */
export function launch(script: string, args: readonly string[], nodeFlags: readonly string[] = []): Child {
  const { NODE_OPTIONS: _dropped, ...env } = process.env
  const child = spawn(process.execPath, [...nodeFlags, here(script), ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...env, NODE_ENV: 'production' },
  })
  alive.add(child)
  let tail = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-2000)
  })
  // A child that dies is reported by `gone`; the broken pipe is only its echo.
  child.stdin.on('error', () => {})
  const ended = new Promise<void>(resolve => {
    child.once('close', () => {
      alive.delete(child)
      resolve()
    })
    child.once('error', () => {
      alive.delete(child)
      resolve()
    })
  })
  const gone = ended.then((): never => {
    const reason = /^\w*Error.*$/m.exec(tail)?.[0] ?? tail.trim()
    throw new Error(`${script} ended early: ${reason || `exit ${child.exitCode ?? child.signalCode}`}`)
  })
  gone.catch(() => {})
  return { pid: child.pid ?? -1, process: child, gone, stop: () => stop(child, ended) }
}

/** Closing stdin lets clients end their own children; what has not left after a moment is killed. */
async function stop(child: ChildProcessWithoutNullStreams, ended: Promise<void>): Promise<void> {
  child.stdin.end()
  const timer = setTimeout(() => child.kill('SIGKILL'), 300)
  await ended
  clearTimeout(timer)
}

/** Far above the slowest single step on a busy machine. */
export const STEP_MS = 20_000

/** Rejects when the work takes longer than it ever should, so that a hang costs one cell and not the run. */
export async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing for ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Kills whatever is left when the bench ends in any way, and ends it after `watchdogMs`. */
export function guard(watchdogMs: number): void {
  process.on('exit', () => {
    for (const child of alive) child.kill('SIGKILL')
  })
  process.on('SIGINT', () => process.exit(130))
  process.on('SIGTERM', () => process.exit(143))
  setTimeout(() => {
    console.error(`bench: not finished after ${watchdogMs / 1000} s, giving up`)
    process.exit(1)
  }, watchdogMs).unref()
}

/**
 * CPU time of all threads of a process in microseconds. From `schedstat`, which counts nanoseconds: utime and stime in
 * `/proc/<pid>/stat` hold the same sum in ticks of 10 ms, a tenth of a quick round. They are the fallback.
 */
export function cpuMicros(pid: number): number {
  try {
    let nanos = 0
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1'), 10)
    }
    if (nanos > 0) return nanos / 1000
  } catch {
    // Kernels without CONFIG_SCHED_INFO have no such file.
  }
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The command name may hold spaces; fields are counted from its closing parenthesis (utime 14th, stime 15th).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** Resident memory in bytes. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) * 1024
}
