import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'

test('a process that can start a Postgres ends with the status that it has set', () => {
  const module = pathToFileURL(join(import.meta.dirname, 'real-postgres.ts')).href
  const program = `await import(${JSON.stringify(module)}); process.exitCode = 3`
  const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], { timeout: 30_000 })
  expect(status).toBe(3)
})
