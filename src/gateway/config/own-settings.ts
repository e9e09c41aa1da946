/** Reads the gateway's own settings from its file (name, listener, store, limits), and checks whether it can listen with them. */
import { resolve } from 'node:path'
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { quoted } from '../../core/suggestion.ts'
import { type Limits, serverLimits } from '../../engine/limits.ts'
import type { PlacedValue } from '../../host/config/read.ts'
import { checkListenPaths } from '../../transports/http/listen.ts'
import { checkNames, isLoopbackHost } from '../../transports/http/names.ts'
import type { GatewayOptions } from '../gateway.ts'
import { defaultShares } from '../shares.ts'
import type { AuthSettings } from '../trust/settings.ts'
import type { TellFault } from './read.ts'
import { lastPort, longestName, shortestSecret, storeForm } from './written.ts'

/** Where a gateway listens, and under which names and origins it may be reached. */
export interface ListenPlace {
  /**
   * The address to listen at. An address that is not loopback needs `auth`.
   * @default 127.0.0.1
   */
  readonly host?: string
  /**
   * The port; 0 takes any that is free. By default 7420 with `vivarium gateway`, and any that is free in a program.
   * @integer
   * @minimum 0
   * @maximum {lastPort}
   */
  readonly port?: number
  /**
   * The path of the endpoint (Streamable HTTP).
   * @default /mcp
   * @pattern ^/
   */
  readonly path?: string
  /**
   * The path of the HTTP+SSE pair (2024-11-05). By default it is not served.
   * @pattern ^/
   * @example /sse
   */
  readonly ssePath?: string
  /**
   * The path of the WebSocket carrier. By default it is not served.
   * @pattern ^/
   * @example /ws
   */
  readonly wsPath?: string
  /**
   * Origins of web pages that may call and read answers; `*` stands for any.
   * @default []
   * @example ["https://app.example.com"]
   */
  readonly origins?: readonly string[]
  /**
   * Host names under which the gateway is reached, in addition to those of loopback.
   * @default []
   * @example ["mcp.example.com"]
   */
  readonly hosts?: readonly string[]
}

/**
 * Limits on what clients send: whole numbers.
 * @defaults {serverLimits}
 * @integer
 * @minimum 1
 */
export type WrittenLimits = Partial<Limits>

/** The web console of a gateway. */
export interface ConsoleSettings {
  /**
   * The port of the page on 127.0.0.1; 0 takes any that is free. By default 7425, or a free one where that is in use.
   * @integer
   * @minimum 0
   * @maximum {lastPort}
   */
  readonly port?: number
  /**
   * Who sees exact arguments and tool definitions: everybody who may view, or only operators and approvers.
   * @default approver
   */
  readonly payloads?: 'viewer' | 'approver'
  /**
   * Whether nobody approves a call of his own: the name of the session must differ from the client and the subject of the call. Needs
   * `auth`, because a call without a subject can then only be refused.
   * @default false
   */
  readonly fourEyes?: boolean
}

/** The settings of the gateway itself, as its file gives them. */
export interface GatewayOwnSettings
  extends Pick<GatewayOptions, 'name' | 'instructions' | 'askTimeout' | 'startWait' | 'drain' | 'limits' | 'shares' | 'names'> {
  /** The address of the store. */
  readonly store?: string
  /** The secret that seals tokens. */
  readonly secret?: string
  /** Where the gateway listens. */
  readonly listen: ListenPlace
  /** The web console, where it is served. */
  readonly console?: boolean | ConsoleSettings
}

/** The members of `listen` and their types. */
const kinds: Readonly<Record<keyof ListenPlace, 'text' | 'port' | 'path' | 'texts'>> = {
  host: 'text',
  port: 'port',
  path: 'path',
  ssePath: 'path',
  wsPath: 'path',
  origins: 'texts',
  hosts: 'texts',
}

/** A setting that is copied as it is: its name, the check, the error text and the fix. */
type Plain = readonly [
  member: Exclude<keyof GatewayOwnSettings, 'listen' | 'limits' | 'shares' | 'console'>,
  fits: Fits,
  wrong: string,
  fix: string,
]
type Fits = (value: unknown) => boolean

/** Null stands for a text with an unset variable, which is reported elsewhere. */
const text =
  (fits: (text: string) => boolean): Fits =>
  value =>
    value === null || (typeof value === 'string' && fits(value))

/** Anything that `toMilliseconds` accepts. */
const isDuration: Fits = value => {
  try {
    return toMilliseconds(value as Duration, '') >= 0
  } catch {
    return false
  }
}

const unfit = 'is not valid'
const noTime = 'is not a duration'
/** Checked in this order. */
const plain: readonly Plain[] = [
  ['store', text(said => storeForm.test(said)), unfit, 'Use memory:, sqlite:PATH or postgres://…'],
  ['name', text(said => said !== '' && said.length <= longestName), unfit, 'Use a name of 1 to 100 characters'],
  ['instructions', text(() => true), unfit, 'Use a string'],
  [
    'secret',
    text(said => said.length >= shortestSecret),
    unfit,
    'Use at least 32 characters, preferably from an environment variable',
  ],
  ['askTimeout', isDuration, noTime, 'Write 10m, or a number of milliseconds'],
  ['startWait', isDuration, noTime, 'Write 5s, or a number of milliseconds'],
  ['drain', isDuration, noTime, 'Write 30s, or a number of milliseconds'],
]
const isNaming: Fits = value => value === 'prefixed' || value === 'short'
const naming: Plain = ['names', isNaming, 'must be prefixed or short', 'Write names: prefixed, or remove it']

/** Reads the gateway's own settings. `folder`: the folder of the file, which relative paths start from. */
export function readOwnSettings(members: ReadonlyMap<string, PlacedValue>, folder: string, tell: TellFault): GatewayOwnSettings {
  const frame: Record<string, unknown> = {}
  const take = ([name, fits, wrong, fix]: Plain): void => {
    const at = members.get(name)
    if (at === undefined) return
    if (!fits(at.value)) tell(at, `gateway.${name}`, `${name} ${wrong}`, fix)
    else if (at.value !== null) frame[name] = at.value
  }
  plain.forEach(take)
  const { store } = frame
  if (typeof store === 'string') frame['store'] = storeFrom(store, folder)
  const rest = {
    listen: listenIn(members.get('listen'), tell),
    ...numbersIn('limits', { ...serverLimits }, 'frameBytes: 33554432', members, tell),
    ...consoleIn(members, tell),
    ...numbersIn('shares', { ...defaultShares }, 'calls: 128', members, tell),
  }
  take(naming)
  return { ...frame, ...rest }
}

/** Makes the path of an SQLite store absolute, so that it does not depend on the working directory. */
function storeFrom(url: string, folder: string): string {
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  return path === undefined || path === ':memory:' ? url : `sqlite:${resolve(folder, path)}`
}

/** Reads an object of whole numbers whose names have defaults. */
function numbersIn<N extends 'limits' | 'shares'>(
  of: N,
  defaults: Readonly<Record<string, number>>,
  example: string,
  members: ReadonlyMap<string, PlacedValue>,
  tell: TellFault,
): { readonly [K in N]?: Record<string, number> } {
  const at = members.get(of)
  if (at === undefined) return {}
  const said: Record<string, number> = {}
  // A share must leave room for a second client.
  const least = of === 'shares' ? 1 : 0
  if (at.members === undefined) tell(at, `gateway.${of}`, `${of} must be an object`, `Write ${of}: { ${example} }`)
  for (const [name, member] of at.members ?? []) {
    const { value } = member
    if (!Object.hasOwn(defaults, name))
      tell(member, `gateway.${of}`, `${of} has no setting ${quoted(name)}`, `Use ${Object.keys(defaults).join(', ')}`)
    else if (typeof value === 'number' && Number.isSafeInteger(value) && value > least) said[name] = value
    else tell(member, `gateway.${of}`, `${of}.${name} must be a whole number above ${least}`, `The default is ${defaults[name]}`)
  }
  return at.members === undefined ? {} : ({ [of]: said } as { readonly [K in N]?: Record<string, number> })
}

/** Members of `console` that the design has and this version does not: sign-on, and the address of a proxy. */
const notYet = ['auth', 'roles', 'url', 'views']

/** Reads `console`. */
function consoleIn(members: ReadonlyMap<string, PlacedValue>, tell: TellFault): Pick<GatewayOwnSettings, 'console'> {
  const at = members.get('console')
  if (at === undefined) return {}
  if (typeof at.value === 'boolean') return { console: at.value }
  if (at.members === undefined) tell(at, 'gateway.console', 'console is neither true, false nor an object', 'Write console: true')
  const fits: Readonly<Record<string, readonly [Fits, string]>> = {
    port: [value => isPort(value), 'Give a number from 0 to 65535; 0 takes any that is free'],
    payloads: [value => value === 'viewer' || value === 'approver', 'Give viewer or approver'],
    fourEyes: [value => typeof value === 'boolean', 'Give true or false'],
  }
  const said: Record<string, unknown> = {}
  for (const [name, member] of at.members ?? []) {
    const [check, fix] = (Object.hasOwn(fits, name) ? fits[name] : undefined) ?? []
    if (notYet.includes(name)) {
      const why = 'the console listens on 127.0.0.1 alone, and its links sign in'
      tell(member, 'gateway.console', `console.${name} is not supported yet: ${why}`, `Remove console.${name}; use an SSH tunnel`)
    } else if (check === undefined)
      tell(member, 'gateway.console', `console has no member ${quoted(name)}`, `There are ${Object.keys(fits).join(', ')}`)
    else if (check(member.value)) said[name] = member.value
    else tell(member, 'gateway.console', `console.${name} is not valid`, fix ?? '')
  }
  if (said['fourEyes'] === true && !members.has('auth'))
    tell(
      at,
      'gateway.console',
      'console.fourEyes needs auth: without it nobody knows whose call it is',
      'Add auth, or remove fourEyes',
    )
  return { console: said }
}

function isPort(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= lastPort
}

/** Reads `listen`. A number alone is the port. */
function listenIn(at: PlacedValue | undefined, tell: TellFault): ListenPlace {
  if (at === undefined) return {}
  if (typeof at.value === 'number') return { port: at.value }
  if (at.members === undefined) {
    tell(at, 'gateway.listen', 'listen must be an object', 'Write listen: { port: 7420 }')
    return {}
  }
  const place: Record<string, unknown> = {}
  for (const [name, member] of at.members) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name as keyof ListenPlace] : undefined
    if (kind === undefined)
      tell(member, 'gateway.listen', `listen has no setting ${quoted(name)}`, `Use ${Object.keys(kinds).join(', ')}`)
    else if (fits(kind, member.value)) place[name] = member.value
    else tell(member, 'gateway.listen', `listen.${name} is not valid`, remedies[kind])
  }
  return place
}

/** What to write instead, by type. */
const remedies = {
  text: 'Use a string',
  port: 'Use a number from 0 to 65535. 0 selects a free port',
  path: 'Use a path such as /mcp',
  texts: 'Use a list of strings',
} as const

/** Whether a member of `listen` has the right type. */
function fits(kind: keyof typeof remedies, value: unknown): boolean {
  if (kind === 'port') return isPort(value)
  if (kind === 'texts') return Array.isArray(value) && value.every(each => typeof each === 'string')
  return typeof value === 'string' && (kind === 'text' || value.startsWith('/'))
}

// Whether a gateway can listen with its settings. `gateway.listen()`, `vivarium gateway` and its `--check` use the same check, so that a
// config which passes the check also starts.

/** What decides whether a gateway may listen. */
interface Serving {
  readonly place: ListenPlace
  readonly auth: AuthSettings | undefined
  /** The operator explicitly allows anyone who can reach it to call it. */
  readonly unprotected: boolean
}

interface ServingFault {
  /** The setting that is at fault. */
  readonly member: 'listen' | 'auth'
  readonly message: string
  readonly fix: string
}

/** Why a gateway cannot listen with these settings; undefined where it can. */
export function servingFault({ place, auth, unprotected }: Serving): ServingFault | undefined {
  const { host, path = '/mcp' } = place
  if (unprotected && auth !== undefined)
    return {
      member: 'auth',
      message: '--unprotected (auth: none) cannot be combined with auth, because no token would be checked',
      fix: 'Remove --unprotected or auth',
    }
  const misplaced = thrownBy(() => checkListenPaths(path, place)) ?? thrownBy(() => checkNames(place))
  if (misplaced !== undefined) return { member: 'listen', message: misplaced, fix: 'Correct listen' }
  if (isLoopbackHost(host) || unprotected) return undefined
  if (auth === undefined)
    return {
      member: 'listen',
      message: `Other machines can reach the gateway on ${host}, but auth is not set, so anybody could call it`,
      fix: 'Add auth with tokens or an issuer, or listen on 127.0.0.1. To accept every caller, use --unprotected (auth: none)',
    }
  if (auth.resource !== undefined) return undefined
  return {
    member: 'auth',
    message: `auth.resource is missing. The gateway listens on ${host}, so it cannot know the URL that clients use`,
    fix: 'Add auth.resource: the URL that clients use, such as https://mcp.example.com/mcp',
  }
}

/** The message of what the check throws. */
function thrownBy(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
