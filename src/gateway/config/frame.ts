/** What the file says of the gateway itself: its name, where it listens, what it keeps. */
import { type Duration, toMilliseconds } from '../../core/duration.ts'
import { quoted } from '../../core/why.ts'
import { type Limits, serverLimits } from '../../engine/limits.ts'
import type { Placed } from '../../host/config/jsonc.ts'
import type { TellFault } from './read.ts'

export interface ListenPlace {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  /** The path of the old pair of endpoints. */
  readonly ssePath?: string
  readonly wsPath?: string
  /** Web pages of these origins may call. */
  readonly origins?: readonly string[]
  /** The names under which it is called, beside loopback. */
  readonly hosts?: readonly string[]
}

export interface Frame {
  readonly name?: string
  readonly instructions?: string
  readonly store?: string
  readonly secret?: string
  readonly askTimeout?: Duration
  readonly startWait?: Duration
  readonly drain?: Duration
  readonly listen: ListenPlace
  readonly limits?: Partial<Limits>
  /** `prefixed`: every name has its server's in front, so that none ever changes. */
  readonly names?: 'prefixed' | 'short'
}

const kinds: Readonly<Record<keyof ListenPlace, 'text' | 'port' | 'path' | 'texts'>> = {
  host: 'text',
  port: 'port',
  path: 'path',
  ssePath: 'path',
  wsPath: 'path',
  origins: 'texts',
  hosts: 'texts',
}

export function readFrame(members: ReadonlyMap<string, Placed>, tell: TellFault): Frame {
  const text = (name: 'name' | 'instructions' | 'store' | 'secret', fits: (text: string) => boolean, fix: string) => {
    const at = members.get(name)
    if (at === undefined || at.value === null) return {}
    if (typeof at.value === 'string' && fits(at.value)) return { [name]: at.value }
    tell(at, `gateway.${name}`, `${name} is not what it must be`, fix)
    return {}
  }
  return {
    ...text('name', said => said !== '' && said.length <= 100, 'Give a name of 1 to 100 characters'),
    ...text('instructions', () => true, 'Give a text'),
    ...text('store', said => /^(memory:$|sqlite:.|postgres(ql)?:\/\/)/.test(said), 'Give memory:, sqlite:PATH or postgres://…'),
    ...text('secret', said => said.length >= 32, 'Give at least 32 characters, best by a variable of the environment'),
    ...durationIn('askTimeout', members, '10m', tell),
    ...durationIn('startWait', members, '5s', tell),
    ...durationIn('drain', members, '30s', tell),
    listen: listenIn(members.get('listen'), tell),
    ...limitsIn(members.get('limits'), tell),
    ...namesIn(members.get('names'), tell),
  }
}

function limitsIn(at: Placed | undefined, tell: TellFault): { limits?: Partial<Limits> } {
  if (at === undefined) return {}
  if (at.members === undefined) {
    tell(at, 'gateway.limits', 'limits is no object', 'Write limits: { frameBytes: 33554432 }')
    return {}
  }
  const limits: Record<string, number> = {}
  for (const [name, member] of at.members) {
    const { value } = member
    if (!Object.hasOwn(serverLimits, name))
      tell(member, 'gateway.limits', `limits has no member ${quoted(name)}`, `There are ${Object.keys(serverLimits).join(', ')}`)
    else if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) limits[name] = value
    else
      tell(
        member,
        'gateway.limits',
        `limits.${name} is no whole number above 0`,
        `The default is ${serverLimits[name as keyof Limits]}`,
      )
  }
  return { limits }
}

function namesIn(at: Placed | undefined, tell: TellFault): { names?: 'prefixed' | 'short' } {
  if (at === undefined) return {}
  if (at.value === 'prefixed' || at.value === 'short') return { names: at.value }
  tell(at, 'gateway.names', 'names is neither prefixed nor short', 'Write names: prefixed, or leave it out')
  return {}
}

function durationIn<N extends 'askTimeout' | 'startWait' | 'drain'>(
  name: N,
  members: ReadonlyMap<string, Placed>,
  example: string,
  tell: TellFault,
): { readonly [K in N]?: Duration } {
  const at = members.get(name)
  if (at === undefined) return {}
  const given = at.value as Duration
  try {
    toMilliseconds(given, name)
    return { [name]: given } as { readonly [K in N]?: Duration }
  } catch {
    tell(at, `gateway.${name}`, `${name} is no span of time`, `Write ${example}, or a number of milliseconds`)
    return {}
  }
}

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

const remedies = {
  text: 'Give a text',
  port: 'Give a number from 0 to 65535; 0 takes any that is free',
  path: 'Give a path such as /mcp',
  texts: 'Give a list of texts',
} as const

function fits(kind: keyof typeof remedies, value: unknown): boolean {
  if (kind === 'port') return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535
  if (kind === 'texts') return Array.isArray(value) && value.every(each => typeof each === 'string')
  return typeof value === 'string' && (kind === 'text' || value.startsWith('/'))
}
