/** What is published is what was meant to be: no secrets, nothing from outside of the package, and no file written elsewhere. */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unzipSync } from 'fflate'
import { describe, expect, test } from 'vitest'
import { looksSecret } from '../../src/cli/bundle/files.ts'
import { type Trial, trial } from '../cli/trial.ts'

const program = readFileSync(join(import.meta.dirname, '../cli/plain-server.mjs'), 'utf8')
const about = {
  name: 'notes',
  version: '1.0.0',
  type: 'module',
  description: 'Notes',
  author: 'Ada',
  mcpName: 'io.github.me/notes',
  bin: 'server.js',
}

const secrets = [
  ...['.env', '.env.local', 'prod.env', '.npmrc', '.netrc', 'server.pem', 'tls/private.key', 'keys.p12', 'id_ed25519'],
  ...[
    'notes.db',
    'notes.db-wal',
    'notes.db-shm',
    'data/app.sqlite3',
    'backup.db.bak',
    'session.tape',
    'tokens.json',
    'google-credentials.json',
  ],
]

async function packageOf(more: object = {}, files: readonly string[] = []): Promise<Trial> {
  const it = await trial({})
  // One folder deeper, so that there is an outside.
  it.write('pkg/package.json', JSON.stringify({ ...about, ...more }))
  it.write('pkg/server.js', `import { used } from './lib/used.js'\n${program}`)
  it.write('pkg/lib/used.js', "export const used = 'x'\nexport { deep } from './deep.js'")
  it.write('pkg/lib/deep.js', "export const deep = new URL('./words.txt', import.meta.url)")
  it.write('pkg/lib/words.txt', 'words')
  it.write('pkg/lib/unused.js', 'export {}')
  it.write('pkg/README.md', '# Notes')
  it.write('pkg/LICENSE', 'MIT')
  for (const file of files) it.write(`pkg/${file}`, 'SECRET')
  return it
}

const bundle = (it: Trial, ...words: readonly string[]) => it.run(['bundle', 'pkg/server.js', '--mcpb', 'out.mcpb', ...words])

function packed(it: Trial): readonly string[] {
  return Object.keys(unzipSync(readFileSync(join(it.folder, 'out.mcpb')))).sort()
}

const own = ['LICENSE', 'README.md', 'lib/deep.js', 'lib/used.js', 'lib/words.txt', 'manifest.json', 'package.json', 'server.js']

describe('what is packed', () => {
  test('without a list of files it is what the server imports, and no secret that lies beside it', async () => {
    const it = await packageOf({}, secrets)
    const { code, err } = await bundle(it)
    expect(code).toBe(0)
    expect(packed(it)).toEqual(own)
    // It was shown.
    for (const file of own) expect(err).toMatch(new RegExp(`^ +${file.replaceAll('.', '\\.')}$`, 'm'))
  })

  test('secrets are refused even where package.json lists them, each by its name', async () => {
    const it = await packageOf({ files: ['*'] }, secrets)
    const { code, err } = await bundle(it)
    expect(code).toBe(1)
    expect(err).toMatch(/names look like secrets: \.env, .* and 7 more\. Nothing was written/)
    expect(existsSync(join(it.folder, 'out.mcpb'))).toBe(false)
    expect(secrets.filter(file => !looksSecret(file))).toEqual([])
    const plain = [
      'token.js',
      'lib/credentials.d.ts',
      'keys.js',
      'db.js',
      'src/secret.ts',
      'public.json',
      'environment.js',
      'README.md',
    ]
    expect(plain.filter(looksSecret)).toEqual([])
  })

  test('a file that is no secret is let in by its name, and only that one', async () => {
    const it = await packageOf({ files: ['lib', 'certs'] }, ['certs/public.pem', 'certs/private.key'])
    expect((await bundle(it, '--include', 'certs/public.pem')).err).toContain('names look like secrets: certs/private.key')
    writeFileSync(join(it.folder, 'pkg/.mcpbignore'), 'private.key\n')
    expect((await bundle(it, '--include', 'certs/public.pem')).code).toBe(0)
    expect(packed(it).filter(file => file.startsWith('certs'))).toEqual(['certs/public.pem'])
  })

  test('secrets in packages that it needs are left out, and told', async () => {
    const it = await packageOf({ dependencies: { dep: '1' } })
    it.write('pkg/node_modules/dep/package.json', '{"name":"dep","version":"1.0.0"}')
    for (const file of ['index.js', 'token.js', '.env', 'fixtures/private.key', 'cache.db', 'node_modules/.cache/x', '.cache/y'])
      it.write(`pkg/node_modules/dep/${file}`, 'x')
    const { code, err } = await bundle(it)
    expect(code).toBe(0)
    expect(packed(it).filter(file => file.startsWith('node_modules'))).toEqual(
      ['index.js', 'package.json', 'token.js'].map(file => `node_modules/dep/${file}`),
    )
    expect(err).toContain('left out, because its name looks like a secret: node_modules/dep/cache.db')
    expect(err).toContain('left out, because its name looks like a secret: node_modules/dep/fixtures/private.key')
  })
})

describe('links', () => {
  test('a link out of the folder is not followed, whoever names it', async () => {
    const it = await packageOf({ files: ['lib'] })
    it.write('outside/secret.txt', 'SECRET')
    symlinkSync(join(it.folder, 'outside/secret.txt'), join(it.folder, 'pkg/lib/secret.txt'))
    symlinkSync(join(it.folder, 'outside'), join(it.folder, 'pkg/lib/outside'))
    expect((await bundle(it, '--include', 'lib/outside/secret.txt')).code).toBe(1)
    expect((await bundle(it, '--include', 'lib/secret.txt')).code).toBe(1)
    expect((await bundle(it, '--include', '../outside/secret.txt')).code).toBe(1)
    expect((await bundle(it)).code).toBe(0)
    expect(packed(it).filter(file => file.startsWith('lib'))).toEqual([
      'lib/deep.js',
      'lib/unused.js',
      'lib/used.js',
      'lib/words.txt',
    ])
  })

  test('an import out of the package, and a linked package that lists no files, are refused', async () => {
    const it = await packageOf()
    it.write('outside/index.js', 'export {}')
    it.write('pkg/lib/used.js', "import '../../outside/index.js'\nexport const used = 1")
    expect((await bundle(it)).err).toContain('lib/used.js imports ../../outside/index.js, which is outside the package')
    const linked = await packageOf({ dependencies: { shared: '1' } })
    linked.write('shared/package.json', '{"name":"shared","version":"1.0.0"}')
    linked.write('shared/notes.txt', 'SECRET')
    mkdirSync(join(linked.folder, 'pkg/node_modules'))
    symlinkSync(join(linked.folder, 'shared'), join(linked.folder, 'pkg/node_modules/shared'))
    expect((await bundle(linked)).err).toContain('the package.json there has no "files"')
    linked.write('shared/package.json', '{"name":"shared","version":"1.0.0","files":["index.js"]}')
    linked.write('shared/index.js', '')
    expect((await bundle(linked)).code).toBe(0)
    expect(packed(linked).filter(file => file.startsWith('node_modules'))).toEqual([
      'node_modules/shared/index.js',
      'node_modules/shared/package.json',
    ])
  })
})

describe('where it is written', () => {
  test('a version or a name that is a path names no file', async () => {
    for (const more of [
      { version: '1/../../x' },
      { version: 'latest' },
      { name: '../up' },
      { name: 'a/b/c' },
      { name: '@me/../up' },
    ]) {
      const it = await packageOf(more)
      // So that the way there exists.
      it.write('notes-1/x', '')
      const { code, err } = await it.run(['bundle', 'pkg/server.js', '--mcpb'])
      expect([code, err]).toEqual([1, expect.stringMatching(/"(name|version)" in package\.json is not a valid .*: ".*"/)])
      expect(existsSync(join(it.folder, '../x.mcpb'))).toBe(false)
      expect(readdirSync(it.folder).filter(name => name.endsWith('.mcpb'))).toEqual([])
    }
  })

  test('a dependency with a path for a name is refused', async () => {
    const it = await packageOf({ dependencies: { '../../outside': '1' } })
    it.write('outside/package.json', '{"name":"x","version":"1.0.0"}')
    it.write('outside/secret.txt', 'SECRET')
    expect((await bundle(it)).err).toContain('is not a valid npm package name')
    expect(existsSync(join(it.folder, 'out.mcpb'))).toBe(false)
  })

  test('a file with a name that no archive should have is refused, and told as text', async () => {
    const it = await packageOf({ files: ['lib'] })
    it.write('pkg/lib/a\u001b[2J\\..\\b.js', '')
    const { code, err } = await bundle(it)
    expect([code, existsSync(join(it.folder, 'out.mcpb'))]).toEqual([1, false])
    expect(err).not.toContain('\u001b')
  })

  test('what is there is not written over, nor through a link; with --force the link is replaced', async () => {
    const it = await packageOf()
    const target = it.write('precious.txt', 'precious')
    symlinkSync(target, join(it.folder, 'out.mcpb'))
    symlinkSync(join(it.folder, 'not-there-yet'), join(it.folder, 'server.json'))
    expect((await bundle(it)).err).toContain('The file out.mcpb already exists')
    expect((await it.run(['bundle', 'pkg/server.js', '--server-json'])).err).toContain('The file server.json already exists')
    expect((await bundle(it, '--force')).code).toBe(0)
    expect(readFileSync(target, 'utf8')).toBe('precious')
    expect(lstatSync(join(it.folder, 'out.mcpb')).isSymbolicLink()).toBe(false)
    expect(existsSync(join(it.folder, 'not-there-yet'))).toBe(false)
  })

  test('a recording is not written through a link that came with the folder', async () => {
    const it = await trial({})
    it.write('server.mjs', program)
    symlinkSync(join(it.folder, 'elsewhere'), join(it.folder, 'session.tape'))
    for (const force of [[], ['--force']]) {
      const { code, err } = await it.run(['record', '--stdio', ...force, '--', process.execPath, 'server.mjs'])
      expect([code, err]).toEqual([1, expect.stringContaining('The file session.tape already exists')])
    }
    expect(existsSync(join(it.folder, 'elsewhere'))).toBe(false)
  })
})
