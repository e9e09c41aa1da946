/** All targets, turn by turn, until the time is over. Runs in a thread of its own; several share the inputs between them. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { parentPort, workerData } from 'node:worker_threads'
import { type Finding, Runner } from './runner.ts'
import type { Target } from './target.ts'
import { targetNamed, targets } from './targets.ts'

export interface Share {
  readonly seed: number
  readonly ms: number
  readonly first: number
  readonly stride: number
  /** Undefined: all. */
  readonly target: string | undefined
}

export interface Outcome {
  readonly counts: Readonly<Record<string, number>>
  readonly findings: readonly Finding[]
  /** Bytes held at the end beyond what was held after a fifth of the time. */
  readonly grown: number
}

/** Each target's turn: long enough for its code to be compiled, short enough for all to have many. */
const turnMs = 100
/** So many findings of one target say what there is to say. */
const enough = 3

async function runShare({ seed, ms, first, stride, target }: Share): Promise<Outcome> {
  const began = performance.now()
  const end = began + ms
  const runner = new Runner(seed, { first, stride })
  const chosen = target === undefined ? targets : [targetNamed(target)]
  const heard = (each: Target): boolean => runner.findingsOf(each) >= enough
  let held: number | undefined
  while (performance.now() < end && !chosen.every(heard)) {
    // A target that fails at every turn has been heard: the others go on.
    for (const each of chosen) if (!heard(each)) await runner.slice(each, Math.min(end, performance.now() + turnMs))
    if (held === undefined && performance.now() > began + ms / 5) held = heldBytes()
  }
  const grown = held === undefined ? 0 : heldBytes() - held
  for (const each of targets) await each.close?.()
  const counts = Object.fromEntries(chosen.map(each => [each.name, runner.countOf(each)]))
  return { counts, findings: runner.findings, grown }
}

/** After a full collection. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

parentPort?.postMessage(await runShare(workerData as Share))
