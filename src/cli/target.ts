/** What a verb is about, by the words that name it: an address, a program, a file, a package, or a name in a config file. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { ConnectOptions } from '../client/api.ts'
import type { Command, Target } from '../client/target.ts'
import { meantText, nearest, shellWord } from '../core/suggestion.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { type ConfigPlaces, configPlacesOf, findNamed, knownNames } from './configured-servers.ts'
import { CliError, type Io } from './io.ts'
import { foldersFrom, packageIn, selfCommand } from './own-package.ts'
import { asideOf } from './print.ts'
import type { VerbCall } from './program.ts'
import { type TrustOption, useFile, useNpmSettings } from './trust/consent.ts'

/** A target that `connect` takes, as often as it is wanted. */
export interface ResolvedTarget {
  /** As people read it. */
  readonly label: string
  /** As it would be typed again. */
  readonly again: string
  /** What `connect` opens. */
  readonly target: Target
  /** What its config says of it beside. */
  readonly options: Pick<ConnectOptions, 'headers' | 'timeout'>
  /** The folder of the config that names it. */
  readonly folder?: string
}

/** The words that name the target, and the others: behind `--` stands a target, else the first word is it. */
export function splitTarget({ words, command }: Pick<VerbCall, 'words' | 'command'>): {
  readonly target: readonly string[]
  readonly rest: readonly string[]
} {
  if (command !== undefined) return { target: ['--', ...command], rest: words }
  return { target: words.slice(0, 1), rest: words.slice(1) }
}

/** The options by which a target is found. */
interface TargetOptions extends TrustOption {
  /** Names are looked up in this file alone. */
  readonly config?: string | undefined
  /** Variables that a program gets beside those that it would: names, or `NAME=value`. */
  readonly env?: readonly string[] | undefined
  /** The folder in which a program is started. */
  readonly cwd?: string | undefined
}

/** `['https://…']`, `['./server.ts']`, `['--', 'node', 'server.js']`, `['@scope/package']`, `['cursor:notes']`. */
export async function resolveTarget(words: readonly string[], io: Io, options: TargetOptions = {}): Promise<ResolvedTarget> {
  const resolved = await find(words, io, options)
  const { target } = resolved
  if (typeof target !== 'object' || !('command' in target)) return resolved
  const cwd = options.cwd === undefined ? undefined : folderOf(options.cwd)
  const env = { ...target.env, ...given(options.env ?? [], io) }
  return { ...resolved, target: { ...target, env, ...(cwd !== undefined && { cwd }) } }
}

/** The target that the words name, before options are applied to it. */
async function find(words: readonly string[], io: Io, options: TargetOptions): Promise<ResolvedTarget> {
  const [first, ...more] = words
  if (first === '--') return commandTarget(more, io)
  if (first === undefined) throw await noTarget(configPlacesOf(io.env))
  if (/^(https?|wss?):\/\//i.test(first)) return plain(first, addressOf(first))
  if (options.config === undefined && namesFile(first) && isFile(first)) return plain(first, fileTarget(first, io))
  return named(first, io, options)
}

/** The fix for words that name nothing. */
const howToName = 'Pass a URL, a file, an npm package or the name of a configured server, or end with -- and a program'

/** The failure for a command line without a target; names servers that could be meant. */
async function noTarget(places: ConfigPlaces): Promise<CliError> {
  const names = (await knownNames(places)).slice(0, 12).map(each => clip(each))
  const known = names.length === 0 ? '' : `. Configured servers: ${names.join(', ')}`
  return new CliError('The target is missing', `${howToName}${known}`)
}

/** A word that is neither an address nor a file. */
async function named(word: string, io: Io, options: TargetOptions): Promise<ResolvedTarget> {
  const { config } = options
  const places = configPlacesOf(io.env)
  const found = await findNamed(word, places, config, file => useFile(file, io, options))
  if (found !== undefined) return found
  const named = config === undefined ? packageNamed(word) : undefined
  const installed = named && installedProgram(named.spec, places.cwd)
  // A word that may mean anything is no wish to run what lies in the folder under that name.
  if (installed !== undefined && named?.sure === false)
    throw new CliError(
      `No config file has a server ${clip(word)}, but an installed package has this name: ${installed.says}`,
      `Write npm:${clip(word)} to run it`,
    )
  const program = named && (installed ?? (named.sure ? fetchedProgram(named.spec, io.env) : undefined))
  if (program === undefined) throw unknownTarget(word, named !== undefined && config === undefined, await knownNames(places))
  if (installed === undefined) await useNpmSettings(options.cwd ?? places.cwd, io, options)
  asideOf(io).line(`vivarium: ${program.says}`)
  return plain(word, program.command)
}

/** The failure for a word that names nothing, by what it looks like. */
function unknownTarget(word: string, mayBePackage: boolean, names: readonly string[]): CliError {
  if (/^[\w.-]+:\d+(\/|$)/.test(word)) return new CliError(`${clip(word)} is not an address`, `Write http://${clip(word)}`)
  if (namesFile(word)) return new CliError(`The file ${clip(word)} does not exist`, fileMeant(word) ?? 'Correct the path')
  if (isFile(word))
    return new CliError(`No config file has a server ${clip(word)}`, `To run the file of that name, write ./${clip(word)}`)
  const meant = meantText(word, names)
  if (meant !== undefined) return new CliError(`There is no server ${clip(word)}`, meant)
  const npm = mayBePackage ? `. For the npm package of that name, write npm:${clip(word)}` : ''
  return new CliError(
    `There is no server ${clip(word)}: no file, configured server or installed package has this name`,
    `${howToName}${npm}`,
  )
}

/** A file beside it that is called alike. */
function fileMeant(word: string): string | undefined {
  try {
    const near = nearest(basename(word), readdirSync(dirname(resolve(word)))).map(name => join(dirname(word), name))
    return near.length === 0 ? undefined : `Did you mean ${near.map(each => clip(each)).join(' or ')}?`
  } catch {
    return `The folder ${clip(dirname(word))} does not exist`
  }
}

/** A target without a config. */
function plain(label: string, target: Target, again = shellWord(label)): ResolvedTarget {
  return { label: clip(label), again: clip(again, 400), target, options: {} }
}

/** An address, checked. */
function addressOf(text: string): string {
  if (URL.canParse(text)) return text
  throw new CliError(`"${clip(text)}" is not an address`, 'Write the full address: https://host/mcp')
}

/** What was typed here is run as the shell would: with all variables. */
function commandTarget([command, ...args]: readonly string[], io: Io): ResolvedTarget {
  if (command === undefined) throw new CliError('The program after -- is missing', 'Write, for example, -- node server.js')
  const typed = [command, ...args].join(' ')
  return plain(typed, { command, args, env: environment(io) }, `-- ${shellWords([command, ...args])}`)
}

/** What runs a file that is not a program itself. */
const interpreters: readonly (readonly [RegExp, string])[] = [
  [/\.[cm]?[jt]s$/i, process.execPath],
  [/\.py$/i, 'python3'],
]

/** A file that exports a server is served by this command in a process of its own; any other is started as the program it is. */
function fileTarget(file: string, io: Io): Target {
  const path = resolve(file)
  const env = environment(io)
  if (exportsServer(path)) return { ...selfCommand(['serve', path, '--stdio']), env }
  if (listensOnly(path))
    throw new CliError(
      `${clip(file)} serves HTTP itself and does not export a server`,
      'Write export const server = … in the file; or start it, and use its address',
    )
  const interpreter = interpreters.find(([ending]) => ending.test(path))?.[1]
  return interpreter === undefined ? { command: path, env } : { command: interpreter, args: [path], env }
}

/** How a file exports a server. */
const exported = /^\s*export\s+(default\b|(const|let|var)\s+server\b|\{[^}]*\b(server|default)\b)|\bmodule\.exports\b/m

/** Judged by its text: to run it would be to start whatever it starts. */
export function exportsServer(path: string): boolean {
  return /\.[cm]?[jt]s$/i.test(path) && exported.test(readFileSync(path, 'utf8'))
}

/** One that is written with this package and serves HTTP by itself would never answer on a pipe. */
function listensOnly(path: string): boolean {
  if (!/\.[cm]?[jt]s$/i.test(path)) return false
  const text = readFileSync(path, 'utf8')
  return /\bfrom\s+['"]vivarium\/server['"]/.test(text) && /\.listen\s*\(/.test(text) && !/\bstdio\b/.test(text)
}

/**
 * Whether a word means a file: by a folder in it, or an ending of code. A plain word is the name of a server, so that no folder can put
 * a program in its place; a program of that name is written with its folder, `./name`.
 */
function namesFile(word: string): boolean {
  return /[\\/]|\.[cm]?[jt]s$|\.py$/i.test(word)
}

/** Whether a path is a file. */
function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}

/** A folder that `--cwd` names. */
function folderOf(path: string): string {
  const folder = resolve(path)
  if (existsSync(folder) && statSync(folder).isDirectory()) return folder
  throw new CliError(`--cwd: the folder ${clip(path)} does not exist`, 'Correct the path')
}

/** By their names, so that no secret stands in a list of processes. */
function given(names: readonly string[], { env }: Io): Record<string, string> {
  return Object.fromEntries(
    names.map(word => {
      const [, name = word, value] = /^([^=]+)=(.*)$/s.exec(word) ?? []
      const text = value ?? env[name]
      if (text === undefined)
        throw new CliError(`--env: the environment variable ${clip(name)} is not set`, 'Set the variable, or remove the option')
      return [name, text]
    }),
  )
}

/** All variables of this process. */
function environment({ env }: Io): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** How a word names a package: `npm:name` for sure, `@scope/name` and `name@version` by their look, any other word maybe. */
function packageNamed(word: string): { readonly spec: string; readonly sure: boolean } | undefined {
  const spec = word.startsWith('npm:') ? word.slice(4) : word
  if (!/^(@[\w.-]+\/)?[\w][\w.-]*(@[\w.^~<>=*-]+)?$/.test(spec)) return undefined
  return { spec, sure: word.startsWith('npm:') || spec.includes('@') }
}

/** The command of an npm package. */
interface PackageProgram {
  readonly command: Command
  /** What is about to be run, in a sentence. */
  readonly says: string
}

/** The program of a package that is installed in this folder or one above; undefined where none is. */
function installedProgram(spec: string, cwd: string): PackageProgram | undefined {
  const { name, version } = partsOf(spec)
  const placeIn = (folder: string): string => join(folder, 'node_modules', ...name.split('/'))
  const folder = foldersFrom(resolve(cwd)).find(each => existsSync(join(placeIn(each), 'package.json')))
  if (folder === undefined) return undefined
  const { bin, version: has } = factsOf(placeIn(folder))
  // Another version than the one that was asked for is another program.
  if (bin === undefined || (version !== undefined && version !== has)) return undefined
  return { command: programOf(join(placeIn(folder), bin)), says: `${name} ${has}, installed in ${folder}` }
}

/** A package that `npx` fetches. */
function fetchedProgram(spec: string, env: Readonly<Record<string, string | undefined>>): PackageProgram {
  return {
    command: { command: process.platform === 'win32' ? 'npx.cmd' : 'npx', args: ['-y', spec], env: networkIn(env) },
    says: `${spec} is not installed here; running npx -y ${spec}`,
  }
}

/** What a machine needs to reach a registry where it does not do so directly, or trusts somebody of its own. */
const network =
  /^(https?_proxy|no_proxy|all_proxy|node_extra_ca_certs|ssl_cert_(file|dir)|npm_config_(registry|cafile|userconfig|(https?-?)?proxy))$/i

/** Those of the variables by which programs reach the network. */
export function networkIn(env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).filter((pair): pair is [string, string] => network.test(pair[0]) && (pair[1] ?? '') !== ''),
  )
}

/** The name and version of `name@version`. */
function partsOf(spec: string): { readonly name: string; readonly version: string | undefined } {
  const at = spec.indexOf('@', 1)
  return at === -1 ? { name: spec, version: undefined } : { name: spec.slice(0, at), version: spec.slice(at + 1) }
}

/** How a file of a package is started. */
function programOf(file: string): Command {
  const isNode = /\.[cm]?js$/.test(file) || /^#!.*\bnode\b/.test(readFileSync(file, 'utf8').slice(0, 200))
  return isNode ? { command: process.execPath, args: [file] } : { command: file }
}

/** Its only command, else the one that is called like the package, else the first. */
function factsOf(place: string): { readonly bin: string | undefined; readonly version: string } {
  const { name = '', version = '', bin } = packageIn(place)
  const bins: readonly (readonly [string, unknown])[] = isRecord(bin) ? Object.entries(bin) : [['', bin]]
  const own = String(name).split('/').at(-1)
  const [, file] = bins.find(([called]) => called === own) ?? bins[0] ?? []
  return { bin: typeof file === 'string' ? file : undefined, version: String(version) }
}

/** A command as it is typed. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(' ')
}
