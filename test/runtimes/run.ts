/**
 * `npm run runtimes`: installs the runtimes as their lock file pins them, beside this file and nowhere else, links the built
 * package there, and runs the suite on each. Their binaries come with their packages, so that no install script has to run.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../scripts/lib/files.ts'

const here = import.meta.dirname
const modules = join(here, 'node_modules')
const stamp = join(modules, '.installed')
const lock = readFileSync(join(here, 'package-lock.json'), 'utf8')

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== lock) {
  run('npm', ['ci', '--ignore-scripts'], here)
  symlinkSync(root, join(modules, 'vivarium'), 'dir')
  writeFileSync(stamp, lock)
}
run(
  process.execPath,
  [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', 'test/runtimes', ...process.argv.slice(2)],
  root,
)

function run(command: string, words: readonly string[], cwd: string): void {
  const { status } = spawnSync(command, words, { cwd, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
