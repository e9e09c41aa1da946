/** A server as a host is told of it: from a file, or from the program itself. */
import type { ConnectOptions } from '../../client/api.ts'
import type { Command, Target } from '../../client/target.ts'
import { nearest } from '../../core/suggestion.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type Awaitable, isRecord } from '../../jsonrpc/message.ts'
import type { LiveSection } from '../config/entry.ts'

/** What to connect to, each time anew. */
export type Opening = Target | (() => Awaitable<Target>)

/** A server that a host was told of, in one form whatever told of it. */
export interface KnownServer {
  readonly name: string
  readonly target: Opening
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
  readonly startTimeoutMs?: number
  readonly connect?: ConnectOptions
  readonly disabled: boolean
  readonly autoApprove: readonly string[]
  readonly live: LiveSection
  /** Events of the server (`server.event`) that become events of the inbox. */
  readonly events?: readonly string[]
  /** Another one means: connect anew. */
  readonly digest: string
}

/** A server in the program's own words: what to connect to, or that with more about it. */
export type ServerOption = Opening | (ServerPlace & ServerSettings)

/** What may be said beside the place of a server. */
export interface ServerSettings {
  /** Sent with every request to a server on the network. */
  readonly headers?: Readonly<Record<string, string>>
  /** How long a call may take, in milliseconds. */
  readonly timeoutMs?: number
  /** How long it may take until it has answered the opening, in milliseconds. Default 30 s. */
  readonly startTimeoutMs?: number
  /** How to connect: `auth`, `revisions`, … What the host answers itself (sampling, questions, MCP Live) it keeps. */
  readonly connect?: ConnectOptions
  /** Tools that may be called without a question in turns that the user begins. */
  readonly autoApprove?: readonly string[]
  /** Which feature sets of MCP Live are on, and what they may do. */
  readonly live?: LiveSection
  /** Events of the server (`server.event`) to subscribe to, by name: each becomes an event of the inbox. */
  readonly events?: readonly string[]
}

/** Where it is: as in config files `url`, or `command` with its arguments; or anything that can be connected to, as `target`. */
type ServerPlace = { readonly target: Opening } | { readonly url: string | URL } | Command

const settings: readonly (keyof ServerSettings)[] = [
  'headers',
  'timeoutMs',
  'startTimeoutMs',
  'connect',
  'autoApprove',
  'live',
  'events',
]
const commandMembers = ['command', 'args', 'env', 'cwd', 'stderr'] as const
const liveMembers: readonly (keyof LiveSection)[] = ['enable', 'disable', 'scopes', 'uses', 'tools']

/** Reads what the program says of a server. */
export function knownServer(name: string, option: ServerOption): KnownServer {
  return { disabled: false, autoApprove: [], live: {}, digest: name, ...detailed(name, option), name }
}

/** What is written is used, or refused by its name: nothing is left out in silence. */
function detailed(name: string, option: ServerOption): { readonly target: Opening } {
  const { target, more } = placeIn(option)
  if (!isOpening(target)) {
    const wanted = `a URL, { command, args }, or that as { target, headers, live, … }`
    throw new TypeError(`Server "${clip(name)}" has nothing to connect to: give ${wanted}`)
  }
  check(`servers.${name}`, more, settings)
  if (isRecord(more['live'])) check(`servers.${name}.live`, more['live'], liveMembers)
  return { ...more, target }
}

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

function check(place: string, given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const stranger = Object.keys(given).find(member => !known.includes(member))
  if (stranger === undefined) return
  const [meant] = nearest(stranger, known)
  const hint = meant === undefined ? `there are ${known.join(', ')}` : `did you mean ${meant}?`
  throw new TypeError(`${place}.${clip(stranger)} is not known: ${hint}`)
}

function isOpening(target: unknown): target is Opening {
  if (typeof target === 'string' || typeof target === 'function') return true
  return isRecord(target) && (target instanceof URL || 'command' in target || 'start' in target)
}

/**
 * What is connected under the name of a server. Names are given anew: an answer that was about one server must not count for another
 * that gets its name later. Headers and variables are no part of it, because credentials change while the server stays the same.
 * Undefined where nothing is known but the name: the program itself opens the connection.
 */
export function identityOf(entry: Pick<KnownServer, 'target'> | undefined): string | undefined {
  const target = entry?.target
  if (typeof target === 'string' || target instanceof URL) return placeOf(target)
  if (!isRecord(target) || !('command' in target)) return undefined
  const { command, args = [], cwd } = target as { command: string; args?: readonly string[]; cwd?: string }
  return JSON.stringify(['command', command, args, cwd ?? null])
}

/** Queries and user names may hold credentials. */
function placeOf(target: string | URL): string | undefined {
  if (!URL.canParse(target)) return undefined
  const { protocol, host, pathname } = new URL(target)
  return JSON.stringify(['url', protocol, host, pathname])
}
