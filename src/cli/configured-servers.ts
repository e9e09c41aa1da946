/** Where the programs on this machine keep their servers, and what is found there. Nothing is read before a name is asked for. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { folderIn } from '../auth/client/user-storage.ts'
import { meantText, quoted, shellWord } from '../core/suggestion.ts'
import { type HostConfig, type ParsedConfig, type PlacedValue, parseConfig } from '../host/config/read.ts'
import { clip } from '../jsonrpc/limits.ts'
import { given } from '../jsonrpc/message.ts'
import { CliError, readFault, textAt } from './io.ts'
import type { ResolvedTarget } from './target.ts'
import { type FileToUse, fileToUse } from './trust/config-file.ts'

/** One file of one program. */
interface Source {
  /** As it is addressed: `cursor:name`. */
  readonly name: string
  readonly file: string
  /** It lies in the folder one works in, and whoever made that folder wrote it. */
  readonly inFolder?: true
  /** The part of the file that holds servers, as `mcpServers`. Default: the file as it is. */
  readonly part?: (root: PlacedValue) => PlacedValue | undefined
}

/** What decides where config files lie; given by tests. */
export interface ConfigPlaces {
  /** The folder one works in, whose files anybody may have written. */
  readonly cwd: string
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
}

/** The places of this process. */
export function configPlacesOf(env: ConfigPlaces['env']): ConfigPlaces {
  return { cwd: process.cwd(), home: homedir(), env, platform: process.platform }
}

/** The nearest first: the folder one works in, then the user's own files. */
function sourcesOf(places: ConfigPlaces): readonly Source[] {
  const all = everySource(places)
  // Who works in the home has one file for both, and it is the user's own.
  const own = (file: string): boolean => all.some(each => each.file === file && each.inFolder === undefined)
  return all
    .filter(({ file, part }, at) => all.findIndex(each => each.file === file && each.part === part) === at)
    .map(({ inFolder, ...source }) => (inFolder === undefined || own(source.file) ? source : { ...source, inFolder }))
}

/** The files of all programs that are known, some of them twice. */
function everySource(places: ConfigPlaces): readonly Source[] {
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

/** A config file, by the program that it belongs to. */
interface ConfiguredFile {
  readonly source: string
  readonly file: FileToUse
}

/** All config files that are there and say something of servers, the nearest first. None is used yet. */
export async function configuredFiles(places: ConfigPlaces): Promise<readonly ConfiguredFile[]> {
  const { env, home } = places
  const found: ConfiguredFile[] = []
  for (const source of sourcesOf(places)) {
    const { file, inFolder } = source
    const text = textAt(file)
    const parsed = text === undefined ? undefined : partOf(await parseConfig(text, file), source)
    if (text === undefined || parsed === undefined) continue
    found.push({ source: source.name, file: await fileToUse({ file, text, parsed, env, home, own: inFolder === undefined }) })
  }
  return found
}

/** One file that was named, not used yet. What kind it is shows by what it holds, and whose by where it lies. */
export async function readNamed(file: string, places: ConfigPlaces): Promise<FileToUse> {
  const path = resolve(places.cwd, file)
  const text = readFileSync(path, 'utf8')
  const parsed = await parseConfig(text, path)
  const { root } = parsed
  const servers = root?.members?.has('extensions') === true && !namesServers(root) ? gooseServers(root) : root
  const own = sourcesOf(places).some(each => each.file === path && each.inFolder === undefined)
  return fileToUse({ file, text, parsed: { ...parsed, root: servers }, env: places.env, home: places.home, own })
}

/** The part of a file that holds servers; undefined where it holds none. */
function partOf(parsed: ParsedConfig, { part }: Source): ParsedConfig | undefined {
  const { root, faults } = parsed
  if (root === undefined || faults.length > 0) return parsed
  const wanted = part === undefined ? root : part(root)
  return wanted !== undefined && namesServers(wanted) ? { root: wanted, faults } : undefined
}

/** Whether an object has a list of servers. */
function namesServers({ members }: PlacedValue): boolean {
  return members?.has('mcpServers') === true || members?.has('servers') === true
}

/** goose has `extensions`, with words of its own; those that run inside it are no servers. */
function gooseServers(root: PlacedValue): PlacedValue | undefined {
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

/** What goose calls members otherwise. */
const gooseWords: ReadonlyMap<string, string> = new Map([
  ['cmd', 'command'],
  ['uri', 'url'],
  ['envs', 'env'],
])

/** An entry of goose in the words of the others. */
function gooseEntry(entry: PlacedValue): PlacedValue {
  const members = [...(entry.members ?? [])].flatMap(([name, value]): [string, PlacedValue][] => {
    if (name === 'enabled') return [['disabled', { line: value.line, value: value.value === false }]]
    // In seconds there.
    if (name === 'timeout') return typeof value.value === 'number' ? [[name, { ...value, value: value.value * 1000 }]] : []
    return [[gooseWords.get(name) ?? name, value]]
  })
  return objectOf(entry.line, members)
}

/** An object with its line, made from members that have theirs. */
function objectOf(line: number, entries: readonly (readonly [string, PlacedValue])[]): PlacedValue {
  return { line, members: new Map(entries), value: Object.fromEntries(entries.map(([name, { value }]) => [name, value])) }
}

/** Where programs with windows keep settings on this system. */
function settingsFolder({ home, env, platform }: ConfigPlaces): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support')
  if (platform === 'win32') return folderIn(env, 'APPDATA') ?? join(home, 'AppData', 'Roaming')
  return folderIn(env, 'XDG_CONFIG_HOME') ?? join(home, '.config')
}

/** `use` fills in the variables of a file that may be used, and throws for any other. Undefined: no file knows the name. Throws where several know it differently, and where the one that does has a mistake. */
export async function findNamed(
  word: string,
  places: ConfigPlaces,
  file: string | undefined,
  use: (file: FileToUse) => Promise<HostConfig>,
): Promise<ResolvedTarget | undefined> {
  const [, source, own] = /^([a-z-]+):(.+)$/.exec(word) ?? []
  if (file !== undefined) {
    const named = await readNamed(file, places).catch(error => {
      throw new CliError(`The config file ${clip(file)} ${readFault(error)}`, 'Correct the path', { cause: error })
    })
    const again = `${shellWord(clip(word))} --config ${shellWord(clip(file, 200))}`
    const found = pick(word, [{ source: file, file: named }], places)
    return found === undefined ? fail(word, file, named.written) : resolved(found, word, again, await use(found.file))
  }
  const all = await configuredFiles(places)
  const exact = pick(word, all, places)
  if (exact !== undefined) return resolved(exact, word, shellWord(clip(word)), await use(exact.file))
  if (source === undefined || own === undefined) return undefined
  const found = pick(
    own,
    all.filter(each => each.source === source),
    places,
  )
  return found && resolved(found, own, shellWord(clip(word)), await use(found.file))
}

/** The servers of all config files, by name. */
export async function knownNames(places: ConfigPlaces): Promise<readonly string[]> {
  const all = await configuredFiles(places)
  return [...new Set(all.flatMap(({ file: { written } }) => [...written.servers.keys(), ...written.refused.keys()]))]
}

/** Throws the failure for a file that has no server of that name. */
function fail(word: string, file: string, { servers, faults }: HostConfig): never {
  const [fault] = faults
  if (servers.size === 0 && fault !== undefined)
    throw new CliError(`${clip(file)}:${fault.line}: ${fault.why.message}`, fault.why.fix)
  const names = [...servers.keys()]
  const fix = meantText(word, names) ?? `Its servers are ${names.map(each => clip(each)).join(', ')}`
  throw new CliError(`${clip(file)} has no server ${quoted(word)}`, fix)
}

/** The nearest file that knows the name, by what is written there: nothing is filled in for those that are not used. */
function pick(name: string, found: readonly ConfiguredFile[], places: ConfigPlaces): ConfiguredFile | undefined {
  const knowing = found.filter(({ file: { written } }) => written.servers.has(name) || written.refused.has(name))
  const different = new Set(knowing.map(({ file }) => file.written.servers.get(name)?.digest))
  if (different.size > 1) throw ambiguous(name, knowing, places)
  return knowing[0]
}

/** Two files of one program cannot be told apart by its name: there the file is named. */
function ambiguous(name: string, knowing: readonly ConfiguredFile[], { cwd }: ConfigPlaces): CliError {
  const sources = knowing.map(({ source }) => source)
  const ways = knowing.map(({ source, file: { file } }) =>
    sources.indexOf(source) === sources.lastIndexOf(source)
      ? `${source}:${name}`
      : `${name} --config ${relative(cwd, file).startsWith('..') ? file : relative(cwd, file)}`,
  )
  return new CliError(`Several config files have different servers called ${quoted(name)}`, `Write one of ${ways.join(' · ')}`)
}

/** The server of a config as a target. `again` is how it is named again. */
function resolved(
  { source }: ConfiguredFile,
  name: string,
  again: string,
  { file, servers, refused }: HostConfig,
): ResolvedTarget {
  const server = servers.get(name)
  if (server === undefined) throw new CliError(`${file}: ${refused.get(name)?.message}`, refused.get(name)?.fix)
  const { target, headers, timeoutMs, startTimeoutMs } = server
  return {
    folder: dirname(resolve(file)),
    label: `${clip(server.name)} (${clip(source)})`,
    again,
    target,
    options: given({ headers, timeout: timeoutMs, startTimeout: startTimeoutMs }),
  }
}
