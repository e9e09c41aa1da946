/**
 * Installs the official suite by its own lock file (suite/package-lock.json) into .cache/. It is not a dev dependency because it
 * brings 120 packages.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../lib/files.ts'
import { installPinned } from '../lib/pinned-install.ts'

export const cache = join(root, '.cache', 'conformance')

/** The suite's command-line program, installed first if it is not there yet. */
export function installSuite(): string {
  const home = installPinned('suite', join(root, 'scripts', 'conformance', 'suite'), cache)
  const program = join(home, 'node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js')
  if (!existsSync(program)) throw new Error(`conformance: ${program} is missing; delete ${home}, so that it is installed again`)
  return program
}
