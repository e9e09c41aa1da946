/** Data references on the wire: a resource link whose `_meta` says where the content can be fetched and how to verify it. */
import { type Artifact, isMime } from '../../../core/artifact.ts'
import { problem } from '../../../core/problem.ts'
import type { JsonSchema } from '../../../core/schema/index.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { object, string } from '../../../jsonrpc/shape.ts'
import type { WireProblem } from '../problem/messages.ts'

/** The extension name. */
export const referencesExtension = `${NS}/data-references`

/** The URI scheme of links to references. */
export const referenceScheme = 'ref:'

/** A checksum of the content. */
interface WireChecksum {
  /** The hash function. */
  readonly algorithm: 'sha256' | 'md5'
  /** The checksum, in hexadecimal digits. */
  readonly value: string
}

/** A reference: in the `_meta` of a link, or as the argument of an importing tool. */
export interface DataReference {
  /** The id of the reference at its server. */
  readonly ref_id: string
  /** The name of the server that holds the content. */
  readonly origin_server: string
  /** The media type of the content. */
  readonly mime_type: string
  /** The size of the content in bytes, if known. */
  readonly size_bytes?: number
  /** When the reference becomes invalid, ISO 8601. */
  readonly expires_at?: string
  /** A signed URL. Everybody who has it can read the content, so keep it out of prompts and logs. */
  readonly access_url?: string
  /** One or several checksums of the content. */
  readonly checksum?: WireChecksum | readonly WireChecksum[]
}

/** A reference that can be fetched and verified. */
export type Fetchable = Artifact & { readonly by: 'reference'; readonly id: string; readonly origin: string }

/** Gets the reference behind one of the caller's links, with a freshly signed URL that expires with the reference. */
export const getReference = request<DataReference>()({
  name: 'references/get',
  to: 'server',
  in: officialIds,
  extension: referencesExtension,
  declares: { extensions: { [referencesExtension]: {} } },
  params: object({ ref_id: string }),
})

/** The result of an import. */
export interface WireImport {
  readonly status: 'imported' | 'pending' | 'failed'
  /** For a pending import: the id to query it by. */
  readonly operation_id?: string
  readonly imported_resource_id?: string
  readonly rows_imported?: number
  readonly error?: WireProblem
}

/** The JSON Schema of a reference as a tool argument. */
export const dataReferenceSchema: JsonSchema = {
  type: 'object',
  description: 'A data reference, exactly as another server has returned it',
  required: ['ref_id', 'origin_server', 'mime_type', 'size_bytes', 'access_url', 'checksum'],
  properties: {
    ref_id: { type: 'string' },
    origin_server: { type: 'string' },
    mime_type: { type: 'string' },
    size_bytes: { type: 'integer', minimum: 0 },
    expires_at: { type: 'string' },
    access_url: { type: 'string' },
    checksum: { anyOf: [{ type: 'object' }, { type: 'array', items: { type: 'object' }, maxItems: 4 }] },
  },
}

/**
 * Returns the reference that a content block carries, for passing it to another server. Undefined if it carries none.
 * @example const reference = content.map(dataReference).find(Boolean)
 */
export function dataReference(block: unknown): DataReference | undefined {
  if (!isRecord(block)) return undefined
  const meta = isRecord(block['_meta']) ? block['_meta'] : {}
  const found = Object.hasOwn(meta, referencesExtension) ? meta[referencesExtension] : undefined
  if (!isReference(found)) return isReference(block) ? block : undefined
  // Ambiguous if a block is a reference and carries another: a filter could check one while the other is used.
  return isReference(block) ? undefined : found
}

function isReference(value: unknown): value is DataReference {
  return isRecord(value) && typeof value['ref_id'] === 'string' && typeof value['origin_server'] === 'string'
}

/** Writes a reference. */
export function wireReference({ id, origin, mime, size, digest, uri, expires }: Fetchable): DataReference {
  return {
    ref_id: id,
    origin_server: origin,
    mime_type: mime,
    size_bytes: size,
    ...(expires === undefined ? {} : { expires_at: new Date(expires).toISOString() }),
    ...(uri.startsWith(referenceScheme) ? {} : { access_url: uri }),
    checksum: { algorithm: 'sha256', value: digest.slice('sha256:'.length) },
  }
}

/** Reads a reference, or a block that carries one. Throws if it could not be verified after fetching. */
export function readReference(given: unknown): Fetchable {
  const wire = dataReference(given)
  if (wire === undefined) throw unfit('Pass the whole object, as the server has returned it')
  const { ref_id: id, origin_server: origin, mime_type: mime, size_bytes: size, access_url: url, expires_at } = wire
  if (typeof mime !== 'string' || !isMime(mime)) throw unfit('Its mime_type is not a media type')
  if (!(Number.isSafeInteger(size) && (size as number) >= 0)) throw unfit('Its size_bytes is missing or not a whole number')
  if (url !== undefined && !(typeof url === 'string' && URL.canParse(url))) throw unfit('Its access_url is not a URL')
  const expires = typeof expires_at === 'string' ? Date.parse(expires_at) : Number.NaN
  const until = Number.isFinite(expires) ? { expires } : {}
  const uri = url ?? `${referenceScheme}${id}`
  return { by: 'reference', id, origin, mime, size: size as number, digest: digestIn(wire.checksum), uri, ...until }
}

/** The SHA-256 digest. MD5 alone is not accepted, because it can be forged. */
function digestIn(checksum: unknown): string {
  const all: readonly unknown[] = Array.isArray(checksum) ? checksum.slice(0, 4) : [checksum]
  for (const each of all)
    if (isRecord(each) && each['algorithm'] === 'sha256' && /^[0-9a-f]{64}$/i.test(String(each['value'])))
      return `sha256:${String(each['value']).toLowerCase()}`
  throw unfit('It has no sha256 checksum, which is needed to verify the content')
}

function unfit(why: string): Error {
  return problem('INVALID_INPUT', `The data reference is not valid. ${clip(why, 120)}`, {
    suggestion: 'Ask the server that created it for a new one, and pass it on unchanged',
  })
}
