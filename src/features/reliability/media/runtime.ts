/**
 * Inspects media: whether they are what they claim to be, and within the limits. Cheap checks come first: sizes are computed from
 * lengths, then types are compared, then characters are checked; only the first bytes are ever decoded. Loaded with the first call that
 * needs it.
 */
import { type Artifact, artifactOf, isMime, isOfType } from '../../../core/artifact.ts'
import { base64Head, base64Size, fromBase64, isBase64 } from '../../../core/base64.ts'
import { type Problem, problem } from '../../../core/problem.ts'
import { contradiction, sniff } from '../../../core/sniff.ts'
import { clip, echoLength } from '../../../jsonrpc/limits.ts'
import { isRecord, type Params } from '../../../jsonrpc/message.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { claimsIn } from '../provenance/messages.ts'
import type { MediaValue, ReadMediaOptions, WireMedia, WireWarning } from './messages.ts'

/** A violated rule, and how to fix it. */
interface Breach {
  readonly rule: 'type' | 'base64' | 'size' | 'types' | 'magic'
  /** Where the block is, as an author would write it. */
  readonly block: string
  readonly message: string
  readonly fix: string
  readonly details?: Readonly<Record<string, unknown>>
}

// The limits for one direction.
interface MediaRules {
  readonly types: readonly string[] | undefined
  /** Total limit in bytes. */
  readonly max: number | undefined
  /** Whether types outside of the list are refused. */
  readonly strict: boolean
  /** Whether references are accepted. */
  readonly byReference: boolean
}

// The declared limits for arguments or results.
function rulesFor(way: 'input' | 'output', media: WireMedia): MediaRules {
  return {
    types: media[`${way}_types`],
    max: media[`max_${way}_size_bytes`],
    strict: media.strict === true,
    byReference: media.binary_transport === 'reference',
  }
}

/** The first violated rule; undefined if there is none. */
function breachOf(pieces: readonly MediaPiece[], rules: MediaRules): Breach | undefined {
  let total = 0
  for (const piece of pieces) {
    if (piece.type !== undefined && !isMime(piece.type)) return noType(piece)
    const size = piece.data === undefined ? (piece.size ?? 0) : base64Size(piece.data)
    if (size === undefined) return noBase64(piece, 'ends in the middle of a byte or has too much padding')
    total += size
    if (rules.max !== undefined && total > rules.max) return tooLarge(piece, total, rules.max, rules)
  }
  for (const piece of pieces) {
    const breach = typeBreach(piece, rules)
    if (breach !== undefined) return breach
  }
  return undefined
}

// Checks that the type is allowed and matches the content.
function typeBreach(piece: MediaPiece, { types, strict }: MediaRules): Breach | undefined {
  const { type, data } = piece
  const head = data === undefined ? undefined : base64Head(data)
  const meant = type ?? (head && sniff(head))
  if (strict && types !== undefined && (meant === undefined || !isListed(meant, types))) return unlisted(piece, meant, types)
  if (data === undefined || head === undefined) return undefined
  if (!isBase64(data)) return noBase64(piece, 'has characters that base64 does not allow')
  const shown = type === undefined ? undefined : contradiction(type, head)
  return shown === undefined || type === undefined ? undefined : contradicted(piece, type, shown)
}

/** Warnings for types outside of the list, if they are not refused. */
function warningsOf(pieces: readonly MediaPiece[], { types, strict }: MediaRules): readonly WireWarning[] {
  if (types === undefined || strict) return []
  return pieces.flatMap(({ where, type }) => {
    if (type === undefined || isListed(type, types)) return []
    const message = `${where} has the type ${clip(type)}, but the tool declares only ${clip(types.join(', '), 200)}`
    return [{ block: where, rule: 'types', message }]
  })
}

function isListed(type: string, types: readonly string[]): boolean {
  return types.some(pattern => isOfType(pattern, type))
}

/** The problem for arguments or a result that violate a rule. Of a result it is the server's fault: repeating the call would not help. */
function refusal(way: 'input' | 'output', { rule, block, message, fix, details }: Breach): Problem {
  const own = way === 'output'
  const code = own ? 'SERVER_ERROR' : 'INVALID_INPUT'
  return problem(rule === 'size' ? 'PAYLOAD_TOO_LARGE' : code, message, {
    suggestion: own ? 'The tool has run. Do not repeat the call: the author of the tool must correct its result' : fix,
    actor: own ? 'operator' : 'caller',
    details: { block, rule, ...details },
    ...(own ? { category: 'permanent' as const } : {}),
  })
}

// The five rules, each with its message and fix.
function noType({ where, type = '' }: MediaPiece): Breach {
  const message = `The media type of ${where}, "${clip(type)}", is not valid`
  return { rule: 'type', block: where, message, fix: 'Write type/subtype, such as image/png' }
}

function noBase64({ where }: MediaPiece, how: string): Breach {
  const message = `${where} is not valid base64: it ${how}`
  return { rule: 'base64', block: where, message, fix: 'Send the complete data as base64 (RFC 4648 §4)' }
}

function tooLarge({ where }: MediaPiece, size: number, max: number, { byReference }: MediaRules): Breach {
  const message = `The media up to and including ${where} have at least ${size} bytes. The limit is ${max} bytes`
  const fix = `Send at most ${max} bytes in total${byReference ? ', or a reference' : ''}`
  return { rule: 'size', block: where, message, fix, details: { size_bytes: size, max_size_bytes: max } }
}

function unlisted({ where }: MediaPiece, type: string | undefined, types: readonly string[]): Breach {
  const listed = clip(types.join(', '), 200)
  const message = `${where} has ${type === undefined ? 'an unknown type' : `the type ${clip(type)}`}, but only ${listed} are allowed`
  return { rule: 'types', block: where, message, fix: `Send one of ${listed}`, details: { types } }
}

function contradicted({ where }: MediaPiece, type: string, shown: string): Breach {
  const message = `${where} is declared as ${clip(type)}, but its first bytes are those of ${shown}`
  const fix = 'Declare the actual type, or send data of the declared type'
  return { rule: 'magic', block: where, message, fix, details: { mime_type: clip(type), found: shown } }
}

// The default size limit of `readMedia`.
const standardMax = 16 * 1024 * 1024

/** Checks a piece of media, and decodes it to an artifact. */
export async function decodeMedia(
  value: MediaValue | undefined,
  { type, types, maxBytes = standardMax }: ReadMediaOptions,
): Promise<Artifact & { readonly by: 'value' }> {
  const piece = pieceOf(value, type)
  const breach = breachOf([piece], { types, max: maxBytes, strict: types !== undefined, byReference: false })
  if (breach !== undefined) throw refusal('input', breach)
  const bytes = fromBase64(piece.data)
  if (bytes === undefined) throw nothing()
  const claims = isRecord(value) ? claimsIn(value['_meta']) : undefined
  return artifactOf(bytes, piece.type ?? sniff(base64Head(piece.data)) ?? 'application/octet-stream', claims)
}

/** Finds the bytes in a value; an embedded resource holds them one level deeper. */
function pieceOf(value: MediaValue | undefined, type: string | undefined): MediaPiece & { readonly data: string } {
  const inner = isRecord(value) && isRecord(value['resource']) ? value['resource'] : value
  const schema = { contentEncoding: 'base64', ...(type === undefined ? {} : { contentMediaType: type }) }
  const [found] = piecesOfArguments({ media: inner }, { properties: { media: schema } })
  if (found?.data === undefined || (isRecord(inner) && found.where !== 'arguments.media')) throw nothing()
  return { where: 'media', type: found.type, data: found.data }
}

// There is nothing to decode.
function nothing() {
  return problem('INVALID_INPUT', 'The value contains no media', {
    suggestion: 'Pass a content block with data, { mimeType, data }, a data URL or base64',
    details: { block: 'media', rule: 'type' },
  })
}

/** Throws the problem with the arguments, if there is one. */
export function inspectArguments(media: WireMedia, schema: Params, args: Params | undefined): void {
  const breach = breachOf(piecesOfArguments(args, schema), rulesFor('input', media))
  if (breach !== undefined) throw refusal('input', breach)
}

/** Returns warnings about the content; throws the problem, if there is one. */
export function inspectContent(media: WireMedia, content: readonly ContentBlock[]): readonly WireWarning[] {
  const pieces = piecesOfContent(content)
  const rules = rulesFor('output', media)
  const breach = breachOf(pieces, rules)
  if (breach !== undefined) throw refusal('output', breach)
  return warningsOf(pieces, rules)
}

// One piece of media in arguments or results.
interface MediaPiece {
  /** Its path, as an author would write it. */
  readonly where: string
  /** The declared type; undefined if there is none. */
  readonly type: string | undefined
  /** The bytes as base64. */
  readonly data?: string
  /** The size of text; 0 for links. */
  readonly size?: number
}

/** Deeper values do not come from a wire, whose depth is limited. */
const deepest = 128
// Only the header is matched; the payload may be large.
const dataUrl = /^data:([^,;]*)(?:;[^,;]*)*?;base64,/i
/** The longest header of a data URL. */
const longestHead = 1_024

/** Finds media in arguments: typed objects, data URLs, and strings that the schema marks as base64. */
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

/** Blocks with a media type, and their bytes if present. */
function piecesOfContent(content: readonly ContentBlock[]): readonly MediaPiece[] {
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

/** Extends a path; clipped, because member names come from the caller. */
function below(where: string, step: string): string {
  return where.length >= echoLength ? where : clip(`${where}${step}`)
}

// An object with a media type and base64 data.
function pieceOfObject(value: Params, where: string): { readonly piece: MediaPiece; readonly member: string } | undefined {
  const type = value['mimeType'] ?? value['media_type']
  if (typeof type !== 'string') return undefined
  for (const member of ['data', 'blob']) {
    const data = value[member]
    if (typeof data === 'string' && !isDataUrl(data)) return { piece: { where, type, data }, member }
  }
  return undefined
}

// Checks the header of a data URL.
function isDataUrl(text: string): boolean {
  return text.slice(0, 5).toLowerCase() === 'data:' && dataUrl.test(text.slice(0, longestHead))
}

// A data URL, or a string that the schema marks as base64.
function pieceOfText(text: string, where: string, schemas: readonly Params[]): MediaPiece | undefined {
  const url = isDataUrl(text) ? dataUrl.exec(text.slice(0, longestHead)) : null
  // RFC 2397: the default type is text/plain.
  if (url !== null) return { where, type: url[1] || 'text/plain', data: text.slice(url[0].length) }
  const encoded = schemas.find(schema => String(schema['contentEncoding']).toLowerCase() === 'base64')
  if (encoded === undefined) return undefined
  const type = encoded['contentMediaType']
  return { where, type: typeof type === 'string' ? type : undefined, data: text }
}

/** The schemas that apply to a member or to array items. */
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

/** All alternatives of the schemas, through anyOf, oneOf, allOf and $ref. */
function variantsOf(root: Params, schemas: readonly Params[]): readonly Params[] {
  const all = new Set<Params>(schemas)
  // The set grows while it is iterated; recursive schemas add nothing new.
  for (const schema of all) {
    for (const member of ['anyOf', 'oneOf', 'allOf'])
      for (const each of Array.isArray(schema[member]) ? schema[member] : []) if (isRecord(each)) all.add(each)
    const target = typeof schema['$ref'] === 'string' ? targetOf(root, schema['$ref']) : undefined
    if (target !== undefined) all.add(target)
  }
  return [...all]
}

/** Resolves a reference within the same document. */
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
