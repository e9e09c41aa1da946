/** Config files of every client, in a home of their own. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type ConfigPlaces, findNamed } from './configured-servers.ts'
import { processIo } from './io.ts'
import { useFile } from './trust/consent.ts'

/** With a yes to every file. */
const find = (word: string, places: ConfigPlaces, file: string | undefined) =>
  findNamed(word, places, file, each => useFile(each, processIo(process), { trust: true }))

const entry = (word: string) => ({ command: 'node', args: [word] })

async function home(files: Readonly<Record<string, unknown>>, platform: NodeJS.Platform = 'linux'): Promise<ConfigPlaces> {
  const folder = await mkdtemp(join(tmpdir(), 'vivarium-home-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  }
  return { home: folder, cwd: join(folder, 'work'), env: {}, platform }
}

const cases: readonly (readonly [source: string, file: string, content: unknown])[] = [
  ['project', 'work/.mcp.json', { mcpServers: { it: entry('a') } }],
  ['vscode', 'work/.vscode/mcp.json', { servers: { it: entry('a') } }],
  ['cursor', 'work/.cursor/mcp.json', { mcpServers: { it: entry('a') } }],
  ['gemini', 'work/.gemini/settings.json', { theme: 'x', mcpServers: { it: entry('a') } }],
  ['claude-code', '.claude.json', { numStartups: 1, mcpServers: { it: entry('a') } }],
  ['claude-desktop', '.config/Claude/claude_desktop_config.json', { mcpServers: { it: entry('a') } }],
  ['vscode', '.config/Code/User/mcp.json', { servers: { it: entry('a') }, inputs: [] }],
  ['cursor', '.cursor/mcp.json', { mcpServers: { it: entry('a') } }],
  [
    'cline',
    '.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json',
    { mcpServers: { it: entry('a') } },
  ],
  ['gemini', '.gemini/settings.json', { mcpServers: { it: entry('a') } }],
  [
    'goose',
    '.config/goose/config.yaml',
    'extensions:\n  it:\n    enabled: true\n    type: stdio\n    cmd: node\n    args: [a]\n    timeout: 30\n  memory: { type: builtin, enabled: true }\n',
  ],
  ['windsurf', '.codeium/windsurf/mcp_config.json', { mcpServers: { it: entry('a') } }],
]

test.each(cases)('%s keeps servers in %s', async (source, file, content) => {
  const places = await home({ [file]: content })
  for (const word of ['it', `${source}:it`]) {
    const found = await find(word, places, undefined)
    expect(found?.target).toMatchObject({ command: 'node', args: ['a'] })
    expect(found?.label).toBe(`it (${source})`)
    // A name that needed its source is no name without it.
    expect(found?.again).toBe(word)
  }
  expect(await find('other', places, undefined)).toBeUndefined()
  expect(await find('nobody:it', places, undefined)).toBeUndefined()
})

test('the servers of one project in the file of Claude Code belong to that folder alone', async () => {
  const places = await home({})
  writeFileSync(
    join(places.home, '.claude.json'),
    JSON.stringify({
      projects: { [places.cwd]: { mcpServers: { it: entry('local') } }, '/other': { mcpServers: { that: entry('x') } } },
    }),
  )
  expect((await find('it', places, undefined))?.target).toMatchObject({ args: ['local'] })
  expect(await find('that', places, undefined)).toBeUndefined()
})

test('addresses by the words of each client', async () => {
  const places = await home({
    '.gemini/settings.json': { mcpServers: { g: { httpUrl: 'https://g.example/mcp', headers: { A: 'b' } } } },
    '.codeium/windsurf/mcp_config.json': { mcpServers: { w: { serverUrl: 'https://w.example/mcp' } } },
    '.config/goose/config.yaml': 'extensions:\n  o: { type: streamable_http, uri: "https://o.example/mcp", enabled: true }\n',
  })
  expect(await find('g', places, undefined)).toMatchObject({
    target: 'https://g.example/mcp',
    options: { headers: { A: 'b' } },
  })
  expect((await find('w', places, undefined))?.target).toBe('https://w.example/mcp')
  expect((await find('o', places, undefined))?.target).toBe('https://o.example/mcp')
})

test('a name that two programs have for different servers is answered with both', async () => {
  const places = await home({
    '.cursor/mcp.json': { mcpServers: { it: entry('a') } },
    '.gemini/settings.json': { mcpServers: { it: entry('b') } },
  })
  await expect(find('it', places, undefined)).rejects.toMatchObject({ exit: 1, fix: 'Write one of cursor:it · gemini:it' })
  expect((await find('gemini:it', places, undefined))?.target).toMatchObject({ args: ['b'] })
})

test('the same server in two places is one, and two files of one program are told apart by their names', async () => {
  const same = await home({
    '.cursor/mcp.json': { mcpServers: { it: entry('a') } },
    'work/.mcp.json': { mcpServers: { it: entry('a') } },
  })
  expect((await find('it', same, undefined))?.label).toBe('it (project)')
  const two = await home({
    '.cursor/mcp.json': { mcpServers: { it: entry('a') } },
    'work/.cursor/mcp.json': { mcpServers: { it: entry('b') } },
  })
  await expect(find('cursor:it', two, undefined)).rejects.toMatchObject({
    fix: `Write one of it --config .cursor/mcp.json · it --config ${join(two.home, '.cursor/mcp.json')}`,
  })
  expect((await find('it', two, '.cursor/mcp.json'))?.target).toMatchObject({ args: ['b'] })
})

test('a file that was named must be there, and have the server', async () => {
  const places = await home({ 'work/.mcp.json': { mcpServers: { it: entry('a'), bad: { command: `\${NOT_SET_ANYWHERE}` } } } })
  await expect(find('other', places, '.mcp.json')).rejects.toThrow('has no server "other"')
  await expect(find('it', places, 'nothing.json')).rejects.toThrow('The config file nothing.json does not exist')
  await expect(find('bad', places, undefined)).rejects.toMatchObject({
    message: expect.stringContaining('NOT_SET_ANYWHERE'),
    exit: 1,
  })
})

test('on macOS and Windows the same files lie elsewhere', async () => {
  const mac = await home(
    { 'Library/Application Support/Claude/claude_desktop_config.json': { mcpServers: { it: entry('a') } } },
    'darwin',
  )
  expect((await find('claude-desktop:it', mac, undefined))?.label).toBe('it (claude-desktop)')
  const windows = await home({ 'AppData/Roaming/Claude/claude_desktop_config.json': { mcpServers: { it: entry('a') } } }, 'win32')
  expect((await find('it', windows, undefined))?.label).toBe('it (claude-desktop)')
})
