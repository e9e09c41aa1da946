/** The package as it is published: what is in the tarball, how it resolves, and that its types stand alone. */
import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PUBLIC, present } from '../../scripts/lib/entries.ts'
import { root } from '../../scripts/lib/files.ts'

const run = promisify(execFile)
const slow = 120_000

let folder: string
let tarball: string
let files: string[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'package-'))
  const words = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const { stdout } = await run('npm', words, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const [packed] = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[]
  tarball = join(folder, packed?.filename ?? '')
  files = (packed?.files ?? []).map(({ path }) => path)
}, slow)
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Everything that may be in it. What is new here is published: think before you add a line. */
const allowed = [
  /^(package\.json|(README|ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md|LICENSE|llms(-full)?\.txt)$/,
  /^examples\/(?!.*\.test\.ts$).+\.(ts|md|json|ya?ml)$/,
  /^bin\/vivarium\.mjs$/,
  /^dist\/[a-z]+\.js(\.map)?$/,
  /^dist\/web\/(chunks\/)?[\w.-]+\.js$/,
  /^dist\/cli\/main\.js(\.map)?$/,
  /^dist\/chunks\/[\w.-]+\.js(\.map)?$/,
  /^dist\/types\/[\w/-]+\.d\.ts$/,
  /^dist\/console\/(index\.html|assets\/[\w-]+\.(js|css|svg))(\.(br|gz))?$/,
  /^dist\/schemas\/[\w.-]+\.json$/,
  /^docs\/([\w-]+\/)*[\w-]+\.(md|txt)$/,
]

describe('the tarball', () => {
  test('holds what is on the list, and nothing of tests or this machine', () => {
    expect(files.filter(path => !allowed.some(pattern => pattern.test(path)))).toEqual([])
    expect(files.filter(path => /\.test\.|node_modules|\.tape$|\.env/.test(path))).toEqual([])
  })

  test('holds the page of the console, of which a browser loads at most 400 kB, and packages for pages stay out', () => {
    const loaded = files.filter(path => /^dist\/console\/.*\.gz$/.test(path))
    expect(loaded.length).toBeGreaterThan(3)
    expect(loaded.reduce((sum, path) => sum + statSync(join(root, path)).size, 0)).toBeLessThan(400_000)
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      readonly dependencies: object
      readonly peerDependencies: object
    }
    expect(Object.keys({ ...dependencies, ...peerDependencies }).filter(name => /react|tailwind|vite/.test(name))).toEqual([])
  })

  test('holds every entry with its declarations', () => {
    for (const [name, file] of Object.entries(present(PUBLIC)))
      expect(files).toEqual(
        expect.arrayContaining([`dist/${name}.js`, file.replace(/^src/, 'dist/types').replace(/\.ts$/, '.d.ts')]),
      )
  })

  test(
    'is what publint likes',
    async () => {
      const bytes = await readFile(tarball)
      const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
      const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true })
      expect(messages.map(message => formatMessage(message, pkg, { color: false }))).toEqual([])
    },
    slow,
  )

  test(
    'resolves with its types wherever ES modules are imported',
    async () => {
      const packed = createPackageFromTarballData(new Uint8Array(await readFile(tarball)))
      // The schemas are JSON, which has no types.
      const analysis = await checkPackage(packed, { excludeEntrypoints: [/^\.?\/?schemas/] })
      if (analysis.types === false) throw new Error('attw finds no types')
      // The package is ES modules only: what old resolutions and require() make of it is not promised.
      const old = ['node10', 'node16-cjs']
      const problems = analysis.problems.filter(
        problem => !('resolutionKind' in problem && old.includes(problem.resolutionKind)) && problem.kind !== 'CJSResolvesToESM',
      )
      expect(problems).toEqual([])
    },
    slow,
  )
})

interface Consumer {
  readonly entries: readonly string[]
  readonly packages: readonly string[]
  readonly options: object
  /** What it does with them. */
  readonly code?: string
}

/** Every entry of the package that has types. */
async function typedEntries(): Promise<string[]> {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { exports: Record<string, object> }
  const typed = Object.entries(exports).filter(([, conditions]) => typeof conditions === 'object' && 'types' in conditions)
  return typed.map(([name]) => name.replace('./', ''))
}

/** What the compiler has against our types in a project that has the package, its dependencies and these packages. */
async function complaints(project: string, { entries, packages, options, code = '' }: Consumer): Promise<string[]> {
  const home = join(folder, project)
  const modules = join(home, 'node_modules')
  await mkdir(join(modules, 'vivarium'), { recursive: true })
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(modules, 'vivarium')])
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), ...packages]) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name), 'dir')
  }
  const uses = entries.map((name, at) => `import * as entry${at} from 'vivarium/${name}'\nexport const used${at} = entry${at}`)
  await writeFile(join(home, 'consumer.ts'), `${uses.join('\n')}\n${code}\n`)
  const strict = { target: 'es2024', strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true }
  const compilerOptions = { module: 'nodenext', ...strict, ...options }
  await writeFile(join(home, 'package.json'), '{"type":"module"}')
  await writeFile(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { stdout } = await run(process.execPath, [tsc, '-p', home, '--pretty', 'false'], { maxBuffer: 8 * 1024 * 1024 }).catch(
    (error: { stdout: string }) => error,
  )
  // What the types of others get wrong is theirs.
  const ours = /node_modules\/vivarium\/|(^|\/)consumer\.ts\(/
  return stdout.split('\n').filter(line => / error TS\d+/.test(line) && ours.test(line))
}

test(
  'the types of every entry can be checked where no optional peer is installed',
  async () => {
    const options = { types: ['node'], lib: ['es2024', 'esnext.disposable'] }
    const entries = await typedEntries()
    expect(entries.toSorted()).toEqual(Object.keys(PUBLIC).toSorted())
    expect(await complaints('consumer', { entries, packages: ['@types/node', 'undici-types'], options })).toEqual([])
  },
  slow,
)

test(
  'the types of every entry can be checked without those of Node, by a project for the web',
  async () => {
    const entries = await typedEntries()
    for (const module of ['nodenext', 'esnext']) {
      const resolution = module === 'esnext' ? { moduleResolution: 'bundler' } : {}
      const options = { module, ...resolution, target: 'es2023', types: [], lib: ['es2023', 'dom', 'dom.iterable'] }
      expect(await complaints(`web-${module}`, { entries, packages: [], options })).toEqual([])
    }
  },
  slow,
)

test(
  'the adapters fit the apps that they are made for, and streams of Node what takes them, by the types of these',
  async () => {
    const code = `import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
export const server = entry0.createServer({ name: 'a', version: '1' })
express().all('/mcp', entry1.mcp(server))
fastify().register(entry2.mcp, { server })
new Hono().all('/mcp', entry3.mcp(server))
export const front: entry4.ClientListenerOptions = { stdio: true, input: process.stdin, output: process.stdout }`
    const entries = ['server', 'express', 'fastify', 'hono', 'testing']
    const packages = ['@types/node', 'undici-types', '@types/express', 'express', 'fastify', 'hono']
    const options = { types: ['node'], lib: ['es2024', 'esnext.disposable'], esModuleInterop: true }
    expect(await complaints('peers', { entries, packages, options, code })).toEqual([])
    const web = { target: 'es2023', types: [], lib: ['es2023', 'dom', 'dom.iterable'] }
    const mounts = code.split('\n').filter(line => !/express|fastify|front/.test(line))
    const mounted = { entries, packages: ['hono'], options: web, code: mounts.join('\n') }
    expect(await complaints('peers-web', mounted)).toEqual([])
  },
  slow,
)

test(
  'every entry tells an old Node in words which one is needed, and shows no stack',
  async () => {
    const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`
    for (const name of Object.keys(present(PUBLIC)).filter(each => each !== 'hono')) {
      const words = ['--import', `data:text/javascript,${encodeURIComponent(old)}`, join(root, `dist/${name}.js`)]
      const { stderr } = await run(process.execPath, words).catch((error: { stderr: string }) => error)
      expect(stderr, name).toMatch(/Vivarium needs Node 22\.18 or newer; this is 20\.20\.2/)
      expect(stderr, name).not.toMatch(/^ {4}at /m)
    }
  },
  slow,
)

/** The commands of a page, block by block, without what is said about them. */
function commandsIn(page: string): string[][] {
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)
  return blocks.map(text =>
    text
      .split('\n')
      .map(line => line.replace(/\s+#.*$/, '').trim())
      .filter(line => line !== ''),
  )
}

test(
  'the first lines of the README work as written, with the tarball that they name',
  async () => {
    const [inClone = [], [install = '', ...begun] = []] = commandsIn(await readFile(join(root, 'README.md'), 'utf8'))
    expect(inClone).toContain('npm ci && npm pack')
    expect(install).toBe(`npm install ../vivarium/${tarball.split('/').at(-1)} zod`)
    // What npm would fetch is here already: the tarball is unpacked, what it needs is linked.
    const home = join(folder, 'own')
    await installed(home)
    const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
    for (const word of inClone.flatMap(line => line.split(' && ')))
      expect(scripts[word.replace('npm ', '')] ?? /^npm (ci|pack)$/.exec(word)).toBeTruthy()
    let cwd = home
    const said: string[] = []
    for (const command of begun.flatMap(line => line.split(' && '))) {
      if (command.startsWith('cd ')) cwd = join(cwd, command.slice(3))
      else {
        const words = command.replace(/^npx vivarium /, '').split(' ')
        // It is the same without npm's own work, and judged at one revision.
        const more = words[0] === 'new' ? ['--no-install'] : words[0] === 'test' ? ['--revision', '2026-07-28'] : []
        const { stdout } = await run(
          process.execPath,
          [join(home, 'node_modules/vivarium/bin/vivarium.mjs'), ...words, ...more],
          { cwd },
        )
        said.push(stdout)
      }
    }
    expect(said).toEqual([
      expect.stringContaining('+ notes/server.ts'),
      expect.stringContaining('"text": "hello"'),
      expect.stringContaining(' 0 failed'),
    ])
  },
  slow,
)

test(
  'a new server is built and bundled as it is, and what it keeps is not committed',
  async () => {
    const home = join(folder, 'scaffolded')
    await installed(home)
    const vivarium = (...words: string[]) =>
      run(process.execPath, [join(home, 'node_modules/vivarium/bin/vivarium.mjs'), ...words], { cwd })
    let cwd = home
    await vivarium('new', 'notes', '--no-install')
    cwd = join(home, 'notes')
    await symlink(join(home, 'node_modules'), join(cwd, 'node_modules'), 'dir')
    const { scripts } = JSON.parse(await readFile(join(cwd, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
    const [build = '', bundle = ''] = scripts['bundle']?.split(' && ') ?? []
    expect([build, bundle]).toEqual(['npm run build', 'vivarium bundle --mcpb'])
    await expect(vivarium(...bundle.split(' ').slice(1))).rejects.toThrow('Build it: npm run build')
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    await run(process.execPath, [tsc, ...(scripts['build'] ?? '').split(' ').slice(1)], { cwd })
    await run(process.execPath, [tsc, ...(scripts['types'] ?? '').split(' ').slice(1)], { cwd })
    const { stdout } = await vivarium(...bundle.split(' ').slice(1))
    expect(stdout).toMatch(/^notes-0\.1\.0\.mcpb {2}/)
  },
  slow,
)

/** A project with the tarball and zod, as npm would have made it. */
async function installed(home: string): Promise<void> {
  const modules = join(home, 'node_modules')
  await mkdir(join(modules, 'vivarium'), { recursive: true })
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(modules, 'vivarium')])
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), 'zod', '@types/node', 'undici-types', 'typescript', 'node']) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name), 'dir')
  }
  await writeFile(join(home, 'package.json'), JSON.stringify({ type: 'module', dependencies: { vivarium: `file:${tarball}` } }))
}
