/**
 * Finding out what a server speaks without ever breaking it. A modern probe first; whatever does not look modern means
 * an older server; what proves nothing (authorization, overload, a dead network) is no evidence and fails as itself.
 */
import type { SendOptions } from '../engine/calls.ts'
import type { Conversation } from '../engine/conversation.ts'
import type { Engine } from '../engine/engine.ts'
import { type DiscoverResult, discover } from '../features/mcp/lifecycle/messages.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { type Implementation, metaOf, type Revision } from '../revisions/index.ts'
import { isEvidence, isModernRefusal, offeredBy, statusOf } from './evidence.ts'
import { handshake, type Opened } from './handshake.ts'
import type { Opener } from './target.ts'

export interface ProbeOptions {
  readonly engine: Engine
  readonly opener: Opener
  readonly probeTimeoutMs: number
  readonly signal: AbortSignal | undefined
  /** On pipes and sockets a handshake comes first: many servers die of a first message that is none. */
  readonly shakesFirst?: boolean
}

/** Servers that were found to need a handshake, by name: they are not probed again in this process, unless that fails. */
const legacyNames = new Set<string>()
/** Those that refused a handshake when it came first. */
const modernNames = new Set<string>()
const remembered = 1_000

export async function openServer(options: ProbeOptions): Promise<Opened> {
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

async function find(options: ProbeOptions): Promise<Opened> {
  const newest = options.engine.spoken.requests[0]
  const { name } = options.opener
  const conversation = await accept(options)
  if (newest === undefined) return openOld(conversation, options, false)
  const verdict = await probeModern(conversation, newest, options)
  if ('opened' in verdict) return verdict.opened
  if (!canShake(options)) {
    const message = 'The server does not speak the stateless wire; list an older revision in the option revisions'
    throw new McpError('version-unsupported', message, { cause: verdict.cause })
  }
  const opened = await openOld(conversation, options, true)
  if (name !== undefined && legacyNames.size < remembered && opened.revision.era === 'session') legacyNames.add(name)
  return opened
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

type Verdict = { readonly opened: Opened } | { readonly cause: unknown }

/** Opened, or why it is not a modern server. Throws what proves nothing, and what a modern server refuses for good. */
async function probeModern(conversation: Conversation, newest: Revision, options: ProbeOptions): Promise<Verdict> {
  const { engine, opener } = options
  let revision = newest
  for (let tries = 0; tries < 2; tries++) {
    conversation.peer = { revision, capabilities: {}, info: undefined, logLevel: undefined }
    const [result, error] = await attempt(engine.call(conversation, discover, {}, probing(options)))
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

function probing({ opener, probeTimeoutMs, signal }: ProbeOptions): SendOptions {
  return {
    // An old server that was silent so far shall not be told to cancel something on top of it.
    quiet: true,
    // Over HTTP silence proves nothing; on a pipe it is how some old servers meet an unknown first message.
    ...(opener.kind === 'http' ? {} : { timeoutMs: probeTimeoutMs }),
    ...(signal === undefined ? {} : { signal }),
  }
}

/** Another one first; but a server that offers what it has just refused (still starting, say) gets the same once more. */
function nextOffered({ spoken }: Engine, offered: readonly string[], refused: Revision | undefined): Revision | undefined {
  const shared = spoken.requests.filter(candidate => offered.includes(candidate.wire))
  return shared.find(candidate => candidate !== refused) ?? shared[0]
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
  const info = result.serverInfo ?? meta?.['io.modelcontextprotocol/serverInfo']
  const serverInfo = isRecord(info) ? (info as unknown as Implementation) : undefined
  const capabilities = isRecord(result.capabilities) ? result.capabilities : {}
  const instructions = typeof result.instructions === 'string' ? result.instructions : undefined
  conversation.peer = { revision, capabilities, info: serverInfo, logLevel: undefined }
  conversation.ready = true
  return { opened: { conversation, revision, capabilities, serverInfo, instructions } }
}

// ── the handshake, and what is left when it fails ───────────────────────────────────────────────────────────────────

async function openOld(probed: Conversation, options: ProbeOptions, wasProbed: boolean): Promise<Opened> {
  const { engine, opener, signal } = options
  const handed = signal === undefined ? {} : { signal }
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
async function lastResort(error: unknown, conversation: Conversation, options: ProbeOptions): Promise<Opened> {
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
    return await handshake(engine, engine.accept(connection), signal === undefined ? {} : { signal })
  } catch (cause) {
    signal?.throwIfAborted()
    engine.trace('old-pair-failed', cause)
    // The first answer says more than the failure of a last resort.
    throw error
  }
}
