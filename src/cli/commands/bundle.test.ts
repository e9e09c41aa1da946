import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { unzipSync } from 'fflate'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { connect } from '../../client/index.ts'
import { compilePeerSchema } from '../../core/schema/peer.ts'
import type { Io } from '../io.ts'
import { run } from '../program.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bundle-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A server without any library, so that nothing but the bundle can start it. */
const program = `
import { greeting } from 'greeter'
const answers = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {}, prompts: {} }, serverInfo: { name: 'notes', title: 'Notes', version: '1.2.3' } }),
  'tools/list': () => ({ tools: [{ name: 'add', description: 'Adds a note', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: greeting }] }),
  'prompts/list': () => ({ prompts: [{ name: 'brief', description: 'A brief', arguments: [{ name: 'topic', required: true }] }, { name: 'picky' }] }),
  'prompts/get': ({ name, arguments: args }) => {
    if (name === 'picky') throw new Error('no')
    return { messages: [{ role: 'user', content: { type: 'text', text: 'Tell me of ' + args.topic } }] }
  },
}
let rest = ''
process.stdin.on('data', chunk => {
  const lines = (rest + chunk).split('\\n')
  rest = lines.pop()
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    const known = answers[method]
    let said = { error: { code: -32601, message: 'no' } }
    try { if (known) said = { result: known(params) } } catch { said = { error: { code: -32603, message: 'no' } } }
    console.log(JSON.stringify({ jsonrpc: '2.0', id, ...said }))
  }
})
`

const about = {
  name: '@me/notes',
  version: '1.2.3',
  type: 'module',
  description:
    'Keeps notes, finds them again, and forgets nothing that anybody has ever said to it, however long ago that may have been',
  author: 'Ada <ada@example.com> (https://example.com)',
  license: 'MIT',
  repository: 'github:me/notes',
  mcpName: 'io.github.me/notes',
  bin: 'server.js',
  engines: { node: '>=22' },
  dependencies: { greeter: '1.0.0' },
  devDependencies: { builder: '1.0.0' },
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(folder, path)), { recursive: true })
  await writeFile(join(folder, path), text)
}

async function notes(more: object = {}): Promise<void> {
  await put('package.json', JSON.stringify({ ...about, ...more }))
  await put('server.js', program)
  await put('.env', 'TOKEN=very-secret')
  await put('.mcpbignore', '# mine\nscratch/\n*.draft\n')
  await put('scratch/a.txt', 'x')
  await put('lib/b.draft', 'x')
  await put('lib/c.js', 'export {}')
  await put(
    'node_modules/greeter/package.json',
    '{"name":"greeter","version":"1.0.0","type":"module","exports":"./index.js","dependencies":{"deep":"1"}}',
  )
  await put('node_modules/greeter/index.js', "export { greeting } from 'deep'")
  await put('node_modules/deep/package.json', '{"name":"deep","version":"1.0.0","type":"module","exports":"./index.js"}')
  await put('node_modules/deep/index.js', "export const greeting = 'Hello from the bundle'")
  await put('node_modules/builder/package.json', '{"name":"builder","version":"1.0.0"}')
  await symlink('/etc', join(folder, 'link'))
}

async function bundle(...words: string[]): Promise<string> {
  const output = new PassThrough()
  const io: Io = {
    ...{ input: new PassThrough(), output, errors: new PassThrough(), env: process.env },
    ...{ interactive: false, colour: false, signal: new AbortController().signal },
  }
  expect(await run(['bundle', join(folder, 'server.js'), ...words], io, '0')).toBe(0)
  return String(output.read() ?? '')
}

const root = join(import.meta.dirname, '../../..')
/** The official command for bundles, by its npm package. */
const mcpb = join(root, 'node_modules/@anthropic-ai/mcpb/dist/cli/cli.js')
const withoutMcpb = existsSync(mcpb) ? '' : ' (skipped: the package @anthropic-ai/mcpb is not installed)'

/** The schema of the registry is in no npm package: it lies beside those of the protocol, where a machine has them. */
const registrySchema = join(process.env['VIVARIUM_SCHEMAS'] ?? '/nowhere', '../publishing/server.schema.json')
const withoutSchema = existsSync(registrySchema) ? '' : ' (skipped: publishing/server.schema.json is not beside VIVARIUM_SCHEMAS)'

describe('an MCPB bundle', () => {
  test('lists what the server offers, holds what it needs and no more, and starts by its manifest alone', async () => {
    await notes()
    const out = join(folder, 'notes.mcpb')
    const said = await bundle('--mcpb', out, '--variable', 'NOTES_API_KEY=The key of the notes')
    const files = unzipSync(await readFile(out))
    expect(Object.keys(files).sort()).toEqual([
      ...['manifest.json', 'node_modules/deep/index.js', 'node_modules/deep/package.json'],
      ...['node_modules/greeter/index.js', 'node_modules/greeter/package.json', 'package.json', 'server.js'],
    ])
    const manifest = JSON.parse(Buffer.from(files['manifest.json'] ?? []).toString())
    expect(manifest).toMatchObject({
      manifest_version: '0.3',
      name: '@me/notes',
      display_name: 'Notes',
      author: { name: 'Ada', email: 'ada@example.com', url: 'https://example.com' },
      repository: { type: 'git', url: 'https://github.com/me/notes' },
      server: { type: 'node', entry_point: 'server.js', mcp_config: { env: { NOTES_API_KEY: `\${user_config.notes_api_key}` } } },
      tools: [{ name: 'add', description: 'Adds a note' }],
      prompts: [{ name: 'brief', arguments: ['topic'], text: `Tell me of \${arguments.topic}` }],
      prompts_generated: true,
      user_config: { notes_api_key: { sensitive: true, title: 'NOTES_API_KEY', description: 'The key of the notes' } },
    })
    expect(said).toMatch(/notes\.mcpb {2}[\d.]+ k?B {2}sha256 [0-9a-f]{64}/)
    const place = join(folder, 'unpacked')
    for (const [path, bytes] of Object.entries(files)) {
      await mkdir(dirname(join(place, path)), { recursive: true })
      await writeFile(join(place, path), bytes)
    }
    const { command, args } = manifest.server.mcp_config
    await using mcp = await connect({
      command: command === 'node' ? process.execPath : command,
      args: args.map((arg: string) => arg.replace(`\${__dirname}`, place)),
    })
    expect((await mcp.callTool('add')).text).toBe('Hello from the bundle')
  })

  test.skipIf(withoutMcpb !== '')(
    `is one that the official command unpacks, validates and packs again${withoutMcpb}`,
    async () => {
      await notes({ homepage: 'https://example.com', bugs: 'https://example.com/bugs', keywords: ['notes'] })
      const out = join(folder, 'notes.mcpb')
      await bundle('--mcpb', out, '--variable', 'NOTES_API_KEY=The key of the notes')
      const official = (...words: string[]) => spawnSync(process.execPath, [mcpb, ...words], { cwd: folder, encoding: 'utf8' })
      expect(official('unpack', out, 'unpacked')).toMatchObject({ status: 0 })
      const validated = official('validate', 'unpacked/manifest.json')
      expect([validated.status, validated.stdout]).toEqual([0, expect.stringContaining('validation passes')])
      expect(official('pack', 'unpacked', 'again.mcpb')).toMatchObject({ status: 0 })
      await writeFile(join(folder, 'unpacked/manifest.json'), JSON.stringify({ manifest_version: '0.3', name: 'x' }))
      expect(official('validate', 'unpacked/manifest.json').status).not.toBe(0)
    },
  )

  test('is the same bytes when it is made again', async () => {
    await notes()
    const [one, two] = [join(folder, 'a.mcpb'), join(folder, 'b.mcpb')]
    await bundle('--mcpb', one)
    await bundle('--mcpb', two)
    expect((await readFile(one)).equals(await readFile(two))).toBe(true)
  })

  test('holds only the files that package.json lists, where it lists them', async () => {
    await notes({ files: ['lib/*.js', '!lib/c.js'] })
    const out = join(folder, 'notes.mcpb')
    await bundle('--mcpb', out)
    const own = Object.keys(unzipSync(await readFile(out))).filter(path => !path.startsWith('node_modules'))
    expect(own.sort()).toEqual(['manifest.json', 'package.json', 'server.js'])
  })

  test('is refused, with what to do, where something is missing', async () => {
    await notes({ author: undefined })
    await expect(bundle('--mcpb', join(folder, 'x.mcpb'))).rejects.toMatchObject({ message: /names no author/, fix: /"author"/ })
    await notes({ dependencies: { absent: '1' } }).catch(() => {})
    await expect(bundle('--mcpb', join(folder, 'x.mcpb'))).rejects.toMatchObject({ message: /absent is not installed/ })
    await expect(bundle()).rejects.toMatchObject({ message: 'Nothing to write: neither --mcpb nor --server-json is given' })
  })
})

describe('server.json', () => {
  test('names the package, the bundle with its digest, and where the server is served', async () => {
    await notes()
    const out = join(folder, 'server.json')
    const url = 'https://example.com/notes.mcpb'
    await bundle(
      '--server-json',
      out,
      '--mcpb',
      join(folder, 'n.mcpb'),
      '--mcpb-url',
      url,
      '--remote',
      'https://host/mcp',
      '--variable',
      'NOTES_TOKEN',
    )
    const document = JSON.parse(await readFile(out, 'utf8'))
    const variables = [{ name: 'NOTES_TOKEN', description: 'Value of NOTES_TOKEN', isRequired: true, isSecret: true }]
    expect(document).toMatchObject({
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: 'io.github.me/notes',
      title: 'Notes',
      version: '1.2.3',
      repository: { url: 'https://github.com/me/notes', source: 'github' },
      packages: [
        {
          registryType: 'npm',
          identifier: '@me/notes',
          version: '1.2.3',
          transport: { type: 'stdio' },
          environmentVariables: variables,
        },
        { registryType: 'mcpb', identifier: url, fileSha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
      remotes: [{ type: 'streamable-http', url: 'https://host/mcp' }],
    })
    expect(document.description.length).toBeLessThanOrEqual(100)
    expect(document.description).toMatch(/^Keeps notes, .*…$/)
  })

  test.skipIf(withoutSchema !== '')(`is what the schema of the registry wants${withoutSchema}`, async () => {
    const { $id, ...schema } = JSON.parse(readFileSync(registrySchema, 'utf8'))
    const { validate } = compilePeerSchema(schema)
    const out = join(folder, 'server.json')
    const whole = ['--mcpb', join(folder, 'n.mcpb'), '--mcpb-url', 'https://example.com/n.mcpb', '--variable', 'NOTES_TOKEN']
    await notes()
    for (const words of [whole, ['--remote', 'https://host/mcp'], []]) {
      await bundle('--force', '--server-json', out, ...words)
      const document = JSON.parse(await readFile(out, 'utf8'))
      expect(validate(document)).toMatchObject({ ok: true })
      expect(validate({ ...document, description: 'x'.repeat(101) })).toMatchObject({ ok: false })
    }
  })

  test('is refused without the name by which the registry knows it, and for what can be had nowhere', async () => {
    await notes({ mcpName: undefined })
    const out = join(folder, 'server.json')
    await expect(bundle('--server-json', out)).rejects.toMatchObject({ fix: 'Add it: "mcpName": "io.github.you/notes"' })
    await put('package.json', JSON.stringify({ ...about, private: true }))
    await expect(bundle('--server-json', out)).rejects.toMatchObject({ message: /can be had nowhere/ })
  })
})
