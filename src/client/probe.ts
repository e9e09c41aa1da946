/**
 * Finding out what a server speaks without ever breaking it. A modern probe first; whatever does not look modern means
 * an older server; what proves nothing (authorization, overload, a dead network) is no evidence and fails as itself.
 */
import type { Conversation } from '../engine/conversation.ts'
import type { Engine } from '../engine/engine.ts'
import { type DiscoverResult, discover, initialize, type InitializeResult, initialized } from '../features/mcp/lifecycle/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Capabilities, Implementation, Revision } from '../revisions/index.ts'
import type { Opener } from './target.ts'

export interface Opened {
  readonly conversation: Conversation
  readonly revision: Revision
  readonly capabilities: Capabilities
  readonly serverInfo: Implementation | undefined
  readonly instructions: string | undefined
}

export interface ProbeOptions {
  readonly engine: Engine
  readonly opener: Opener
  readonly probeTimeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** Servers that were found to need a handshake, by name: they are not probed again in this process. */
const legacyNames = new Set<string>()
const remembered = 1_000

const modernCodes = new Set([-32020, -32021, -32022])

export async function openServer(options: ProbeOptions): Promise<Opened> {
  const { engine, opener } = options
  const newest = engine.spoken.requests[0]
  const sessions = engine.spoken.sessions.length > 0 || engine.spoken.dialect !== undefined
  const known = opener.name !== undefined && legacyNames.has(opener.name)
  let conversation = engine.accept(await opener.open())
  if (newest !== undefined && !(known && sessions)) {
    const modern = await probeModern(conversation, newest, options)
    if (modern !== undefined) return modern
    if (!sessions) {
      await conversation.connection?.close()
      throw new McpError('version-unsupported', 'The server needs a handshake of an older revision; list one in the option revisions')
    }
    if (opener.name !== undefined && legacyNames.size < remembered) legacyNames.add(opener.name)
    if (conversation.ended) conversation = engine.accept(await opener.open())
  }
  try {
    return await handshake(conversation, options)
  } catch (error) {
    await conversation.connection?.close()
    if (opener.openOldPair === undefined || !(statusOf(error) === 400 || statusOf(error) === 404 || statusOf(error) === 405)) throw error
    const pair = engine.accept(await opener.openOldPair())
    try {
      return await handshake(pair, options)
    } catch {
      await pair.connection?.close()
      // The first answer says more than the failure of a last resort.
      throw error
    }
  }
}

/** Undefined: not a modern server. */
async function probeModern(conversation: Conversation, newest: Revision, options: ProbeOptions): Promise<Opened | undefined> {
  const { engine } = options
  let revision = newest
  for (let tries = 0; tries < 2; tries++) {
    conversation.peer = { revision, capabilities: {}, info: undefined, logLevel: undefined }
    try {
      const result = await engine.call(conversation, discover, {}, callOptions(options))
      return discovered(conversation, revision, result, engine)
    } catch (error) {
      if (options.signal?.aborted) throw error
      const offered = offeredBy(error)
      // Another one first; but a server that offers what it has just refused (still starting, say) gets the same once more.
      const shared = engine.spoken.requests.filter((candidate) => offered?.includes(candidate.wire))
      const next = shared.find((candidate) => candidate !== revision) ?? shared[0]
      if (next === undefined) {
        conversation.peer = undefined
        return rejected(error, offered, conversation, options)
      }
      revision = next
    }
  }
  await conversation.connection?.close()
  throw new McpError('version-unsupported', 'The server refuses each version that it offers')
}

function callOptions(options: ProbeOptions): { timeoutMs?: number; signal?: AbortSignal } {
  // Over HTTP silence proves nothing; on a pipe it is how some old servers meet an unknown first message.
  return {
    ...(options.opener.kind === 'http' ? {} : { timeoutMs: options.probeTimeoutMs }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }
}

/** A modern refusal is final; anything that proves nothing is thrown; the rest means: try the handshake. */
async function rejected(error: unknown, offered: readonly string[] | undefined, conversation: Conversation, options: ProbeOptions): Promise<undefined> {
  const { spoken } = options.engine
  const legacyOffer = offered?.some((wire) => spoken.sessions.some((revision) => revision.wire === wire)) === true
  if (error instanceof McpError && error.code !== undefined && modernCodes.has(error.code) && !legacyOffer) {
    await conversation.connection?.close()
    throw error
  }
  if (options.opener.kind !== 'http') return undefined
  const status = statusOf(error)
  const proves = error instanceof McpError ? error.kind === 'remote' : status !== undefined && status >= 400 && status < 500
  if (!proves || status === 401 || status === 403 || (status !== undefined && status >= 500)) {
    await conversation.connection?.close()
    throw error
  }
  return undefined
}

function statusOf(error: unknown): number | undefined {
  return error instanceof McpError || error instanceof ConnectionError ? error.status : undefined
}

/** Versions that a refusal names. */
function offeredBy(error: unknown): readonly string[] | undefined {
  if (!(error instanceof McpError) || !isRecord(error.data)) return undefined
  const { supported } = error.data
  return Array.isArray(supported) ? supported.filter((version) => typeof version === 'string') : undefined
}

function discovered(conversation: Conversation, revision: Revision, result: DiscoverResult, engine: Engine): Opened | undefined {
  const versions = Array.isArray(result?.supportedVersions) ? result.supportedVersions : []
  const shared = engine.spoken.requests.find((candidate) => versions.includes(candidate.wire)) ?? (versions.length === 0 ? revision : undefined)
  if (shared === undefined) {
    conversation.peer = undefined
    if (versions.some((wire) => engine.spoken.byWire(wire)?.era === 'session')) return undefined
    throw new McpError('version-unsupported', `The server speaks ${versions.join(', ')}, none of which is enabled here`)
  }
  const meta = (result as { _meta?: Readonly<Record<string, unknown>> })._meta
  const serverInfo = (result.serverInfo ?? meta?.['io.modelcontextprotocol/serverInfo']) as Implementation | undefined
  const capabilities = isRecord(result.capabilities) ? result.capabilities : {}
  conversation.peer = { revision: shared, capabilities, info: serverInfo, logLevel: undefined }
  conversation.ready = true
  return { conversation, revision: shared, capabilities, serverInfo, instructions: result.instructions }
}

/** The handshake of the session wires, with the dialect as a fallback where it is enabled. */
export async function handshake(conversation: Conversation, options: ProbeOptions): Promise<Opened> {
  const { engine } = options
  const { sessions, dialect } = engine.spoken
  const newest = sessions[0]
  if (newest === undefined) return shake(conversation, dialect as Revision, options)
  try {
    return await shake(conversation, newest, options)
  } catch (error) {
    const code = error instanceof McpError ? error.code : undefined
    const retry = dialect !== undefined && (code === 4001 || code === -32602 || code === -32603 || code === -32600)
    if (!retry) throw error
    return shake(conversation, dialect, options)
  }
}

async function shake(conversation: Conversation, offer: Revision, options: ProbeOptions): Promise<Opened> {
  const { engine, signal } = options
  conversation.peer = { revision: offer, capabilities: {}, info: undefined, logLevel: undefined }
  const params = { protocolVersion: offer.wire, capabilities: engine.capabilities(offer), clientInfo: engine.info }
  const raw = await engine.call(conversation, initialize, params, signal === undefined ? {} : { signal })
  const { revision, result } = settled(raw, offer, engine)
  const capabilities = isRecord(result.capabilities) ? result.capabilities : {}
  conversation.peer = { revision, capabilities, info: result.serverInfo, logLevel: undefined }
  await engine.tell(conversation, initialized, {})
  conversation.ready = true
  if (revision.http.session) conversation.connection?.listen?.({ session: true, resume: revision.http.resume, headers: revision.http.headers(undefined, undefined, undefined) })
  return { conversation, revision, capabilities, serverInfo: result.serverInfo, instructions: result.instructions }
}

function settled(result: InitializeResult, offer: Revision, engine: Engine): { revision: Revision; result: InitializeResult } {
  const { dialect } = engine.spoken
  if (offer.id === 's3') return { revision: offer, result }
  if (typeof result?.protocolVersion === 'string') {
    const revision = engine.spoken.byWire(result.protocolVersion)
    if (revision?.era === 'session') return { revision, result }
    throw new McpError('version-unsupported', `The server answered with version "${result.protocolVersion}", which is not enabled here`)
  }
  const said = result as unknown as Readonly<Record<string, unknown>>
  if (dialect !== undefined && isRecord(said) && (isRecord(said['server']) || isRecord(said['serverCapabilities']))) {
    return { revision: dialect, result: initialize.resultUp?.s3?.(said) as unknown as InitializeResult }
  }
  throw new McpError('invalid-result', 'The server answered initialize without a protocolVersion')
}
