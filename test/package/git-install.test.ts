/**
 * The package from a git address: npm clones it, installs its dev dependencies there, runs `prepare`, and packs what `files` lists.
 * Here a folder with that script is the clone, and its build only says that it ran: what the real one makes is tested elsewhere.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { root } from '../../scripts/lib/files.ts'

let home: string
let clone: string

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'git-install-'))
  clone = join(home, 'clone')
  for (const folder of ['src', 'scripts', 'node_modules/rolldown']) mkdirSync(join(clone, folder), { recursive: true })
  cpSync(join(root, 'scripts/prepare.mjs'), join(clone, 'scripts/prepare.mjs'))
  const { scripts, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(clone, 'package.json'), JSON.stringify({ name: 'clone', version: '1.0.0', type, scripts }))
  writeFileSync(join(clone, 'scripts/build.ts'), `import { mkdirSync } from 'node:fs'\nmkdirSync('dist')\n`)
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** What npm does in the clone, called from this folder. */
function prepare(from: string, env: Readonly<Record<string, string>> = {}) {
  const { status, stderr } = spawnSync('npm', ['--silent', '--prefix', clone, 'run', 'prepare'], {
    cwd: from,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  return { status, stderr, built: existsSync(join(clone, 'dist')) }
}

const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`

test('nothing is built where npm was called in the checkout itself: npm ci there stays as quick as it was', () => {
  for (const from of [clone, join(clone, 'src')]) expect(prepare(from)).toEqual({ status: 0, stderr: '', built: false })
})

test('it is built where npm was called in the project that installs it', () => {
  expect(prepare(home)).toMatchObject({ status: 0, built: true })
})

test('where it cannot be built the failure says in words what is missing: a newer Node, or what it is built with', () => {
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(old)}` }
  expect(prepare(home, env)).toEqual({
    status: 1,
    stderr: expect.stringMatching(/installed from a git address or a folder, and that needs Node 22\.18 or newer; this is/),
    built: false,
  })
  rmSync(join(clone, 'node_modules'), { recursive: true })
  expect(prepare(home)).toEqual({ status: 1, stderr: expect.stringMatching(/run `npm ci` in .*clone first/), built: false })
})
