/** `vivarium new`: a server to begin with: one file, its tests, and the commands to run both. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { clip } from '../../jsonrpc/limits.ts'
import { version } from '../../revisions/revision.ts'
import { CliError, type Io } from '../io.ts'
import { installedFrom, packageRoot } from '../own-package.ts'
import { printerOf } from '../print.ts'
import type { Verb, VerbCall } from '../program.ts'
import { say } from '../terminal/text.ts'

/** The options of `vivarium new`. */
interface NewOptions {
  /** Which vivarium the new package depends on. */
  readonly vivarium?: string
  /** Run `npm install` in the new folder. */
  readonly install: boolean
  readonly format: 'text' | 'json'
}

/** `vivarium new`. */
const newServer: Verb = (command, io) => {
  command
    .argument('<name>', 'the name of the server and of its folder')
    .option('--no-install', 'Do not run npm install in the new folder')
    .option(
      '--vivarium <spec>',
      'Depend on this version of Vivarium, or on a file such as ../vivarium-0.1.0.tgz (default: the Vivarium that you run)',
    )
    .examples([
      ['vivarium new notes', 'Create a server; then: cd notes && npm run dev'],
      ['vivarium new notes --no-install', 'Write the files only'],
    ])
    .action<NewOptions>(call => run(call, io))
}

export { newServer as new }

/** Writes the files of a new server and installs what they need. */
async function run({ words: [given = ''], options }: VerbCall<NewOptions>, io: Io): Promise<number> {
  const folder = resolve(given)
  const name = basename(folder)
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name))
    throw new CliError(
      `"${clip(name)}" is not a valid package name`,
      'Use lower-case letters, digits, ., - and _, at most 64 characters',
    )
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CliError(`The folder ${clip(given)} is not empty`, 'Choose another name')
  const files = scaffold({ name, vivarium: dependencyOf(options.vivarium, folder), author: authorName() })
  mkdirSync(folder, { recursive: true })
  for (const [path, text] of files) writeFileSync(join(folder, path), text)
  const { json, line, paint, aside } = printerOf(io)
  const isText = options.format !== 'json'
  if (isText) for (const path of files.keys()) line(say`  ${paint.good('+')} ${join(relative('.', folder) || '.', path)}`)
  if (options.install) {
    aside.note('Running npm install …')
    await aside.during('installing dependencies, including Node', install(folder))
  }
  if (!isText) json({ folder, files: [...files.keys()], installed: options.install })
  else {
    line()
    line('Next:')
    line(`  cd ${clip(relative('.', folder) || '.')}`)
    if (!options.install) line('  npm install')
    line('  npm test')
    line('  npm run dev')
  }
  return 0
}

/** As git knows whoever runs this, else as the system does. */
function authorName(): string {
  const { status, stdout } = spawnSync('git', ['config', 'user.name'], { encoding: 'utf8', timeout: 2_000 })
  const name = status === 0 ? stdout.trim() : ''
  return name === '' ? userInfo().username : name
}

/** A file is named from the new folder; anything else is npm's to understand. */
function dependencyOf(given: string | undefined, folder: string): string {
  const spec = given ?? installedFrom(packageRoot())
  if (spec === undefined) return `^${version}`
  const path = resolve(spec.replace(/^file:/, ''))
  if (/^[a-z+]+:/.test(spec) && !spec.startsWith('file:')) return spec
  if (!spec.startsWith('file:') && !/[\\/]|\.tgz$/.test(spec)) return spec
  if (!existsSync(path)) throw new CliError(`--vivarium: the file ${clip(path)} does not exist`, 'Correct the path')
  return `file:${isAbsolute(spec.replace(/^file:/, '')) ? path : relative(folder, path)}`
}

/** Runs `npm install` in a folder. */
function install(folder: string): Promise<void> {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const child = spawn(npm, ['install', '--no-fund', '--no-audit', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return new Promise((done, failed) => {
    const wrong = (how: string): void =>
      failed(
        new CliError(`npm install ${how}. The files of the server have been written`, `Run cd ${clip(folder)} && npm install`),
      )
    child.once('error', () => wrong('could not be started'))
    child.once('exit', code => (code === 0 ? done() : wrong(`failed with exit code ${code}`)))
  })
}

// The files of a new server: one file of code, its tests, and what clients and people need to use it.

/** What differs between two new servers. */
interface ScaffoldFacts {
  /** The name of the package and its folder. */
  readonly name: string
  /** How package.json names this package: a range, or `file:…`. */
  readonly vivarium: string
  /** Whose server it is: a bundle must say. */
  readonly author: string
}

/** By their paths. */
export function scaffold(facts: ScaffoldFacts): ReadonlyMap<string, string> {
  return new Map([
    ['server.ts', server(facts)],
    ['server.test.ts', tests()],
    ['package.json', json(manifest(facts))],
    ['tsconfig.json', json(compiler)],
    ['tsconfig.build.json', json(building)],
    [
      '.mcp.json',
      json({
        $schema: hostSchema,
        mcpServers: { [facts.name]: { command: 'npx', args: ['vivarium', 'serve', 'server.ts', '--stdio'] } },
      }),
    ],
    ['.gitignore', ['node_modules', 'dist', '.vivarium', '*.tape', '*.db', '*.db-shm', '*.db-wal', '*.mcpb', ''].join('\n')],
    ['README.md', readme(facts)],
  ])
}

/** By it editors complete and explain the keys of `.mcp.json`, once the package is installed. */
const hostSchema = './node_modules/vivarium/dist/schemas/host-config.json'

const server = ({ name }: ScaffoldFacts): string => `import { createServer } from 'vivarium/server'
import { z } from 'zod'

export const server = createServer({
  name: '${name}',
  version: '0.1.0',
  instructions: 'Save notes with add_note. Search with find_notes before you say that there are none.',
})

const note = z.object({ id: z.string(), text: z.string(), tags: z.array(z.string()) })
const notes = new Map<string, z.infer<typeof note>>()
let lastId = 0

server.tool(
  'add_note',
  {
    description: 'Adds a note',
    input: z.object({ text: z.string().min(1), tags: z.array(z.string()).default([]) }),
    output: note,
    annotations: { readOnlyHint: false, destructiveHint: false },
  },
  ({ text, tags }) => {
    const added = { id: String(++lastId), text, tags }
    notes.set(added.id, added)
    server.resourceUpdated('notes://all')
    return added
  },
)

server.tool(
  'find_notes',
  {
    description: 'Finds notes by word or tag. Without either, returns all notes',
    input: z.object({ word: z.string().optional(), tag: z.string().optional() }),
    output: z.object({ notes: z.array(note) }),
    annotations: { readOnlyHint: true },
  },
  ({ word = '', tag }) => ({
    notes: [...notes.values()].filter(({ text, tags }) => text.includes(word) && (tag === undefined || tags.includes(tag))),
  }),
)

server.tool(
  'delete_note',
  {
    description: 'Deletes a note after the user has confirmed',
    input: z.object({ id: z.string() }),
    annotations: { destructiveHint: true },
  },
  async ({ id }, ctx) => {
    const found = notes.get(id)
    if (found === undefined) throw ctx.problem('RESOURCE_NOT_FOUND', \`Note \${id} does not exist\`, { suggestion: 'Look up the id with find_notes' })
    if (!(await ctx.confirm(\`Delete "\${found.text}"?\`))) return 'The note was not deleted.'
    notes.delete(id)
    server.resourceUpdated('notes://all')
    return 'The note was deleted.'
  },
)

server.resource('notes://all', { name: 'All notes', mimeType: 'text/markdown' }, () =>
  [...notes.values()].map(({ text }) => \`- \${text}\`).join('\\n'),
)

server.prompt('review', { description: 'Reviews the notes', arguments: { about: { description: 'A topic' } } }, ({ about = 'anything' }) =>
  \`Read my notes about \${about} and tell me what is still open.\`,
)
`

/** The tests of the new server, for `node --test`. */
const tests = (): string => `import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connectInMemory } from 'vivarium/testing'
import { server } from './server.ts'

const mcp = await connectInMemory(server, { onElicit: () => ({ action: 'accept', content: { confirm: true } }) })
after(() => mcp.close())

test('an added note is found by a word in it', async () => {
  await mcp.callTool('add_note', { text: 'Buy green tea', tags: ['shopping'] })
  const { structured } = await mcp.callTool('find_notes', { word: 'tea' })
  assert.deepEqual(structured, { notes: [{ id: '1', text: 'Buy green tea', tags: ['shopping'] }] })
})

test('a note is deleted after the user has confirmed', async () => {
  const { structured } = await mcp.callTool('add_note', { text: 'Old news' })
  const { id } = structured as { id: string }
  assert.equal((await mcp.callTool('delete_note', { id })).text, 'The note was deleted.')
})

test('a new note never gets the id of another one, even after a deletion', async () => {
  const add = async (text: string): Promise<string> => ((await mcp.callTool('add_note', { text })).structured as { id: string }).id
  const [first, second] = [await add('First'), await add('Second')]
  await mcp.callTool('delete_note', { id: first })
  assert.notEqual(await add('Third'), second)
})

test('deleting an unknown note says what to do', async () => {
  const { isError, problem } = await mcp.callTool('delete_note', { id: 'none' })
  assert.equal(isError, true)
  assert.equal(problem?.suggestion, 'Look up the id with find_notes')
})
`

/** The package.json of the new server. */
const manifest = ({ name, vivarium, author }: ScaffoldFacts): object => ({
  name,
  version: '0.1.0',
  description: 'Stores and finds notes',
  author,
  private: true,
  type: 'module',
  main: 'dist/server.js',
  files: ['dist'],
  scripts: {
    dev: 'vivarium serve server.ts --watch',
    start: 'vivarium serve server.ts',
    test: 'node --test',
    conformance: 'vivarium test server.ts',
    types: 'tsc',
    build: 'tsc -p tsconfig.build.json',
    bundle: 'npm run build && vivarium bundle --mcpb',
  },
  dependencies: { vivarium, zod: '^4.0.0' },
  devDependencies: { '@types/node': '^24.0.0', node: '^24.0.0', typescript: '^5.9.0 || ^7.0.0' },
})

/** The tsconfig.json by which an editor checks types; nothing is compiled by it. */
const compiler = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable', 'dom'],
    types: ['node'],
    strict: true,
    noEmit: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  },
  include: ['*.ts'],
}

/** Node takes types out by itself; those who install the server, or a bundle of it, get JavaScript. */
const building = {
  extends: './tsconfig.json',
  compilerOptions: { noEmit: false, outDir: 'dist', rewriteRelativeImportExtensions: true, declaration: false },
  files: ['server.ts'],
}

/** The README.md of the new server. */
const readme = ({ name }: ScaffoldFacts): string => `# ${name}

An MCP server in one file, \`server.ts\`. Node runs the TypeScript file directly. You only need to build what you publish.

| command | what it does |
| --- | --- |
| \`npm run dev\` | serves it at http://127.0.0.1:3000/mcp and reloads it after every change |
| \`npm test\` | runs \`server.test.ts\` |
| \`npm run conformance\` | tests it for conformance, at every revision of the protocol |
| \`npx vivarium call server.ts add_note text="Buy tea" tags=shopping\` | calls a tool |
| \`npx vivarium inspect server.ts\` | shows what clients see |
| \`npm run types\` | checks types |
| \`npm run build\` | compiles it to \`dist/server.js\` |
| \`npm run bundle\` | builds it and packs it into an MCPB bundle, which hosts can install |

MCP clients that read \`.mcp.json\` find the server in this folder. For other clients, use the command \`npx vivarium serve server.ts --stdio\` in this folder.
`

/** A JSON file, indented. */
function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
