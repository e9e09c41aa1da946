/**
 * The package from a git address: npm clones it, runs `npm install` with its scripts in the clone, and packs what `files` lists. Here
 * a folder with the script is the clone, and its build only says that it ran: what the real one makes is tested elsewhere.
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
  mkdirSync(join(clone, 'scripts'), { recursive: true })
  cpSync(join(root, 'scripts/prepare.mjs'), join(clone, 'scripts/prepare.mjs'))
  const { scripts, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(clone, 'package.json'), JSON.stringify({ name: 'clone', version: '1.0.0', type, scripts }))
  writeFileSync(join(clone, 'scripts/build.ts'), `import { mkdirSync } from 'node:fs'\nmkdirSync('dist')\n`)
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

/** What npm runs at the end of `npm ci` and `npm install` there. */
function installed(env: Readonly<Record<string, string>> = {}) {
  const { status, stderr } = spawnSync('npm', ['--silent', 'run', 'postprepare'], {
    cwd: clone,
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  return { status, stderr, built: existsSync(join(clone, 'dist')) }
}

/** How npm marks what it does in a clone that it packs. */
const packs = { _PACOTE_NO_PREPARE_: 'git+file:///anywhere#0123456' }

test('nothing is built in a checkout: npm ci there stays as quick as it was', () => {
  expect(installed()).toEqual({ status: 0, stderr: '', built: false })
})

test('it is built in the clone that npm makes of a git address', () => {
  expect(installed(packs)).toMatchObject({ status: 0, built: true })
})

test('a Node that is too old for that is told so in words, with two ways out', () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`
  const env = { ...packs, NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(old)}` }
  const { status, stderr, built } = installed(env)
  expect([status, built]).toEqual([1, false])
  expect(stderr).toContain(
    'Installing Vivarium from a git address builds it, which requires Node 22.18 or newer; this is Node 20.20.2.',
  )
  expect(stderr).toMatch(/npx -y -p node@24 npm install[\s\S]*npm ci && npm pack/)
})

test('the README names it beside the tarball', () => {
  const page = readFileSync(join(root, 'README.md'), 'utf8')
  expect(page).toMatch(
    /^npm install \.\.\/vivarium\/\S+ zod +# or: npm install --allow-git=all git\+file:\/\/\/path\/to\/vivarium zod$/m,
  )
})

test('npm has no script of ours to warn of, whoever installs the package and from wherever', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) expect(scripts).not.toHaveProperty(name)
})
