/** The package as it is published: what is in the tarball, how it resolves, and that its types stand alone. */
import { execFile } from 'node:child_process'
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
  /^dist\/cli\/main\.js(\.map)?$/,
  /^dist\/chunks\/[\w.-]+\.js(\.map)?$/,
  /^dist\/types\/[\w/-]+\.d\.ts$/,
  /^dist\/schemas\/[\w.-]+\.json$/,
  /^docs\/([\w-]+\/)*[\w-]+\.(md|txt)$/,
]

describe('the tarball', () => {
  test('holds what is on the list, and nothing of tests or this machine', () => {
    expect(files.filter(path => !allowed.some(pattern => pattern.test(path)))).toEqual([])
    expect(files.filter(path => /\.test\.|node_modules|\.tape$|\.env/.test(path))).toEqual([])
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

test(
  'the types of every entry can be checked where no optional peer is installed',
  async () => {
    const home = join(folder, 'consumer')
    const modules = join(home, 'node_modules')
    await mkdir(join(modules, 'vivarium'), { recursive: true })
    await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', join(modules, 'vivarium')])
    const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
      await mkdir(dirname(join(modules, name)), { recursive: true })
      await symlink(join(root, 'node_modules', name), join(modules, name), 'dir')
    }
    const entries = Object.keys(present(PUBLIC))
    const uses = entries.map((name, at) => `import * as entry${at} from 'vivarium/${name}'\nexport const used${at} = entry${at}`)
    await writeFile(join(home, 'consumer.ts'), `${uses.join('\n')}\n`)
    const compilerOptions = {
      ...{ module: 'nodenext', target: 'es2024', strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
      ...{ noEmit: true, types: ['node'], lib: ['es2024', 'esnext.disposable'] },
    }
    await writeFile(join(home, 'package.json'), '{"type":"module"}')
    await writeFile(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const { stdout } = await run(process.execPath, [tsc, '-p', home, '--pretty', 'false'], { maxBuffer: 8 * 1024 * 1024 }).catch(
      (error: { stdout: string }) => error,
    )
    // What the types of others get wrong is theirs.
    const ours = /node_modules\/vivarium\/|(^|\/)consumer\.ts\(/
    expect(stdout.split('\n').filter(line => / error TS\d+/.test(line) && ours.test(line))).toEqual([])
  },
  slow,
)
