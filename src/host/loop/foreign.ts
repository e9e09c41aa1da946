/**
 * The one way of what servers wrote into a prompt. Whatever kind of block it is, all its words stand inside a quotation that names
 * where they come from; of pictures and sound only the bytes stand beside it.
 */
import type { LiveBlock, LiveMedia } from '../../features/live/content/messages.ts'
import { echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ModelTool } from '../models/model.ts'
import { type QuoteKind, quote, withoutMarks } from '../models/quoted.ts'
import { isOwn } from './blocks.ts'

/** Where it comes from: `server` first of all. */
export type About = Readonly<Record<string, string | undefined>>

export function fromServer(kind: QuoteKind, about: About, blocks: readonly LiveBlock[]): readonly LiveBlock[] {
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
export function withOwnWords(kind: QuoteKind, about: About, blocks: readonly LiveBlock[]): readonly LiveBlock[] {
  const told: LiveBlock[] = []
  let theirs: LiveBlock[] = []
  const close = (): void => {
    if (theirs.length > 0) told.push(...fromServer(kind, about, theirs))
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
export function toolFromServer(name: string, server: string, tool: Omit<ModelTool, 'name'>): ModelTool {
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
