/** Media on the wire: what a tool takes and gives, in its `_meta`; in a result's, what is odd about it. And blocks in both known forms. */
import type { Artifact } from '../../../core/artifact.ts'
import { NS } from '../../../engine/method.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { array, boolean, integer, object, optional, string } from '../../../jsonrpc/shape.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'

/** The name of the extension. */
export const mediaExtension = `${NS}/media`

/** In the `_meta` of a tool. */
export interface WireMedia {
  readonly input_types?: readonly string[]
  readonly output_types?: readonly string[]
  readonly max_input_size_bytes?: number
  readonly max_output_size_bytes?: number
  /** Whether other types than the listed ones are refused. */
  readonly strict?: boolean
  /** How bytes come. Others than these two are read as `reference`. */
  readonly binary_transport?: 'base64' | 'reference'
}

/** What is odd about a result that is given all the same. */
export interface WireWarning {
  readonly block: string
  readonly rule: string
  readonly message: string
}

const mediaShape = object({
  input_types: optional(array(string)),
  output_types: optional(array(string)),
  max_input_size_bytes: optional(integer),
  max_output_size_bytes: optional(integer),
  strict: optional(boolean),
  binary_transport: optional(string),
})

/** What a tool says of media; undefined where it says nothing, or nothing that can be read. */
export function mediaOf(meta: Readonly<Record<string, unknown>> | undefined): WireMedia | undefined {
  const said = meta?.[mediaExtension]
  if (said === undefined || mediaShape.check(said) !== undefined) return undefined
  const { binary_transport, ...rest } = said as Omit<WireMedia, 'binary_transport'> & { readonly binary_transport?: string }
  if (binary_transport === undefined) return rest
  return { ...rest, binary_transport: binary_transport === 'base64' ? 'base64' : 'reference' }
}

/** The sentences of a result's warnings: the first of them, each as long as a line. */
export function warningsIn(meta: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const said = meta?.[mediaExtension]
  const warnings = isRecord(said) ? said['warnings'] : undefined
  if (!Array.isArray(warnings)) return []
  return warnings
    .slice(0, 32)
    .flatMap(each => (isRecord(each) && typeof each['message'] === 'string' ? [clip(each['message'], 300)] : []))
}

/** A block whose bytes stand in a `source`, as MCP Live 0.2 and model interfaces have it. */
type SourceBlock =
  | Exclude<ContentBlock, { readonly type: 'image' | 'audio' | 'resource_link' }>
  | {
      readonly type: 'image' | 'audio'
      readonly source: { readonly type: 'base64'; readonly media_type: string; readonly data: string }
    }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name?: string }

/** Nothing of the block is lost: what the other form has no word for stays as it is. */
export function toSourceBlock(block: ContentBlock): SourceBlock {
  if (block.type === 'image' || block.type === 'audio') {
    const { data, mimeType, ...rest } = block
    return { ...rest, source: { type: 'base64', media_type: mimeType, data } }
  }
  if (block.type !== 'resource_link' || block.name !== block.uri) return block
  const { name, ...rest } = block
  return rest
}

/** Reads either form; undefined where it is neither. */
export function fromSourceBlock(block: unknown): ContentBlock | undefined {
  if (typeof block === 'string') return { type: 'text', text: block }
  if (!isRecord(block)) return undefined
  const { type, source, ...rest } = block
  if (type === 'text') return { ...rest, type, text: typeof block['text'] === 'string' ? block['text'] : '' }
  if (type === 'image' || type === 'audio') {
    const { data, mimeType } = isRecord(source) ? { data: source['data'], mimeType: source['media_type'] } : block
    return typeof data === 'string' && typeof mimeType === 'string' ? { ...rest, type, data, mimeType } : undefined
  }
  if (type === 'resource_link' && typeof block['uri'] === 'string') {
    const name = typeof block['name'] === 'string' ? block['name'] : block['uri']
    return { ...rest, type, uri: block['uri'], name }
  }
  if (type === 'resource' && isRecord(block['resource']) && typeof block['resource']['uri'] === 'string')
    return { ...rest, type, resource: { ...block['resource'], uri: block['resource']['uri'] } }
  return undefined
}

/** How media are read. */
export interface ReadMediaOptions {
  /** The type of bare base64, which does not say one. Default: what its first bytes show. */
  readonly type?: string
  /** Types that it may have, such as `image/*`. Default: any. */
  readonly types?: readonly string[]
  /** The most bytes. Default 16 MiB. */
  readonly maxBytes?: number
}

/** What can be read: a content block, an object with `mimeType` and `data` or `blob`, a data URL, or base64. */
export type MediaValue = string | object

/**
 * Decodes media, from arguments or from results. Throws a Problem that names the rule where it is too large, broken, or something
 * else than it says; nothing is decoded then.
 * @example const { bytes, mime } = await readMedia(out.content[0], { types: ['image/*'], maxBytes: 1_000_000 })
 */
export async function readMedia(
  value: MediaValue | undefined,
  options: ReadMediaOptions = {},
): Promise<Artifact & { readonly by: 'value' }> {
  const { decodeMedia } = await import('./runtime.ts')
  return decodeMedia(value, options)
}

/** In the `_meta` of a result. */
export interface WireWarnings {
  readonly warnings: readonly WireWarning[]
}
