/** Servers as a host knows them: reads the program's options into one shape, and determines the identity of a server. */
import type { ConnectOptions } from '../../client/api.ts'
import type { Command, Target } from '../../client/target.ts'
import { nearest } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../jsonrpc/message.ts'
import type { LiveSection, ServerEntry } from '../config/entry.ts'

/** What to connect to; a function is called for each connection. */
export type Opening = Target | (() => Awaitable<Target>)

/** A server in one shape, from the config or the program. */
export interface ServerDefinition extends Omit<ServerEntry, 'target' | 'more'> {
  readonly target: Opening
  readonly connect?: ConnectOptions
  /** Changes when the server has to be reconnected. */
  readonly digest: string
}

/** A server in the program's options: what to connect to, alone or with settings. */
export type ServerOption = Opening | (ServerPlace & ServerSettings)

/** Settings of a server in addition to its place. */
export interface ServerSettings {
  /** Headers of every request over HTTP. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The longest call, in milliseconds. */
  readonly timeoutMs?: number
  /** The longest start, in milliseconds. Default 30 s. */
  readonly startTimeoutMs?: number
  /** Connect options such as `auth` and `revisions`. Handlers that the host needs itself (sampling, elicitation, MCP Live) are not replaced. */
  readonly connect?: ConnectOptions
  /** Tools that may be called without asking in turns that the user starts. Default: none. */
  readonly autoApprove?: readonly string[]
  /** Feature sets of MCP Live, and what they may do. */
  readonly live?: LiveSection
  /** Names of the server's events (`server.event`) that go to the inbox. Default: none. */
  readonly events?: readonly string[]
}

/** The place: `url` or `command` as in config files, or any `target`. */
type ServerPlace =
  | {
      /** What to connect to. */
      readonly target: Opening
    }
  | {
      /** The URL of the server. */
      readonly url: string | URL
    }
  | Command

const settings: (keyof ServerSettings)[] = ['headers', 'timeoutMs', 'startTimeoutMs', 'connect', 'autoApprove', 'live', 'events']
const commandMembers = ['command', 'args', 'env', 'cwd', 'stderr'] as const
const liveMembers: readonly (keyof LiveSection)[] = ['enable', 'disable', 'scopes', 'uses', 'tools']

/** Reads a server of the program's options. */
export function knownServer(name: string, option: ServerOption): ServerDefinition {
  return { disabled: false, autoApprove: [], live: {}, digest: name, ...detailed(name, option), name }
}

/** Splits an option and reports unknown members, so that nothing is ignored silently. */
function detailed(name: string, option: ServerOption): { readonly target: Opening } {
  const { target, more } = placeIn(option)
  if (!isOpening(target)) {
    const wanted = `a URL, { command, args }, or { target, headers, live, … } with one of them as target`
    throw new TypeError(`Server "${clip(name)}" has no target. Use ${wanted}`)
  }
  check(`servers.${name}`, more, settings)
  if (isRecord(more['live'])) check(`servers.${name}.live`, more['live'], liveMembers)
  return { ...more, target }
}

/** Separates the place from the settings. */
function placeIn(option: ServerOption): { readonly target: unknown; readonly more: Readonly<Record<string, unknown>> } {
  if (!isRecord(option) || option instanceof URL || 'start' in option) return { target: option, more: {} }
  if ('target' in option || 'url' in option) {
    const { target, url = target, ...more } = option as Readonly<Record<string, unknown>>
    return { target: url, more }
  }
  const own = new Set<string>(commandMembers)
  const [target, more] = [true, false].map(isOwn =>
    Object.fromEntries(Object.entries(option).filter(([key]) => own.has(key) === isOwn)),
  )
  return { target, more: more ?? {} }
}

/** Throws for an unknown member. */
function check(place: string, given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknownMember = Object.keys(given).find(member => !known.includes(member))
  if (unknownMember === undefined) return
  const [meant] = nearest(unknownMember, known)
  const hint = meant === undefined ? `Use ${known.join(', ')}` : `Did you mean ${meant}?`
  throw new TypeError(`${place}.${clip(unknownMember)} is not known. ${hint}`)
}

/** Whether a value can be connected. */
function isOpening(target: unknown): target is Opening {
  if (typeof target === 'string' || typeof target === 'function') return true
  return isRecord(target) && (target instanceof URL || 'command' in target || 'start' in target)
}

/**
 * Identifies what is connected under a name, so that an approval for one server does not count for another with the same name. Headers and
 * environment are left out, because credentials change while the server stays the same. Undefined where only the name is known.
 */
export function identityOf(entry: Pick<ServerDefinition, 'target'> | undefined): string | undefined {
  const target = entry?.target
  if (typeof target === 'string' || target instanceof URL) return placeOf(target)
  if (!isRecord(target) || !('command' in target)) return undefined
  const { command, args = [], cwd } = target as { command: string; args?: readonly string[]; cwd?: string }
  return JSON.stringify(['command', command, args, cwd ?? null])
}

/** Without query and user name, which may contain credentials. */
function placeOf(target: string | URL): string | undefined {
  if (!URL.canParse(target)) return undefined
  const { protocol, host, pathname } = new URL(target)
  return JSON.stringify(['url', protocol, host, pathname])
}
