/**
 * Fuzzing from the command line.
 *
 *   npm run fuzz -- --seconds 180            all targets, turn by turn
 *   npm run fuzz -- --seed 7 --target sse    one of them, under a seed that was printed before
 *   … --input 1234                           only that input
 *   … --replay FILE                          the input that was saved in a file
 *   … --json FILE                            what was found, for programs
 *   … --threads N                            how many share the inputs; 2 unless told otherwise
 *
 * The last line is `seed S: N inputs, C crashes, O over 50 ms`; anything but zeros exits with 1.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { type Finding, Runner, slowMs } from './runner.ts'
import { targetNamed } from './targets.ts'
import type { Outcome, Share } from './turns.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    threads: { type: 'string', default: '2' },
    seed: { type: 'string' },
    target: { type: 'string' },
    input: { type: 'string' },
    replay: { type: 'string' },
    json: { type: 'string' },
  },
})

/** What a thread may hold at the end beyond what it held after a fifth of the time. */
const growthBytes = 32 * 1024 * 1024

const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : whole('seed', values.seed)
const began = performance.now()
report(values.replay === undefined && values.input === undefined ? await runThreads() : await runOne())

async function runOne(): Promise<Outcome[]> {
  const runner = new Runner(seed)
  if (values.replay !== undefined) {
    const saved = JSON.parse(readFileSync(values.replay, 'utf8')) as { target: string; choices: number[] }
    await runner.replay(targetNamed(saved.target), saved.choices)
  } else await runner.one(targetNamed(values.target ?? ''), whole('input', values.input ?? ''))
  return [{ counts: { one: 1 }, findings: runner.findings, grown: 0 }]
}

function runThreads(): Promise<Outcome[]> {
  if (values.target !== undefined) targetNamed(values.target)
  const stride = Math.max(1, whole('threads', values.threads))
  const ms = whole('seconds', values.seconds) * 1_000
  return Promise.all(Array.from({ length: stride }, (_, first) => runThread({ seed, ms, first, stride, target: values.target })))
}

/** A thread that dies, dies of what it was fed. */
function runThread(share: Share): Promise<Outcome> {
  return new Promise(resolve => {
    const thread = new Worker(new URL('./turns.ts', import.meta.url), { workerData: share })
    const died = (why: string): void =>
      resolve({ counts: {}, findings: [{ kind: 'crash', target: 'thread', input: share.first, why, choices: [] }], grown: 0 })
    thread.once('message', outcome => {
      resolve(outcome as Outcome)
      void thread.terminate()
    })
    thread.once('error', error => died(error instanceof Error ? (error.stack ?? error.message) : String(error)))
    thread.once('exit', code => died(`the thread ended with ${code} before its time`))
  })
}

function report(outcomes: readonly Outcome[]): void {
  const counts = new Map<string, number>()
  for (const outcome of outcomes)
    for (const [name, count] of Object.entries(outcome.counts)) counts.set(name, (counts.get(name) ?? 0) + count)
  const findings = outcomes.flatMap(outcome => outcome.findings)
  const leaks = outcomes.filter(({ grown }) => grown > growthBytes)
  const seconds = (performance.now() - began) / 1_000
  for (const [name, count] of counts) console.log(`${name.padEnd(22)} ${String(count).padStart(9)} inputs`)
  const grown = outcomes.map(outcome => (outcome.grown / 1_048_576).toFixed(1)).join(' and ')
  console.log(`${seconds.toFixed(0)} s; held at the end beyond what was held after a fifth of the time: ${grown} MiB`)
  for (const finding of findings) console.log(described(finding))
  const crashes = findings.filter(({ kind }) => kind === 'crash').length + leaks.length
  const slow = findings.filter(({ kind }) => kind === 'slow').length
  const inputs = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const facts = { seed, seconds, inputs, crashes, slow, counts: Object.fromEntries(counts), findings }
  if (values.json !== undefined) writeFileSync(values.json, JSON.stringify(facts, null, 2))
  console.log(`seed ${seed}: ${inputs} inputs, ${crashes} crashes, ${slow} over ${slowMs} ms`)
  process.exit(crashes + slow > 0 ? 1 : 0)
}

function described({ kind, target, input, why, choices }: Finding): string {
  const file = join(tmpdir(), `vivarium-fuzz-${seed}-${target.replace(/\W+/g, '-')}-${input ?? 'replay'}.json`)
  writeFileSync(file, JSON.stringify({ target, seed, input, why, choices }))
  const shown = why.split('\n').slice(0, 4).join('\n    ')
  return `${kind}: --seed ${seed} --target ${target} --input ${input}\n    ${shown}\n    saved: --replay ${file}`
}

function whole(option: string, text: string): number {
  const value = Number(text)
  if (text !== '' && Number.isSafeInteger(value) && value >= 0) return value
  throw new Error(`--${option} must be a whole number, not "${text}"`)
}
