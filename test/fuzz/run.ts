/**
 * Fuzzing from the command line.
 *
 *   npm run fuzz -- --seconds 180            all targets, turn by turn
 *   npm run fuzz -- --seed 7 --target sse    one of them, under a seed that was printed before
 *   … --input 1234                           only that input
 *   … --replay FILE                          the input that was saved in a file
 *   … --json FILE                            what was found, for programs
 *
 * The last line is `seed S: N inputs, C crashes, O over 50 ms`; anything but zeros exits with 1.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Finding, Runner, slowMs } from './runner.ts'
import type { Target } from './target.ts'
import { targets } from './targets.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string' },
    target: { type: 'string' },
    input: { type: 'string' },
    replay: { type: 'string' },
    json: { type: 'string' },
  },
})

/** Each target's turn: long enough for its code to be compiled, short enough for all to have many. */
const turnMs = 100
/** So many findings of one target say what there is to say. */
const enough = 3
/** What may be held at the end beyond what was held after a fifth of the time. */
const growthBytes = 32 * 1024 * 1024

const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : whole('seed', values.seed)
const runner = new Runner(seed)
const began = performance.now()
let grown: string | undefined

if (values.replay !== undefined) {
  const saved = JSON.parse(readFileSync(values.replay, 'utf8')) as { target: string; choices: number[] }
  await runner.replay(named(saved.target), saved.choices)
} else if (values.input !== undefined) {
  await runner.one(named(values.target ?? ''), whole('input', values.input))
} else {
  grown = await runAll(values.target === undefined ? targets : [named(values.target)], whole('seconds', values.seconds) * 1_000)
}
for (const target of targets) await target.close?.()
report()

async function runAll(chosen: readonly Target[], ms: number): Promise<string | undefined> {
  const end = began + ms
  let held: number | undefined
  while (performance.now() < end) {
    for (const target of chosen) {
      // A target that fails at every turn has been heard: the others go on.
      if (runner.findingsOf(target) < enough) await runner.slice(target, Math.min(end, performance.now() + turnMs))
    }
    if (chosen.every(target => runner.findingsOf(target) >= enough)) break
    if (held === undefined && performance.now() > began + ms / 5) held = heldBytes()
  }
  const more = held === undefined ? 0 : heldBytes() - held
  console.log(`memory: ${(more / 1_048_576).toFixed(1)} MiB more than after a fifth of the time`)
  return more > growthBytes ? `memory grew by ${Math.round(more / 1_048_576)} MiB` : undefined
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

function report(): void {
  const seconds = (performance.now() - began) / 1_000
  for (const target of targets) {
    const count = runner.countOf(target)
    if (count > 0) console.log(`${target.name.padEnd(22)} ${String(count).padStart(9)} inputs`)
  }
  for (const finding of runner.findings) console.log(described(finding))
  if (grown !== undefined) console.log(grown)
  const crashes = runner.findings.filter(({ kind }) => kind === 'crash').length + (grown === undefined ? 0 : 1)
  const slow = runner.findings.filter(({ kind }) => kind === 'slow').length
  const inputs = Math.max(runner.inputs, 1)
  if (values.json !== undefined) {
    const counts = Object.fromEntries(targets.map(each => [each.name, runner.countOf(each)]))
    writeFileSync(
      values.json,
      JSON.stringify({ seed, seconds, inputs, crashes, slow, counts, findings: runner.findings }, null, 2),
    )
  }
  console.log(`seed ${seed}: ${inputs} inputs, ${crashes} crashes, ${slow} over ${slowMs} ms`)
  process.exit(crashes + slow > 0 ? 1 : 0)
}

function described({ kind, target, input, why, choices }: Finding): string {
  const file = join(tmpdir(), `vivarium-fuzz-${seed}-${target.replace(/\W+/g, '-')}-${input ?? 'replay'}.json`)
  writeFileSync(file, JSON.stringify({ target, seed, input, why, choices }))
  const shown = why.split('\n').slice(0, 4).join('\n    ')
  return `${kind}: --seed ${seed} --target ${target} --input ${input}\n    ${shown}\n    saved: --replay ${file}`
}

function named(name: string): Target {
  const found = targets.find(target => target.name === name)
  if (found !== undefined) return found
  throw new Error(`There is no target "${name}". There are ${targets.map(target => target.name).join(', ')}`)
}

function whole(option: string, text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw new Error(`--${option} must be a whole number, not "${text}"`)
}
