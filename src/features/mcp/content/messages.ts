/** Content blocks: what tools and prompts answer with, and what older wires get instead of what they do not know. */

import { toBase64 } from '../../../core/base64.ts'
import type { Icon, Wire } from '../../../revisions/index.ts'

/** Who speaks in a message. */
export type Role = 'user' | 'assistant'

/** Hints about a content: for whom it is, how important, how old. */
export interface Annotations {
  /** For whom it is; absent: for both. */
  readonly audience?: readonly Role[]
  /** From 0, can be left out, to 1, is needed. */
  readonly priority?: number
  /** ISO 8601. */
  readonly lastModified?: string
}

interface Block {
  readonly annotations?: Annotations
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A block of text. */
export interface TextContent extends Block {
  readonly type: 'text'
  readonly text: string
}

/** A block that holds an image. */
export interface ImageContent extends Block {
  readonly type: 'image'
  /** Base64. */
  readonly data: string
  readonly mimeType: string
}

/** A block that holds sound. */
export interface AudioContent extends Block {
  readonly type: 'audio'
  /** Base64. */
  readonly data: string
  readonly mimeType: string
}

/** The contents of a resource, as text or as base64. */
export interface ResourceContents {
  readonly uri: string
  /** Of what follows. */
  readonly mimeType?: string
  /** Where it is text; else `blob` holds it. */
  readonly text?: string
  /** Base64. */
  readonly blob?: string
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A block that holds the contents of a resource. */
export interface EmbeddedResource extends Block {
  readonly type: 'resource'
  readonly resource: ResourceContents
}

/** A block that names a resource, which can be read. */
export interface ResourceLink extends Block {
  readonly type: 'resource_link'
  readonly uri: string
  /** For programs; `title` is for people. */
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly mimeType?: string
  /** Bytes, where they are known. */
  readonly size?: number
  readonly icons?: readonly Icon[]
}

/** One block of a content. */
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

interface More {
  readonly annotations?: Annotations
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A block of text. */
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
