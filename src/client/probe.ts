/**
 * Finds out which revision a server speaks, without harming it. It first sends a `server/discover` probe of the stateless
 * revision. An answer that is not stateless means an older server, which gets a handshake. Failures that prove nothing
 * (authorization, overload, network) are thrown as they are.
 */
import type { SendOptions } from '../engine/calls.ts'
import type { OpenedServer } from '../engine/client-feature.ts'
import type { Conversation } from '../engine/conversation.ts'
import type { Engine } from '../engine/engine.ts'
import { type DiscoverResult, discover } from '../features/mcp/lifecycle/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { type Implementation, metaOf, type Revision, serverInfoKey } from '../revisions/index.ts'
import { handshake } from './handshake.ts'
import type { Opener } from './target.ts'

/** Error codes that only stateless revisions have. */
const modernCodes: ReadonlySet<number | undefined> = new Set([-32020, -32021, -32022])

/** HTTP statuses about access or load, which say nothing about the revision. */
const unrelated: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429])

/** The server understands the stateless revision, and still refuses. */
function isModernRefusal(error: unknown): boolean {
  return error instanceof McpError && modernCodes.has(error.code)
}

/** Whether the failure shows that the server does not know the message; if not, it must be thrown. */
function isEvidence(error: unknown, kind: Opener['kind']): boolean {
  const status = statusOf(error)
  if (status !== undefined && (unrelated.has(status) || status >= 500)) return false
  if (error instanceof McpError) return error.kind !== 'timeout' || kind !== 'http'
  if (!(error instanceof ConnectionError)) return false
  return kind === 'http' ? status !== undefined && status >= 400 : error.kind === 'lost'
}

function statusOf(error: unknown): number | undefined {
  return error instanceof McpError || error instanceof ConnectionError ? error.status : undefined
}

/** The versions that an error names. */
function offeredBy(error: unknown): readonly string[] {
  const supported = error instanceof McpError && isRecord(error.data) ? error.data['supported'] : undefined
  return Array.isArray(supported) ? supported.filter(version => typeof version === 'string') : []
}

/** The server to open, and the timeouts. */
export interface ProbeOptions {
  readonly engine: Engine
  readonly opener: Opener
  readonly probeTimeoutMs: number
  /** How long an answer during opening may take. Default: as long as a call. */
  readonly startMs?: number
  readonly signal: AbortSignal | undefined
  /** Try the handshake first, except over HTTP: many servers exit when their first message is another one. */
  readonly handshakeFirst?: boolean
}

/** Servers that needed a handshake, by name. In this process they are not probed again, unless the handshake fails. */
const legacyNames = new Set<string>()
/** Servers that refused a handshake as the first message. */
const modernNames = new Set<string>()
const remembered = 1_000
/** Commands that exited during opening, with what to send first the next time. They are then started once per attempt. */
const dying = new Map<string, 'handshake' | 'probe'>()

/** Opens a server in the revision that it speaks. */
export async function openServer(options: ProbeOptions): Promise<OpenedServer> {
  const { name } = options.opener
  const next = name === undefined ? undefined : dying.get(name)
  if (name === undefined || options.opener.kind !== 'stdio' || !canShake(options)) return openAny(options)
  try {
    const opened = next === undefined ? await openAny(options) : await openOnce(options, next)
    dying.delete(name)
    return opened
  } catch (error) {
    if (error instanceof ConnectionError && error.kind === 'lost' && dying.size < remembered)
      dying.set(name, next === 'handshake' ? 'probe' : 'handshake')
    else dying.delete(name)
    throw error
  }
}

/** Opens a command with a single start. */
async function openOnce(options: ProbeOptions, first: 'handshake' | 'probe'): Promise<OpenedServer> {
  const conversation = await accept(options)
  const newest = options.engine.spoken.requests[0]
  if (first === 'probe' && newest !== undefined) {
    const verdict = await probeModern(conversation, newest, options)
    if ('opened' in verdict) return verdict.opened
    if (conversation.ended) throw verdict.cause
  }
  return handshake(options.engine, conversation, opening(options))
}

/** Tries the handshake first for servers known to need it, else probes. */
async function openAny(options: ProbeOptions): Promise<OpenedServer> {
  const { name, kind } = options.opener
  if (canShake(options) && ((name !== undefined && legacyNames.has(name)) || handshakeFirst(options))) {
    try {
      const opened = await openOld(await accept(options), options, false)
      if (name !== undefined && opened.revision.era === 'request' && modernNames.size < remembered) modernNames.add(name)
      return opened
    } catch (error) {
      options.signal?.throwIfAborted()
      if (name !== undefined) legacyNames.delete(name)
      if (!isEvidence(error, kind)) throw error
      options.engine.trace('verdict-outdated', error)
    }
  }
  return find(options)
}

function handshakeFirst({ handshakeFirst = false, opener: { kind, name } }: ProbeOptions): boolean {
  return handshakeFirst && kind !== 'http' && !(name !== undefined && modernNames.has(name))
}

/** Probes, then falls back to the handshake. */
async function find(options: ProbeOptions): Promise<OpenedServer> {
  const newest = options.engine.spoken.requests[0]
  const conversation = await accept(options)
  if (newest === undefined) return openOld(conversation, options, false)
  const deadline = new ProbeDeadline(options)
  try {
    const verdict = await probeModern(conversation, newest, options, deadline)
    if ('opened' in verdict) return verdict.opened
    return await findOld(conversation, verdict, options, deadline)
  } finally {
    deadline.end()
  }
}

async function findOld(
  probed: Conversation,
  { cause }: { cause: unknown },
  options: ProbeOptions,
  deadline: ProbeDeadline,
): Promise<OpenedServer> {
  const { name } = options.opener
  if (!canShake(options)) {
    // The server was silent for as long as a start may take, which says nothing about its revision.
    if (cause instanceof McpError && cause.kind === 'timeout') throw cause
    const message =
      'The server does not support a stateless revision such as 2026-07-28. Add an older revision to the option revisions'
    throw new McpError('version-unsupported', message, { cause })
  }
  const opened = await openOld(probed, options, true)
  if (deadline.answered && opened.conversation === probed) return (await renewed(opened, options)) ?? opened
  if (name !== undefined && legacyNames.size < remembered && opened.revision.era === 'session') legacyNames.add(name)
  return opened
}

/** A stateless server that was only slow to start has answered the probe meanwhile, and is probed once more. */
async function renewed({ conversation }: OpenedServer, options: ProbeOptions): Promise<OpenedServer | undefined> {
  const { peer } = conversation
  const newest = options.engine.spoken.requests[0]
  if (newest === undefined) return undefined
  const [verdict] = await attempt(probeModern(conversation, newest, options))
  if (verdict !== undefined && 'opened' in verdict) return verdict.opened
  conversation.peer = peer
  return undefined
}

function canShake({ engine: { spoken } }: ProbeOptions): boolean {
  return spoken.sessions.length > 0 || spoken.dialect !== undefined
}

/** Opens a new connection, unless the caller has given up. */
async function accept({ engine, opener, signal }: ProbeOptions): Promise<Conversation> {
  const connection = await opener.open()
  signal?.throwIfAborted()
  return engine.accept(connection)
}

// The stateless probe.

/** The opened server, or why it is not stateless. */
type Verdict = { readonly opened: OpenedServer } | { readonly cause: unknown }

/** Probes for a stateless server. Throws failures that prove nothing, and final refusals of a stateless server. */
async function probeModern(
  conversation: Conversation,
  newest: Revision,
  options: ProbeOptions,
  deadline?: ProbeDeadline,
): Promise<Verdict> {
  const { engine, opener } = options
  let revision = newest
  for (let tries = 0; tries < 2; tries++) {
    conversation.peer = { revision, capabilities: {}, info: undefined, logLevel: undefined }
    const [result, error] = await attempt(
      deadline?.ask(conversation) ?? engine.call(conversation, discover, {}, probing(options)),
    )
    if (error === undefined) return discovered(conversation, result, engine)
    conversation.peer = undefined
    options.signal?.throwIfAborted()
    const offered = offeredBy(error)
    const next = nextOffered(engine, offered, revision)
    if (next === undefined) {
      if ((isModernRefusal(error) && !sharesSession(engine, offered)) || !isEvidence(error, opener.kind)) throw error
      return { cause: error }
    }
    revision = next
  }
  throw new McpError('version-unsupported', 'The server rejects every protocol version that it offers')
}

async function attempt<T>(call: Promise<T>): Promise<readonly [T | undefined, unknown]> {
  try {
    return [await call, undefined]
  } catch (error) {
    return [undefined, error]
  }
}

function opening({ startMs, signal }: ProbeOptions): SendOptions {
  return { ...(startMs !== undefined && { timeoutMs: startMs }), ...(signal !== undefined && { signal }) }
}

function probing(options: ProbeOptions): SendOptions {
  return {
    ...opening(options),
    // An old server that ignored the probe must not receive a cancellation on top of it.
    quiet: true,
    ...(silenceTells(options) && { timeoutMs: options.probeTimeoutMs }),
  }
}

/** Some old stdio servers ignore an unknown first message. Over HTTP silence means nothing. */
function silenceTells(options: ProbeOptions): boolean {
  return options.opener.kind !== 'http' && canShake(options)
}

/** A silent stdio server may be old, or still starting. The probe times out, but a late answer to it is still noticed. */
class ProbeDeadline {
  readonly #options: ProbeOptions
  readonly #end = new AbortController()
  /** The server has answered late that it speaks a shared stateless revision. */
  answered = false

  constructor(options: ProbeOptions) {
    this.#options = options
  }

  ask(conversation: Conversation): Promise<DiscoverResult> {
    const { engine, probeTimeoutMs, signal } = this.#options
    if (!silenceTells(this.#options)) return engine.call(conversation, discover, {}, probing(this.#options))
    const ends = signal === undefined ? this.#end.signal : AbortSignal.any([signal, this.#end.signal])
    const call = engine.call(conversation, discover, {}, { ...opening(this.#options), quiet: true, signal: ends })
    const { promise: late, reject } = Promise.withResolvers<never>()
    const message = `No answer to ${discover.name} within ${probeTimeoutMs} ms`
    let isLate = false
    const giveUp = (): void => {
      isLate = true
      reject(new McpError('timeout', message))
    }
    const cancel = engine.clock.setTimeout(giveUp, probeTimeoutMs)
    call.then(
      result => {
        cancel()
        this.answered = isLate && sharesRequest(engine, result)
      },
      () => cancel(),
    )
    return Promise.race([call, late])
  }

  end(): void {
    this.#end.abort()
  }
}

/** Prefers a version that was not refused yet; but a server that offers what it refused (while starting) gets it once more. */
function nextOffered({ spoken }: Engine, offered: readonly string[], refused: Revision | undefined): Revision | undefined {
  const shared = spoken.requests.filter(candidate => offered.includes(candidate.wire))
  return shared.find(candidate => candidate !== refused) ?? shared[0]
}

function sharesRequest({ spoken }: Engine, result: unknown): boolean {
  const listed: unknown = isRecord(result) ? result['supportedVersions'] : undefined
  return Array.isArray(listed) && spoken.requests.some(({ wire }) => listed.includes(wire))
}

function sharesSession({ spoken }: Engine, offered: readonly string[]): boolean {
  return offered.some(wire => spoken.byWire(wire)?.era === 'session')
}

function discovered(conversation: Conversation, result: DiscoverResult | undefined, engine: Engine): Verdict {
  const listed: unknown = isRecord(result) ? result.supportedVersions : undefined
  if (!isRecord(result) || !Array.isArray(listed)) {
    // Some old servers answer whatever they are asked.
    conversation.peer = undefined
    return { cause: new McpError('invalid-result', "The server's response to server/discover has no supportedVersions") }
  }
  const versions = listed.filter(version => typeof version === 'string')
  const revision = engine.spoken.requests.find(candidate => versions.includes(candidate.wire))
  if (revision === undefined) {
    const spoken = clip(versions.join(', '))
    const none = new McpError(
      'version-unsupported',
      `The server supports the protocol versions ${spoken}. None of them is in the option revisions`,
    )
    conversation.peer = undefined
    if (!sharesSession(engine, versions)) throw none
    return { cause: none }
  }
  const meta = metaOf(result as unknown as Readonly<Record<string, unknown>>)
  const info = result.serverInfo ?? meta?.[serverInfoKey]
  const serverInfo = isRecord(info) ? (info as unknown as Implementation) : undefined
  const capabilities = isRecord(result.capabilities) ? result.capabilities : {}
  const instructions = typeof result.instructions === 'string' ? result.instructions : undefined
  conversation.peer = { revision, capabilities, info: serverInfo, logLevel: undefined }
  conversation.ready = true
  return { opened: { conversation, revision, capabilities, serverInfo, instructions } }
}

// The handshake, and the fallbacks when it fails.

async function openOld(probed: Conversation, options: ProbeOptions, wasProbed: boolean): Promise<OpenedServer> {
  const { engine, opener, signal } = options
  const handed = opening(options)
  // A server that exited because of the probe is started again.
  const conversation = probed.ended ? await accept(options) : probed
  try {
    return await handshake(engine, conversation, handed)
  } catch (error) {
    signal?.throwIfAborted()
    // It may have exited because of the probe only after it had answered.
    if (wasProbed && conversation === probed && probed.ended && opener.kind !== 'http') {
      return handshake(engine, await accept(options), handed)
    }
    return lastResort(error, conversation, options)
  }
}

/** The last attempts: a stateless server that was too slow for the probe, or HTTP+SSE. */
async function lastResort(error: unknown, conversation: Conversation, options: ProbeOptions): Promise<OpenedServer> {
  const { engine, opener, signal } = options
  const modern = isModernRefusal(error) ? nextOffered(engine, offeredBy(error), undefined) : undefined
  if (modern !== undefined) {
    const verdict = await probeModern(conversation, modern, options)
    if ('opened' in verdict) return verdict.opened
    throw verdict.cause
  }
  const status = statusOf(error)
  if (opener.openOldPair === undefined || !(status === 400 || status === 404 || status === 405)) throw error
  await conversation.connection?.close()
  const connection = await opener.openOldPair()
  signal?.throwIfAborted()
  try {
    return await handshake(engine, engine.accept(connection), opening(options))
  } catch (cause) {
    signal?.throwIfAborted()
    engine.trace('old-pair-failed', cause)
    // The first answer says more than the failure of a last resort.
    throw error
  }
}
