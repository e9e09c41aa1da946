/** Content blocks: what tools and prompts answer with, and what older wires get instead of what they do not know. */

import { toBase64 } from '../../../core/base64.ts'
import type { Icon, Wire } from '../../../revisions/index.ts'

/** Who speaks in a message. */
export type Role = 'user' | 'assistant'

/** Hints about content: for whom it is, how important it is, and when it changed. */
export interface Annotations {
  /** For whom the content is. Default: the user and the model. */
  readonly audience?: readonly Role[]
  /** The importance, from 0 (optional) to 1 (required). */
  readonly priority?: number
  /** When the content changed, ISO 8601. */
  readonly lastModified?: string
}

/** What every block of content has. */
interface Block {
  /** Hints for the client: for whom it is, how important it is, and when it changed. */
  readonly annotations?: Annotations
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A block of text. */
export interface TextContent extends Block {
  /** Marks a block of text. */
  readonly type: 'text'
  /** The text. */
  readonly text: string
}

/** A block with an image. */
export interface ImageContent extends Block {
  /** Marks an image. */
  readonly type: 'image'
  /** The bytes, as base64. */
  readonly data: string
  /** The media type, for example `image/png`. */
  readonly mimeType: string
}

/** A block with sound. */
export interface AudioContent extends Block {
  /** Marks a sound. */
  readonly type: 'audio'
  /** The bytes, as base64. */
  readonly data: string
  /** The media type, for example `audio/wav`. */
  readonly mimeType: string
}

/** The contents of a resource: `text`, or `blob` as base64. */
export interface ResourceContents {
  /** The URI of the resource, or of this part of it. */
  readonly uri: string
  /** The media type of the contents. */
  readonly mimeType?: string
  /** The text. Absent if `blob` has the contents. */
  readonly text?: string
  /** The bytes, as base64. Absent if `text` has the contents. */
  readonly blob?: string
  /** Further facts about it (`_meta` on the wire). Names carry a prefix: `example.com/kind`. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A block with the contents of a resource. */
export interface EmbeddedResource extends Block {
  /** Marks an embedded resource. */
  readonly type: 'resource'
  /** The contents of the resource. */
  readonly resource: ResourceContents
}

/** A block that links to a resource, which the client can read. */
export interface ResourceLink extends Block {
  /** Marks a link to a resource. */
  readonly type: 'resource_link'
  /** The URI by which the resource can be read. */
  readonly uri: string
  /** The name of the resource, for programs. */
  readonly name: string
  /** The name that people see. */
  readonly title?: string
  /** What the resource holds, in a sentence. */
  readonly description?: string
  /** The media type of the resource. */
  readonly mimeType?: string
  /** The size in bytes, if known. */
  readonly size?: number
  /** Images that clients can show next to its name. */
  readonly icons?: readonly Icon[]
}

/** One block of content: text, image, audio, an embedded resource or a link. */
export type ContentBlock = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink

const whole = new WeakSet<object>()

/** A block that is a result by itself where a handler returns it alone. */
export function wholeBlock<B extends object>(block: B): B {
  whole.add(block)
  return block
}

/** Whether a value is a block that was made by one of the functions for it. */
export function isWholeBlock(value: unknown): value is ContentBlock {
  return typeof value === 'object' && value !== null && whole.has(value)
}

type Blocks = readonly Wire[]

/** 2025-06-18 has no icons. */
export const withoutIcons = (blocks: Blocks): Blocks =>
  each(blocks, block => ('icons' in block ? without(block, 'icons') : block))

/** Below 2025-06-18: links become text that names the URI; `_meta` and `lastModified` are unknown. */
export const withoutLinks = (blocks: Blocks): Blocks =>
  each(blocks, block => {
    if (block['type'] === 'resource_link') return { type: 'text', text: linkText(block) }
    const resource = block['resource'] as Wire | undefined
    let plain = '_meta' in block ? without(block, '_meta') : block
    if (resource !== undefined && '_meta' in resource) plain = { ...plain, resource: without(resource, '_meta') }
    const annotations = plain['annotations'] as Wire | undefined
    return annotations !== undefined && 'lastModified' in annotations
      ? { ...plain, annotations: without(annotations, 'lastModified') }
      : plain
  })

/** 2024-11-05 has no audio: the bytes travel as an embedded resource, so nothing is lost. */
export const withoutAudio = (blocks: Blocks): Blocks =>
  each(blocks, block => {
    if (block['type'] !== 'audio') return block
    const { mimeType, data, annotations } = block
    const plain = { type: 'resource', resource: { uri: 'content:audio', mimeType, blob: data } }
    return annotations === undefined ? plain : { ...plain, annotations }
  })

function linkText(link: Wire): string {
  const label = link['title'] ?? link['name']
  return label === undefined || label === link['uri'] ? String(link['uri']) : `${label}: ${link['uri']}`
}

/** The same array when nothing changed: most answers are plain text and pay nothing. */
function each(blocks: Blocks, change: (block: Wire) => Wire): Blocks {
  let copy: Wire[] | undefined
  for (let at = 0; at < blocks.length; at++) {
    const block = blocks[at] as Wire
    const changed = change(block)
    if (changed !== block) {
      copy ??= [...blocks]
      copy[at] = changed
    }
  }
  return copy ?? blocks
}

/** A copy without some members. */
export function without(value: Wire, ...names: readonly string[]): Wire {
  const copy: Record<string, unknown> = {}
  for (const name of Object.keys(value)) if (!names.includes(name)) copy[name] = value[name]
  return copy
}

/** A step that changes each entry of the list at `member` of a result. */
export function eachEntry(member: string, change: (entry: Wire) => Wire): (result: Wire) => Wire {
  return result => (Array.isArray(result[member]) ? { ...result, [member]: result[member].map(change) } : result)
}

/** A copy in which `blocks` at `name` went through a change. */
export function changeAt(value: Wire, name: string, change: (blocks: Blocks) => Blocks): Wire {
  const before = value[name]
  if (!Array.isArray(before)) return value
  const after = change(before)
  return after === before ? value : { ...value, [name]: after }
}

// Content blocks by one word each, for authors.

/** Optional members of a content block. */
interface More {
  /** Hints for the client: for whom it is, how important it is, and when it changed. */
  readonly annotations?: Annotations
  /** The `_meta` of the block, for example what `cite` returns. Default: none. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/**
 * Creates a block of text.
 * @example return [text('Two files:'), link('file:///a.txt', { name: 'a.txt' })]
 */
export function text(value: string, more: More = {}): TextContent {
  return { type: 'text', text: value, ...extras(more) }
}

/**
 * Creates a block with an image, from bytes or base64. The media type is `image/png` unless you say otherwise.
 * @example return image(png)
 */
export function image(data: Uint8Array | string, mimeType = 'image/png', more: More = {}): ImageContent {
  return { type: 'image', data: base64(data), mimeType, ...extras(more) }
}

/** Creates a block with sound, from bytes or base64. The media type is `audio/wav` unless you say otherwise. */
export function audio(data: Uint8Array | string, mimeType = 'audio/wav', more: More = {}): AudioContent {
  return { type: 'audio', data: base64(data), mimeType, ...extras(more) }
}

/** Creates a block with the contents of a resource. */
export function resource(contents: ResourceContents, more: More = {}): EmbeddedResource {
  return { type: 'resource', resource: contents, ...extras(more) }
}

/**
 * Creates a block that links to a resource, which the client can read later.
 * @example return link('ticket://T-1', { name: 'T-1', mimeType: 'text/plain' })
 */
export function link(uri: string, facts: Omit<ResourceLink, 'type' | 'uri'>): ResourceLink {
  return { type: 'resource_link', uri, ...facts }
}

function base64(data: Uint8Array | string): string {
  return typeof data === 'string' ? data : toBase64(data)
}

function extras({ annotations, meta }: More): { annotations?: Annotations; _meta?: Readonly<Record<string, unknown>> } {
  return { ...(annotations === undefined ? {} : { annotations }), ...(meta === undefined ? {} : { _meta: meta }) }
}
