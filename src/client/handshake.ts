/**
 * The `initialize` handshake of revisions with sessions, with a fallback to the dialect where that is enabled. Used for the
 * first session (`probe.ts`) and for new ones (`session.ts`).
 */
import type { SendOptions } from '../engine/calls.ts'
import type { OpenedServer } from '../engine/client-feature.ts'
import type { Conversation } from '../engine/conversation.ts'
import type { Engine } from '../engine/engine.ts'
import { type InitializeResult, initialize, initialized } from '../features/mcp/lifecycle/messages.ts'
import { ConnectionError } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Capabilities, Revision } from '../revisions/index.ts'

/** Error codes with which a server of the dialect may refuse a standard handshake. */
const dialectCodes: readonly (number | undefined)[] = [4001, -32600, -32602, -32603]

/** Opens a session by `initialize`. */
export async function handshake(engine: Engine, conversation: Conversation, options: SendOptions = {}): Promise<OpenedServer> {
  const { sessions, dialect } = engine.spoken
  const newest = sessions[0]
  if (newest === undefined) return shake(engine, conversation, dialect as Revision, options)
  try {
    return await shake(engine, conversation, newest, options)
  } catch (error) {
    if (dialect === undefined || !(error instanceof McpError) || !dialectCodes.includes(error.code)) throw error
    return shake(engine, conversation, dialect, options)
  }
}

/** One handshake that offers the given revision. */
async function shake(engine: Engine, conversation: Conversation, offer: Revision, options: SendOptions): Promise<OpenedServer> {
  conversation.peer = { revision: offer, capabilities: {}, info: undefined, logLevel: undefined }
  const params = { protocolVersion: offer.wire, capabilities: engine.capabilities(offer), clientInfo: engine.info }
  const { revision, result } = settled(await engine.call(conversation, initialize, params, options), offer, engine)
  const capabilities = declaredIn(result as unknown as Record<string, unknown>)
  const serverInfo = isRecord(result.serverInfo) ? result.serverInfo : undefined
  conversation.peer = { revision, capabilities, info: serverInfo, logLevel: undefined }
  await announce(engine, conversation)
  conversation.ready = true
  const instructions = typeof result.instructions === 'string' ? result.instructions : undefined
  return { conversation, revision, capabilities, serverInfo, instructions }
}

/** Some servers put `experimental` beside the capabilities instead of in them. */
function declaredIn({ capabilities, experimental }: Readonly<Record<string, unknown>>): Capabilities {
  const declared = isRecord(capabilities) ? capabilities : {}
  return isRecord(experimental) && declared['experimental'] === undefined ? { ...declared, experimental } : declared
}

/** Sends `initialized`. Some servers answer it with an error status and work all the same. */
async function announce(engine: Engine, conversation: Conversation): Promise<void> {
  try {
    await engine.tell(conversation, initialized, {})
  } catch (error) {
    if (!(error instanceof ConnectionError) || error.kind !== 'status') throw error
    engine.trace('initialized-refused', error)
  }
}

/** The revision that the server chose. Throws if it is not among those spoken here. */
function settled(
  result: InitializeResult,
  offer: Revision,
  { spoken }: Engine,
): { revision: Revision; result: InitializeResult } {
  if (offer === spoken.dialect) return { revision: offer, result }
  if (typeof result?.protocolVersion === 'string') {
    const revision = spoken.byWire(result.protocolVersion)
    if (revision?.era === 'session') return { revision, result }
    const spokenHere = spoken.sessions.map(({ wire }) => wire).join(', ')
    const answered = `The server answered initialize with protocol version "${clip(result.protocolVersion)}"`
    throw new McpError('version-unsupported', `${answered}. This client accepts ${spokenHere} (option revisions)`)
  }
  const said: unknown = result
  if (spoken.dialect !== undefined && isRecord(said) && (isRecord(said['server']) || isRecord(said['serverCapabilities']))) {
    return { revision: spoken.dialect, result: initialize.resultUp?.s3?.(said) as unknown as InitializeResult }
  }
  throw new McpError('invalid-result', "The server's response to initialize has no protocolVersion")
}
