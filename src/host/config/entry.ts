/** One server's entry in a config file: reads the spellings of various programs into one shape, and expands variables. */
import type { Command } from '../../client/target.ts'
import { nearest, quoted, type Why, why } from '../../core/suggestion.ts'
import { setUses, usesUnder } from '../../features/live/dialects/messages.ts'
import type { ScopeLists } from '../../features/live/scopes/messages.ts'
import type { Placed } from './read.ts'

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
  readonly name: string
  readonly target: Command | string
  readonly headers?: Readonly<Record<string, string>>
  /** Timeout of each call, in milliseconds. */
  readonly timeoutMs?: number
  /** Timeout of the start, in milliseconds. */
  readonly startTimeoutMs?: number
  readonly disabled: boolean
  /** Tools that may be called without asking. */
  readonly autoApprove: readonly string[]
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

const liveMembers: readonly string[] = ['enable', 'disable', 'scopes', 'uses', 'tools'] satisfies (keyof LiveSection)[]

/** The members of an entry, in all spellings. */
export const entryMembers: ReadonlySet<string> = new Set(
  'command args env cwd envFile type transport transportType url serverUrl httpUrl headers disabled timeout startTimeout autoApprove alwaysAllow live events'.split(
    ' ',
  ),
)

/**
 * Reads one entry. `around`: values of variables; without it texts stay as written and no file is read. `envFile` reads a file of
 * variables and may throw.
 */
export function readEntry(
  name: string,
  placed: Placed,
  around: ConfigEnvironment | undefined,
  envFile: EnvFile,
): ServerEntry | readonly EntryFault[] {
  if (placed.members === undefined)
    return [fault(placed, 'config.entry', `The server ${quoted(name)} is no object`, 'Write { "command": … } or { "url": … }')]
  const reader = new Reader(name, placed, around)
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

/** Transport names for a command. */
const stdioNames = ['stdio']
/** Transport names for a URL. */
const httpNames = ['http', 'https', 'sse', 'streamable-http', 'streamablehttp', 'streamable_http', 'ws', 'wss', 'websocket']

/** The command or URL of an entry. Where both are given, the transport name decides, otherwise the URL. */
function targetOf(reader: Reader, envFile: EnvFile) {
  const kind = (reader.text('type') ?? reader.text('transport') ?? reader.text('transportType'))?.toLowerCase()
  const url = reader.text('httpUrl') ?? reader.text('url') ?? reader.text('serverUrl')
  const command = reader.text('command')
  // A variable that could not be expanded is reported already; the member is not missing.
  if (reader.faults.length > 0) return undefined
  if (kind !== undefined && !stdioNames.includes(kind) && !httpNames.includes(kind))
    return reader.refuse('type', 'config.transport', `knows no transport ${quoted(kind)}`, 'Write stdio, http, sse or websocket')
  const wantsUrl = kind === undefined ? url !== undefined : httpNames.includes(kind)
  if (wantsUrl) return url === undefined ? reader.refuse('type', 'config.url', 'has no url', 'Add "url"') : addressOf(reader, url)
  if (command === undefined || command === '')
    return reader.refuse('command', 'config.target', 'has neither a command nor a url', 'Add "command" or "url"')
  return commandOf(reader, command, envFile)
}

function addressOf(reader: Reader, url: string): string | undefined {
  // Unexpanded variables cannot be checked yet.
  if (reader.keeps && url.includes('${')) return url
  if (URL.canParse(url) && /^(https?|wss?):$/.test(new URL(url).protocol)) return url
  return reader.refuse('url', 'config.url', 'has a url that is no http, https, ws or wss address', 'Write it in full: https://…')
}

/** A command with its arguments and environment; `env` takes precedence over `envFile`. */
function commandOf(reader: Reader, command: string, envFile: EnvFile): Command | undefined {
  const path = reader.text('envFile')
  let given: Record<string, string> = {}
  try {
    const read = path === undefined || reader.keeps ? {} : envFile(path)
    given = Object.fromEntries(Object.entries(read).filter((pair): pair is [string, string] => pair[1] !== undefined))
  } catch {
    const fix = 'Correct the path, or write the variables in "env"'
    reader.refuse('envFile', 'config.envFile', 'names a file that cannot be read', fix)
  }
  const [args, env, cwd] = [reader.list('args'), reader.texts('env'), reader.text('cwd')]
  if (reader.faults.length > 0) return undefined
  return { command, args: args ?? [], env: { ...given, ...env }, ...(cwd !== undefined && { cwd }) }
}

/** Reads the `live` member. */
function liveOf(reader: Reader): LiveSection {
  const section = reader.within('live')
  if (section === undefined) return {}
  // A misspelled member would otherwise be ignored silently.
  for (const name of section.names().filter(each => !liveMembers.includes(each))) {
    const [meant] = nearest(name, liveMembers)
    const fix = meant === undefined ? `Write some of ${liveMembers.join(', ')}` : `Write ${quoted(meant)}`
    section.refuse(name, 'config.live', `has ${quoted(`live.${name}`)}, which is not known`, fix)
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
function usesOf(section: Reader): Readonly<Record<string, readonly string[]>> | undefined {
  const sets = section.within('uses')
  if (sets === undefined) return undefined
  return Object.fromEntries(
    sets.names().map(set => {
      const uses = sets.list(set) ?? []
      const stranger = uses.find(use => usesUnder(use).length === 0)
      if (stranger !== undefined)
        sets.refuse(set, 'config.uses', `knows no use ${quoted(stranger)}`, `Write some of ${setUses.join(', ')}`)
      return [set, uses]
    }),
  )
}

/** Reads scope lists by feature set. */
function scopesOf(section: Reader): Readonly<Record<string, ScopeLists>> | undefined {
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
class Reader {
  readonly faults: EntryFault[]
  readonly #name: string
  readonly #placed: Placed
  readonly #around: ConfigEnvironment | undefined

  constructor(name: string, placed: Placed, around: ConfigEnvironment | undefined, faults: EntryFault[] = []) {
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

  text(key: string): string | undefined {
    const at = this.#at(key)
    return at === undefined ? undefined : this.#expanded(at, key)
  }

  flag(key: string): boolean | undefined {
    const read = ({ value }: Placed) => (typeof value === 'boolean' ? value : undefined)
    return this.#member(key, read, 'neither true nor false', 'Write true or false')
  }

  number(key: string): number | undefined {
    const read = ({ value }: Placed) => (typeof value === 'number' && value > 0 && value <= 86_400_000 ? value : undefined)
    return this.#member(key, read, 'no number of milliseconds', 'Write a number above 0')
  }

  list(key: string): readonly string[] | undefined {
    const read = ({ items }: Placed) => items?.map(item => this.#expanded(item, key) ?? '')
    return this.#member(key, read, 'no list', 'Write ["…"]')
  }

  texts(key: string): Readonly<Record<string, string>> | undefined {
    const read = ({ members }: Placed) =>
      members && Object.fromEntries([...members].map(([name, item]) => [name, this.#expanded(item, `${key}.${name}`) ?? '']))
    return this.#member(key, read, 'no object', 'Write { "name": "value" }')
  }

  /** A reader for a nested object, which collects into the same faults. */
  within(key: string): Reader | undefined {
    const read = (at: Placed) => at.members && new Reader(this.#name, at, this.#around, this.faults)
    return this.#member(key, read, 'no object', 'Write { … }')
  }

  /** A member as `read` gives it; a mistake where that gives nothing. */
  #member<T>(key: string, read: (at: Placed) => T | undefined, wrong: string, fix: string): T | undefined {
    const at = this.#at(key)
    return at && (read(at) ?? this.refuse(key, 'config.shape', `has ${quoted(key)} that is ${wrong}`, fix))
  }

  /** Records a mistake at a member, or at the entry where the member is missing. */
  refuse(key: string, rule: string, what: string, fix: string): undefined {
    const at = this.#placed.members?.get(key) ?? this.#placed
    this.faults.push(fault(at, rule, `The server ${quoted(this.#name)} ${what}`, fix))
  }

  /** The member; null counts as absent, as other programs write it. */
  #at(key: string): Placed | undefined {
    const at = this.#placed.members?.get(key)
    return at?.value === null ? undefined : at
  }

  /** A text with its variables expanded. */
  #expanded(at: Placed, field: string): string | undefined {
    if (typeof at.value !== 'string' && typeof at.value !== 'number' && typeof at.value !== 'boolean') {
      this.faults.push(
        fault(at, 'config.shape', `The server ${quoted(this.#name)} has no text at ${quoted(field)}`, 'Write a text'),
      )
      return undefined
    }
    if (this.#around === undefined) return String(at.value)
    const expanded = expand(String(at.value), this.#around)
    if ('text' in expanded) return expanded.text
    const { message, ...said } = expanded.why
    this.faults.push({
      line: at.line,
      why: { ...said, message: `${message}, which ${quoted(field)} of the server ${quoted(this.#name)} needs` },
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
      `\${${inner}} asks the user of an editor, and here is none`,
      `Write a variable of the environment instead, such as \${API_KEY}`,
    )
  const [, name, fallback] = variable.exec(inner) ?? []
  if (name === undefined)
    return why(
      'VARIABLE_UNKNOWN',
      'config.variables',
      `${quoted(`\${${inner}}`)} is no variable`,
      `Write \${NAME}, \${NAME:-default} or \${env:NAME}`,
    )
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (value !== undefined && (value !== '' || fallback === undefined)) return value
  return (
    fallback ??
    why('VARIABLE_MISSING', 'config.variables', `The variable ${name} is not set`, `Set ${name}, or write \${${name}:-default}`)
  )
}
