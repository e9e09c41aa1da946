/**
 * Content blocks of MCP Live. The canonical form is MCP's; the `source` form of MCP Live 0.2 §10.3 and plain strings exist only on the
 * wire. Separate because hooks, pushes, channels and inference share it.
 */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { Shape } from '../../../jsonrpc/shape.ts'

/** A block of text. */
export interface LiveText {
  /** Marks a block of text. */
  readonly type: 'text'
  /** The text. */
  readonly text: string
}

/** A block with an image or audio. */
export interface LiveMedia {
  /** The kind of media. */
  readonly type: 'image' | 'audio'
  /** The bytes, as base64. */
  readonly data: string
  /** The media type, for example `image/png`. */
  readonly mimeType: string
}

/** A block that links to content by its URI. */
interface LiveLink {
  /** Marks a link. */
  readonly type: 'resource_link'
  /** The URI of the content. */
  readonly uri: string
  /** The name of the content, for programs. */
  readonly name?: string
  /** The name that people see. */
  readonly title?: string
  /** What the content is, in a sentence. */
  readonly description?: string
  /** The media type of the content. */
  readonly mimeType?: string
}

/** One block of content in MCP Live: text, media or a link. */
export type LiveBlock = LiveText | LiveMedia | LiveLink

/** Content as peers of any dialect send it. */
export type WireContent = string | readonly Readonly<Record<string, unknown>>[]

const expected = 'a string or an array of content blocks, each with a type'

const isBlock = (value: unknown): boolean => isRecord(value) && typeof value['type'] === 'string'

/** Accepts every dialect; only the outer form is checked here. */
export const wireContent: Shape<WireContent> = {
  optional: false,
  schema: () => ({ anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'object', required: ['type'] } }] }),
  check: value =>
    typeof value === 'string' || (Array.isArray(value) && value.every(isBlock)) ? undefined : { path: '', expected },
}

/** Content as an author may give it: text, a block, or several blocks. */
export type LiveInput = string | LiveBlock | readonly LiveBlock[]

/** Converts an author's content to canonical blocks. Throws for invalid content, so that the author sees the error and not the peer. */
export function blocksOf(input: LiveInput, where: string): readonly LiveBlock[] {
  if (typeof input === 'string') return [{ type: 'text', text: input }]
  const blocks = Array.isArray(input) ? (input as readonly LiveBlock[]) : [input as LiveBlock]
  for (const block of blocks) {
    const fault = faultOf(block)
    if (fault !== undefined) throw new TypeError(`${where}: ${fault}`)
  }
  return blocks
}

// Why a block is invalid.
function faultOf(block: unknown): string | undefined {
  const { type, text, data, mimeType, uri } = (isRecord(block) ? block : {}) as Record<string, unknown>
  if (type === 'text') return typeof text === 'string' ? undefined : 'a text block needs text'
  if (type === 'image' || type === 'audio')
    return typeof data === 'string' && typeof mimeType === 'string' ? undefined : `an ${type} needs data (base64) and mimeType`
  if (type === 'resource_link') return typeof uri === 'string' ? undefined : 'a resource_link needs a uri'
  return 'content must be a string or blocks of type text, image, audio or resource_link'
}

/**
 * Writes blocks for a peer. Hosts of 0.2 expect media under `source` and links as `resource_link` (§10.3); later ones expect MCP's
 * media form and links as `resource`.
 */
export function writeBlocks(blocks: readonly LiveBlock[], source: boolean): readonly Readonly<Record<string, unknown>>[] {
  return blocks.map(block => {
    if (block.type === 'resource_link' && !source) return { ...block, type: 'resource' }
    if (block.type !== 'image' && block.type !== 'audio') return { ...block }
    const { type, data, mimeType, ...rest } = block
    return source ? { type, source: { type: 'base64', media_type: mimeType, data }, ...rest } : { ...block }
  })
}
