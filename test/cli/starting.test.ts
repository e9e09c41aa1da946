/** The file that npm puts on the PATH: what it says where the command itself cannot be loaded. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const bin = join(import.meta.dirname, '../../bin/vivarium.mjs')

function start(file: string, args: readonly string[], node: readonly string[] = []) {
  const { status, stderr } = spawnSync(process.execPath, [...node, file, ...args], { encoding: 'utf8' })
  return { status, stderr }
}

test('an old Node says which one is needed, and a line that works where the package is installed, on the registry or not', () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`
  const asOld = ['--import', `data:text/javascript,${encodeURIComponent(old)}`]
  expect(start(bin, ['call', './server.ts', 'add_note', 'text=Buy tea'], asOld)).toEqual({
    status: 1,
    stderr:
      'vivarium: Node 22.18 or newer is required; this is Node 20.20.2\n' +
      "  → Run npx -y -p node@24 vivarium call ./server.ts add_note 'text=Buy tea'\n" +
      '  → Or install a newer Node: https://nodejs.org\n',
  })
})

test('a package that nobody built says so, and shows no stack', () => {
  const home = mkdtempSync(join(tmpdir(), 'unbuilt-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  cpSync(bin, join(home, 'bin/vivarium.mjs'))
  const { status, stderr } = start(join(home, 'bin/vivarium.mjs'), ['--version'])
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^vivarium: The command has not been built: dist\/ is missing\n {2}→ In a clone, run npm run build\n/),
  ])
  expect(stderr).not.toMatch(/^ {4}at /m)
})
