/**
 * Serves files on stdio: `node server.ts [FOLDER…]`. Clients can name no folders beyond these; for those that name none they are the
 * folders. FILES_JOURNAL: where edits are written down, one file for each project; by default below ~/.vivarium, by the first folder.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { openFiles } from './files.ts'

const folders = process.argv.slice(2).map(folder => resolve(folder))
const project = createHash('sha256')
  .update(folders[0] ?? process.cwd())
  .digest('hex')
  .slice(0, 16)
const journal = process.env['FILES_JOURNAL'] ?? join(homedir(), '.vivarium', 'files', `${project}.db`)
mkdirSync(dirname(journal), { recursive: true, mode: 0o700 })

await using files = await openFiles({ journal, ...(folders.length > 0 && { folders }) })
await files.server.stdio()
