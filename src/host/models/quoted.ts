/**
 * Quotation marks in prompts: text of servers stands between marks that name its source, so that a model can tell it from the user's words.
 * The marks help the model; what it may do is decided by policy alone. Also converts MCP content into model blocks.
 */

import type { LiveBlock, LiveMedia, LiveText } from '../../features/live/content/messages.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import type { ContentBlock, ResourceContents } from '../../features/mcp/content/messages.ts'
import { clip, echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ModelMessage, ModelTool } from './model.ts'

const quoteKinds = ['context', 'event', 'resource', 'tool-result', 'tool-description', 'server-prompt', 'server-request'] as const
/** The kinds of quoted text. */
type QuoteKind = (typeof quoteKinds)[number]

/** A quotation in a prompt. */
export interface Quote {
  readonly kind: QuoteKind
  /** Its attributes, such as `server`. */
  readonly about: ReadonlyMap<string, string>
  readonly text: string
}

const kinds = quoteKinds.join('|')
/** Invisible characters, which could hide in a mark that a model still reads. */
const unseen = '\\p{Cf}*'
const spelled = quoteKinds.map(kind => [...kind].join(unseen)).join('|')
/** Anything that looks like the start of a mark: with spaces, in another case, or with look-alike characters. */
const opening = new RegExp(
  `[<\\uff1c\\ufe64\\u2039\\u3008\\u27e8](?=[\\s\\p{Cf}]*[/\\uff0f\\u2044\\u2215]?[\\s\\p{Cf}]*(?:${spelled})\\b)`,
  'giu',
)
/** A complete quotation. */
const quoted = new RegExp(`<(${kinds})((?: [a-z]+="[^"]*")*)>\\n([\\s\\S]*?)\\n</\\1>`, 'g')

/** Defuses marks in a text, so that it can neither end nor start a quotation. */
export function withoutMarks(text: string): string {
  return text.replace(opening, '‹')
}

/** Puts a server's text between marks that name its source. */
export function quote(kind: QuoteKind, about: Readonly<Record<string, string | undefined>>, text: string): string {
  const said = Object.entries(about).flatMap(([name, value]) => {
    return value === undefined ? [] : [` ${name}="${attribute(value)}"`]
  })
  return `<${kind}${said.join('')}>\n${withoutMarks(text)}\n</${kind}>`
}

/** An attribute value on one line, without characters that could end it. */
function attribute(value: string): string {
  return clip(value, 160)
    .replaceAll('"', '”')
    .replace(/[<\uff1c]/g, '‹')
    .replace(/[>\uff1e]/g, '›')
}

/** All quotations in a text, and the rest. */
export function readQuotes(text: string): { readonly quotes: readonly Quote[]; readonly own: string } {
  const quotes: Quote[] = []
  const own = text.replace(quoted, (_, kind: QuoteKind, about: string, inner: string) => {
    quotes.push({
      kind,
      about: new Map(Array.from(about.matchAll(/ ([a-z]+)="([^"]*)"/g), m => [m[1] ?? '', m[2] ?? ''])),
      text: inner,
    })
    return ''
  })
  return { quotes, own: own.trim() }
}

/** The text without marks. */
export function unquoted(text: string): string {
  return text.replace(quoted, (_, _kind: string, _about: string, inner: string) => inner)
}

// Content of tools, prompts and resources as the host stores it. It counts as foreign unless it is marked as the host's own.

/** The host's own text. Only this file creates it: content of servers is copied member by member, so they cannot set `own`. */
interface OwnText extends LiveText {
  readonly own: true
}

/** A text block of the host itself; not quoted in prompts. */
export function hostText(words: string): LiveBlock {
  const block: OwnText = { type: 'text', text: words, own: true }
  return block
}

/** Whether a block is the host's own text. */
function isOwn(block: LiveBlock): block is OwnText {
  return block.type === 'text' && 'own' in block && block.own === true
}

/** A result as blocks. Structured content is used only where there is no other. */
export function resultBlocks(content: readonly ContentBlock[], structured: unknown): readonly LiveBlock[] {
  if (content.length === 0 && structured !== undefined) return [textBlock(JSON.stringify(structured))]
  return content.flatMap(block => modelBlocksOf(block))
}

/** A content block of MCP as blocks for a model. */
export function modelBlocksOf(block: ContentBlock): readonly LiveBlock[] {
  switch (block.type) {
    case 'text':
      return [textBlock(typeof block.text === 'string' ? block.text : '')]
    case 'image':
    case 'audio':
      if (typeof block.data !== 'string' || typeof block.mimeType !== 'string') return [textBlock(`[${block.type} without data]`)]
      return [{ type: block.type, data: block.data, mimeType: block.mimeType }]
    case 'resource_link': {
      const { uri, name, title, description, mimeType } = block
      const said = Object.entries({ name, title, description, mimeType }).filter(([, value]) => typeof value === 'string')
      return [{ type: 'resource_link', uri: typeof uri === 'string' ? uri : '', ...Object.fromEntries(said) }]
    }
    case 'resource':
      return isRecord(block.resource) ? embedded(block.resource) : [textBlock('[a resource without contents]')]
    default:
      return [textBlock(`[a block of the unknown type ${echo((block as { type?: unknown }).type)}]`)]
  }
}

/** An embedded resource, with its address before it. */
function embedded(resource: ResourceContents): readonly LiveBlock[] {
  const { uri, mimeType } = resource
  return [
    textBlock(`[resource ${echo(uri, 400)}${mimeType === undefined ? '' : `, ${echo(mimeType)}`}]`),
    resourceBlock(resource),
  ]
}

/** The content of a resource: text, image or audio; anything else is only named. */
export function resourceBlock({ uri, mimeType, text: words, blob }: ResourceContents): LiveBlock {
  if (typeof words === 'string') return textBlock(words)
  const kind = typeof mimeType === 'string' ? /^(image|audio)\//.exec(mimeType)?.[1] : undefined
  const data = typeof blob === 'string' ? blob : ''
  if (typeof mimeType === 'string' && typeof blob === 'string' && (kind === 'image' || kind === 'audio'))
    return { type: kind, data, mimeType }
  return textBlock(
    `[${echo(uri, 200)}: ${echo(mimeType ?? 'binary content')}, ${Math.floor((data.length * 3) / 4)} bytes, not shown]`,
  )
}

/** A text block with foreign text; quoted in prompts. */
export function textBlock(words: string): LiveBlock {
  return { type: 'text', text: words }
}

/** Attributes that name the source, `server` first. */
export type QuoteSource = Readonly<Record<string, string | undefined>>

/** Quotes blocks of a server. Images and audio follow the quotation. */
export function quoteFromServer(kind: QuoteKind, about: QuoteSource, blocks: readonly LiveBlock[]): readonly LiveBlock[] {
  const media: LiveMedia[] = []
  const words = blocks.map(block => {
    const shown = mediaOf(block)
    if (shown === undefined) return wordsOf(block)
    media.push(shown)
    return `[${shown.type} ${media.length}: ${shown.mimeType}, shown after this]`
  })
  return [{ type: 'text', text: quote(kind, about, words.join('\n')) }, ...media]
}

/** Quotes blocks, except for the host's own text among them. */
export function quoteExceptHostText(kind: QuoteKind, about: QuoteSource, blocks: readonly LiveBlock[]): readonly LiveBlock[] {
  const told: LiveBlock[] = []
  let theirs: LiveBlock[] = []
  const close = (): void => {
    if (theirs.length > 0) told.push(...quoteFromServer(kind, about, theirs))
    theirs = []
  }
  for (const block of blocks) {
    if (isOwn(block)) {
      close()
      told.push({ type: 'text', text: block.text })
    } else theirs.push(block)
  }
  close()
  return told
}

/** A tool definition with a quoted description, and a schema without marks. */
export function quoteTool(name: string, server: string, tool: Omit<ModelTool, 'name'>): ModelTool {
  const { description, inputSchema } = tool
  const said = quote('tool-description', { server }, description ?? '')
  return { name, description: said, inputSchema: schemaWithoutMarks(inputSchema) }
}

/** Cleaned schemas, by the original. */
const schemas = new WeakMap<object, Readonly<Record<string, unknown>>>()

function schemaWithoutMarks(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const known = schemas.get(schema)
  if (known !== undefined) return known
  const made = cleaned(schema) as Readonly<Record<string, unknown>>
  schemas.set(schema, made)
  return made
}

/** Removes marks from all strings and names of a value. */
function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return withoutMarks(value)
  if (Array.isArray(value)) return value.map(cleaned)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [withoutMarks(name), cleaned(member)]))
}

/** The longest link that is shown. */
const linkLength = 2_000
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/
const mediaType = /^(?:image|audio)\/[a-z0-9.+*-]{1,64}$/i

/** An image or audio block; undefined where type or data are not plainly valid, since they could contain text or a URL. */
function mediaOf(block: LiveBlock): LiveMedia | undefined {
  if (block.type !== 'image' && block.type !== 'audio') return undefined
  const mimeType = typeof block.mimeType === 'string' ? (block.mimeType.split(';', 1)[0] ?? '').trim() : ''
  if (!mediaType.test(mimeType) || typeof block.data !== 'string' || !base64.test(block.data)) return undefined
  return { type: block.type, data: block.data, mimeType }
}

/** A block as text. */
function wordsOf(block: LiveBlock): string {
  if (block.type === 'text') return typeof block.text === 'string' ? block.text : ''
  if (block.type === 'resource_link') {
    const said = [block.name, block.title, block.description, block.mimeType].filter(one => typeof one === 'string')
    return [`[link] ${echo(block.uri, linkLength)}`, ...said].join('\n')
  }
  const { type, mimeType } = block as { readonly type?: unknown; readonly mimeType?: unknown }
  const size = 'data' in block && typeof block.data === 'string' ? `, ${Math.floor((block.data.length * 3) / 4)} bytes` : ''
  return `[${echo(type)}, ${echo(mimeType)}${size}: cannot be shown]`
}

/** Events as a user message; each keeps its own source. */
export function eventMessage(server: string, events: readonly PushEvent[]): ModelMessage {
  const content = events.flatMap(event => quoteFromServer('event', aboutOf(server, event), event.content))
  const { channel } = events.at(-1) ?? {}
  return { role: 'user', content: channel === undefined ? content : [...content, answerHere(server, channel.channelId)] }
}

/** Tells the model that its answer is posted in the channel. */
function answerHere(server: string, channelId: string): LiveBlock {
  const where = `the channel ${JSON.stringify(clip(channelId, 200))} of ${clip(server)}`
  return hostText(`[Your answer is posted in ${where} automatically. To post nothing, leave the answer empty.]`)
}

/** The attributes of an event's quotation. */
function aboutOf(server: string, { featureSet, eventId, timestamp, origin, tags }: PushEvent) {
  return {
    server,
    set: featureSet,
    id: eventId,
    at: timestamp,
    ...(origin !== undefined && { origin: clip(JSON.stringify(origin), 200) }),
    ...(tags !== undefined && { tags: tags.join(' ') }),
  }
}
