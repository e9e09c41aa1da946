/** Reads the gateway's own settings from its file (name, listener, store, limits), and checks whether it can listen with them. */
import { resolve } from 'node:path'
import { type Duration, toMilliseconds } from '../../core/clock.ts'
import { quoted } from '../../core/suggestion.ts'
import { serverLimits } from '../../engine/limits.ts'
import type { Placed } from '../../host/config/read.ts'
import { checkListenPaths } from '../../transports/http/listen.ts'
import { checkNames, isLoopbackHost } from '../../transports/http/names.ts'
import type { GatewayOptions } from '../gateway.ts'
import { defaultShares } from '../shares.ts'
import type { AuthSettings } from '../trust/settings.ts'
import type { TellFault } from './read.ts'

/** Where a gateway listens, and under which names and origins it may be reached. */
export interface ListenPlace {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  /** The path of the HTTP+SSE pair (2024-11-05). */
  readonly ssePath?: string
  /** The path of the WebSocket carrier. */
  readonly wsPath?: string
  /** Origins of web pages that may call. */
  readonly origins?: readonly string[]
  /** Host names under which it is reached, beside loopback. */
  readonly hosts?: readonly string[]
}

/** The settings of the gateway itself, as its file gives them. */
export interface GatewayOwnSettings
  extends Pick<GatewayOptions, 'name' | 'instructions' | 'askTimeout' | 'startWait' | 'drain' | 'limits' | 'shares' | 'names'> {
  readonly store?: string
  readonly secret?: string
  readonly listen: ListenPlace
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
  member: Exclude<keyof GatewayOwnSettings, 'listen' | 'limits' | 'shares'>,
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

const unfit = 'is not what it must be'
const noTime = 'is no span of time'
/** Checked in this order. */
const plain: readonly Plain[] = [
  [
    'store',
    text(said => /^(memory:$|sqlite:.|postgres(ql)?:\/\/)/.test(said)),
    unfit,
    'Give memory:, sqlite:PATH or postgres://…',
  ],
  ['name', text(said => said !== '' && said.length <= 100), unfit, 'Give a name of 1 to 100 characters'],
  ['instructions', text(() => true), unfit, 'Give a text'],
  ['secret', text(said => said.length >= 32), unfit, 'Give at least 32 characters, best by a variable of the environment'],
  ['askTimeout', isDuration, noTime, 'Write 10m, or a number of milliseconds'],
  ['startWait', isDuration, noTime, 'Write 5s, or a number of milliseconds'],
  ['drain', isDuration, noTime, 'Write 30s, or a number of milliseconds'],
]
const isNaming: Fits = value => value === 'prefixed' || value === 'short'
const naming: Plain = ['names', isNaming, 'is neither prefixed nor short', 'Write names: prefixed, or leave it out']

/** Reads the gateway's own settings. `folder`: the folder of the file, which relative paths start from. */
export function readOwnSettings(members: ReadonlyMap<string, Placed>, folder: string, tell: TellFault): GatewayOwnSettings {
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
  members: ReadonlyMap<string, Placed>,
  tell: TellFault,
): { readonly [K in N]?: Record<string, number> } {
  const at = members.get(of)
  if (at === undefined) return {}
  const said: Record<string, number> = {}
  // A share must leave room for a second client.
  const least = of === 'shares' ? 1 : 0
  if (at.members === undefined) tell(at, `gateway.${of}`, `${of} is no object`, `Write ${of}: { ${example} }`)
  for (const [name, member] of at.members ?? []) {
    const { value } = member
    if (!Object.hasOwn(defaults, name))
      tell(member, `gateway.${of}`, `${of} has no member ${quoted(name)}`, `There are ${Object.keys(defaults).join(', ')}`)
    else if (typeof value === 'number' && Number.isSafeInteger(value) && value > least) said[name] = value
    else tell(member, `gateway.${of}`, `${of}.${name} is no whole number above ${least}`, `The default is ${defaults[name]}`)
  }
  return at.members === undefined ? {} : ({ [of]: said } as { readonly [K in N]?: Record<string, number> })
}

/** Reads `listen`. A number alone is the port. */
function listenIn(at: Placed | undefined, tell: TellFault): ListenPlace {
  if (at === undefined) return {}
  if (typeof at.value === 'number') return { port: at.value }
  if (at.members === undefined) {
    tell(at, 'gateway.listen', 'listen is no object', 'Write listen: { port: 7420 }')
    return {}
  }
  const place: Record<string, unknown> = {}
  for (const [name, member] of at.members) {
    const kind = Object.hasOwn(kinds, name) ? kinds[name as keyof ListenPlace] : undefined
    if (kind === undefined)
      tell(member, 'gateway.listen', `listen has no member ${quoted(name)}`, `There are ${Object.keys(kinds).join(', ')}`)
    else if (fits(kind, member.value)) place[name] = member.value
    else tell(member, 'gateway.listen', `listen.${name} is not what it must be`, remedies[kind])
  }
  return place
}

/** What to write instead, by type. */
const remedies = {
  text: 'Give a text',
  port: 'Give a number from 0 to 65535; 0 takes any that is free',
  path: 'Give a path such as /mcp',
  texts: 'Give a list of texts',
} as const

/** Whether a member of `listen` has the right type. */
function fits(kind: keyof typeof remedies, value: unknown): boolean {
  if (kind === 'port') return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535
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
      message: '--unprotected (auth: none) contradicts auth: no token would be checked',
      fix: 'Leave out --unprotected, or remove auth',
    }
  const misplaced = thrownBy(() => checkListenPaths(path, place)) ?? thrownBy(() => checkNames(place))
  if (misplaced !== undefined) return { member: 'listen', message: misplaced, fix: 'Correct listen' }
  if (isLoopbackHost(host) || unprotected) return undefined
  if (auth === undefined)
    return {
      member: 'listen',
      message: `Others can reach the gateway on ${host}, and nothing says who may call it`,
      fix: 'Add auth with tokens or an issuer, or listen on 127.0.0.1; --unprotected (auth: none) lets everybody in',
    }
  if (auth.resource !== undefined) return undefined
  return {
    member: 'auth',
    message: `auth has no resource, and the gateway listens on ${host}: nobody here knows by which URL clients reach it`,
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
