/**
 * The file of a gateway: which servers stand behind it (its own, and those that the files of other programs name), where it listens,
 * what it keeps, and whom it trusts with what. Every mistake is told with its file, its line, and what would be right there.
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
  type Placed,
  parseConfig,
  readParsed,
} from '../../host/config/read.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { authFaults, type UpstreamAuth, type UpstreamAuthOption } from '../upstreams/auth.ts'
import { type Frame, readFrame } from './frame.ts'

/** Tells a mistake at a place of the file. */
export type TellFault = (at: { readonly line: number }, rule: string, message: string, fix: string) => void

/** A server of the file, or of a file that it includes. */
export interface FoundServer extends ConfiguredServer {
  readonly file: string
  /** How the gateway shows there who it is. */
  readonly auth?: UpstreamAuthOption
  /** Stands in front of all its names. */
  readonly prefix?: boolean | string
}

/** A file that was read: its settings, and every mistake in it. */
export interface GatewayConfig<Trust> {
  readonly file: string
  /** All that it is made of: the file itself, those that it includes, and those that hold variables of its servers. */
  readonly files: readonly string[]
  readonly servers: ReadonlyMap<string, FoundServer>
  readonly frame: Frame
  readonly trust: Trust
  readonly faults: readonly ConfigFault[]
  /** The lines at which the members of the file stand. */
  readonly lines: ReadonlyMap<string, number>
}

interface ReadGatewayOptions<Trust> {
  /** Where variables come from. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly home?: string
  /** The members that are about trust. */
  readonly trustMembers: readonly string[]
  readonly readTrust: (members: ReadonlyMap<string, Placed>, tell: TellFault) => Trust
}

const own =
  'include servers mcpServers listen store secret name instructions askTimeout startWait drain limits shares names'.split(' ')
const mostChars = 1024 * 1024

/** Reads the text of a file. Mistakes are told in `faults`; nothing is thrown. */
export async function readGatewayConfig<Trust>(
  text: string,
  file: string,
  options: ReadGatewayOptions<Trust>,
): Promise<GatewayConfig<Trust>> {
  const faults: ConfigFault[] = []
  const tell: TellFault = ({ line }, rule, message, fix) =>
    void faults.push({ file, line, why: why('CONFIG_INVALID', rule, message, fix) })
  const around = { env: options.env ?? process.env, home: options.home ?? homedir(), folder: dirname(resolve(file)) }
  const members = await membersOf(text, file, tell)
  const known = [...own, ...options.trustMembers]
  for (const [name, at] of members) {
    if (!known.includes(name))
      tell(
        at,
        'gateway.members',
        `The file has a member ${quoted(name)} that means nothing here`,
        `There are ${known.join(', ')}`,
      )
  }
  const files = new Set([resolve(file)])
  const servers = await serversOf(members, file, around, faults, tell, path => void files.add(path))
  if (servers.size === 0 && faults.length === 0)
    tell(
      { line: 1 },
      'gateway.servers',
      'The file names no servers',
      'Add servers: { name: { url: … } }, or include: a file that has some',
    )
  const said = new Map<string, Placed>()
  for (const [name, at] of members) if (!isServers(name)) said.set(name, expanded(at, name, around, tell))
  const trust = options.readTrust(said, tell)
  const lines = new Map([...members].map(([name, { line }]) => [name, line] as const))
  return { file, files: [...files], servers, frame: readFrame(said, around.folder, tell), trust, faults, lines }
}

/** The members at the top of a file; none where it cannot be read. */
async function membersOf(text: string, file: string, tell: TellFault): Promise<ReadonlyMap<string, Placed>> {
  if (text.length > mostChars) {
    tell({ line: 1 }, 'config.size', `The file is longer than ${mostChars} characters`, 'Split it, and include the parts')
    return new Map()
  }
  const { root, faults } = await parseConfig(text, file)
  for (const { line, message } of faults)
    tell({ line }, 'config.syntax', `The file cannot be read: ${message}`, 'Correct this line')
  if (faults.length > 0) return new Map()
  if (root?.members === undefined)
    tell({ line: 1 }, 'config.syntax', 'The file is no object', 'Begin with servers: and name them below')
  return root?.members ?? new Map()
}

/** Its own first: they stand in the place of what included files call by the same name. */
async function serversOf(
  members: ReadonlyMap<string, Placed>,
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
  const take = async (parsed: ParsedConfig, from: string, at?: Placed): Promise<void> => {
    const read = await readParsed(withoutUnused(parsed), from, { env: around.env, home: around.home })
    for (const path of envFilesIn(parsed, { ...around, folder: dirname(resolve(from)) })) used(path)
    faults.push(...read.faults)
    for (const [name, server] of read.servers) {
      const before = found.get(name)
      if (before === undefined) found.set(name, withAuth({ ...server, file: from }, parsed))
      else if (before.file !== file && at !== undefined)
        tell(
          at,
          'gateway.include',
          `The server ${quoted(name)} stands in ${quoted(before.file)} and in ${quoted(from)}`,
          'Give it another name in one of them, or an entry of its own in this file',
        )
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
    if (text === undefined || text.length > mostChars)
      tell(
        at,
        'gateway.include',
        `The file ${quoted(path)} cannot be read`,
        'Correct the path; it counts from the folder of this file',
      )
    else await take(await parseConfig(text, path), path, at)
  }
  return found
}

/** Other programs write what they like into their own files; here a misspelled member would be a server without it. */
function checkEntries({ members }: Placed, tell: TellFault): void {
  for (const [name, entry] of members ?? []) {
    for (const [member, at] of entry.members ?? [])
      if (!ownMembers.includes(member) && !entryMembers.has(member))
        tell(
          at,
          'gateway.entry',
          `The server ${quoted(name)} has a member ${quoted(member)} that means nothing here`,
          `There are ${ownMembers.join(', ')}, ${[...entryMembers].join(', ')}`,
        )
    if (entry.members?.has('command') && entry.members.has('url'))
      tell(entry, 'gateway.entry', `The server ${quoted(name)} has a command and a url`, 'Leave one of them out')
  }
}

/** What an entry may say here and not elsewhere. */
const ownMembers = ['auth', 'prefix']

/** What other programs mean by that word is left to them. */
function prefixOf({ name, line, more }: FoundServer, included: boolean, tell: TellFault): boolean | string | undefined {
  const { prefix } = more
  if (prefix === undefined || prefix === null) return undefined
  if (typeof prefix === 'boolean' || (typeof prefix === 'string' && /^[A-Za-z0-9_-]{1,32}$/.test(prefix))) return prefix
  if (!included)
    tell(
      { line },
      'gateway.prefix',
      `The server ${quoted(name)} has a prefix that is none`,
      'Write true, or up to 32 letters, digits, _ and -',
    )
  return undefined
}

/**
 * An entry that is switched off still stands for its name, but is not read any further: what it would need may not be there. Inputs,
 * which an editor asks for, are told of where they are used.
 */
function withoutUnused({ root, faults }: ParsedConfig): ParsedConfig {
  if (root?.members === undefined) return { root, faults }
  const members = new Map([...root.members].filter(([name]) => name !== 'inputs'))
  for (const [name, at] of members)
    if (isServers(name) && at.members !== undefined) members.set(name, { ...at, members: emptied(at.members) })
  return { root: { ...root, members }, faults }
}

/** Entries that are switched off are reduced to their names. */
function emptied(entries: ReadonlyMap<string, Placed>): Map<string, Placed> {
  const one = (name: string, entry: Placed): Placed => {
    const off = entry.members?.get('disabled')
    if (off?.value !== true) return entry
    return { ...entry, members: new Map([['disabled', off] as const, ['command', { line: entry.line, value: name }] as const]) }
  }
  return new Map([...entries].map(([name, entry]) => [name, one(name, entry)]))
}

/** One file or a list of files. */
function includesIn(at: Placed | undefined, tell: TellFault): readonly Placed[] {
  const items = at === undefined ? [] : (at.items ?? [at])
  return items.filter(item => {
    if (typeof item.value === 'string' && item.value !== '') return true
    tell(
      item,
      'gateway.include',
      `include has ${clip(JSON.stringify(item.value))}, which is no path`,
      'Name a file, or a list of files',
    )
    return false
  })
}

/** Files with variables of servers: a change of one is a change of the config. */
function envFilesIn({ root }: ParsedConfig, around: ConfigEnvironment): readonly string[] {
  const entries = [...(root?.members ?? [])].flatMap(([name, at]) => (isServers(name) ? [...(at.members?.values() ?? [])] : []))
  return entries.flatMap(({ members }) => {
    const said = members?.get('envFile')?.value
    const path = typeof said === 'string' ? expand(said, around) : undefined
    return path !== undefined && 'text' in path ? [resolve(around.folder, path.text)] : []
  })
}

function isServers(name: string): boolean {
  return name === 'servers' || name === 'mcpServers'
}

// The credentials in the entry of a server: variables filled in, files found, mistakes told at their lines.

/** Where the entry of a server says it. */
function authAt({ root }: ParsedConfig, server: string): Placed | undefined {
  for (const shape of ['mcpServers', 'servers']) {
    const entry = root?.members?.get(shape)?.members?.get(server)
    if (entry !== undefined) return entry.members?.get('auth')
  }
  return undefined
}

/**
 * `foreign`: the file is another program's, which may say by this name what it likes. Only what is ours in every part is taken from it.
 */
function readAuth(
  at: Placed,
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
    note(filled, 'gateway.auth', 'auth and headers.authorization exclude each other', 'Leave one of them out')
  if (wrong) return undefined
  const placed = located(filled.value as UpstreamAuthOption, around)
  for (const file of filesIn(placed))
    if (!isReadable(file)) note(filled, 'gateway.auth', `the file ${quoted(file)} cannot be read`, 'Correct the path')
  return wrong ? undefined : placed
}

function hasAuthorization({ headers = {} }: FoundServer): boolean {
  return Object.keys(headers).some(name => name.toLowerCase() === 'authorization')
}

/** Paths count from the folder of the file. */
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

/** The files that hold secrets of an entry. */
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

// A part of the file with its variables filled in, wherever they stand in it.

function expanded(at: Placed, path: string, around: ConfigEnvironment, tell: TellFault): Placed {
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
