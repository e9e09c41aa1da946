/** An upstream's entry as a program or a file gives it: options, connection entry, stderr filter, and the comparison for reloads. */

import { bindingOf, type ClientAuthorization } from '../../auth/client/index.ts'
import type { Binding } from '../../auth/client/issuer-binding.ts'
import { userStorage } from '../../auth/client/user-storage.ts'
import { createBuckets } from '../../core/bucket.ts'
import type { Clock } from '../../core/clock.ts'
import { isSecretName, redact, secretValues } from '../../core/redact.ts'
import { quoted, shellWord } from '../../core/suggestion.ts'
import { knownServer, type Opening, type ServerDefinition, type ServerOption } from '../../host/servers/entry.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { GatewayOptions } from '../gateway.ts'
import { authFaults, authOf, type CredentialsParts, credentialsFor, type UpstreamAuthOption } from './auth.ts'

/** A server with more settings than what to connect to. */
type DetailedServer = Exclude<ServerOption, Opening>

/** What to connect to, alone or with more settings. */
export type GatewayServer =
  | ServerOption
  | (DetailedServer & {
      /** How the gateway authenticates there: `sign-in`, its own credentials, or an authorization of `vivarium/client`. */
      readonly auth?: UpstreamAuthOption | ClientAuthorization
      /** A prefix for all its names, so that they never change: its own name (`true`) or a text. */
      readonly prefix?: boolean | string
      /**
       * False: a changed command or address is applied and reported instead of held. Default: true for programs and included files, false for
       * the gateway's own file, which only its operator writes.
       */
      readonly pinLaunch?: boolean
    })

interface EntryParts {
  readonly credentials: CredentialsParts
  readonly clock: Clock
  readonly names?: GatewayOptions['names'] | undefined
  /** Called with the standard error of command servers. */
  readonly stderr?: ((server: string, line: string) => void) | undefined
}

/** An option as an entry that can be connected, with what the gateway itself has to know of it. Throws where its `auth` is wrong. */
export function upstreamEntry(name: string, option: GatewayServer, { credentials, clock, names, stderr }: EntryParts) {
  const isDetailed = 'target' in Object(option)
  const said = (isRecord(option) ? option : {}) as Extract<GatewayServer, { readonly auth?: unknown }>
  const { auth, prefix, pinLaunch, ...rest } = said
  const entry = knownServer(name, isDetailed ? rest : option)
  const { target } = entry
  // The URL, where it is known in advance.
  const address = target instanceof URL ? target.href : typeof target === 'string' ? target : undefined
  return {
    entry: auth === undefined || !isDetailed ? entry : withAuth(entry, auth, address, credentials),
    address,
    /** How it is reached; undefined where a program hands over the connection. */
    carrier: carrierOf(target),
    /** The prefix of its names, if any. */
    prefix:
      typeof prefix === 'string' ? prefix : prefix === true || (names === 'prefixed' && prefix !== false) ? name : undefined,
    /** Whether a changed command or address is held for approval. */
    pinned: pinLaunch !== false,
    /** Takes lines of standard error. */
    writeStderr: stderrWriterOf(option, clock, line => stderr?.(name, line)),
  }
}

function carrierOf(target: unknown): 'stdio' | 'http' | 'websocket' | undefined {
  if (isRecord(target) && 'command' in target) return 'stdio'
  if (typeof target !== 'string' && !(target instanceof URL)) return undefined
  return /^wss?:/i.test(String(target)) ? 'websocket' : 'http'
}

/** The entry with credentials. Throws the first mistake in `auth`. */
function withAuth(
  entry: ServerDefinition,
  auth: UpstreamAuthOption | ClientAuthorization,
  address: string | undefined,
  credentials: CredentialsParts,
): ServerDefinition {
  const own = typeof auth === 'object' && 'authorizer' in auth
  const [fault] = own ? [] : authFaults(auth, address)
  if (fault !== undefined) throw new TypeError(`The server ${quoted(entry.name)}: ${fault.message}. ${fault.fix}`)
  const made = credentialsFor(entry.name, own ? auth : authOf(auth), credentials)
  return { ...entry, connect: { ...entry.connect, auth: made } }
}

/** How the operator approves the launch of an upstream. */
export function howToApproveLaunch({ config, store = 'memory:' }: GatewayOptions, upstream: string): string {
  if (config === undefined) return 'Check it in approvals(), and approve it by its id'
  const fix =
    store === 'memory:' ? 'restart the gateway' : `vivarium gateway ${shellWord(config)} --approve ${shellWord(upstream)}`
  return `Check its entry in the config. If it is correct: ${fix}`
}

/** Token storage and sign-in instructions for credentials. */
export function credentialsParts({ config, tokens }: GatewayOptions): CredentialsParts {
  let stored = tokens
  const known = new Map<string, Binding>()
  return {
    // One binding per upstream URL, client id, issuer and token endpoint.
    binding: (auth, { href }) => {
      const { clientId, issuer, tokenEndpoint } = auth
      const key = JSON.stringify([href, clientId, issuer, tokenEndpoint])
      const binding = known.get(key) ?? bindingOf(auth, clientId, true)
      known.set(key, binding)
      return binding
    },
    tokens: () => {
      stored ??= userStorage(process.env)
      return stored
    },
    signInBy: (upstream, { href, origin, pathname, search }) => {
      if (config !== undefined) return `Sign in: vivarium gateway ${shellWord(config)} --sign-in ${shellWord(upstream)}`
      // The query of a URL may contain a key, so it is not repeated.
      if (tokens === undefined) return `Sign in: vivarium list ${search === '' ? shellWord(href) : `${origin}${pathname}?…`}`
      return 'Sign in with oauth() of vivarium/client and the storage in the option tokens'
    },
  }
}

// Standard error of command servers: a bounded number of lines and characters per second, without secrets of the entry. Omitted lines are
// counted.

/** Lines per second, and at once. */
const lineRate = { perSecond: 20, burst: 200 } as const
/** Characters per second, and at once. */
const charRate = { perSecond: 4_000, burst: 100_000 } as const
/** The longest line. */
const mostChars = 1_000
/** After an omission, how long nothing is passed on before the count is reported. */
const silentMs = 1_000

/** Returns a function that filters the lines of one server. */
function stderrWriterOf(option: GatewayServer, clock: Clock, tell: (line: string) => void): (line: string) => void {
  const lines = createBuckets({ ...lineRate, clock })
  const chars = createBuckets({ ...charRate, clock })
  const secrets = secretsOf(option)
  let left = 0
  const count = (): void => {
    tell(`… ${left} lines omitted`)
    left = 0
  }
  return line => {
    if (left > 0 || lines.take('lines') > 0 || chars.take('chars', Math.min(line.length, mostChars)) > 0) {
      if (left++ === 0) clock.setTimeout(count, silentMs, true)
      return
    }
    tell(clip(redact(line, secrets), mostChars))
  }
}

/** Values of an entry that may be secret. */
function secretsOf(option: GatewayServer): readonly string[] {
  const entry: unknown = option
  if (!isRecord(entry)) return []
  const { target = entry, headers, auth } = entry
  const named = isRecord(auth) ? Object.entries(auth) : []
  return [
    ...(isRecord(target) ? valuesOf(target['env']) : []),
    ...valuesOf(headers),
    ...named.flatMap(([name, value]) => (typeof value === 'string' && isSecretName(name) ? [value] : [])),
  ]
}

function valuesOf(named: unknown): readonly string[] {
  return isRecord(named) ? secretValues(named as Readonly<Record<string, string>>, true) : []
}

/** Whether two values are equal as plain data. Functions and connections are only equal to themselves. */
export function same(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true
  if (one instanceof URL && other instanceof URL) return one.href === other.href
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, at) => same(item, other[at]))
  if (!isPlain(one) || !isPlain(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length && names.every(name => Object.hasOwn(other, name) && same(one[name], other[name]))
  )
}

/** An object literal, or one without a prototype. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value))
}

/** Bounds how many upstreams connect at a time, so that hundreds of them do not all start at once. */
export class ConnectLimit {
  readonly #most: number
  readonly #inside = new Set<string>()
  #waiting: { readonly name: string; readonly enter: () => void }[] = []

  constructor(most: number) {
    this.#most = most
  }

  /** Settles when there is room. Entering twice counts once. */
  async enter(name: string): Promise<void> {
    while (this.#inside.size >= this.#most && !this.#inside.has(name))
      await new Promise<void>(enter => this.#waiting.push({ name, enter }))
    this.#inside.add(name)
  }

  /** Frees the place, also of one that still waits. */
  leave(name: string): void {
    this.#waiting = this.#waiting.filter(each => each.name !== name)
    if (this.#inside.delete(name)) this.#waiting.shift()?.enter()
  }
}
