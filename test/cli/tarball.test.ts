/** The package as users get it: packed, unpacked into an empty folder, and used from there. Dependencies are linked, not fetched. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vivarium-tarball-'))
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  install(folder, join(folder, filename))
}, 120_000)

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))

/** As `npm install` would leave it. */
function install(where: string, tarball: string): void {
  const modules = join(where, 'node_modules')
  mkdirSync(join(modules, 'vivarium'), { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', join(modules, 'vivarium'), '--strip-components=1'])
  const { dependencies } = JSON.parse(readFileSync(join(modules, 'vivarium/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  for (const name of [...Object.keys(dependencies), 'zod', 'typescript', '@types/node', 'undici-types']) {
    const link = join(modules, name)
    mkdirSync(dirname(link), { recursive: true })
    if (!existsSync(link) && existsSync(join(root, 'node_modules', name))) symlinkSync(join(root, 'node_modules', name), link)
  }
}

function vivarium(cwd: string, ...args: readonly string[]) {
  const bin = join(folder, 'node_modules/vivarium/bin/vivarium.mjs')
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], {
    cwd,
    encoding: 'utf8',
    env: { PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, HOME: folder },
  })
  return { status, stdout, stderr }
}

test('the command runs', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  expect(vivarium(folder, '--version')).toMatchObject({ status: 0, stdout: `${version}\n` })
})

test('a new server is tested, typed, listed and called as it is', () => {
  const made = vivarium(folder, 'new', 'notes', '--no-install')
  expect(made).toMatchObject({ status: 0, stderr: '' })
  expect(made.stdout).toContain('+ notes/server.ts')
  const notes = join(folder, 'notes')
  const tests = spawnSync(process.execPath, ['--test'], { cwd: notes, encoding: 'utf8', env: { PATH: process.env['PATH'] } })
  expect(tests.stdout).toContain('pass 4')
  expect(tests.status).toBe(0)
  const types = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc')], { cwd: notes, encoding: 'utf8' })
  expect([types.stdout, types.status]).toEqual(['', 0])
  expect(vivarium(notes, 'list', 'server.ts', 'tools').stdout).toContain('add_note(text: string, tags?: string[] = [])')
  expect(JSON.parse(vivarium(notes, 'call', 'server.ts', 'add_note', 'text=Buy tea', 'tags=a,b').stdout)).toEqual({
    id: '1',
    text: 'Buy tea',
    tags: ['a', 'b'],
  })
  // .mcp.json starts it by npx, which looks in the folder itself.
  const { $schema, ...config } = JSON.parse(readFileSync(join(notes, '.mcp.json'), 'utf8')) as { $schema: string }
  expect(config).toEqual({ mcpServers: { notes: { command: 'npx', args: ['vivarium', 'serve', 'server.ts', '--stdio'] } } })
  // Editors find the schema where the package is installed.
  expect(JSON.parse(readFileSync(join(folder, $schema), 'utf8'))).toMatchObject({ properties: { mcpServers: {} } })
}, 120_000)

test('a folder that is not empty and a name that is none are refused', () => {
  mkdirSync(join(folder, 'full'))
  mkdirSync(join(folder, 'full/x'))
  expect(vivarium(folder, 'new', 'full', '--no-install')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('is not empty'),
  })
  expect(vivarium(folder, 'new', 'No Name', '--no-install')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('is not a valid package name'),
  })
  expect(vivarium(folder, 'new', 'x', '--no-install', '--vivarium', './nothing.tgz').stderr).toContain('does not exist')
})

test('the dependency is this version, or the file that was given', () => {
  const dependencyOf = (name: string) =>
    (JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8')) as { dependencies: { vivarium: string } }).dependencies
      .vivarium
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  vivarium(folder, 'new', 'plain', '--no-install')
  expect(dependencyOf('plain')).toBe(`^${version}`)
  vivarium(folder, 'new', 'local', '--no-install', '--vivarium', `./vivarium-${version}.tgz`)
  expect(dependencyOf('local')).toBe(`file:../vivarium-${version}.tgz`)
})
