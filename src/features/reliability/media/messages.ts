/** Media on the wire: what a tool accepts and returns, warnings in results, and the two known forms of content blocks. */
import type { Artifact } from '../../../core/artifact.ts'
import { NS } from '../../../engine/method.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { array, boolean, integer, object, optional, string } from '../../../jsonrpc/shape.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'

/** The extension name. */
export const mediaExtension = `${NS}/media`

/** What a tool declares in `_meta`. */
export interface WireMedia {
  readonly input_types?: readonly string[]
  readonly output_types?: readonly string[]
  readonly max_input_size_bytes?: number
  readonly max_output_size_bytes?: number
  /** Whether other types than the listed ones are refused. */
  readonly strict?: boolean
  /** How bytes are transferred; unknown values are read as `reference`. */
  readonly binary_transport?: 'base64' | 'reference'
}

/** A warning about a result. */
export interface WireWarning {
  /** Which block it is about. */
  readonly block: string
  /** The violated rule. */
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

/** Reads a tool's declaration; undefined if it is missing or invalid. */
export function mediaOf(meta: Readonly<Record<string, unknown>> | undefined): WireMedia | undefined {
  const said = meta?.[mediaExtension]
  if (said === undefined || mediaShape.check(said) !== undefined) return undefined
  const { binary_transport, ...rest } = said as Omit<WireMedia, 'binary_transport'> & { readonly binary_transport?: string }
  if (binary_transport === undefined) return rest
  return { ...rest, binary_transport: binary_transport === 'base64' ? 'base64' : 'reference' }
}

/** The texts of a result's warnings, limited in number and length. */
export function warningsIn(meta: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const said = meta?.[mediaExtension]
  const warnings = isRecord(said) ? said['warnings'] : undefined
  if (!Array.isArray(warnings)) return []
  return warnings
    .slice(0, 32)
    .flatMap(each => (isRecord(each) && typeof each['message'] === 'string' ? [clip(each['message'], 300)] : []))
}

/** A block with bytes under `source`, as in MCP Live 0.2 and model APIs. */
type SourceBlock =
  | Exclude<ContentBlock, { readonly type: 'image' | 'audio' | 'resource_link' }>
  | {
      readonly type: 'image' | 'audio'
      readonly source: { readonly type: 'base64'; readonly media_type: string; readonly data: string }
    }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name?: string }

/** Converts a block; members unknown to the other form are kept. */
export function toSourceBlock(block: ContentBlock): SourceBlock {
  if (block.type === 'image' || block.type === 'audio') {
    const { data, mimeType, ...rest } = block
    return { ...rest, source: { type: 'base64', media_type: mimeType, data } }
  }
  if (block.type !== 'resource_link' || block.name !== block.uri) return block
  const { name, ...rest } = block
  return rest
}

/** Reads either form; undefined if it is neither. */
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

/** Options of `readMedia`. */
export interface ReadMediaOptions {
  /** The type of plain base64. Default: detected from the first bytes. */
  readonly type?: string
  /** Allowed types, such as `image/*`. Default: any. */
  readonly types?: readonly string[]
  /** The size limit. Default 16 MiB. */
  readonly maxBytes?: number
}

/** What can be read: a content block, an object with `mimeType` and `data` or `blob`, a data URL, or base64. */
export type MediaValue = string | object

/**
 * Decodes media of arguments or results. Throws a `Problem` that names the rule if the media is too large, malformed, or not of
 * the declared type. Nothing is decoded then.
 * @example const { bytes, mime } = await readMedia(out.content[0], { types: ['image/*'], maxBytes: 1_000_000 })
 */
export async function readMedia(
  value: MediaValue | undefined,
  options: ReadMediaOptions = {},
): Promise<
  Artifact & {
    /** The bytes are in the artifact itself. */
    readonly by: 'value'
  }
> {
  const { decodeMedia } = await import('./runtime.ts')
  return decodeMedia(value, options)
}

/** The warnings in the `_meta` of a result. */
export interface WireWarnings {
  readonly warnings: readonly WireWarning[]
}
