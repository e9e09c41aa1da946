/**
 * A command and everything it started, as one: on POSIX its process group, on Windows its process tree.
 * Signals go to all of it, and no group outlives this process.
 */
import { spawnSync } from 'node:child_process'
import type { Clock } from '../../core/clock.ts'
import { within } from '../framing/within.ts'

const isWindows = process.platform === 'win32'
const pollMs = 20

/** Groups that are to be ended when this process exits. */
const open = new Set<number>()

/** Makes sure that the group ends with this process at the latest. `endGroup` lets it go. */
export function trackGroup(pid: number): void {
  if (open.size === 0) process.on('exit', killAll)
  open.add(pid)
}

function killAll(): void {
  for (const pid of open) signalGroup(pid, 'SIGKILL')
}

/** False if there is nobody left to signal. Signal 0 only asks. */
function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL' | 0): boolean {
  if (isWindows && signal !== 0) {
    // There is no polite signal for console programs here, and no group: the tree is ended by the system's own tool.
    return spawnSync('taskkill', ['/pid', `${pid}`, '/T', '/F'], { windowsHide: true }).status === 0
  }
  try {
    return process.kill(isWindows ? pid : -pid, signal)
  } catch {
    return false
  }
}

/**
 * Ends a group step by step: time to end by itself, SIGTERM, SIGKILL; then the same for what outlives its head.
 * `exited` settles when the head has ended.
 */
export async function endGroup(
  pid: number,
  exited: Promise<unknown>,
  closeMs: number,
  killMs: number,
  clock: Clock,
): Promise<void> {
  if (!(await within(exited, closeMs, clock))) {
    signalGroup(pid, 'SIGTERM')
    if (!(await within(exited, killMs, clock))) signalGroup(pid, 'SIGKILL')
  }
  await within(exited, killMs, clock)
  await endLeftovers(pid, killMs, clock)
  open.delete(pid)
  if (open.size === 0) process.off('exit', killAll)
}

async function endLeftovers(pid: number, graceMs: number, clock: Clock): Promise<void> {
  if (!signalGroup(pid, 'SIGTERM')) return
  const end = clock.now() + graceMs
  while (clock.now() < end && signalGroup(pid, 0)) await within(new Promise(() => {}), pollMs, clock)
  signalGroup(pid, 'SIGKILL')
}
