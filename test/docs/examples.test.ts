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

it('the tickets example takes back what was done, although its server is killed in the midst of that', async () => {
  const args = ['--disable-warning=ExperimentalWarning', join(root, 'examples/tickets/client.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  expect(stdout.trim().split('\n')).toEqual([
    'Step 5 failed: The mail server knows no such team',
    'The server was killed in the midst of the rollback',
    'The transaction is rolled_back: The team could not be told',
    '  1 create_ticket: compensated',
    '  2 create_ticket: compensated',
    '  3 link_tickets: compensated',
    '  4 update_ticket: compensated',
    '  5 notify: failed',
    'Left behind: 0 tickets, 0 links',
  ])
}, 60_000)
