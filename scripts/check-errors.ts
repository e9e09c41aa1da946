/**
 * Keeps the error reference, docs/errors.md and docs/reference/errors: every message is read from the source, and every code has a
 * meaning. `--write` brings the pages up to date.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorPages, meaningFaults } from './errors/pages.ts'
import { readProgram } from './errors/program.ts'
import { errorNumbers, extract } from './errors/sites.ts'
import { listFiles, root } from './lib/files.ts'
import { runCheck } from './lib/report.ts'

const folder = 'docs/reference/errors'

if (import.meta.main) {
  const program = readProgram(root, listFiles(['src'], /(?<!\.test)\.ts$/))
  const { found, unreadable } = extract(program)
  const numbers = errorNumbers(program)
  const pages = errorPages(found, numbers)
  const gone = listFiles([folder], /\.md$/).filter(path => !pages.some(page => page.path === path))
  if (process.argv.includes('--write')) {
    mkdirSync(join(root, folder), { recursive: true })
    for (const path of gone) rmSync(join(root, path))
    for (const { path, text } of pages) writeFileSync(join(root, path), text)
  }
  const stale = pages.filter(({ path, text }) => !existsSync(join(root, path)) || readFileSync(join(root, path), 'utf8') !== text)
  const left = gone.filter(path => existsSync(join(root, path)))
  runCheck('errors', () => [
    ...[...stale.map(({ path }) => path), ...left].map(path => `${path} is not up to date with the source; run \`npm run fix\``),
    ...meaningFaults(found, numbers),
    ...unreadable.map(
      place => `${place}: the message is not in the source; write it where the error is made, or pass it as an argument`,
    ),
  ])
}
