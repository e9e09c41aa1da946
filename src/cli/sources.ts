/** Where the programs on this machine keep their servers, and what is found there. Nothing is read before a name is asked for. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Placed } from '../host/config/jsonc.ts'
import { type HostConfig, type ParsedConfig, parseConfig, readParsed } from '../host/config/read.ts'

/** One file of one program. */
export interface Source {
  /** As it is addressed: `cursor:name`. */
  readonly name: string
  readonly file: string
  /** The part of the file that holds servers, as `mcpServers`. Default: the file as it is. */
  readonly part?: (root: Placed) => Placed | undefined
}

export interface Places {
  readonly cwd: string
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

export function placesOf(env: Places['env']): Places {
  return { cwd: process.cwd(), home: homedir(), env, platform: process.platform }
}

/** The nearest first: the folder one works in, then the user's own files. */
export function sourcesOf(places: Places): readonly Source[] {
  const all = everySource(places)
  // Who works in the home has one file for both.
  return all.filter(({ file, part }, at) => all.findIndex(each => each.file === file && each.part === part) === at)
}

function everySource(places: Places): readonly Source[] {
  const { cwd, home, env } = places
  const settings = settingsFolder(places)
  const code = join(settings, 'Code', 'User')
  const claude = join(env['CLAUDE_CONFIG_DIR'] ?? home, '.claude.json')
  const goose = places.platform === 'win32' ? join(settings, 'Block', 'goose', 'config') : join(home, '.config', 'goose')
  return [
    { name: 'project', file: join(cwd, '.mcp.json') },
    { name: 'vscode', file: join(cwd, '.vscode', 'mcp.json') },
    { name: 'cursor', file: join(cwd, '.cursor', 'mcp.json') },
    { name: 'gemini', file: join(cwd, '.gemini', 'settings.json') },
    { name: 'claude-code', file: claude, part: root => root.members?.get('projects')?.members?.get(cwd) },
    { name: 'claude-code', file: claude },
    { name: 'claude-desktop', file: join(settings, 'Claude', 'claude_desktop_config.json') },
    { name: 'vscode', file: join(code, 'mcp.json') },
    { name: 'cursor', file: join(home, '.cursor', 'mcp.json') },
    {
      name: 'cline',
      file: join(code, 'globalStorage', 'saoudrizwan.claude-dev', 'settings', 'cline_mcp_settings.json'),
    },
    { name: 'gemini', file: join(home, '.gemini', 'settings.json') },
    { name: 'goose', file: join(goose, 'config.yaml'), part: gooseServers },
    { name: 'windsurf', file: join(home, '.codeium', 'windsurf', 'mcp_config.json') },
  ]
}

/** What a source holds; undefined where its file is not there, or says nothing of servers. */
export async function readSource(source: Source, places: Places): Promise<HostConfig | undefined> {
  const text = textOf(source.file)
  if (text === undefined) return undefined
  const parsed = partOf(await parseConfig(text, source.file), source)
  return parsed === undefined ? undefined : readParsed(parsed, source.file, { env: places.env, home: places.home })
}

/** One file that was named. What kind it is shows by what it holds. */
export async function readNamed(file: string, places: Places): Promise<HostConfig> {
  const path = resolve(places.cwd, file)
  const parsed = await parseConfig(readFileSync(path, 'utf8'), path)
  const { root } = parsed
  const servers = root?.members?.has('extensions') === true && !namesServers(root) ? gooseServers(root) : root
  return readParsed({ ...parsed, root: servers }, file, { env: places.env, home: places.home })
}

function partOf(parsed: ParsedConfig, { part }: Source): ParsedConfig | undefined {
  const { root, faults } = parsed
  if (root === undefined || faults.length > 0) return parsed
  const wanted = part === undefined ? root : part(root)
  return wanted !== undefined && namesServers(wanted) ? { root: wanted, faults } : undefined
}

function namesServers({ members }: Placed): boolean {
  return members?.has('mcpServers') === true || members?.has('servers') === true
}

/** goose has `extensions`, with words of its own; those that run inside it are no servers. */
function gooseServers(root: Placed): Placed | undefined {
  const found = root.members?.get('extensions')
  if (found?.members === undefined) return undefined
  const servers = [...found.members].filter(([, { members }]) => ['cmd', 'uri'].some(name => members?.has(name)))
  return objectOf(root.line, [
    [
      'mcpServers',
      objectOf(
        found.line,
        servers.map(([name, entry]) => [name, gooseEntry(entry)]),
      ),
    ],
  ])
}

const gooseWords: ReadonlyMap<string, string> = new Map([
  ['cmd', 'command'],
  ['uri', 'url'],
  ['envs', 'env'],
])

function gooseEntry(entry: Placed): Placed {
  const members = [...(entry.members ?? [])].flatMap(([name, value]): [string, Placed][] => {
    if (name === 'enabled') return [['disabled', { line: value.line, value: value.value === false }]]
    // In seconds there.
    if (name === 'timeout') return typeof value.value === 'number' ? [[name, { ...value, value: value.value * 1000 }]] : []
    return [[gooseWords.get(name) ?? name, value]]
  })
  return objectOf(entry.line, members)
}

function objectOf(line: number, entries: readonly (readonly [string, Placed])[]): Placed {
  return { line, members: new Map(entries), value: Object.fromEntries(entries.map(([name, { value }]) => [name, value])) }
}

function settingsFolder({ home, env, platform }: Places): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return env['APPDATA'] ?? join(home, 'AppData', 'Roaming')
  return env['XDG_CONFIG_HOME'] ?? join(home, '.config')
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
