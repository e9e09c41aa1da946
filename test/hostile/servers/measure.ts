/** What an input costs the process that takes it: memory at its peak, and the longest turn of the event loop. */
import { readFileSync } from 'node:fs'

export interface Cost {
  /** Growth at the peak of what the process holds, heap and buffers. Where it looks much, garbage is collected before it counts. */
  readonly heldMiB: number
  /** Growth at the peak of the memory that the system gave to it. */
  readonly residentMiB: number
  /** Processor time of this thread in the longest turn. */
  readonly turnMs: number
  /** The same by the clock on the wall, without the time in which this thread only waited for a processor. */
  readonly stallMs: number
}

const mebibyte = 1024 * 1024
const much = 24 * mebibyte
const gc = (globalThis as { gc?: () => void }).gc ?? (() => {})

/** Twice: what the first finds in buffers is given back by the second. */
function collect(): void {
  gc()
  gc()
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** How long this thread was ready to run and others ran, where the system tells. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

function held(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Begins to measure; what it returns ends it. */
export function measure(): () => Cost {
  collect()
  const before = { held: held(), resident: process.memoryUsage.rss(), most: process.resourceUsage().maxRSS * 1024 }
  const peak = { held: before.held, resident: before.resident }
  const look = (): void => {
    if (held() - before.held > much) collect()
    peak.held = Math.max(peak.held, held())
    peak.resident = Math.max(peak.resident, process.memoryUsage.rss())
  }
  let ticks = 0
  let turnMs = 0
  let stallMs = 0
  let last = { thread: threadMs(), wall: performance.now() - waitedMs() }
  const turn = (): void => {
    turnMs = Math.max(turnMs, threadMs() - last.thread)
    stallMs = Math.max(stallMs, performance.now() - waitedMs() - last.wall)
  }
  // A timer fires between two turns: as long as they are longer than its period, each is measured by itself.
  const probe = setInterval(() => {
    turn()
    if (++ticks % 4 === 0) look()
    last = { thread: threadMs(), wall: performance.now() - waitedMs() }
  }, 1)
  return () => {
    clearInterval(probe)
    turn()
    look()
    const most = process.resourceUsage().maxRSS * 1024
    if (most > before.most) peak.resident = Math.max(peak.resident, most)
    const heldMiB = (peak.held - before.held) / mebibyte
    return { heldMiB, residentMiB: (peak.resident - before.resident) / mebibyte, turnMs, stallMs }
  }
}
