/**
 * Where media are in arguments and results. In arguments: objects with `mimeType` and `data` (or `blob`), data URLs, and text
 * that the input schema calls base64 (`contentEncoding`, JSON Schema validation §8). Found without looking into any of them.
 */
import { clip, echoLength } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'

export interface MediaPiece {
  /** Its place, as an author would write it. */
  readonly where: string
  /** What it is said to be; undefined where nobody says it. */
  readonly type: string | undefined
  /** Base64. */
  readonly data?: string
  /** What stands as text, or elsewhere, is no matter of bytes. */
  readonly size?: number
}

/** Deeper is no JSON that came over a wire. */
const deepest = 128
const dataUrl = /^data:([^,;]*)(?:;[^,;]*)*?;base64,/i
/** The longest beginning that a data URL may have. */
const longestHead = 1_024

export function piecesOfArguments(args: Params | undefined, schema: Params | undefined): readonly MediaPiece[] {
  const pieces: MediaPiece[] = []
  const root = schema ?? {}
  const visit = (value: unknown, where: string, schemas: readonly Params[], depth: number): void => {
    if (typeof value === 'string') {
      const piece = pieceOfText(value, where, schemas)
      if (piece !== undefined) pieces.push(piece)
    } else if (Array.isArray(value)) {
      const items = childrenOf(root, schemas, undefined)
      if (depth >= deepest) return
      for (const [index, item] of value.entries()) visit(item, below(where, `[${index}]`), items, depth + 1)
    } else if (isRecord(value) && depth < deepest) {
      const own = pieceOfObject(value, where)
      if (own !== undefined) pieces.push(own.piece)
      for (const [name, member] of Object.entries(value))
        if (name !== own?.member) visit(member, below(where, `.${name}`), childrenOf(root, schemas, name), depth + 1)
    }
  }
  visit(args, 'arguments', variantsOf(root, [root]), 0)
  return pieces
}

/** Blocks that have a media type, with their bytes where these are there. */
export function piecesOfContent(content: readonly ContentBlock[]): readonly MediaPiece[] {
  return content.flatMap((block, index): readonly MediaPiece[] => {
    const where = `content[${index}]`
    if (!isRecord(block)) return []
    if (block.type === 'image' || block.type === 'audio')
      return typeof block.data === 'string' ? [{ where, type: block.mimeType, data: block.data }] : []
    if (block.type === 'resource_link') return block.mimeType === undefined ? [] : [{ where, type: block.mimeType, size: 0 }]
    if (block.type !== 'resource' || !isRecord(block.resource)) return []
    const { mimeType, blob, text } = block.resource
    if (typeof blob === 'string') return [{ where, type: mimeType, data: blob }]
    return mimeType === undefined || typeof text !== 'string' ? [] : [{ where, type: mimeType, size: text.length }]
  })
}

/** Names are foreign text: the place of what lies deep is told as far as there is room. */
function below(where: string, step: string): string {
  return where.length >= echoLength ? where : clip(`${where}${step}`)
}

function pieceOfObject(value: Params, where: string): { readonly piece: MediaPiece; readonly member: string } | undefined {
  const type = value['mimeType'] ?? value['media_type']
  if (typeof type !== 'string') return undefined
  for (const member of ['data', 'blob']) {
    const data = value[member]
    if (typeof data === 'string' && !isDataUrl(data)) return { piece: { where, type, data }, member }
  }
  return undefined
}

function isDataUrl(text: string): boolean {
  return text.slice(0, 5).toLowerCase() === 'data:' && dataUrl.test(text.slice(0, longestHead))
}

function pieceOfText(text: string, where: string, schemas: readonly Params[]): MediaPiece | undefined {
  const url = isDataUrl(text) ? dataUrl.exec(text.slice(0, longestHead)) : null
  // RFC 2397: without a type it is plain text.
  if (url !== null) return { where, type: url[1] || 'text/plain', data: text.slice(url[0].length) }
  const encoded = schemas.find(schema => String(schema['contentEncoding']).toLowerCase() === 'base64')
  if (encoded === undefined) return undefined
  const type = encoded['contentMediaType']
  return { where, type: typeof type === 'string' ? type : undefined, data: text }
}

/** The schemas that hold for a member, or for the items of an array. */
function childrenOf(root: Params, schemas: readonly Params[], name: string | undefined): readonly Params[] {
  if (schemas.length === 0) return schemas
  const found: unknown[] = []
  for (const schema of schemas) {
    const { properties, items, prefixItems, additionalProperties } = schema
    if (name === undefined) found.push(items, ...(Array.isArray(prefixItems) ? prefixItems : []))
    else if (isRecord(properties) && Object.hasOwn(properties, name)) found.push(properties[name])
    else found.push(additionalProperties)
  }
  return variantsOf(root, found.filter(isRecord))
}

/** Schemas with all that they are put together from. */
function variantsOf(root: Params, schemas: readonly Params[]): readonly Params[] {
  const all = new Set<Params>(schemas)
  // What is added on the way is visited too; a schema that names itself adds nothing.
  for (const schema of all) {
    for (const member of ['anyOf', 'oneOf', 'allOf'])
      for (const each of Array.isArray(schema[member]) ? schema[member] : []) if (isRecord(each)) all.add(each)
    const target = typeof schema['$ref'] === 'string' ? targetOf(root, schema['$ref']) : undefined
    if (target !== undefined) all.add(target)
  }
  return [...all]
}

/** Within the same document only. */
function targetOf(root: Params, ref: string): Params | undefined {
  if (!ref.startsWith('#')) return undefined
  let value: unknown = root
  for (const step of ref.slice(1).split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isRecord(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return isRecord(value) ? value : undefined
}
