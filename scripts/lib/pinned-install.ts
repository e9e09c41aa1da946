/**
 * Installs what only some work needs by a lock file of its own into .cache/, which git ignores, so that it is no dev dependency
 * of everybody. A changed lock file gets a folder of its own.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './files.ts'

/** The folder that holds `node_modules`, installed first if it is not there yet. `folder` holds package.json and package-lock.json. */
export function installPinned(name: string, folder: string, cache: string = join(root, '.cache', 'pinned')): string {
  const digest = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex')
  const home = join(cache, `${name}-${digest.slice(0, 12)}`)
  if (existsSync(home)) return home
  console.error(`${name}: installing what it needs, once`)
  const draft = `${home}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(folder, file), join(draft, file))
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: draft,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  if (status !== 0) {
    rmSync(draft, { recursive: true, force: true })
    throw new Error(`${name}: npm ci ended with status ${status}; it needs the registry once, see above`)
  }
  keep(draft, home)
  return home
}

/** Moves a finished folder to its place in one step; whoever was first wins. */
export function keep(draft: string, home: string): void {
  try {
    renameSync(draft, home)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(home)) throw error
  }
}
