/** The files of a new server: one file of code, its tests, and what clients and people need to use it. */

interface ScaffoldFacts {
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
      json({ mcpServers: { [facts.name]: { command: 'npx', args: ['vivarium', 'serve', 'server.ts', '--stdio'] } } }),
    ],
    ['.gitignore', ['node_modules', 'dist', '.vivarium', '*.tape', '*.db', '*.db-shm', '*.db-wal', '*.mcpb', ''].join('\n')],
    ['README.md', readme(facts)],
  ])
}

const server = ({ name }: ScaffoldFacts): string => `import { createServer } from 'vivarium/server'
import { z } from 'zod'

export const server = createServer({
  name: '${name}',
  version: '0.1.0',
  instructions: 'Keep notes with add_note, and look with find_notes before you say that there are none.',
})

const note = z.object({ id: z.string(), text: z.string(), tags: z.array(z.string()) })
const notes = new Map<string, z.infer<typeof note>>()
let lastId = 0

server.tool(
  'add_note',
  {
    description: 'Keeps a note',
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
    description: 'Finds notes by a word in them, or by a tag; all of them without either',
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
    description: 'Deletes a note, once the user has said yes',
    input: z.object({ id: z.string() }),
    annotations: { destructiveHint: true },
  },
  async ({ id }, ctx) => {
    const found = notes.get(id)
    if (found === undefined) throw ctx.problem('RESOURCE_NOT_FOUND', \`There is no note \${id}\`, { suggestion: 'Find its id with find_notes' })
    if (!(await ctx.confirm(\`Delete "\${found.text}"?\`))) return 'It stays.'
    notes.delete(id)
    server.resourceUpdated('notes://all')
    return 'It is gone.'
  },
)

server.resource('notes://all', { name: 'All notes', mimeType: 'text/markdown' }, () =>
  [...notes.values()].map(({ text }) => \`- \${text}\`).join('\\n'),
)

server.prompt('review', { description: 'Looks through the notes', arguments: { about: { description: 'A topic' } } }, ({ about = 'anything' }) =>
  \`Look through my notes about \${about}, and tell me what is still open.\`,
)
`

const tests = (): string => `import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { connectInMemory } from 'vivarium/testing'
import { server } from './server.ts'

const mcp = await connectInMemory(server, { onElicit: () => ({ action: 'accept', content: { confirm: true } }) })
after(() => mcp.close())

test('a note that was kept is found by a word in it', async () => {
  await mcp.callTool('add_note', { text: 'Buy green tea', tags: ['shopping'] })
  const { structured } = await mcp.callTool('find_notes', { word: 'tea' })
  assert.deepEqual(structured, { notes: [{ id: '1', text: 'Buy green tea', tags: ['shopping'] }] })
})

test('a note is deleted once the user has said yes', async () => {
  const { structured } = await mcp.callTool('add_note', { text: 'Old news' })
  const { id } = structured as { id: string }
  assert.equal((await mcp.callTool('delete_note', { id })).text, 'It is gone.')
})

test('a new note takes the place of no other, also after one was deleted', async () => {
  const add = async (text: string): Promise<string> => ((await mcp.callTool('add_note', { text })).structured as { id: string }).id
  const [first, second] = [await add('First'), await add('Second')]
  await mcp.callTool('delete_note', { id: first })
  assert.notEqual(await add('Third'), second)
})

test('a note that is not there says what to do', async () => {
  const { isError, problem } = await mcp.callTool('delete_note', { id: 'none' })
  assert.equal(isError, true)
  assert.equal(problem?.suggestion, 'Find its id with find_notes')
})
`

const manifest = ({ name, vivarium, author }: ScaffoldFacts): object => ({
  name,
  version: '0.1.0',
  description: 'Keeps notes, and finds them again',
  author,
  private: true,
  type: 'module',
  main: 'dist/server.js',
  files: ['dist'],
  scripts: {
    dev: 'vivarium serve server.ts --watch',
    start: 'vivarium serve server.ts',
    test: 'node --test',
    judge: 'vivarium test server.ts',
    types: 'tsc',
    build: 'tsc -p tsconfig.build.json',
    bundle: 'npm run build && vivarium bundle --mcpb',
  },
  dependencies: { vivarium, zod: '^4.0.0' },
  devDependencies: { '@types/node': '^24.0.0', node: '^24.0.0', typescript: '^5.9.0 || ^7.0.0' },
})

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

const readme = ({ name }: ScaffoldFacts): string => `# ${name}

An MCP server in one file, \`server.ts\`. Node runs it as it is; only what you publish has to be built.

| command | what it does |
| --- | --- |
| \`npm run dev\` | serves it at http://127.0.0.1:3000/mcp, and again after every change |
| \`npm test\` | runs \`server.test.ts\` |
| \`npm run judge\` | holds it against the protocol, every revision over every carrier |
| \`npx vivarium call server.ts add_note text="Buy tea" tags=shopping\` | calls a tool |
| \`npx vivarium inspect server.ts\` | shows what clients will see |
| \`npm run types\` | checks types |
| \`npm run build\` | compiles it to \`dist/server.js\` |
| \`npm run bundle\` | builds it, and packs it into an MCPB bundle that hosts install |

Clients that read \`.mcp.json\` find it in this folder. For others, the command is \`npx vivarium serve server.ts --stdio\`, started here.
`

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
