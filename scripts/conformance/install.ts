/**
 * Installs the official suite by its own lock file (suite/package-lock.json) into .cache/, which git ignores. It is not a
 * dev dependency because it brings 120 packages. A changed lock file gets a folder of its own.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/files.ts'

export const cache = join(root, '.cache', 'conformance')
const lock = join(root, 'scripts', 'conformance', 'suite')

/** The suite's command-line program, installed first if it is not there yet. */
export function installSuite(): string {
  const digest = createHash('sha256')
    .update(readFileSync(join(lock, 'package-lock.json')))
    .digest('hex')
  const home = join(cache, `suite-${digest.slice(0, 12)}`)
  const program = join(home, 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js')
  if (existsSync(program)) return program
  console.error('conformance: installing the suite, once')
  const draft = `${home}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  cpSync(lock, draft, { recursive: true })
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: draft,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) {
    rmSync(draft, { recursive: true, force: true })
    throw new Error(`npm ci of the suite ended with status ${status}; it needs the registry once, see above`)
  }
  keep(draft, home)
  return program
}

/** Moves the finished install to its place in one step; whoever was first wins. */
function keep(draft: string, home: string): void {
  try {
    renameSync(draft, home)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(home)) throw error
  }
}
