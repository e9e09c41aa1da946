/** Content blocks by one word each, for authors. */
import { toBase64 } from '../../../core/base64.ts'
import type {
  Annotations,
  AudioContent,
  EmbeddedResource,
  ImageContent,
  ResourceContents,
  ResourceLink,
  TextContent,
} from './messages.ts'

interface More {
  readonly annotations?: Annotations
  readonly meta?: Readonly<Record<string, unknown>>
}

export function text(value: string, more: More = {}): TextContent {
  return { type: 'text', text: value, ...extras(more) }
}

/** Bytes, or base64 text. */
export function image(data: Uint8Array | string, mimeType = 'image/png', more: More = {}): ImageContent {
  return { type: 'image', data: base64(data), mimeType, ...extras(more) }
}

/** Bytes, or base64 text. */
export function audio(data: Uint8Array | string, mimeType = 'audio/wav', more: More = {}): AudioContent {
  return { type: 'audio', data: base64(data), mimeType, ...extras(more) }
}

/** The contents of a resource, embedded. */
export function resource(contents: ResourceContents, more: More = {}): EmbeddedResource {
  return { type: 'resource', resource: contents, ...extras(more) }
}

/** A resource that the client may read later. */
export function link(uri: string, facts: Omit<ResourceLink, 'type' | 'uri'>): ResourceLink {
  return { type: 'resource_link', uri, ...facts }
}

function base64(data: Uint8Array | string): string {
  return typeof data === 'string' ? data : toBase64(data)
}

function extras({ annotations, meta }: More): { annotations?: Annotations; _meta?: Readonly<Record<string, unknown>> } {
  return { ...(annotations === undefined ? {} : { annotations }), ...(meta === undefined ? {} : { _meta: meta }) }
}
