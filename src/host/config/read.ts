/** Reads a config file: `mcpServers`, or `servers` as in VS Code, in JSON with comments or YAML. A mistake in one entry leaves the others usable. */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { digest } from '../../core/digest.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { type ConfigEnvironment, readEntry, type ServerEntry } from './entry.ts'

/** A mistake in a file: its place, the rule and the fix. */
export interface ConfigFault {
  /** The file. */
  readonly file: string
  /** The line, counted from 1. */
  readonly line: number
  /** The server; absent where the mistake concerns the whole file. */
  readonly server?: string
  /** What is wrong, the rule and the fix. */
  readonly why: Why
}

/** A server that can be connected. */
export interface ConfiguredServer extends ServerEntry {
  /** The line of its entry, counted from 1. */
  readonly line: number
  /** Changes when the server has to be reconnected. */
  readonly digest: string
}

/** A config file that was read: its servers and its mistakes. */
export interface HostConfig {
  /** The file. */
  readonly file: string
  /** The servers that can be connected, by name. */
  readonly servers: ReadonlyMap<string, ConfiguredServer>
  /** Servers that cannot be used, with their first mistake. */
  readonly refused: ReadonlyMap<string, Why>
  /** All mistakes, in the order of the file. */
  readonly faults: readonly ConfigFault[]
  /** False: the file cannot be read at all, so nothing is known of any server. */
  readonly readable: boolean
}

/** Options of `readConfig`. */
interface ReadConfigOptions {
  /** Where variables come from. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The value of `${userHome}`. Default: the user's home folder. */
  readonly home?: string
  /**
   * `keep`: texts keep their `${VAR}`, and no file of variables is read. Used to show a file before it takes effect. Default `fill`.
   */
  readonly variables?: 'fill' | 'keep'
  /** Reads a file of variables. Default: from disk. */
  readonly envFile?: (path: string) => string
}

const mostServers = 256
const mostChars = 1024 * 1024

/** Reads the text of a config file: YAML by the file's extension, otherwise JSON. */
export async function readConfig(text: string, file: string, options: ReadConfigOptions = {}): Promise<HostConfig> {
  if (text.length <= mostChars) return readParsed(await parseConfig(text, file), file, options)
  const message = `The file is longer than ${mostChars} characters (the limit)`
  const said = why('CONFIG_INVALID', 'config.size', message, 'Remove everything but the servers')
  return { file, servers: new Map(), refused: new Map(), faults: [{ file, line: 1, why: said }], readable: false }
}

/** A parsed file whose values have line numbers. */
export interface ParsedConfig {
  /** Undefined for an empty or invalid file. */
  readonly root: PlacedValue | undefined
  readonly faults: readonly SyntaxFault[]
}

/** Parses a file as YAML or JSON, by its extension. */
export async function parseConfig(text: string, file: string): Promise<ParsedConfig> {
  return /\.ya?ml$/i.test(file) ? (await import('./yaml.ts')).readYaml(text) : readJsonc(text)
}

/** Reads a file that is already parsed, for readers of other formats such as the gateway's. */
export async function readParsed(
  { root, faults: syntax }: ParsedConfig,
  file: string,
  options: ReadConfigOptions = {},
): Promise<HostConfig> {
  const faults: ConfigFault[] = []
  const wrong = (line: number, rule: string, message: string, fix: string, server?: string): void => {
    faults.push({ file, line, ...(server !== undefined && { server }), why: why('CONFIG_INVALID', rule, message, fix) })
  }
  const kind = /\.ya?ml$/i.test(file) ? 'YAML' : 'JSON'
  for (const { line, message } of syntax)
    wrong(line, 'config.syntax', `The file is not valid ${kind}: ${message}`, 'Correct this line')
  if (syntax.length > 0 || root?.members === undefined) {
    if (syntax.length === 0) wrong(1, 'config.syntax', 'The file does not contain an object', 'Write { "mcpServers": { … } }')
    return { file, servers: new Map(), refused: new Map(), faults, readable: false }
  }
  const listed = entriesOf(root, wrong)
  const around = surroundings(file, options)
  const { variables = 'fill', envFile = path => readFileSync(path, 'utf8') } = options
  const servers = new Map<string, ConfiguredServer>()
  const refused = new Map<string, Why>()
  for (const [name, placed] of listed) {
    const read = readEntry(name, placed, variables === 'keep' ? undefined : around, path =>
      parseEnv(envFile(resolve(around.folder, path))),
    )
    if (!('name' in read)) {
      for (const { line, why } of read) faults.push({ file, line, server: name, why })
      if (read[0] !== undefined) refused.set(name, read[0].why)
      continue
    }
    const { target, headers, timeoutMs, startTimeoutMs } = read
    servers.set(name, { ...read, line: placed.line, digest: await digest({ target, headers, timeoutMs, startTimeoutMs }) })
  }
  return { file, servers, refused, faults, readable: true }
}

type Wrong = (line: number, rule: string, message: string, fix: string, server?: string) => void

/** The entries of both members; for a name in both, the first counts. */
function entriesOf(root: PlacedValue, wrong: Wrong): ReadonlyMap<string, PlacedValue> {
  const found = new Map<string, PlacedValue>()
  const shapes = ['mcpServers', 'servers'].filter(shape => root.members?.has(shape))
  if (shapes.length === 0) {
    const [meant] = [...(root.members ?? [])].filter(([name]) => /^(mcp)?[-_]?servers?$/i.test(name))
    const fix = meant === undefined ? 'Write { "mcpServers": { … } }' : `Write "mcpServers" instead of ${quoted(meant[0])}`
    wrong(meant?.[1].line ?? root.line, 'config.servers', 'The file has no servers', fix)
  }
  for (const shape of shapes) {
    const at = root.members?.get(shape)
    if (at?.members === undefined) {
      wrong(at?.line ?? 1, 'config.servers', `${quoted(shape)} must be an object`, 'Write { "name": { "command": … } }')
      continue
    }
    for (const [name, placed] of at.members) {
      if (name === '' || name.length > 128)
        wrong(placed.line, 'config.name', 'The name of a server must have 1 to 128 characters', 'Rename the server')
      else if (found.has(name))
        wrong(
          placed.line,
          'config.name',
          `The server ${quoted(name)} is in both "mcpServers" and "servers"`,
          'Remove one of them',
          name,
        )
      else if (found.size >= mostServers)
        wrong(
          placed.line,
          'config.servers',
          `The file has more than ${mostServers} servers (the limit)`,
          'Remove some of them',
          name,
        )
      else found.set(name, placed)
    }
  }
  const inputs = root.members?.get('inputs')
  if (inputs?.items !== undefined && inputs.items.length > 0)
    wrong(
      inputs.line,
      'config.inputs',
      'inputs need an editor that asks the user, which this host does not do',
      `Use environment variables instead, such as \${API_KEY}`,
    )
  return found
}

/** Where the variables of a file get their values. */
export function surroundings(file: string, { env = process.env, home = homedir() }: ReadConfigOptions): ConfigEnvironment {
  const folder = dirname(resolve(file))
  // Editors keep their file in a folder inside the project.
  return { env, home, folder: ['.vscode', '.cursor'].includes(basename(folder)) ? dirname(folder) : folder }
}

/** A mistake as a line of text. */
export function faultText({ file, line, why: { message, rule, fix } }: ConfigFault): string {
  return `${file}:${line}: ${message} (${rule}). ${fix}`
}

// JSON with comments, parsed into values with line numbers so that mistakes can be located.

/** A value with its place in the file. */
export interface PlacedValue {
  /** Counted from 1. */
  readonly line: number
  readonly value: unknown
  /** The members of an object. */
  readonly members?: ReadonlyMap<string, PlacedValue>
  /** The items of an array. */
  readonly items?: readonly PlacedValue[]
}

/** A syntax error, with its line counted from 1. */
export interface SyntaxFault {
  readonly line: number
  readonly message: string
}

/** Parses a text. Comments and trailing commas are allowed; a duplicate name is a mistake. */
export function readJsonc(text: string): ParsedConfig {
  const errors: ParseError[] = []
  const tree = parseTree(text, errors, { allowTrailingComma: true, disallowComments: false })
  const lineAt = lines(text)
  // A missing end is reported at the last line with text.
  const end = text.trimEnd().length
  const faults = errors.map(({ error, offset }) => ({
    line: lineAt(Math.min(offset, end)),
    message: words(printParseErrorCode(error)),
  }))
  if (tree === undefined) return { root: undefined, faults: faults.length > 0 ? faults : [{ line: 1, message: 'it is empty' }] }
  return { root: placed(tree, lineAt, faults), faults }
}

/** Converts a node of the parser. */
function placed(node: Node, lineAt: (offset: number) => number, faults: SyntaxFault[]): PlacedValue {
  const line = lineAt(node.offset)
  if (node.type === 'array') {
    const items = (node.children ?? []).map(child => placed(child, lineAt, faults))
    return { line, items, value: items.map(({ value }) => value) }
  }
  if (node.type !== 'object') return { line, value: node.value }
  const members = new Map<string, PlacedValue>()
  for (const { children = [], offset } of node.children ?? []) {
    const [key, value] = children
    if (typeof key?.value !== 'string' || value === undefined) continue
    if (members.has(key.value))
      faults.push({ line: lineAt(offset), message: `the name ${JSON.stringify(key.value)} is used twice` })
    members.set(key.value, placed(value, lineAt, faults))
  }
  // `fromEntries` creates own members, so that a name like `__proto__` is harmless.
  return { line, members, value: Object.fromEntries([...members].map(([name, { value }]) => [name, value])) }
}

/** `CommaExpected` → `comma expected`. */
function words(code: string): string {
  return code.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase()
}

/** Returns a function that finds the line of an offset, by binary search. */
function lines(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return offset => {
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle - 1
    }
    return low + 1
  }
}
