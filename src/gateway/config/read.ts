/**
 * Parses the file of a gateway: its servers and those of included files, listener, store, and trust settings. Every mistake is reported
 * with file, line and fix, and nothing is thrown.
 */
import { accessSync, constants } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { quoted, why } from '../../core/suggestion.ts'
import { type ConfigEnvironment, entryMembers, expand } from '../../host/config/entry.ts'
import {
  type ConfigFault,
  type ConfiguredServer,
  type ParsedConfig,
  type PlacedValue,
  parseConfig,
  readParsed,
} from '../../host/config/read.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { readTrust } from '../trust/check.ts'
import { type TrustSettings, trustMembers } from '../trust/settings.ts'
import { authFaults, type UpstreamAuth, type UpstreamAuthOption } from '../upstreams/auth.ts'
import { type GatewayOwnSettings, readOwnSettings } from './own-settings.ts'
import { ownKeys, prefixForm, upstreamKeys } from './written.ts'

/** Reports a mistake at a line of the file. */
export type TellFault = (at: { readonly line: number }, rule: string, message: string, fix: string) => void

/** A server of the file or of an included file. */
export interface FoundServer extends ConfiguredServer {
  /** The file that the entry is in. */
  readonly file: string
  /** How the gateway authenticates at the server. */
  readonly auth?: UpstreamAuthOption
  /** The prefix of all its names. */
  readonly prefix?: boolean | string
}

/** A parsed file: its settings, and every mistake in it. */
export interface GatewayConfig<Trust> {
  /** The file. */
  readonly file: string
  /** All files that it depends on: itself, included files, and env files of its servers. */
  readonly files: readonly string[]
  /** The upstreams by name. */
  readonly servers: ReadonlyMap<string, FoundServer>
  /** The settings of the gateway itself. */
  readonly frame: GatewayOwnSettings
  /** The settings about trust. */
  readonly trust: Trust
  /** All mistakes, in the order of the files. */
  readonly faults: readonly ConfigFault[]
  /** The line of each member at the top of the file. */
  readonly lines: ReadonlyMap<string, number>
}

const noServersFix = 'Add servers: { name: { url: … } }, or include: with a file that has servers'
/** The longest file. */
const mostChars = 1024 * 1024

/** Parses the text of a file. Mistakes are collected in `faults`. */
export async function readGatewayConfig(
  text: string,
  file: string,
  options: Partial<Pick<ConfigEnvironment, 'env' | 'home'>>,
): Promise<GatewayConfig<TrustSettings>> {
  const faults: ConfigFault[] = []
  const tell: TellFault = ({ line }, rule, message, fix) =>
    void faults.push({ file, line, why: why('CONFIG_INVALID', rule, message, fix) })
  const around = { env: options.env ?? process.env, home: options.home ?? homedir(), folder: dirname(resolve(file)) }
  const members = await membersOf(text, file, tell)
  const known: readonly string[] = [...ownKeys, ...trustMembers]
  for (const [name, at] of members) {
    const message = `The file has an unknown setting ${quoted(name)}`
    if (!known.includes(name) && name !== '$schema') tell(at, 'gateway.members', message, `Use ${known.join(', ')}`)
  }
  const files = new Set([resolve(file)])
  const servers = await serversOf(members, file, around, faults, tell, path => void files.add(path))
  if (servers.size === 0 && faults.length === 0) tell({ line: 1 }, 'gateway.servers', 'The file has no servers', noServersFix)
  const said = new Map<string, PlacedValue>()
  for (const [name, at] of members) if (!isServers(name)) said.set(name, expanded(at, name, around, tell))
  const trust = readTrust(said, tell)
  const lines = new Map([...members].map(([name, { line }]) => [name, line] as const))
  return { file, files: [...files], servers, frame: readOwnSettings(said, around.folder, tell), trust, faults, lines }
}

/** The members at the top of the file; empty where it cannot be parsed. */
async function membersOf(text: string, file: string, tell: TellFault): Promise<ReadonlyMap<string, PlacedValue>> {
  if (text.length > mostChars) {
    tell(
      { line: 1 },
      'config.size',
      `The file is longer than ${mostChars} characters (the limit)`,
      'Split the file, and list the parts in include',
    )
    return new Map()
  }
  const { root, faults } = await parseConfig(text, file)
  for (const { line, message } of faults)
    tell({ line }, 'config.syntax', `The file is not valid YAML or JSON: ${message}`, 'Correct this line')
  if (faults.length > 0) return new Map()
  if (root?.members === undefined)
    tell({ line: 1 }, 'config.syntax', 'The file does not contain an object', 'Begin with servers: and write the entries below')
  return root?.members ?? new Map()
}

/** Reads the servers: the file's own entries first, because they replace entries of included files with the same name. */
async function serversOf(
  members: ReadonlyMap<string, PlacedValue>,
  file: string,
  around: ConfigEnvironment,
  faults: ConfigFault[],
  tell: TellFault,
  used: (file: string) => void,
): Promise<ReadonlyMap<string, FoundServer>> {
  const found = new Map<string, FoundServer>()
  const withAuth = (server: FoundServer, parsed: ParsedConfig): FoundServer => {
    const placed = authAt(parsed, server.name)
    const folder = dirname(resolve(server.file))
    const auth = placed && readAuth(placed, server, { ...around, folder }, server.file !== file, tell)
    const prefix = prefixOf(server, server.file !== file, tell)
    return { ...server, ...(auth !== undefined && { auth }), ...(prefix !== undefined && { prefix }) }
  }
  const take = async (parsed: ParsedConfig, from: string, at?: PlacedValue): Promise<void> => {
    const read = await readParsed(withoutUnused(parsed), from, { env: around.env, home: around.home })
    for (const path of envFilesIn(parsed, { ...around, folder: dirname(resolve(from)) })) used(path)
    faults.push(...read.faults)
    for (const [name, server] of read.servers) {
      const before = found.get(name)
      if (before === undefined) found.set(name, withAuth({ ...server, file: from }, parsed))
      else if (before.file !== file && at !== undefined) {
        const message = `The server ${quoted(name)} is defined in ${quoted(before.file)} and in ${quoted(from)}`
        tell(at, 'gateway.include', message, 'Rename it in one of these files, or define it in this file')
      }
    }
  }
  const inline = new Map([...members].filter(([name]) => isServers(name)))
  for (const at of inline.values()) checkEntries(at, tell)
  if (inline.size > 0) await take({ root: { line: 1, value: {}, members: inline }, faults: [] }, file)
  for (const at of includesIn(members.get('include'), tell)) {
    const named = expand(at.value as string, around)
    if ('why' in named) {
      tell(at, named.why.rule, named.why.message, named.why.fix)
      continue
    }
    const path = resolve(around.folder, named.text.replace(/^~(?=\/)/, around.home))
    used(path)
    const text = await readFile(path, 'utf8').catch(() => undefined)
    const fix = 'Correct the path. It is relative to the folder of this file'
    if (text === undefined || text.length > mostChars)
      tell(at, 'gateway.include', `The file ${quoted(path)} is not readable or too large`, fix)
    else await take(await parseConfig(text, path), path, at)
  }
  return found
}

/** Reports unknown members of the file's own entries. Included files may contain members of other programs. */
function checkEntries({ members }: PlacedValue, tell: TellFault): void {
  for (const [name, entry] of members ?? []) {
    for (const [member, at] of entry.members ?? [])
      if (!upstreamKeys.some(key => key === member) && !entryMembers.has(member)) {
        const message = `The server ${quoted(name)} has an unknown setting ${quoted(member)}`
        tell(at, 'gateway.entry', message, `Use ${[...upstreamKeys, ...entryMembers].join(', ')}`)
      }
    if (entry.members?.has('command') && entry.members.has('url'))
      tell(entry, 'gateway.entry', `The server ${quoted(name)} has both command and url`, 'Remove one of them')
  }
}

/** Reads `prefix`. In included files another value is ignored: it may belong to another program. */
function prefixOf({ name, line, more }: FoundServer, included: boolean, tell: TellFault): boolean | string | undefined {
  const { prefix } = more
  if (prefix === undefined || prefix === null) return undefined
  if (typeof prefix === 'boolean' || (typeof prefix === 'string' && prefixForm.test(prefix))) return prefix
  const message = `The server ${quoted(name)} has a prefix that is not valid`
  if (!included) tell({ line }, 'gateway.prefix', message, 'Use true, or up to 32 letters, digits, _ and -')
  return undefined
}

/**
 * Prepares a parsed file for the common reader. A disabled entry keeps its name but is not read further, because its variables may be
 * unset. `inputs` (prompts of an editor) are removed; a variable that uses one is reported where it is used.
 */
function withoutUnused({ root, faults }: ParsedConfig): ParsedConfig {
  if (root?.members === undefined) return { root, faults }
  const members = new Map([...root.members].filter(([name]) => name !== 'inputs'))
  for (const [name, at] of members)
    if (isServers(name) && at.members !== undefined) members.set(name, { ...at, members: emptied(at.members) })
  return { root: { ...root, members }, faults }
}

/** Reduces disabled entries to their names. */
function emptied(entries: ReadonlyMap<string, PlacedValue>): Map<string, PlacedValue> {
  const one = (name: string, entry: PlacedValue): PlacedValue => {
    const off = entry.members?.get('disabled')
    if (off?.value !== true) return entry
    return { ...entry, members: new Map([['disabled', off] as const, ['command', { line: entry.line, value: name }] as const]) }
  }
  return new Map([...entries].map(([name, entry]) => [name, one(name, entry)]))
}

/** The included files: one path or a list. */
function includesIn(at: PlacedValue | undefined, tell: TellFault): readonly PlacedValue[] {
  const items = at === undefined ? [] : (at.items ?? [at])
  return items.filter(item => {
    if (typeof item.value === 'string' && item.value !== '') return true
    const message = `include has ${clip(JSON.stringify(item.value))}, which is not a path`
    tell(item, 'gateway.include', message, 'Use the path of a file, or a list of paths')
    return false
  })
}

/** The env files of servers; a change of one is a change of the config. */
function envFilesIn({ root }: ParsedConfig, around: ConfigEnvironment): readonly string[] {
  const entries = [...(root?.members ?? [])].flatMap(([name, at]) => (isServers(name) ? [...(at.members?.values() ?? [])] : []))
  return entries.flatMap(({ members }) => {
    const said = members?.get('envFile')?.value
    const path = typeof said === 'string' ? expand(said, around) : undefined
    return path !== undefined && 'text' in path ? [resolve(around.folder, path.text)] : []
  })
}

/** Both spellings of the member that lists servers. */
function isServers(name: string): boolean {
  return name === 'servers' || name === 'mcpServers'
}

// Credentials of a server's entry: fills in variables, resolves files, and reports mistakes at their lines.

/** The `auth` member of a server's entry. */
function authAt({ root }: ParsedConfig, server: string): PlacedValue | undefined {
  for (const shape of ['mcpServers', 'servers']) {
    const entry = root?.members?.get(shape)?.members?.get(server)
    if (entry !== undefined) return entry.members?.get('auth')
  }
  return undefined
}

/** Reads `auth`. `foreign`: the file belongs to another program, so a value is taken only if it is entirely valid, and not reported. */
function readAuth(
  at: PlacedValue,
  server: FoundServer,
  around: ConfigEnvironment,
  foreign: boolean,
  tell: TellFault,
): UpstreamAuthOption | undefined {
  let wrong = false
  const note: TellFault = (place, rule, message, fix) => {
    wrong = true
    if (!foreign) tell(place, rule, `The server ${quoted(server.name)}: ${message}`, fix)
  }
  const filled = expanded(at, 'auth', around, note)
  if (wrong || filled.value === null) return undefined
  const { target } = server
  for (const { member, message, fix } of authFaults(filled.value, typeof target === 'string' ? target : undefined))
    note((member === undefined ? undefined : filled.members?.get(member)) ?? filled, 'gateway.auth', message, fix)
  if (!wrong && hasAuthorization(server))
    note(filled, 'gateway.auth', 'auth and headers.authorization cannot be combined', 'Remove one of them')
  if (wrong) return undefined
  const placed = located(filled.value as UpstreamAuthOption, around)
  for (const file of filesIn(placed))
    if (!isReadable(file))
      note(filled, 'gateway.auth', `the file ${quoted(file)} does not exist or is not readable`, 'Correct the path')
  return wrong ? undefined : placed
}

/** Whether the entry sets the `Authorization` header. */
function hasAuthorization({ headers = {} }: FoundServer): boolean {
  return Object.keys(headers).some(name => name.toLowerCase() === 'authorization')
}

/** Resolves relative paths from the folder of the file. */
function located(auth: UpstreamAuthOption, { folder, home }: ConfigEnvironment): UpstreamAuthOption {
  if (auth === 'sign-in') return auth
  const path = (text: string): string => resolve(folder, text.replace(/^~(?=\/)/, home))
  const { clientSecretFile: secret, privateKeyFile: key } = auth
  return {
    ...auth,
    ...(secret !== undefined && { clientSecretFile: path(secret) }),
    ...(key !== undefined && { privateKeyFile: path(key) }),
  }
}

/** The secret files of an entry. */
function filesIn(auth: UpstreamAuthOption): readonly string[] {
  if (auth === 'sign-in') return []
  const { clientSecretFile, privateKeyFile }: UpstreamAuth = auth
  return [clientSecretFile, privateKeyFile].filter(file => file !== undefined)
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK)
    return true
  } catch {
    return false
  }
}

/** Replaces the variables in a part of the file, at any depth. A text with an unset variable becomes null. */

function expanded(at: PlacedValue, path: string, around: ConfigEnvironment, tell: TellFault): PlacedValue {
  if (at.members !== undefined) {
    const members = new Map([...at.members].map(([name, member]) => [name, expanded(member, `${path}.${name}`, around, tell)]))
    return { line: at.line, members, value: Object.fromEntries([...members].map(([name, { value }]) => [name, value])) }
  }
  if (at.items !== undefined) {
    const items = at.items.map((item, i) => expanded(item, `${path}[${i}]`, around, tell))
    return { line: at.line, items, value: items.map(({ value }) => value) }
  }
  if (typeof at.value !== 'string') return at
  const filled = expand(at.value, around)
  if ('text' in filled) return { line: at.line, value: filled.text }
  tell(at, filled.why.rule, `${path}: ${filled.why.message}`, filled.why.fix)
  return { line: at.line, value: null }
}
