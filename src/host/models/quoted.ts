/**
 * What others wrote, in a prompt: put between marks that say whose it is, so that a model can tell it from what the user said. The
 * marks keep honest readers honest; what a model may do is decided by policy, never by them.
 */

import type { LiveBlock, LiveMedia, LiveText } from '../../features/live/content/messages.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import type { ContentBlock, ResourceContents } from '../../features/mcp/content/messages.ts'
import { clip, echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ModelMessage, ModelTool } from './model.ts'

const quoteKinds = ['context', 'event', 'resource', 'tool-result', 'tool-description', 'server-prompt', 'server-request'] as const
/** What kind of foreign text is quoted. */
type QuoteKind = (typeof quoteKinds)[number]

/** A text of a server as it stands in a prompt, with its marks. */
export interface Quote {
  readonly kind: QuoteKind
  readonly about: ReadonlyMap<string, string>
  readonly text: string
}

const kinds = quoteKinds.join('|')
/** Characters that nobody sees may stand anywhere in a mark that a model still reads as one. */
const unseen = '\\p{Cf}*'
const spelled = quoteKinds.map(kind => [...kind].join(unseen)).join('|')
/** Whatever reads as the beginning of a mark: with blanks, in another case, or with signs that look like its own. */
const opening = new RegExp(
  `[<\\uff1c\\ufe64\\u2039\\u3008\\u27e8](?=[\\s\\p{Cf}]*[/\\uff0f\\u2044\\u2215]?[\\s\\p{Cf}]*(?:${spelled})\\b)`,
  'giu',
)
const quoted = new RegExp(`<(${kinds})((?: [a-z]+="[^"]*")*)>\\n([\\s\\S]*?)\\n</\\1>`, 'g')

/** Nobody ends a quotation but whoever began it: what reads as a mark is none any more. */
export function withoutMarks(text: string): string {
  return text.replace(opening, '‹')
}

/** Puts the text of a server between marks that say where it is from. */
export function quote(kind: QuoteKind, about: Readonly<Record<string, string | undefined>>, text: string): string {
  const said = Object.entries(about).flatMap(([name, value]) => {
    return value === undefined ? [] : [` ${name}="${attribute(value)}"`]
  })
  return `<${kind}${said.join('')}>\n${withoutMarks(text)}\n</${kind}>`
}

/** On one line, and without what would end it, or the mark. */
function attribute(value: string): string {
  return clip(value, 160)
    .replaceAll('"', '”')
    .replace(/[<\uff1c]/g, '‹')
    .replace(/[>\uff1e]/g, '›')
}

/** All quotations in a text, and what remains without them. */
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

/** The text as it reads without the marks. */
export function unquoted(text: string): string {
  return text.replace(quoted, (_, _kind: string, _about: string, inner: string) => inner)
}

// Content of tools, prompts and resources as a host keeps it: blocks of few kinds, with nothing of the wire in them. It is foreign
// unless it is marked as the host's own words.

/** Words of the host itself. Made here alone: what servers send is copied member by member, so nobody else can say so. */
interface OwnText extends LiveText {
  readonly own: true
}

/** A text block in the words of the host itself. In a prompt it is not quoted. */
export function hostText(words: string): LiveBlock {
  const block: OwnText = { type: 'text', text: words, own: true }
  return block
}

function isOwn(block: LiveBlock): block is OwnText {
  return block.type === 'text' && 'own' in block && block.own === true
}

/** Text that a result has beside its blocks is not told twice; a result of a structured value alone is its JSON. */
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

/** A resource amid other blocks says which one it is. */
function embedded(resource: ResourceContents): readonly LiveBlock[] {
  const { uri, mimeType } = resource
  return [
    textBlock(`[resource ${echo(uri, 400)}${mimeType === undefined ? '' : `, ${echo(mimeType)}`}]`),
    resourceBlock(resource),
  ]
}

/** What a resource holds: text, pictures and sound as such, anything else by its name. */
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

/** A text block with foreign text. In a prompt it is quoted. */
export function textBlock(words: string): LiveBlock {
  return { type: 'text', text: words }
}

/** Where it comes from: `server` first of all. */
export type QuoteSource = Readonly<Record<string, string | undefined>>

/** Puts blocks of a server between marks that name their source. Images and audio follow the quotation. */
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

/** The same for what the host has put its own words beside: those stay outside. */
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

/** A tool in its server's words. The schema is data of its own, in which nothing may read as a mark. */
export function quoteTool(name: string, server: string, tool: Omit<ModelTool, 'name'>): ModelTool {
  const { description, inputSchema } = tool
  const said = quote('tool-description', { server }, description ?? '')
  return { name, description: said, inputSchema: schemaWithoutMarks(inputSchema) }
}

const schemas = new WeakMap<object, Readonly<Record<string, unknown>>>()

function schemaWithoutMarks(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const known = schemas.get(schema)
  if (known !== undefined) return known
  const made = cleaned(schema) as Readonly<Record<string, unknown>>
  schemas.set(schema, made)
  return made
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return withoutMarks(value)
  if (Array.isArray(value)) return value.map(cleaned)
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [withoutMarks(name), cleaned(member)]))
}

const linkLength = 2_000
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/
const mediaType = /^(?:image|audio)\/[a-z0-9.+*-]{1,64}$/i

/** Undefined for what is no picture or sound, or not plainly so: a type could be a sentence, and data an address to be fetched. */
function mediaOf(block: LiveBlock): LiveMedia | undefined {
  if (block.type !== 'image' && block.type !== 'audio') return undefined
  const mimeType = typeof block.mimeType === 'string' ? (block.mimeType.split(';', 1)[0] ?? '').trim() : ''
  if (!mediaType.test(mimeType) || typeof block.data !== 'string' || !base64.test(block.data)) return undefined
  return { type: block.type, data: block.data, mimeType }
}

function wordsOf(block: LiveBlock): string {
  if (block.type === 'text') return typeof block.text === 'string' ? block.text : ''
  if (block.type === 'resource_link') {
    const said = [block.name, block.title, block.description, block.mimeType].filter(one => typeof one === 'string')
    return [`[link] ${echo(block.uri, linkLength)}`, ...said].join('\n')
  }
  const { type, mimeType } = block as { readonly type?: unknown; readonly mimeType?: unknown }
  const size = 'data' in block && typeof block.data === 'string' ? `, ${Math.floor((block.data.length * 3) / 4)} bytes` : ''
  return `[${echo(type)}, ${echo(mimeType)}${size}: it cannot be shown]`
}

/** Of those that were gathered into one turn each keeps its own origin. */
export function eventMessage(server: string, events: readonly PushEvent[]): ModelMessage {
  const content = events.flatMap(event => quoteFromServer('event', aboutOf(server, event), event.content))
  const { channel } = events.at(-1) ?? {}
  return { role: 'user', content: channel === undefined ? content : [...content, answerHere(server, channel.channelId)] }
}

function answerHere(server: string, channelId: string): LiveBlock {
  const where = `the channel ${JSON.stringify(clip(channelId, 200))} of ${clip(server)}`
  return hostText(`[Your answer is posted in ${where} by itself. Answer with nothing to stay silent.]`)
}

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
