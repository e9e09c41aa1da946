/**
 * Codecs between what peers of MCP Live 0.2 to 0.5 write and the canonical model. Pure functions, shared by all live features; the only
 * place that knows about differences between dialects.
 */
import { McpError } from '../../../jsonrpc/error.ts'
import { clip, echo } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import { channelEventId } from '../channels/messages.ts'
import type { StateReport, WireCallState } from '../checkpoints/messages.ts'
import type { LiveBlock } from '../content/messages.ts'
import { type BeforeInference, type Injection, type Position, positions } from '../context-hooks/messages.ts'
import { type FeatureSetFacts, liveErrors, liveExtension } from '../feature-sets/messages.ts'
import {
  type FinishReason,
  finishReasons,
  type InferenceRequest,
  type InferenceResult,
  type InferenceRole,
} from '../inference/messages.ts'
import { isTimestamp, type PushEvent, type WirePush } from '../push-events/messages.ts'
import type { Announcement } from './announced.ts'

export {
  type Announcement,
  announcedBy,
  carriesState,
  type DialectLabel,
  declaredUses,
  isConsented,
  mostSets,
  readAnnounced,
  readDeclarations,
  type SetUse,
  setUses,
  usesUnder,
} from './announced.ts'
export {
  type EnabledSet,
  type EncodedSelection,
  type HostSelection,
  readSelectionReply,
  type SelectionReply,
  writeSelection,
} from './selection.ts'

interface ReadContent {
  readonly blocks: readonly LiveBlock[]
  /** What was left out, in a few words each. */
  readonly dropped: readonly string[]
}

/** Shortens a list of dropped items to the first ones and a count. */
function fewOf(dropped: readonly string[]): readonly string[] {
  return dropped.length <= mostTold ? dropped : [...dropped.slice(0, mostTold - 1), `${dropped.length - mostTold + 1} more`]
}

const mostTold = 10

/** Reads content of any dialect as canonical blocks. */
export function readContent(wire: unknown): ReadContent {
  if (typeof wire === 'string') return { blocks: [{ type: 'text', text: wire }], dropped: [] }
  if (!Array.isArray(wire)) return { blocks: [], dropped: ['content that is neither a string nor a list of blocks'] }
  const blocks: LiveBlock[] = []
  const dropped: string[] = []
  for (const one of wire) {
    const block = readBlock(one)
    if (typeof block === 'string') dropped.push(block)
    else blocks.push(block)
  }
  return { blocks, dropped: fewOf(dropped) }
}

/** The block, or a description of what is wrong with it. */
function readBlock(wire: unknown): LiveBlock | string {
  if (typeof wire === 'string') return { type: 'text', text: wire }
  if (!isRecord(wire)) return 'a block that is not an object'
  const { type } = wire
  // Some servers send text blocks without text; they are harmless.
  if (type === 'text') return { type, text: typeof wire['text'] === 'string' ? wire['text'] : '' }
  if (type === 'image' || type === 'audio') return readMedia(wire, type)
  if (type === 'resource_link') return readLink(wire)
  if (type === 'resource') return readResource(isRecord(wire['resource']) ? wire['resource'] : wire)
  return `a block of the unknown type "${echo(type)}"`
}

// Media inline, under `source`, or as a link.
function readMedia(wire: Readonly<Record<string, unknown>>, type: 'image' | 'audio'): LiveBlock | string {
  const from = isRecord(wire['source']) ? wire['source'] : wire
  const { data } = from
  const mimeType = from['mimeType'] ?? from['media_type'] ?? wire['mimeType']
  if (typeof data === 'string') {
    return { type, data, mimeType: typeof mimeType === 'string' ? mimeType : `${type}/*` }
  }
  const uri = from['uri'] ?? from['url']
  return typeof uri === 'string' ? { type: 'resource_link', uri } : `a block of type "${type}" without data`
}

const linkMembers = ['name', 'title', 'description', 'mimeType'] as const

// A link with its known members.
function readLink(wire: Readonly<Record<string, unknown>>): LiveBlock | string {
  if (typeof wire['uri'] !== 'string') return 'a link without a uri'
  const said = linkMembers.filter(member => typeof wire[member] === 'string').map(member => [member, wire[member]] as const)
  return { type: 'resource_link', uri: wire['uri'], ...Object.fromEntries(said) }
}

/** An embedded resource becomes text, media or a link. */
function readResource(resource: Readonly<Record<string, unknown>>): LiveBlock | string {
  const { text, blob, mimeType } = resource
  if (typeof text === 'string') return { type: 'text', text }
  const kind = typeof mimeType === 'string' ? /^(image|audio)\//.exec(mimeType)?.[1] : undefined
  if (typeof blob === 'string' && kind !== undefined)
    return { type: kind as 'image' | 'audio', data: blob, mimeType: mimeType as string }
  return readLink(resource)
}

interface ReadPush {
  readonly event: PushEvent
  readonly dropped: readonly string[]
}

const known: ReadonlySet<string> = new Set(['featureSet', 'eventId', 'timestamp', 'origin', 'payload', 'tags'])

/**
 * Reads a pushed event; undefined if it has no content. `origin.silent` marks a deliberate event without content, such as a heartbeat.
 */
export function readPush(wire: WirePush): ReadPush | undefined {
  const { content, ...payload } = wire.payload
  const { blocks, dropped } = readContent(content)
  if (blocks.length === 0 && wire.origin?.['silent'] !== true) return undefined
  const extra = others(wire as unknown as Params, known)
  const more = Object.keys(payload).length === 0 ? extra : { ...extra, payload }
  return {
    dropped,
    event: {
      featureSet: wire.featureSet,
      eventId: wire.eventId,
      timestamp: wire.timestamp,
      content: blocks,
      ...(wire.origin === undefined ? {} : { origin: wire.origin }),
      ...(wire.tags === undefined ? {} : { tags: expandTags(wire.tags) }),
      ...(Object.keys(more).length === 0 ? {} : { extra: more }),
    },
  }
}

const knownOfMessages: ReadonlySet<string> = new Set([
  'channelId',
  'messageId',
  'threadId',
  'author',
  'timestamp',
  'content',
  'tags',
])

/** Reads a channel message as an event; undefined without `channelId` or `messageId`. */
export function readIncoming(wire: Params, featureSet: string, now: number): ReadPush | undefined {
  const { channelId, messageId, threadId, author, timestamp, tags } = wire
  if (typeof channelId !== 'string' || typeof messageId !== 'string') return undefined
  const { blocks, dropped } = readContent(wire['content'])
  const extra = others(wire, knownOfMessages)
  return {
    dropped,
    event: {
      featureSet,
      eventId: channelEventId(channelId, messageId),
      timestamp: isTimestamp(timestamp) ? (timestamp as string) : new Date(now).toISOString(),
      origin: {
        channelId,
        messageId,
        ...(threadId === undefined ? {} : { threadId }),
        ...(isRecord(author) ? { author } : {}),
      },
      channel: { channelId, messageId, ...(typeof threadId === 'string' ? { threadId } : {}) },
      content: blocks,
      ...(Array.isArray(tags) ? { tags: expandTags(tags.filter(tag => typeof tag === 'string')) } : {}),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    },
  }
}

/** Tags that follow from other tags (0.5 §16.3). Tags only classify; they grant nothing. */
const implied: ReadonlyMap<string, readonly string[]> = new Map([
  ['chat:mention', ['chat:addressed']],
  ['chat:reply', ['chat:addressed']],
  ['chat:dm', ['chat:addressed', 'chat:private']],
])

/** Adds implied tags; an addressed message is not ambient. */
function expandTags(tags: readonly string[]): readonly string[] {
  const all = new Set(tags.flatMap(tag => [tag, ...(implied.get(tag) ?? [])]))
  if (all.has('chat:addressed')) all.delete('chat:ambient')
  return [...all]
}

// Members that the codec does not know.
function others(wire: Params, names: ReadonlySet<string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(wire).filter(([name]) => !names.has(name)))
}

interface ReadBefore {
  readonly featureSet: string
  readonly injections: readonly Injection[]
  readonly dropped: readonly string[]
}

/** Reads the answer of a before-hook; undefined if it is not one. Invalid injections are dropped one by one. */
export function readBefore(wire: unknown): ReadBefore | undefined {
  if (!isRecord(wire) || typeof wire['featureSet'] !== 'string') return undefined
  const listed: readonly unknown[] = Array.isArray(wire['contextInjections']) ? wire['contextInjections'] : []
  const injections: Injection[] = []
  const dropped: string[] = []
  for (const one of listed) {
    const read = readInjection(one, dropped)
    if (typeof read === 'string') dropped.push(read)
    else injections.push(read)
  }
  return { featureSet: wire['featureSet'], injections, dropped: fewOf(dropped) }
}

// One injection, or why it is invalid.
function readInjection(wire: unknown, dropped: string[]): Injection | string {
  if (!isRecord(wire)) return 'an injection that is not an object'
  const { namespace, position, metadata } = wire
  if (typeof namespace !== 'string') return 'an injection without a namespace'
  if (!isPosition(position))
    return `an injection at the unknown position "${echo(position)}" (the positions are ${positions.join(', ')})`
  const { blocks, dropped: unread } = readContent(wire['content'])
  if (blocks.length === 0) return `an injection of "${clip(namespace)}" without content`
  dropped.push(...unread)
  return { namespace, position, content: blocks, ...(isRecord(metadata) ? { metadata } : {}) }
}

function isPosition(value: unknown): value is Position {
  return (positions as readonly unknown[]).includes(value)
}

/**
 * Adapts a turn to the server: hides the user message from sets that may not observe, and writes '' instead of null where the schema
 * requires it.
 */
export function writeTurn<T extends BeforeInference>(turn: T, { nullless }: Announcement, over: boolean, observes: boolean): T {
  if (!observes && turn.userMessage !== null) return { ...turn, userMessage: null }
  return over && nullless && turn.userMessage === null ? { ...turn, userMessage: '' } : turn
}

/** Converts checked params to the canonical request, with defaults. */
export function readInference(wire: Params): InferenceRequest {
  const { featureSet, conversationId, stream, messages, preferences } = wire
  return {
    featureSet: featureSet as string,
    ...(typeof conversationId === 'string' ? { conversationId } : {}),
    stream: stream === true,
    messages: (messages as readonly Params[]).map(({ role, content }) => ({
      role: role as InferenceRole,
      content: readContent(content).blocks,
    })),
    preferences: (preferences ?? {}) as InferenceRequest['preferences'],
  }
}

/** Writes a result. A finish reason outside the protocol moves to `_meta`. */
export function writeInference({ content, model, finishReason, usage }: InferenceResult): Params {
  const { inputTokens, outputTokens } = usage
  const common = { content, model, finishReason, usage: { inputTokens, outputTokens } }
  if ((finishReasons as readonly string[]).includes(finishReason)) return common
  return { ...common, finishReason: 'end_turn' satisfies FinishReason, _meta: { finishReason } }
}

/** The state in a result: from its own member, else from the copy in `_meta`. */
export function readLiveState(result: Params): StateReport | undefined {
  const said = isRecord(result['_meta']) ? result['_meta'][liveExtension] : undefined
  const meta = isRecord(said) ? said : {}
  const state = stateOf(result['state']) ?? stateOf(meta['state'])
  const { featureSet } = meta
  return state === undefined || state.featureSet !== undefined || typeof featureSet !== 'string'
    ? state
    : { ...state, featureSet }
}

/** Reads a state report; undefined without a checkpoint. */
export function stateOf(wire: unknown): StateReport | undefined {
  if (!isRecord(wire) || typeof wire['checkpoint'] !== 'string') return undefined
  const { checkpoint, parent, data, patch, featureSet } = wire
  return {
    checkpoint,
    ...(parent === null || typeof parent === 'string' ? { parent } : {}),
    ...('data' in wire ? { data } : {}),
    ...(Array.isArray(patch) ? { patch } : {}),
    ...(typeof featureSet === 'string' ? { featureSet } : {}),
  }
}

/** The members for a call. State and checkpoint are exclusive: state includes what the checkpoint would say. */
export function writeCallState({ state, checkpoint, scope }: WireCallState): WireCallState {
  const at = state !== undefined ? { state } : checkpoint !== undefined ? { checkpoint } : {}
  return scope === undefined ? at : { ...at, scope }
}

/** The set of a tool: as its definition says, else the only set that keeps state. Undefined if ambiguous. */
export function toolSetOf(tool: Params | undefined, sets: ReadonlyMap<string, FeatureSetFacts>): string | undefined {
  const meta = isRecord(tool?.['_meta']) ? tool['_meta'] : {}
  const own = meta[liveExtension]
  for (const said of [isRecord(own) ? own['featureSet'] : own, tool?.['featureSet'], meta['featureSet']]) {
    if (typeof said === 'string') return said
  }
  const stateful = [...sets].filter(([, { rollback, hostState }]) => rollback === true || hostState === true)
  return stateful.length === 1 ? stateful[0]?.[0] : undefined
}

/** The outcome of a rollback that the host requested. */
export interface ServerRollback {
  /** Whether the server has rolled back. */
  readonly success: boolean
  /** The target, or a new checkpoint with the same state. */
  readonly checkpoint: string
  /** Why it has not. */
  readonly reason?: string
  /** The server no longer has the checkpoint. */
  readonly missing?: boolean
  /** The server does not implement rollback; a host that keeps the state can roll back itself. */
  readonly unsupported?: boolean
}

/** Reads the answer to `state/rollback`. */
export function readRollback(wire: unknown, target: string): ServerRollback {
  const { success, checkpoint, reason } = isRecord(wire) ? wire : {}
  const at = typeof checkpoint === 'string' ? checkpoint : target
  if (success === true) return { success, checkpoint: at }
  const why = typeof reason === 'string' ? reason : 'The server gives no reason'
  return { success: false, checkpoint: at, reason: why, ...(notFound.test(why) ? { missing: true } : {}) }
}

// Servers report a missing checkpoint in words, not by a code.
const notFound = /checkpoint.*(not found|unknown|pruned)|(not found|unknown|pruned).*checkpoint/i

const missingCodes: ReadonlySet<number | undefined> = new Set(Object.values(liveErrors['checkpoint-unknown']))

/** Reads an error response as a refusal; undefined if it is another failure. */
export function refusedRollback(error: unknown, target: string): ServerRollback | undefined {
  if (!(error instanceof McpError) || error.kind !== 'remote') return undefined
  const { code, message, data } = error
  if (code === -32601) return { success: false, checkpoint: target, reason: message, unsupported: true }
  const named = isRecord(data) && 'checkpoint' in data
  if ((missingCodes.has(code) && (named || notFound.test(message))) || notFound.test(message))
    return { success: false, checkpoint: target, reason: message, missing: true }
  return undefined
}
