/**
 * The file of a gateway: which servers stand behind it (its own, and those that the files of other programs name), where it listens,
 * what it keeps, and whom it trusts with what. Every mistake is told with its file, its line, and what would be right there.
 */
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { quoted, why } from '../../core/why.ts'
import { expand, type Surroundings } from '../../host/config/expand.ts'
import type { Placed } from '../../host/config/jsonc.ts'
import { type ConfigFault, type ConfiguredServer, type ParsedConfig, parseConfig, readParsed } from '../../host/config/read.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { expanded } from './expanded.ts'
import { type Frame, readFrame } from './frame.ts'

/** Tells a mistake at a place of the file. */
export type TellFault = (at: { readonly line: number }, rule: string, message: string, fix: string) => void

export interface FoundServer extends ConfiguredServer {
  readonly file: string
}

export interface GatewayConfig<Trust> {
  readonly file: string
  readonly servers: ReadonlyMap<string, FoundServer>
  readonly frame: Frame
  readonly trust: Trust
  readonly faults: readonly ConfigFault[]
}

export interface ReadGatewayOptions<Trust> {
  /** Where variables come from. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly home?: string
  /** The members that are about trust. */
  readonly trustMembers: readonly string[]
  readonly readTrust: (members: ReadonlyMap<string, Placed>, tell: TellFault) => Trust
}

const own = ['include', 'servers', 'mcpServers', 'listen', 'store', 'secret', 'name', 'instructions', 'askTimeout']
const mostChars = 1024 * 1024

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
  const servers = await serversOf(members, file, around, faults, tell)
  if (servers.size === 0 && faults.length === 0)
    tell(
      { line: 1 },
      'gateway.servers',
      'The file names no servers',
      'Add servers: { name: { url: … } }, or include: a file that has some',
    )
  const said = new Map<string, Placed>()
  for (const [name, at] of members) if (!isServers(name)) said.set(name, expanded(at, name, around, tell))
  return { file, servers, frame: readFrame(said, tell), trust: options.readTrust(said, tell), faults }
}

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
  around: Surroundings,
  faults: ConfigFault[],
  tell: TellFault,
): Promise<ReadonlyMap<string, FoundServer>> {
  const found = new Map<string, FoundServer>()
  const take = async (parsed: ParsedConfig, from: string, at?: Placed): Promise<void> => {
    const read = await readParsed(parsed, from, { env: around.env, home: around.home })
    faults.push(...read.faults)
    for (const [name, server] of read.servers) {
      const before = found.get(name)
      if (before === undefined) found.set(name, { ...server, file: from })
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
  if (inline.size > 0) await take({ root: { line: 1, value: {}, members: inline }, faults: [] }, file)
  for (const at of includesIn(members.get('include'), tell)) {
    const named = expand(at.value as string, around)
    if ('why' in named) {
      tell(at, named.why.rule, named.why.message, named.why.fix)
      continue
    }
    const path = resolve(around.folder, named.text.replace(/^~(?=\/)/, around.home))
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

function isServers(name: string): boolean {
  return name === 'servers' || name === 'mcpServers'
}
