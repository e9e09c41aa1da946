/**
 * `connect`: checks the options, builds a client from the list of features, and opens the server, whatever revision it speaks.
 */
import { type Clock, realClock, toMilliseconds } from '../core/clock.ts'
import type { Credentials } from '../core/credentials.ts'
import { unlessAborted } from '../core/deadlines.ts'
import { checkLogOption, logFrom, type Trace, traceInto } from '../core/log.ts'
import { checkOptions, type OptionKind } from '../core/options.ts'
import type { Outbound } from '../core/outbound.ts'
import { secretValues } from '../core/redact.ts'
import { Engine } from '../engine/engine.ts'
import { clientLimits } from '../engine/limits.ts'
import { incompatibleHandshake } from '../features/mcp/tools/outcome.ts'
import { clip } from '../jsonrpc/limits.ts'
import { SupportedRevisions } from '../revisions/index.ts'
import { version } from '../revisions/revision.ts'
import type { ConnectOptions } from './api.ts'
import { Client } from './client.ts'
import { clientFeatures, featuresFor } from './features.ts'
import { type ClientOwnKit, installClientFeatures } from './kit.ts'
import type { ProbeOptions } from './probe.ts'
import { Session } from './session.ts'
import { type Opener, openerOf, type Target } from './target.ts'

/** Trace events that indicate a bug in the author's code. */
const mistakes: ReadonlySet<string> = new Set(['internal', 'handler-failed', 'notification-failed'])

/** Where traces go: to the log, with secrets redacted, and unchanged to `onTrace`. */
function clientTrace(target: Target, { log, headers = {}, onTrace }: ConnectOptions): Trace | undefined {
  const chosen = logFrom(log, 'silent')
  if (chosen.level === 'silent') return onTrace
  const env = typeof target === 'object' && 'command' in target ? (target.env ?? {}) : {}
  const secrets = [...secretValues(headers), ...secretValues(env, true)]
  const write = traceInto(chosen.child(named(target)), { mistakes, secrets })
  if (onTrace === undefined) return write
  return (event, detail, caller) => {
    onTrace(event, detail)
    write(event, detail, caller)
  }
}

/** The target for the log, without query and arguments, which may be secret. */
function named(target: Target): Readonly<Record<string, string>> {
  if (typeof target === 'string' || target instanceof URL) {
    const { origin, pathname } = new URL(target)
    return { target: origin + pathname }
  }
  return 'command' in target ? { target: target.command } : {}
}

/** How this client names itself unless it is told otherwise. */
const defaultInfo = { name: 'vivarium', version }

/**
 * Connects to a server: a URL, a command to start, or an open connection. It finds out which protocol revision the server speaks.
 * Rejects if the server cannot be reached or does not answer.
 * @example
 * await using mcp = await connect(url)
 * const { text } = await mcp.callTool('add', { a: 1, b: 2 })
 */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  if (target === undefined || target === null) throw new TypeError('connect needs a URL, a { command, args } or a connection')
  checkConnectOptions(options)
  checkLogOption(options.log)
  const settings = settingsOf(options)
  const { clock, limits, timeoutMs, probeTimeoutMs, startMs } = settings
  const address = typeof target === 'string' || target instanceof URL ? (URL.parse(target) ?? undefined) : undefined
  const kit = installClientFeatures(await featuresFor(options), options, { clock, timeoutMs, address })
  const engine = engineFor(target, options, settings, kit)
  kit.engine = engine
  const revisions = [...engine.spoken.requests, ...engine.spoken.sessions].map(({ id }) => id)
  const replaced = (): void => {
    for (const part of kit.parts) part.callerChanged?.()
  }
  const facts = { clock, clientName: engine.info.name, revisions, trace: kit.trace, replaced }
  const authorizer = authorizerOf(target, options, facts)
  const opened = openerOf(target, { headers: options.headers, fetch: options.fetch, authorizer, limits })
  const opener = profiled(wrapped(opened, options), options)
  const handshakeFirst = options.live !== undefined
  const session = await open({ engine, opener, probeTimeoutMs, startMs, signal: options.signal, handshakeFirst }, kit)
  attend(session, kit)
  for (const part of kit.parts) {
    const opening = part.opened?.(session)
    if (opening !== undefined) await opening
  }
  return new Client(kit, session)
}

/** Notifies the features about the state of the session. */
function attend(session: Session, { parts }: ClientOwnKit): void {
  const { conversation } = session.opened
  const failing = parts.flatMap(({ failed }) => (failed === undefined ? [] : [failed]))
  if (failing.length > 0)
    session.middleware.push((call, next) =>
      next(call).catch(error => {
        for (const failed of failing) failed(error)
        throw error
      }),
    )
  conversation.onEnd(() => {
    const reason = session.left ? undefined : conversation.reason
    for (const part of parts) part.ended?.(reason)
  })
  session.whenUnheard(
    () => {
      for (const part of parts) part.unheard?.()
    },
    error => {
      for (const part of parts) part.refused?.(error)
    },
  )
  session.reopening = async () => {
    for (const part of parts) await part.reopening?.()
  }
}

/** Options with a default or a unit, resolved. */
function settingsOf(options: ConnectOptions) {
  const { rates, listPages, listItems, ...given } = options.limits ?? {}
  const timeoutMs = toMilliseconds(options.timeout ?? given.callTimeoutMs ?? clientLimits.callTimeoutMs, 'timeout')
  return {
    clock: options.clock ?? realClock,
    // Requests that features send by themselves have the deadline of a call; opening may have its own.
    limits: { ...clientLimits, ...given, callTimeoutMs: timeoutMs },
    startMs: toMilliseconds(options.startTimeout ?? timeoutMs, 'startTimeout'),
    timeoutMs,
    probeTimeoutMs: toMilliseconds(options.probeTimeout ?? '5s', 'probeTimeout'),
  }
}

/** Builds the engine from the sides of all features. */
function engineFor(
  target: Target,
  options: ConnectOptions,
  { clock, limits }: ReturnType<typeof settingsOf>,
  { parts }: ClientOwnKit,
): Engine {
  const { extensions } = options
  const trace = clientTrace(target, options)
  const { logLevel, ...asked }: NonNullable<ClientOwnKit['parts'][number]['engine']> = Object.assign(
    {},
    ...parts.map(part => part.engine),
  )
  const engine = new Engine({
    role: 'client',
    info: options.info ?? defaultInfo,
    spoken: new SupportedRevisions(options.revisions),
    limits,
    sides: [
      ...parts.flatMap(({ side }) => (side === undefined ? [] : [side])),
      { capabilities: ({ extensionsIn }) => (extensions === undefined || extensionsIn === undefined ? {} : { extensions }) },
    ],
    clock,
    ...(trace === undefined ? {} : { trace }),
    ...asked,
  })
  engine.logLevel = logLevel
  return engine
}

/** Applies the option `wrap` to every connection. */
function wrapped(opener: Opener, { wrap }: ConnectOptions): Opener {
  if (wrap === undefined) return opener
  const { openOldPair } = opener
  return {
    kind: opener.kind,
    name: opener.name,
    open: async () => wrap(await opener.open()),
    ...(openOldPair && { openOldPair: async () => wrap(await openOldPair.call(opener)) }),
  }
}

/** Applies the option `profile` to every connection. */
function profiled(opener: Opener, { profile }: ConnectOptions): Opener {
  if (profile === undefined) return opener
  if (profile !== 'davioe')
    throw new TypeError(`profile is "${clip(String(profile))}". The only profile is 'davioe'; leave the option out otherwise`)
  return {
    kind: opener.kind,
    name: opener.name,
    open: async () => {
      const { DavioeConnection } = await import('../features/reliability/davioe/client.ts')
      return new DavioeConnection(await opener.open())
    },
  }
}

/** Opens the session. On failure it leaves no process and no socket behind. */
async function open(probe: ProbeOptions, kit: ClientOwnKit): Promise<Session> {
  const { engine, signal } = probe
  signal?.throwIfAborted()
  const stop = (): void => void engine.close()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    const session = await Session.open(probe)
    signal?.throwIfAborted()
    kit.opened = session
    for (const part of kit.parts) {
      const opening = part.opening?.(session, signal)
      if (opening !== undefined) await unlessAborted(opening, signal)
    }
    return session
  } catch (error) {
    await engine.close()
    throw signal?.aborted ? signal.reason : incompatibleHandshake(error)
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

// Turns the option `auth` into the credentials that carriers ask for.

interface AuthorizingFacts {
  readonly clock: Clock
  readonly clientName: string
  readonly revisions: readonly string[]
  readonly trace: (event: string, detail: unknown) => void
  /** Called when the credentials have changed: the principal may be another one. */
  readonly replaced: () => void
}

/** One authorizer per client, shared by all connections to its server. */
function authorizerOf(
  target: Target,
  options: ConnectOptions,
  { replaced, ...facts }: AuthorizingFacts,
): Credentials | undefined {
  const { auth, headers = {} } = options
  if (auth === undefined) return undefined
  if (typeof target !== 'string' && !(target instanceof URL)) {
    throw new TypeError('The option auth works only with a URL. Pass credentials to a command in its env')
  }
  if (Object.keys(headers).some(name => name.toLowerCase() === 'authorization')) {
    throw new TypeError('Both auth and headers.authorization are set. Set only one of them')
  }
  const server = serverAddress(new URL(target))
  return noticing(auth.authorizer({ ...facts, server, reach: allow => lazyOutbound(server, allow) }), replaced)
}

/** Reports when credentials were replaced. */
function noticing(inner: Credentials, replaced: () => void): Credentials {
  return {
    headers: (method, url) => inner.headers(method, url),
    refused: async refusal => {
      await inner.refused(refusal)
      replaced()
    },
    answered: header => inner.answered?.(header),
  }
}

/** Authorization uses HTTP addresses, also for WebSockets. */
function serverAddress(target: URL): URL {
  const server = new URL(target.href.replace(/^ws/, 'http'))
  server.hash = ''
  return server
}

/** Loads the outbound guard with the first address that a server names. */
function lazyOutbound(server: URL, allow: readonly string[]): Outbound {
  let loaded: Promise<Outbound> | undefined
  return async (url, request) => {
    loaded ??= import('./outbound.ts').then(({ outboundFor }) => outboundFor(server, allow))
    return (await loaded)(url, request)
  }
}

// Checks the names and types of options at runtime, for programs without type checking.

/** The options of the connection itself. */
const own: Readonly<Partial<Record<keyof ConnectOptions, OptionKind>>> = {
  info: 'object',
  revisions: 'list',
  relay: 'object',
  profile: 'any',
  extensions: 'object',
  auth: 'any',
  headers: 'object',
  wrap: 'function',
  fetch: 'function',
  timeout: 'any',
  startTimeout: 'any',
  probeTimeout: 'any',
  live: 'object',
  limits: 'object',
  log: 'any',
  onTrace: 'function',
  clock: 'object',
  signal: 'object',
}

const kinds: Readonly<Record<string, OptionKind>> = Object.assign({}, ...clientFeatures.map(({ options }) => options), own)

/** Throws if an option is unknown or has the wrong type. */
function checkConnectOptions(options: unknown): void {
  checkOptions('connect', options, kinds)
}
