/** The host's own tools (read results, list and read resources, publish to channels), and the storage of results that are too long for a prompt. */
import { problem } from '../../core/problem.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { ResourceContents } from '../../features/mcp/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Asked } from '../../policy/rules/rule.ts'
import { messageOf, type Op, put, type Store } from '../../stores/store.ts'
import type { ModelTool } from '../models/model.ts'
import { hostText, resourceBlock, textBlock } from '../models/quoted.ts'
import { fairLists } from '../servers/tool-list.ts'
import type { CallParts } from './calls.ts'
import { conversationKey, type TurnRecord } from './conversation-log.ts'
import type { LoopLimits } from './limits.ts'
import { askPermission, deniedProblem } from './permission.ts'
import type { LoopServer } from './ports.ts'

/** What a host tool can use. */
interface HostToolContext extends CallParts {
  /** Called with the rule that allows the request. */
  readonly permitted: (rule: string | undefined) => void
  readonly signal: AbortSignal
}

/** A tool of the host itself. */
interface HostTool {
  readonly tool: ModelTool
  /** Whether the tool is offered. Default: always. */
  shown?(servers: readonly LoopServer[]): boolean
  /** Runs it; throws a Problem where it fails. */
  run(args: Readonly<Record<string, unknown>>, context: HostToolContext): Promise<readonly LiveBlock[]>
}

/** Entries in a list of resources. */
const listed = 200

/** Reads the rest of a shortened result. */
const readResultTool: HostTool = {
  tool: {
    name: 'read_result',
    description: 'Reads on in the result of an earlier tool call that was too long to be shown whole.',
    inputSchema: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id that the shortened result names' },
        offset: { type: 'integer', minimum: 0, description: 'The character to begin at' },
        length: { type: 'integer', minimum: 1, description: 'How many characters' },
      },
      required: ['id'],
    },
  },
  run: async (args, { store, conversation, limits }) => {
    const id = textArgument(args, 'id')
    const offset = countArgument(args, 'offset', 0)
    const length = Math.min(countArgument(args, 'length', limits.resultLength), limits.resultLength)
    const found = await readStoredResult(store, conversation, id, offset, length)
    if (found === undefined) throw problem('RESOURCE_NOT_FOUND', `The result ${clip(id)} is not stored in this conversation`)
    const rest = found.end < found.of ? `[characters ${offset} to ${found.end} of ${found.of}]` : '[the end]'
    return [textBlock(found.text), hostText(rest)]
  },
}

/** Lists resources of all servers, each within its fair share of the list. */
const listResourcesTool: HostTool = {
  tool: {
    name: 'list_resources',
    description: 'Lists the resources that servers offer: documents, records and files that read_resource can read.',
    inputSchema: { type: 'object', properties: { server: { type: 'string', description: 'Only those of this server' } } },
  },
  run: async (args, { servers, signal }) => {
    const only = args['server']
    const asked = servers.filter(({ name }) => typeof only !== 'string' || only === name)
    const lists = fairLists(await Promise.all(asked.map(server => resourceLines(server, signal))), listed)
    const lines = lists.flat()
    return [lines.length === 0 ? hostText('There are no resources.') : textBlock(lines.join('\n'))]
  },
}

/** The resources of one server as lines; a failure becomes a line too. */
async function resourceLines({ name, client }: LoopServer, signal: AbortSignal): Promise<readonly string[]> {
  if (client?.capabilities['resources'] === undefined) return []
  const lines: string[] = []
  try {
    for await (const { uri, name: label, description } of client.resources({ signal })) {
      if (lines.length >= listed) break
      const about = description === undefined ? '' : `: ${clip(description, 200)}`
      lines.push(`${clip(name)}: ${clip(uri, 300)} (${clip(label)}${about})`)
    }
  } catch (error) {
    signal.throwIfAborted()
    lines.push(`${clip(name)}: listing its resources failed (${clip(messageOf(error), 200)})`)
  }
  return lines
}

/** Reads a resource, with the policy's permission. */
const readResourceTool: HostTool = {
  tool: {
    name: 'read_resource',
    description: 'Reads a resource of a server.',
    inputSchema: {
      type: 'object',
      properties: { server: { type: 'string' }, uri: { type: 'string' } },
      required: ['server', 'uri'],
    },
  },
  run: async (args, context) => {
    const { servers, signal } = context
    const [name, uri] = [textArgument(args, 'server'), textArgument(args, 'uri')]
    await requirePermission(context, { server: name, tool: 'resources/read', payload: { uri }, readOnly: true })
    return (await readServerResource(servers, name, uri, signal)).map(resourceBlock)
  },
}

/** Throws where the policy or the user refuses what a tool is about to do; otherwise passes on the rule that allows it. */
async function requirePermission(context: HostToolContext, what: Omit<Asked, 'kind'>): Promise<void> {
  const { begunBy, conversation } = context
  const { why: said, rule } = await askPermission(context.policy, { kind: 'tool', ...what, begunBy, conversation })
  if (said !== undefined) throw deniedProblem(said)
  context.permitted(rule)
}

/** Reads a resource of a server. Throws a Problem where the server is down or unknown. */
export async function readServerResource(
  servers: readonly LoopServer[],
  name: string,
  uri: string,
  signal: AbortSignal | undefined,
): Promise<readonly ResourceContents[]> {
  const server = servers.find(one => one.name === name)
  if (server?.client === undefined)
    throw problem('SERVER_UNAVAILABLE', `The server ${clip(name)} is ${server === undefined ? 'unknown' : 'down'}`, {
      suggestion: `Known servers: ${servers.map(one => one.name).join(', ') || 'none'}`,
    })
  const { contents } = await server.client.readResource(uri, signal === undefined ? {} : { signal })
  return contents
}

/** A required text argument. */
function textArgument(args: Readonly<Record<string, unknown>>, name: string): string {
  const value = args[name]
  if (typeof value === 'string' && value !== '') return value
  throw problem('INVALID_INPUT', `${name} must be a non-empty string`, { suggestion: `Set ${name}` })
}

/** A count, or its default. */
function countArgument(args: Readonly<Record<string, unknown>>, name: string, standard: number): number {
  const value = args[name] ?? standard
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw problem('INVALID_INPUT', `${name} must be a whole number of at least 0`)
}

/** The name of the tool that publishes to a channel. */
const publishToolName = 'publish_to_channel'
/** Channels that an error lists. */
const named = 20

/** Publishes to a channel; shown only where some server has channels. */
const publishHostTool: HostTool = {
  tool: {
    name: publishToolName,
    description:
      'Writes a message in a channel of a server. Your answer to a message of a channel is posted there automatically. Use this tool for other channels, or to post there yourself instead.',
    inputSchema: {
      type: 'object',
      properties: {
        server: { type: 'string' },
        channel: { type: 'string', description: 'The id of the channel' },
        text: { type: 'string' },
      },
      required: ['server', 'channel', 'text'],
    },
  },
  shown: servers => servers.some(({ live }) => live !== undefined && live.channels.size > 0),
  run: async (args, context) => {
    const { servers, conversation, signal } = context
    const { server, channel, text } = args
    if (typeof server !== 'string' || typeof channel !== 'string' || typeof text !== 'string' || text === '')
      throw problem('INVALID_INPUT', 'server, channel and text must be non-empty strings', { suggestion: 'Set all three' })
    const live = servers.find(({ name }) => name === server)?.live
    if (live?.channels.has(channel) !== true) throw unknownChannel(servers, server, channel)
    await requirePermission(context, { server, tool: 'channels/publish', payload: { channel, text } })
    await live.publish(channel, [{ type: 'text', text }], { conversationId: conversation, signal })
    return [hostText(`Published in ${clip(channel)}.`)]
  },
}

/** Whether the model has published in the channel with the host's own tool. */
export function hasPosted({ calls, outcomes }: TurnRecord, server: string, channelId: string): boolean {
  return calls.some(({ server: of, tool, arguments: args, n }) => {
    const done = of === undefined && tool === publishToolName && outcomes.get(n)?.status === 'done'
    return done && args['server'] === server && args['channel'] === channelId
  })
}

/** The error for an unknown channel, with the known ones. */
function unknownChannel(servers: readonly LoopServer[], server: string, channel: string): Error {
  const all = servers.flatMap(({ name, live }) => [...(live?.channels.keys() ?? [])].map(id => `${name} ${id}`))
  const known = all.length === 0 ? 'No server has channels now' : `Known channels: ${clip(all.slice(0, named).join(', '), 1_000)}`
  return problem('RESOURCE_NOT_FOUND', `${clip(server)} has no channel ${clip(channel)}`, { suggestion: known })
}

/** All tools of the host itself. */
export const hostTools: readonly HostTool[] = [readResultTool, listResourcesTool, readResourceTool, publishHostTool]

// Long results: stored in pieces, while the model gets the beginning and a reference to read on.

/** Characters per piece; below the store's limit for one value in any encoding. */
const pieceLength = 1_000_000
/** Characters of images and audio in one result. */
const mediaLength = 6_000_000

/** A result that fits into a prompt. */
interface ShortenedResult {
  readonly content: readonly LiveBlock[]
  /** Undefined: nothing was cut. */
  readonly reference: string | undefined
  /** Operations to commit with the result. */
  readonly ops: readonly Op[]
}

/** Shortens a result. `reference`: its id; only its own conversation can read the rest. */
export function shortenResult(
  given: readonly LiveBlock[],
  conversation: string,
  reference: string,
  limits: LoopLimits,
): ShortenedResult {
  const content = lighter(given)
  const words = content.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0)
  if (words <= limits.resultLength) return { content, reference: undefined, ops: [] }
  const whole = content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
  const stored = whole.slice(0, limits.storedLength)
  const ops: Op[] = []
  for (let at = 0; at < stored.length; at += pieceLength)
    ops.push(
      put(
        pieceKey(conversation, reference, at / pieceLength),
        JSON.stringify({ length: stored.length, text: stored.slice(at, at + pieceLength) }),
      ),
    )
  const shown = cutAt(stored, limits.resultLength)
  const lost = whole.length > stored.length ? ` Only the first ${stored.length} are stored.` : ''
  const note = `[This is the beginning of ${whole.length} characters.${lost} Read the rest with read_result {"id":"${reference}","offset":${shown.length}}.]`
  return { content: [textBlock(shown), hostText(note), ...content.filter(block => block.type !== 'text')], reference, ops }
}

/** Replaces images and audio beyond the limit by a text. */
function lighter(content: readonly LiveBlock[]): readonly LiveBlock[] {
  let left = mediaLength
  return content.map(block => {
    if (block.type !== 'image' && block.type !== 'audio') return block
    left -= block.data.length
    if (left >= 0) return block
    left += block.data.length
    return textBlock(
      `[${block.type}, ${clip(block.mimeType)}, ${Math.floor((block.data.length * 3) / 4)} bytes: too large to show]`,
    )
  })
}

/** A part of a stored result; undefined where there is none. */
async function readStoredResult(
  store: Store,
  conversation: string,
  reference: string,
  offset: number,
  length: number,
): Promise<{ readonly text: string; readonly end: number; readonly of: number } | undefined> {
  let found = ''
  let of: number | undefined
  for (let piece = Math.floor(offset / pieceLength); ; piece++) {
    const entry = await store.get(pieceKey(conversation, reference, piece))
    if (entry === undefined) break
    const stored = JSON.parse(entry.value) as { readonly length: number; readonly text: string }
    of = stored.length
    found += stored.text.slice(Math.max(0, offset - piece * pieceLength), offset + length - piece * pieceLength)
    if ((piece + 1) * pieceLength >= Math.min(of, offset + length)) break
  }
  if (of === undefined) return undefined
  const part = cutAt(found, length)
  return { text: part, end: offset + part.length, of }
}

/** Includes the conversation, so that no other one can read it. */
function pieceKey(conversation: string, reference: string, piece: number): string {
  return `result/${conversationKey(conversation)}/${encodeURIComponent(reference)}/${String(piece).padStart(4, '0')}`
}

/** Cuts a text, but not within a surrogate pair. */
function cutAt(words: string, length: number): string {
  const cut = words.slice(0, length)
  return cut.length < words.length && /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}
