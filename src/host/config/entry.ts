/** One server's entry in a config file: reads the spellings of various programs into one shape, and expands variables. */
import type { Command } from '../../client/target.ts'
import { nearest, quoted, type Why, why } from '../../core/suggestion.ts'
import { setUses, usesUnder } from '../../features/live/dialects/messages.ts'
import type { ScopeLists } from '../../features/live/scopes/messages.ts'
import type { PlacedValue } from './read.ts'
import {
  httpNames,
  type KeysOf,
  liveKeys,
  longestMs,
  serverKeys,
  stdioNames,
  type Text,
  type WrittenLive,
  type WrittenServer,
} from './written.ts'

/** The `live` member of an entry: settings for MCP Live. Names may be patterns: `memory.*`. */
export interface LiveSection {
  /** Feature sets to enable. */
  readonly enable?: readonly string[]
  /** Feature sets to disable; takes precedence over `enable`. */
  readonly disable?: readonly string[]
  /** What scoped feature sets may act on: `{ whitelist, blacklist }` by set. */
  readonly scopes?: Readonly<Record<string, ScopeLists>>
  /** Additional uses of feature sets, for servers that declare too little: `{ "heartbeat": ["pushEvents"] }`. */
  readonly uses?: Readonly<Record<string, readonly string[]>>
  /** The feature set of a tool, where the server does not name it. */
  readonly tools?: Readonly<Record<string, string>>
}

/** One server of a config file, in the same shape for every program's spelling. */
export interface ServerEntry {
  /** The name of the server. */
  readonly name: string
  /** What to connect to: a command or a URL. */
  readonly target: Command | string
  /** Headers of every request over HTTP. */
  readonly headers?: Readonly<Record<string, string>>
  /** Timeout of each call, in milliseconds. */
  readonly timeoutMs?: number
  /** Timeout of the start, in milliseconds. */
  readonly startTimeoutMs?: number
  /** Whether the entry is disabled, so that the server is not connected. */
  readonly disabled: boolean
  /** Tools that may be called without asking. */
  readonly autoApprove: readonly string[]
  /** Settings for MCP Live. */
  readonly live: LiveSection
  /** Names of the server's events that go to the inbox. */
  readonly events?: readonly string[]
  /** Members that this package does not know. */
  readonly more: Readonly<Record<string, unknown>>
}

/** Reads a file of variables; may throw. */
type EnvFile = (path: string) => Readonly<Record<string, string | undefined>>

/** A mistake, with its line. */
interface EntryFault {
  readonly line: number
  readonly why: Why
}

/** The members of an entry, in all spellings. */
export const entryMembers: ReadonlySet<string> = new Set(serverKeys)

/**
 * Reads one entry. `around`: values of variables; without it texts stay as written and no file is read. `envFile` reads a file of
 * variables and may throw.
 */
export function readEntry(
  name: string,
  placed: PlacedValue,
  around: ConfigEnvironment | undefined,
  envFile: EnvFile,
): ServerEntry | readonly EntryFault[] {
  if (placed.members === undefined)
    return [
      fault(
        placed,
        'config.entry',
        `The entry of the server ${quoted(name)} must be an object`,
        'Write { "command": … } or { "url": … }',
      ),
    ]
  const reader = new Reader<WrittenServer>(name, placed, around)
  const target = targetOf(reader, envFile)
  const entry = {
    name,
    headers: reader.texts('headers'),
    timeoutMs: reader.number('timeout'),
    startTimeoutMs: reader.number('startTimeout'),
    disabled: reader.flag('disabled') ?? false,
    autoApprove: reader.list('autoApprove') ?? reader.list('alwaysAllow') ?? [],
    live: liveOf(reader),
    events: reader.list('events'),
    more: Object.fromEntries(
      [...placed.members].filter(([key]) => !entryMembers.has(key)).map(([key, { value }]) => [key, value]),
    ),
  }
  if (reader.faults.length > 0 || target === undefined) return reader.faults
  const { headers, timeoutMs, startTimeoutMs, events, ...rest } = entry
  return {
    ...rest,
    target,
    ...(headers !== undefined && { headers }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(startTimeoutMs !== undefined && { startTimeoutMs }),
    ...(events !== undefined && { events }),
  }
}

/** The command or URL of an entry. Where both are given, the transport name decides, otherwise the URL. */
function targetOf(reader: Reader<WrittenServer>, envFile: EnvFile) {
  const kind = (reader.text('type') ?? reader.text('transport') ?? reader.text('transportType'))?.toLowerCase()
  const url = reader.text('httpUrl') ?? reader.text('url') ?? reader.text('serverUrl')
  const command = reader.text('command')
  // A variable that could not be expanded is reported already; the member is not missing.
  if (reader.faults.length > 0) return undefined
  const isHttp = httpNames.some(name => name === kind)
  if (kind !== undefined && !stdioNames.some(name => name === kind) && !isHttp)
    return reader.refuse(
      'type',
      'config.transport',
      `has the unknown transport ${quoted(kind)}`,
      'Write stdio, http, sse or websocket',
    )
  const wantsUrl = kind === undefined ? url !== undefined : isHttp
  if (wantsUrl) return url === undefined ? reader.refuse('type', 'config.url', 'has no url', 'Add "url"') : addressOf(reader, url)
  if (command === undefined || command === '')
    return reader.refuse('command', 'config.target', 'has neither a command nor a url', 'Add "command" or "url"')
  return commandOf(reader, command, envFile)
}

function addressOf(reader: Reader<WrittenServer>, url: string): string | undefined {
  // Unexpanded variables cannot be checked yet.
  if (reader.keeps && url.includes('${')) return url
  if (URL.canParse(url) && /^(https?|wss?):$/.test(new URL(url).protocol)) return url
  return reader.refuse('url', 'config.url', 'has a url that is not an http, https, ws or wss URL', 'Write it in full: https://…')
}

/** A command with its arguments and environment; `env` takes precedence over `envFile`. */
function commandOf(reader: Reader<WrittenServer>, command: string, envFile: EnvFile): Command | undefined {
  const path = reader.text('envFile')
  let given: Record<string, string> = {}
  try {
    const read = path === undefined || reader.keeps ? {} : envFile(path)
    given = Object.fromEntries(Object.entries(read).filter((pair): pair is [string, string] => pair[1] !== undefined))
  } catch {
    const fix = 'Correct the path, or write the variables in "env"'
    reader.refuse('envFile', 'config.envFile', 'has an envFile that does not exist or is not readable', fix)
  }
  const [args, env, cwd] = [reader.list('args'), reader.texts('env'), reader.text('cwd')]
  if (reader.faults.length > 0) return undefined
  return { command, args: args ?? [], env: { ...given, ...env }, ...(cwd !== undefined && { cwd }) }
}

/** Reads the `live` member. */
function liveOf(reader: Reader<WrittenServer>): LiveSection {
  const section = reader.within('live')
  if (section === undefined) return {}
  // A misspelled member would otherwise be ignored silently.
  for (const name of section.names().filter(each => !liveKeys.some(key => key === each))) {
    const [meant] = nearest(name, liveKeys)
    const fix = meant === undefined ? `Use ${liveKeys.join(', ')}` : `Write ${quoted(meant)}`
    section.refuse(name, 'config.live', `has the unknown setting ${quoted(`live.${name}`)}`, fix)
  }
  const [enable, disable, tools] = [section.list('enable'), section.list('disable'), section.texts('tools')]
  const [scopes, uses] = [scopesOf(section), usesOf(section)]
  return {
    ...(enable && { enable }),
    ...(disable && { disable }),
    ...(tools && { tools }),
    ...(scopes && { scopes }),
    ...(uses && { uses }),
  }
}

/** Reads additional uses and checks their names. */
function usesOf(section: Reader<WrittenLive>): Readonly<Record<string, readonly string[]>> | undefined {
  const sets = section.within('uses')
  if (sets === undefined) return undefined
  return Object.fromEntries(
    sets.names().map(set => {
      const uses = sets.list(set) ?? []
      const unknownMember = uses.find(use => usesUnder(use).length === 0)
      if (unknownMember !== undefined)
        sets.refuse(set, 'config.uses', `has the unknown use ${quoted(unknownMember)}`, `Use ${setUses.join(', ')}`)
      return [set, uses]
    }),
  )
}

/** Reads scope lists by feature set. */
function scopesOf(section: Reader<WrittenLive>): Readonly<Record<string, ScopeLists>> | undefined {
  const sets = section.within('scopes')
  if (sets === undefined) return undefined
  return Object.fromEntries(
    sets.names().map(set => {
      const lists = sets.within(set)
      const [whitelist, blacklist] = [lists?.list('whitelist'), lists?.list('blacklist')]
      return [set, { ...(whitelist && { whitelist }), ...(blacklist && { blacklist }) }]
    }),
  )
}

/** A mistake at a line. */
function fault({ line }: { readonly line: number }, rule: string, message: string, fix: string): EntryFault {
  return { line, why: why('CONFIG_INVALID', rule, message, fix) }
}

/** Reads members of one object, expands their variables, and collects mistakes. */
class Reader<Shape> {
  readonly faults: EntryFault[]
  readonly #name: string
  readonly #placed: PlacedValue
  readonly #around: ConfigEnvironment | undefined

  constructor(name: string, placed: PlacedValue, around: ConfigEnvironment | undefined, faults: EntryFault[] = []) {
    this.#name = name
    this.#placed = placed
    this.#around = around
    this.faults = faults
  }

  /** Variables stay as they are written. */
  get keeps(): boolean {
    return this.#around === undefined
  }

  names(): readonly string[] {
    return [...(this.#placed.members?.keys() ?? [])]
  }

  text(key: KeysOf<Shape, Text>): string | undefined {
    const at = this.#at(key)
    return at === undefined ? undefined : this.#expanded(at, key)
  }

  flag(key: KeysOf<Shape, boolean>): boolean | undefined {
    const read = ({ value }: PlacedValue) => (typeof value === 'boolean' ? value : undefined)
    return this.#member(key, read, 'not true or false', 'Write true or false')
  }

  number(key: KeysOf<Shape, number>): number | undefined {
    const read = ({ value }: PlacedValue) => (typeof value === 'number' && value > 0 && value <= longestMs ? value : undefined)
    return this.#member(key, read, 'not a number of milliseconds', 'Write a number above 0')
  }

  list(key: KeysOf<Shape, readonly Text[]>): readonly string[] | undefined {
    const read = ({ items }: PlacedValue) => items?.map(item => this.#expanded(item, key) ?? '')
    return this.#member(key, read, 'not a list of strings', 'Write ["…"]')
  }

  texts(key: KeysOf<Shape, Readonly<Record<string, Text>>>): Readonly<Record<string, string>> | undefined {
    const read = ({ members }: PlacedValue) =>
      members && Object.fromEntries([...members].map(([name, item]) => [name, this.#expanded(item, `${key}.${name}`) ?? '']))
    return this.#member(key, read, 'not an object', 'Write { "name": "value" }')
  }

  /** A reader for a nested object, which collects into the same faults. */
  within<Key extends KeysOf<Shape, object>>(key: Key): Reader<NonNullable<Shape[Key]>> | undefined {
    const read = (at: PlacedValue) => at.members && new Reader<NonNullable<Shape[Key]>>(this.#name, at, this.#around, this.faults)
    return this.#member(key, read, 'not an object', 'Write { … }')
  }

  /** A member as `read` gives it; a mistake where that gives nothing. */
  #member<T>(key: string, read: (at: PlacedValue) => T | undefined, wrong: string, fix: string): T | undefined {
    const at = this.#at(key)
    return at && (read(at) ?? this.refuse(key, 'config.shape', `has ${quoted(key)} that is ${wrong}`, fix))
  }

  /** Records a mistake at a member, or at the entry where the member is missing. */
  refuse(key: string, rule: string, what: string, fix: string): undefined {
    const at = this.#placed.members?.get(key) ?? this.#placed
    this.faults.push(fault(at, rule, `The server ${quoted(this.#name)} ${what}`, fix))
  }

  /** The member; null counts as absent, as other programs write it. */
  #at(key: string): PlacedValue | undefined {
    const at = this.#placed.members?.get(key)
    return at?.value === null ? undefined : at
  }

  /** A text with its variables expanded. */
  #expanded(at: PlacedValue, field: string): string | undefined {
    if (typeof at.value !== 'string' && typeof at.value !== 'number' && typeof at.value !== 'boolean') {
      this.faults.push(
        fault(
          at,
          'config.shape',
          `The server ${quoted(this.#name)} has a value at ${quoted(field)} that is not a string`,
          'Write a string',
        ),
      )
      return undefined
    }
    if (this.#around === undefined) return String(at.value)
    const expanded = expand(String(at.value), this.#around)
    if ('text' in expanded) return expanded.text
    const { message, ...said } = expanded.why
    this.faults.push({
      line: at.line,
      why: { ...said, message: `${message}, but ${quoted(field)} of the server ${quoted(this.#name)} uses it` },
    })
    return undefined
  }
}

// Variables in a config file: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${workspaceFolder}`, `${userHome}`.

/** Values for the variables of a config file. */
export interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The value of `${workspaceFolder}`. */
  readonly folder: string
  readonly home: string
}

/** Expands the variables of a text, or says why it cannot. Values are not expanded again. */
export function expand(text: string, around: ConfigEnvironment): { readonly text: string } | { readonly why: Why } {
  let fault: Why | undefined
  const out = text.replaceAll(/\$\{([^}]*)\}/g, (whole, inner: string) => {
    const value = variableOf(inner, around)
    if (typeof value === 'string') return value
    fault ??= value
    return whole
  })
  return fault === undefined ? { text: out } : { why: fault }
}

/** The names of environment variables in a text; the folder and the home are left out, as they are not secret. */
export function variablesIn(text: string): readonly string[] {
  return [...text.matchAll(/\$\{([^}]*)\}/g)].flatMap(([, inner = '']) => {
    if (inner === 'workspaceFolder' || inner === 'userHome') return []
    const [, name] = variable.exec(inner) ?? []
    return name === undefined ? [] : [name]
  })
}

const variable = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/** The value of one variable, or why it has none. */
function variableOf(inner: string, { env, folder, home }: ConfigEnvironment): string | Why {
  if (inner === 'workspaceFolder') return folder
  if (inner === 'userHome') return home
  if (inner.startsWith('input:'))
    return why(
      'INPUT_UNSUPPORTED',
      'config.inputs',
      `\${${inner}} needs an editor that asks the user, which this host does not do`,
      `Use an environment variable instead, such as \${API_KEY}`,
    )
  const [, name, fallback] = variable.exec(inner) ?? []
  if (name === undefined)
    return why(
      'VARIABLE_UNKNOWN',
      'config.variables',
      `${quoted(`\${${inner}}`)} is not a valid variable`,
      `Use \${NAME}, \${NAME:-default} or \${env:NAME}`,
    )
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (value !== undefined && (value !== '' || fallback === undefined)) return value
  return (
    fallback ??
    why(
      'VARIABLE_MISSING',
      'config.variables',
      `The variable ${name} is not set`,
      `Set ${name}, or write \${${name}:-default} in the config`,
    )
  )
}
