/**
 * `npm run robustness`: short forms of the hostile inputs, the fuzzer, the crashes and the official suite, one after another, so that
 * what they would find does not land; `--full` runs them whole. The last line of each is told again at the end, and any that failed
 * fails the run.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './lib/files.ts'

interface Part {
  readonly name: string
  readonly script: readonly string[]
  /** Arguments of the short form: less than three minutes in all, and the same inputs each time, so that it does not fail by chance. */
  readonly short: readonly string[]
  readonly full: readonly string[]
}

const parts: readonly Part[] = [
  { name: 'hostile', script: ['test', 'hostile', 'run.ts'], short: ['--short'], full: [] },
  { name: 'fuzz', script: ['test', 'fuzz', 'run.ts'], short: ['--seconds', '12', '--seed', '7'], full: ['--seconds', '180'] },
  { name: 'crash', script: ['test', 'crash', 'run.ts'], short: ['--kills', '12', '--seed', '7'], full: ['--kills', '500'] },
  { name: 'conformance', script: ['scripts', 'conformance', 'run.ts'], short: ['--revision', '2026-07-28'], full: [] },
]

const { values } = parseArgs({ options: { full: { type: 'boolean', default: false }, only: { type: 'string' } } })
const only = values.only?.split(',')
const unknown = only?.filter(name => !parts.some(part => part.name === name)) ?? []
if (unknown.length > 0) {
  console.error(`robustness: --only knows ${parts.map(({ name }) => name).join(', ')}, not ${unknown.join(', ')}`)
  process.exit(2)
}

const told: string[] = []
let failed = 0
for (const part of parts.filter(({ name }) => only === undefined || only.includes(name))) {
  const began = performance.now()
  const { status, last } = await run(part)
  if (status !== 0) failed++
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  told.push(`${status === 0 ? '✓' : '✗'} ${part.name} (${seconds} s): ${last}`)
}
console.log(`\n${told.join('\n')}`)
process.exit(failed === 0 ? 0 : 1)

/** Its output goes through as it comes. */
function run({ script, short, full }: Part): Promise<{ status: number; last: string }> {
  const args = [join(root, ...script), ...(values.full ? full : short)]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    process.stdout.write(chunk)
    text = (text + chunk.toString()).slice(-4_096)
  })
  return new Promise(resolve => {
    child.on('close', code => resolve({ status: code ?? 1, last: text.trimEnd().split('\n').at(-1) ?? '' }))
  })
}
