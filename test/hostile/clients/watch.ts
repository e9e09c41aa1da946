/** What is watched while an attack goes on: memory from outside, turns of the event loop from inside. */
import type { HostileCase, Verdict } from '../case.ts'
import { type Arena, type Attack, badly } from './attack.ts'
import type { Target } from './target.ts'

export const mebibyte = 1024 * 1024
/** The longest that one turn of the server's event loop may compute. */
const mostTurnMs = 50

export interface Growth {
  /** Bytes by which the process was larger at its largest, garbage included. */
  readonly peak: number
  /** Bytes by which it stays larger after its garbage was collected. */
  readonly kept: number
  /** Bytes in use that were not before. */
  readonly used: number
}

/** Does something to a server and tells by how much it grew. */
export async function growth<T>(target: Target, work: () => Promise<T>): Promise<{ result: T; grown: Growth }> {
  const { used } = await target.facts(true)
  const before = target.resident()
  let peak = before
  const looking = setInterval(() => {
    if (target.alive()) peak = Math.max(peak, target.resident())
  }, 20)
  try {
    const result = await work()
    peak = Math.max(peak, target.resident())
    const after = await target.facts(true)
    return { result, grown: { peak: peak - before, kept: target.resident() - before, used: after.used - used } }
  } finally {
    clearInterval(looking)
  }
}

export function mebibytes(bytes: number): string {
  return `${(bytes / mebibyte).toFixed(1)} MiB`
}

/** An attack as a case: fired, then the server is looked at. A stall counts if it comes back each time. */
export function caseOf(attack: Attack, arena: Arena, healthy: () => Promise<Verdict>): HostileCase {
  const run = async (tries = 3): Promise<Verdict> => {
    if (!arena.target.alive()) return badly('the process has ended before')
    const beside = attack.patient === true
    if (!beside) await arena.target.facts()
    const verdict = await fired(attack, arena).catch((error: Error) => badly(error.message))
    if (!arena.target.alive()) return badly('the process has ended')
    const { turnMs, polluted } = await arena.target.facts()
    if (polluted) return badly('a prototype was changed')
    const health = await healthy().catch((error: Error) => badly(error.message))
    if (!health.well) return badly(`${verdict.detail}; then ${health.detail}`)
    if (!verdict.well || beside || turnMs <= mostTurnMs) return verdict
    return tries > 1 ? run(tries - 1) : badly(`${verdict.detail}, but one turn of the event loop took ${turnMs.toFixed(0)} ms`)
  }
  return { key: attack.key, name: attack.name, run: () => run(), ...(attack.patient === true ? { patient: true } : {}) }
}

async function fired(attack: Attack, arena: Arena): Promise<Verdict> {
  const { memory } = attack
  if (memory === undefined) return attack.run(arena)
  const { result, grown } = await growth(arena.target, () => attack.run(arena))
  const detail = `${result.detail}, +${mebibytes(grown.peak)}`
  return { well: result.well && grown.peak <= memory * mebibyte, detail }
}
