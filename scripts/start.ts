/**
 * `npm start`, `npm run everything`, `npm run everything-client`: bundles, then runs one compiled program with the arguments given.
 * It gets this process's stdin, stdout and signals, and its exit status becomes ours.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/files.ts'

const [program, ...args] = process.argv.slice(2)
process.argv.splice(2, Infinity, '--js')
await import('./build.ts')

const file = join(root, 'dist', `${program}.js`)
if (!existsSync(file)) {
  console.error(`start: there is no compiled program ${program}; see scripts/lib/entries.ts`)
  process.exit(1)
}
const child = spawn(process.execPath, [file, ...args], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' || signal === 'SIGTERM' ? 0 : 1)))

// A signal to npm ends its shell, which passes nothing on: notice that the parent has changed.
const parent = process.ppid
setInterval(() => {
  if (process.ppid !== parent) child.kill('SIGTERM')
}, 250)
