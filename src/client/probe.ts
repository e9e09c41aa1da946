/**
 * Finding out what a server speaks without ever breaking it. A modern probe first; whatever does not look modern means
 * an older server; what proves nothing (authorization, overload, a dead network) is no evidence and fails as itself.
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

/** Numbers that only stateless wires have. */
const modernCodes: ReadonlySet<number | undefined> = new Set([-32020, -32021, -32022])

/** Over HTTP: who may call, and whether the server has time, says nothing about what it speaks. */
const unrelated: ReadonlySet<number> = new Set([401, 403, 407, 408, 425, 429])

/** The server understood the envelope, and refuses all the same. */
function isModernRefusal(error: unknown): boolean {
  return error instanceof McpError && modernCodes.has(error.code)
}

/** Whether the failure tells that the server does not know the message; else it must be passed on as it is. */
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

/** Versions that a refusal names. */
function offeredBy(error: unknown): readonly string[] {
  const supported = error instanceof McpError && isRecord(error.data) ? error.data['supported'] : undefined
  return Array.isArray(supported) ? supported.filter(version => typeof version === 'string') : []
}

/** The server to open, and how long it may take. */
export interface ProbeOptions {
  readonly engine: Engine
  readonly opener: Opener
  readonly probeTimeoutMs: number
  /** How long an answer to the opening may take. Default: as long as that of a call. */
  readonly startMs?: number
  readonly signal: AbortSignal | undefined
  /** On pipes and sockets a handshake comes first: many servers die of a first message that is none. */
  readonly shakesFirst?: boolean
}

/** Servers that were found to need a handshake, by name: they are not probed again in this process, unless that fails. */
const legacyNames = new Set<string>()
/** Those that refused a handshake when it came first. */
const modernNames = new Set<string>()
const remembered = 1_000
/** Programs that ended by themselves however they were spoken to, with what comes first the next time: each try is one start then. */
const dying = new Map<string, 'handshake' | 'probe'>()

/** Opens a server in whatever revision it speaks. */
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

/** Starts it once, and no more. */
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

async function openAny(options: ProbeOptions): Promise<OpenedServer> {
  const { name, kind } = options.opener
  if (canShake(options) && ((name !== undefined && legacyNames.has(name)) || shakesFirst(options))) {
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

function shakesFirst({ shakesFirst = false, opener: { kind, name } }: ProbeOptions): boolean {
  return shakesFirst && kind !== 'http' && !(name !== undefined && modernNames.has(name))
}

async function find(options: ProbeOptions): Promise<OpenedServer> {
  const newest = options.engine.spoken.requests[0]
  const conversation = await accept(options)
  if (newest === undefined) return openOld(conversation, options, false)
  const patience = new Patience(options)
  try {
    const verdict = await probeModern(conversation, newest, options, patience)
    if ('opened' in verdict) return verdict.opened
    return await findOld(conversation, verdict, options, patience)
  } finally {
    patience.end()
  }
}

async function findOld(
  probed: Conversation,
  { cause }: { cause: unknown },
  options: ProbeOptions,
  patience: Patience,
): Promise<OpenedServer> {
  const { name } = options.opener
  if (!canShake(options)) {
    // It was waited for as long as a start may take, and said nothing: that tells nothing of what it speaks.
    if (cause instanceof McpError && cause.kind === 'timeout') throw cause
    const message = 'The server does not speak the stateless wire; list an older revision in the option revisions'
    throw new McpError('version-unsupported', message, { cause })
  }
  const opened = await openOld(probed, options, true)
  if (patience.answered && opened.conversation === probed) return (await renewed(opened, options)) ?? opened
  if (name !== undefined && legacyNames.size < remembered && opened.revision.era === 'session') legacyNames.add(name)
  return opened
}

/** A modern server that was only slow to start has answered the probe by now: it is asked once more. Else all stays as it is. */
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

/** A new connection: started only while somebody still wants it. */
async function accept({ engine, opener, signal }: ProbeOptions): Promise<Conversation> {
  const connection = await opener.open()
  signal?.throwIfAborted()
  return engine.accept(connection)
}

// ── the modern probe ────────────────────────────────────────────────────────────────────────────────────────────────

type Verdict = { readonly opened: OpenedServer } | { readonly cause: unknown }

/** OpenedServer, or why it is not a modern server. Throws what proves nothing, and what a modern server refuses for good. */
async function probeModern(
  conversation: Conversation,
  newest: Revision,
  options: ProbeOptions,
  patience?: Patience,
): Promise<Verdict> {
  const { engine, opener } = options
  let revision = newest
  for (let tries = 0; tries < 2; tries++) {
    conversation.peer = { revision, capabilities: {}, info: undefined, logLevel: undefined }
    const [result, error] = await attempt(
      patience?.ask(conversation) ?? engine.call(conversation, discover, {}, probing(options)),
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
  throw new McpError('version-unsupported', 'The server refuses each version that it offers')
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
    // An old server that was silent so far shall not be told to cancel something on top of it.
    quiet: true,
    ...(silenceTells(options) && { timeoutMs: options.probeTimeoutMs }),
  }
}

/** Over HTTP it tells nothing; on a pipe it is how some old servers meet an unknown first message, if there is another one to try. */
function silenceTells(options: ProbeOptions): boolean {
  return options.opener.kind !== 'http' && canShake(options)
}

/**
 * A silent pipe may lead to an old server, or to one that is still starting. The probe is given up after its time, and heard all the
 * same when it is answered later.
 */
class Patience {
  readonly #options: ProbeOptions
  readonly #end = new AbortController()
  /** The server has answered, too late, that it speaks what we do. */
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

/** Another one first; but a server that offers what it has just refused (still starting, say) gets the same once more. */
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
    return { cause: new McpError('invalid-result', 'The server answered server/discover without its supportedVersions') }
  }
  const versions = listed.filter(version => typeof version === 'string')
  const revision = engine.spoken.requests.find(candidate => versions.includes(candidate.wire))
  if (revision === undefined) {
    const spoken = clip(versions.join(', '))
    const none = new McpError('version-unsupported', `The server speaks ${spoken}; none of those is in the option revisions`)
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

// ── the handshake, and what is left when it fails ───────────────────────────────────────────────────────────────────

async function openOld(probed: Conversation, options: ProbeOptions, wasProbed: boolean): Promise<OpenedServer> {
  const { engine, opener, signal } = options
  const handed = opening(options)
  // A server that dies of an unknown first message is started anew.
  const conversation = probed.ended ? await accept(options) : probed
  try {
    return await handshake(engine, conversation, handed)
  } catch (error) {
    signal?.throwIfAborted()
    // It may have died of the probe only now, after it had answered.
    if (wasProbed && conversation === probed && probed.ended && opener.kind !== 'http') {
      return handshake(engine, await accept(options), handed)
    }
    return lastResort(error, conversation, options)
  }
}

/** A modern server that was too slow for the probe, or one with the old pair of endpoints. */
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
