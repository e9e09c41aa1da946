/** Data references on the wire: a link to a content, with where it can be fetched and what it must be in `_meta`. */
import { type Artifact, isMime } from '../../../core/artifact.ts'
import { problem } from '../../../core/problem.ts'
import { NS, officialIds, request } from '../../../engine/method.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { object, string } from '../../../jsonrpc/shape.ts'
import type { WireProblem } from '../problem/messages.ts'

/** The name of the extension. */
export const referencesExtension = `${NS}/data-references`

/** What links to references begin with. */
export const referenceScheme = 'ref:'

interface WireChecksum {
  readonly algorithm: 'sha256' | 'md5'
  /** Hexadecimal. */
  readonly value: string
}

/** A reference as it travels: in the `_meta` of a link, and as the argument of a tool that imports it. */
export interface DataReference {
  readonly ref_id: string
  readonly origin_server: string
  readonly mime_type: string
  readonly size_bytes?: number
  readonly expires_at?: string
  /** Signed: whoever has it may read the content, so it is no text for models or logs. */
  readonly access_url?: string
  readonly checksum?: WireChecksum | readonly WireChecksum[]
}

/** A reference that can be fetched and checked. */
export type Fetchable = Artifact & { readonly by: 'reference'; readonly id: string; readonly origin: string }

/** The reference behind a link of one's own, with an address that is signed anew and ends when the first one does. */
export const getReference = request<DataReference>()({
  name: 'references/get',
  to: 'server',
  in: officialIds,
  extension: referencesExtension,
  declares: { extensions: { [referencesExtension]: {} } },
  params: object({ ref_id: string }),
})

/** The tool by which servers take over what others have given by reference. */
export const importTool = 'import_from_ref'

/** What became of an import. */
export interface WireImport {
  readonly status: 'imported' | 'pending' | 'failed'
  /** Of one that is pending, or was: to ask about it. */
  readonly operation_id?: string
  readonly imported_resource_id?: string
  readonly rows_imported?: number
  readonly error?: WireProblem
}

/** The JSON Schema of what the import tool returns. */
export const importResultSchema = {
  type: 'object',
  required: ['status'],
  properties: {
    status: { type: 'string', enum: ['imported', 'pending', 'failed'] },
    operation_id: { type: 'string' },
    imported_resource_id: { type: 'string' },
    rows_imported: { type: 'integer' },
    error: { type: 'object' },
  },
} as const

/** What a tool declares that takes a reference as its argument. */
export const dataReferenceSchema = {
  type: 'object',
  description: 'A data reference, as another server has returned it',
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
} as const

/**
 * The reference that a content block carries, for handing it on to another server; undefined where it carries none.
 * @example const reference = content.map(dataReference).find(Boolean)
 */
export function dataReference(block: unknown): DataReference | undefined {
  if (!isRecord(block)) return undefined
  const meta = isRecord(block['_meta']) ? block['_meta'] : {}
  const found = Object.hasOwn(meta, referencesExtension) ? meta[referencesExtension] : undefined
  if (!isReference(found)) return isReference(block) ? block : undefined
  // One that carries another one is neither: whoever judges it by the one would let the other pass.
  return isReference(block) ? undefined : found
}

function isReference(value: unknown): value is DataReference {
  return isRecord(value) && typeof value['ref_id'] === 'string' && typeof value['origin_server'] === 'string'
}

/** A kept content as a reference on the wire. */
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

/** Takes a reference, or a block that carries one. Refuses what could not be checked when it has come. */
export function readReference(given: unknown): Fetchable {
  const wire = dataReference(given)
  if (wire === undefined) throw unfit('It is none: give the whole object, as the server has returned it')
  const { ref_id: id, origin_server: origin, mime_type: mime, size_bytes: size, access_url: url, expires_at } = wire
  if (typeof mime !== 'string' || !isMime(mime)) throw unfit('Its mime_type is no media type')
  if (!(Number.isSafeInteger(size) && (size as number) >= 0)) throw unfit('Its size_bytes is missing')
  if (url !== undefined && !(typeof url === 'string' && URL.canParse(url))) throw unfit('Its access_url is no URL')
  const expires = typeof expires_at === 'string' ? Date.parse(expires_at) : Number.NaN
  const until = Number.isFinite(expires) ? { expires } : {}
  const uri = url ?? `${referenceScheme}${id}`
  return { by: 'reference', id, origin, mime, size: size as number, digest: digestIn(wire.checksum), uri, ...until }
}

/** The digest that counts. MD5 can be forged, so that it says nothing alone. */
function digestIn(checksum: unknown): string {
  const all: readonly unknown[] = Array.isArray(checksum) ? checksum.slice(0, 4) : [checksum]
  for (const each of all)
    if (isRecord(each) && each['algorithm'] === 'sha256' && /^[0-9a-f]{64}$/i.test(String(each['value'])))
      return `sha256:${String(each['value']).toLowerCase()}`
  throw unfit('It has no checksum by sha256, without which its content cannot be checked')
}

function unfit(why: string): Error {
  return problem('INVALID_INPUT', `This data reference cannot be used. ${clip(why, 120)}`, {
    suggestion: 'Ask the server that made it for a new one, and pass it on unchanged',
  })
}
