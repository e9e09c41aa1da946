/**
 * What a config file says of the host itself, in its member `host`, beside the servers: policy, roots, hooks, budgets. What is inside
 * them is checked by those whose it is; a name that nobody knows is a mistake.
 */
import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Duration } from '../core/clock.ts'
import { type Why, why } from '../core/suggestion.ts'
import { expand } from '../host/config/entry.ts'
import { type ParsedConfig, parseConfig } from '../host/config/read.ts'
import type { WrittenServers } from '../host/config/written.ts'
import type { Host, HostOptions, HostSettings } from '../host/host.ts'
import type { ServerHooks } from '../host/loop/hooks.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { BudgetLimit } from '../policy/budgets/budgets.ts'
import type { PolicyRules } from '../policy/rules/rule.ts'
import type { Extractors } from '../policy/scopes/elevate.ts'
import { messageOf } from '../stores/store.ts'

/** The member `host` of a config, read. */
interface Settings {
  /** What goes into the options of the host. */
  readonly host: Pick<HostOptions, 'policy' | 'hooks' | 'budgets' | 'extract' | 'roots' | 'system' | 'remember'>
  /** Folders that servers may know of, as paths. */
  readonly roots: readonly string[]
  /** Lines worth trying, for whoever is here for the first time. */
  readonly examples: readonly string[]
  /** The section as it is written, to be compared with another one. */
  readonly written: Readonly<Record<string, unknown>>
}

/** An argument that is a path, relative to a folder. */
interface WrittenPath {
  /** The argument that holds the path. Where a call leaves it out, the call acts on the folder itself. */
  readonly path: string
  /**
   * The folder that the path starts from. A relative one starts from the folder of the config file.
   * @example ${workspaceFolder}
   */
  readonly in: string
  /**
   * Members next to `path` in the payload of the scope, so that it equals the scope that the server asks for.
   * @default {}
   * @example {"mode": "read"}
   */
  readonly with?: Readonly<Record<string, unknown>>
}

/** How the host treats its servers and its user. `vivarium up` reads it; other programs ignore it. */
interface WrittenHost {
  /** What servers and tools may do: rules, settings by server, and the verdict where no rule applies. */
  readonly policy?: PolicyRules
  /** Time limits of the hooks of a server, and what happens when a hook fails, by server name. */
  readonly hooks?: Readonly<Record<string, ServerHooks>>
  /**
   * What servers may spend. By default spending is counted without limits.
   * @default []
   */
  readonly budgets?: readonly BudgetLimit[]
  /**
   * What a tool acts on, read from its arguments, by `server/tool`: the name of an argument, several names, or a path. In names of tools
   * `*` stands for any characters.
   * @example {"files/*_file": "path"}
   */
  readonly extract?: Readonly<Record<string, string | readonly string[] | WrittenPath>>
  /**
   * Folders that servers may know of. A relative one starts from the folder of the config file.
   * @default []
   * @example ["${workspaceFolder}"]
   */
  readonly roots?: readonly string[]
  /**
   * The start of the system prompt.
   * @example You are a helpful assistant.
   */
  readonly system?: string
  /**
   * How long an approval of the user counts for calls that are equal.
   * @default 1h
   */
  readonly remember?: Extract<Duration, string>
  /**
   * Lines that the terminal suggests to a new user.
   * @default []
   */
  readonly try?: readonly string[]
}

/**
 * A config file of a host: the servers, as in the files of other programs, and how the host treats them.
 * @open
 * @atLeastOne mcpServers servers
 */
interface WrittenConfig extends WrittenServers {
  /** The JSON Schema of this file, for editors. */
  readonly $schema?: string
  /** How the host treats its servers and its user. `vivarium up` reads it; other programs ignore it. */
  readonly host?: WrittenHost
}

/** The members that `host` may have, and their kinds. */
const kinds = {
  policy: 'object',
  hooks: 'object',
  budgets: 'list',
  extract: 'object',
  roots: 'list',
  system: 'text',
  remember: 'text',
  try: 'list',
} as const satisfies Readonly<Record<keyof WrittenHost, 'object' | 'list' | 'text'>>

/** `parsed`: the file as it was shown to whoever agreed to it; nobody reads it a second time. Throws a TypeError that names the member. */
export function readSettings(
  { root, faults }: ParsedConfig,
  file: string,
  env: Readonly<Record<string, string | undefined>>,
): Settings {
  const [fault] = faults
  if (fault !== undefined) throw new TypeError(`${file}:${fault.line}: ${fault.message}`)
  const config: { readonly [Key in keyof WrittenConfig]?: unknown } = isRecord(root?.value) ? root.value : {}
  const section = config.host
  if (section === undefined) return { host: {}, roots: [], examples: [], written: {} }
  if (!isRecord(section)) throw new TypeError(`${file}: "host" is not an object`)
  for (const [name, value] of Object.entries(section)) check(file, name, value)
  const { try: examples, roots: folders, extract, ...host } = section
  const around = { env, folder: dirname(resolve(file)), home: homedir() }
  const place: Place = (path, member) => {
    const expanded = expand(path, around)
    if ('why' in expanded) throw new TypeError(`${file}: host.${member}: ${expanded.why.message}. ${expanded.why.fix}`)
    return resolve(around.folder, expanded.text)
  }
  const roots = texts(folders).map(path => place(path, 'roots'))
  return {
    host: {
      // What each of them holds is looked at by the host when it is opened.
      ...(host as Settings['host']),
      ...(roots.length > 0 && { roots: roots.map(path => ({ uri: pathToFileURL(path).href })) }),
      ...(isRecord(extract) && { extract: extractorsOf(file, extract, place) }),
    },
    roots,
    examples: texts(examples),
    written: section,
  }
}

/** A path of the config, with variables filled in and from the folder of the file on. */
type Place = (path: string, member: string) => string

/**
 * Beside the names of arguments: `{ "path": "name", "in": "folder" }`, an argument that is a path, relative to a folder. What the call acts
 * on is the place where it leads, or the folder where it is left out. `with` stands beside the path in the payload: a server that asks
 * for exactly this scope finds it on the call, and nobody is asked twice.
 */
function extractorsOf(file: string, written: Members, place: Place): Extractors {
  const read = Object.entries(written).map(([tools, value]): [string, Extractors[string]] => {
    if (typeof value === 'string') return [tools, value]
    if (Array.isArray(value)) return [tools, texts(value)]
    const { path, in: folder, with: beside = {} } = isRecord(value) ? value : {}
    if (typeof path !== 'string' || typeof folder !== 'string' || !isRecord(beside))
      throw new TypeError(
        `${file}: host.extract.${tools} must be the name of an argument, a list of names, or { "path": "…", "in": "…" }`,
      )
    return [tools, pathIn(place(folder, 'extract'), path, beside)]
  })
  return Object.fromEntries(read)
}

/** The members of an object. */
type Members = Readonly<Record<string, unknown>>

/** What a call acts on, where an argument of it is a path. */
function pathIn(folder: string, name: string, beside: Members): Extractors[string] {
  return args => {
    const given = args[name] ?? '.'
    const path = typeof given === 'string' ? canonical(resolve(folder, given)) : undefined
    return path === undefined ? undefined : { label: path, payload: { path, ...beside } }
  }
}

/** Without links. Of what is not there yet, its folder counts; undefined where that is not there either. */
function canonical(path: string): string | undefined {
  try {
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
  } catch {
    return undefined
  }
}

/** Throws a TypeError where a member is unknown or of another kind. */
function check(file: string, name: string, value: unknown): void {
  const kind = Object.hasOwn(kinds, name) ? kinds[name as keyof WrittenHost] : undefined
  if (kind === undefined)
    throw new TypeError(`${file}: host.${name} is not a known setting. Settings are ${Object.keys(kinds).join(', ')}`)
  const fits = { list: Array.isArray(value), text: typeof value === 'string', object: isRecord(value) }[kind]
  const wanted = { list: 'a list', text: 'a string', object: 'an object' }[kind]
  if (!fits) throw new TypeError(`${file}: host.${name} must be ${wanted}`)
}

/** The texts of a list. */
function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(item => typeof item === 'string') : []
}

/** What a running host's settings are compared with. */
interface RunningSettingsOptions {
  /** The section as it was when the host was made. */
  readonly written: Settings['written']
  readonly file: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Hears of members that count only from the next start. */
  readonly told: (what: Why) => void
}

/** Asked about a config that has changed. */
type OnConfig = NonNullable<HostOptions['onConfig']>

/** What a running host takes. */
const applied = ['policy', 'budgets', 'roots'] as const satisfies readonly (keyof HostSettings)[]

/** Applies what a changed file says of a host that runs. */
export class RunningSettings {
  /** Undefined until it is made. */
  host: Host | undefined = undefined
  readonly #options: RunningSettingsOptions
  /** The section that counts now, as it is written. */
  #now: Settings['written']

  constructor(options: RunningSettingsOptions) {
    this.#options = options
    this.#now = options.written
  }

  /** Asks whoever decides about the file first; applies what it says of the host if the answer is yes. */
  after(agreed: OnConfig): OnConfig {
    return async (config, text) => (await agreed(config, text)) ?? this.#apply(text)
  }

  /** Gives a reason where nothing of it could be applied. */
  async #apply(text: string): Promise<Why | undefined> {
    const { file, env, told } = this.#options
    if (this.host === undefined) return undefined
    try {
      const { host, written } = readSettings(await parseConfig(text, file), file, env)
      const before = this.#now
      const members = new Set([...Object.keys(before), ...Object.keys(written)])
      const changed = [...members].filter(name => JSON.stringify(before[name]) !== JSON.stringify(written[name]))
      const next = Object.fromEntries(
        applied.filter(name => changed.includes(name)).map(name => [name, host[name] ?? empty[name]]),
      )
      if (Object.keys(next).length > 0) await this.host.update(next)
      this.#now = written
      for (const name of changed.filter(each => !(each in next))) {
        const message = `host.${name} has changed and takes effect after a restart`
        told(why('RESTART_NEEDED', `host.${name}`, message, 'Restart the host to use it'))
      }
      return undefined
    } catch (error) {
      return why(
        'CONFIG_INVALID',
        'config.host',
        messageOf(error),
        'Correct "host" in the file. The previous settings stay in force until then',
      )
    }
  }
}

/** For a member that is gone. */
const empty = { policy: {}, budgets: [], roots: [] } as const satisfies HostSettings
