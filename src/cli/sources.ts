/** Where the programs on this machine keep their servers, and what is found there. Nothing is read before a name is asked for. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { folderIn } from '../auth/client/user-storage.ts'
import type { Placed } from '../host/config/jsonc.ts'
import { type ParsedConfig, parseConfig } from '../host/config/read.ts'
import { type FileToUse, fileToUse } from './trust/file-to-use.ts'

/** One file of one program. */
export interface Source {
  /** As it is addressed: `cursor:name`. */
  readonly name: string
  readonly file: string
  /** It lies in the folder one works in, and whoever made that folder wrote it. */
  readonly inFolder?: true
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
  // Who works in the home has one file for both, and it is the user's own.
  const own = (file: string): boolean => all.some(each => each.file === file && each.inFolder === undefined)
  return all
    .filter(({ file, part }, at) => all.findIndex(each => each.file === file && each.part === part) === at)
    .map(({ inFolder, ...source }) => (inFolder === undefined || own(source.file) ? source : { ...source, inFolder }))
}

function everySource(places: Places): readonly Source[] {
  const { cwd, home, env } = places
  const settings = settingsFolder(places)
  const code = join(settings, 'Code', 'User')
  const claude = join(folderIn(env, 'CLAUDE_CONFIG_DIR') ?? home, '.claude.json')
  const goose = places.platform === 'win32' ? join(settings, 'Block', 'goose', 'config') : join(home, '.config', 'goose')
  return [
    { name: 'project', file: join(cwd, '.mcp.json'), inFolder: true },
    { name: 'vscode', file: join(cwd, '.vscode', 'mcp.json'), inFolder: true },
    { name: 'cursor', file: join(cwd, '.cursor', 'mcp.json'), inFolder: true },
    { name: 'gemini', file: join(cwd, '.gemini', 'settings.json'), inFolder: true },
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

/** What a source holds, not used yet; undefined where its file is not there, or says nothing of servers. */
export async function readSource(source: Source, { env, home }: Places): Promise<FileToUse | undefined> {
  const { file, inFolder } = source
  const text = textOf(file)
  if (text === undefined) return undefined
  const parsed = partOf(await parseConfig(text, file), source)
  return parsed === undefined ? undefined : fileToUse({ file, text, parsed, env, home, own: inFolder === undefined })
}

/** One file that was named, not used yet. What kind it is shows by what it holds, and whose by where it lies. */
export async function readNamed(file: string, places: Places): Promise<FileToUse> {
  const path = resolve(places.cwd, file)
  const text = readFileSync(path, 'utf8')
  const parsed = await parseConfig(text, path)
  const { root } = parsed
  const servers = root?.members?.has('extensions') === true && !namesServers(root) ? gooseServers(root) : root
  const own = sourcesOf(places).some(each => each.file === path && each.inFolder === undefined)
  return fileToUse({ file, text, parsed: { ...parsed, root: servers }, env: places.env, home: places.home, own })
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
  if (platform === 'win32') return folderIn(env, 'APPDATA') ?? join(home, 'AppData', 'Roaming')
  return folderIn(env, 'XDG_CONFIG_HOME') ?? join(home, '.config')
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
