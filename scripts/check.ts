/**
 * `npm run check`: everything that can be judged without running the code, at once, one line each. Names after it choose:
 * `npm run check -- rooms types`. `npm run fix` is the same with `--write`.
 */
import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { root } from './lib/files.ts'

const CHECKS: Readonly<Record<string, readonly string[]>> = {
  types: ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--declaration', '--pretty', 'false'],
  page: ['node_modules/typescript/bin/tsc', '-p', 'console/tsconfig.json', '--noEmit', '--pretty', 'false'],
  biome: ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '--colors=off'],
  rooms: ['scripts/check-rooms.ts'],
  names: ['scripts/check-names.ts'],
  size: ['scripts/check-size.ts'],
  api: ['scripts/check-api.ts'],
  docs: ['scripts/check-docs.ts'],
  config: ['scripts/check-config-docs.ts'],
  options: ['scripts/check-option-docs.ts'],
  spelling: ['scripts/check-spelling.ts'],
  prose: ['scripts/check-prose.ts'],
  errors: ['scripts/check-errors.ts'],
  llms: ['scripts/check-llms.ts'],
  lock: ['scripts/check-lock.ts'],
}

/** Those that can repair what they find, in the order in which they have to: what is formatted is then copied. */
const FIXABLE = ['lock', 'api', 'biome', 'config', 'options', 'errors', 'llms']

const writing = process.argv.includes('--write')
const chosen = writing ? FIXABLE : process.argv.slice(2)
const unknown = chosen.find(name => !(name in CHECKS))
if (unknown) {
  console.error(`check: there is no "${unknown}"; choose from ${Object.keys(CHECKS).join(', ')}`)
  process.exit(1)
}
const results: boolean[] = []
if (writing) for (const name of chosen) results.push(await run(name))
else results.push(...(await Promise.all((chosen.length > 0 ? chosen : Object.keys(CHECKS)).map(run))))
process.exitCode = results.every(Boolean) ? 0 : 1

async function run(name: string): Promise<boolean> {
  const started = performance.now()
  const env = { ...process.env, PATH: `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH}` }
  const args = [...(CHECKS[name] ?? []), ...(writing ? ['--write'] : [])]
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', data => (output += data))
  child.stderr.on('data', data => (output += data))
  const status = await new Promise(resolve => child.on('close', resolve))
  const passed = status === 0
  console.log(`${passed ? '✓' : '✗'} ${name} (${Math.round(performance.now() - started)} ms)`)
  if (!passed) console.log(output.trimEnd().replace(/^/gm, '    '))
  return passed
}
