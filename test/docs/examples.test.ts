import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

it('the notes example finds everything right with its own server', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/notes/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 })
  expect(stdout).toMatch(/^All is well at \d{4}-\d\d-\d\d\n$/)
}, 30_000)
