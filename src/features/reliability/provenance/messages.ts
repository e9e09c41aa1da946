/**
 * Provenance on the wire: one record or a list of them in the `_meta` of a result or of a block; a block's own stand for it alone.
 * In a result's list the last one is the stamp of the runtime that answers. Whatever stands before it is a claim.
 */
import type { Provenance, SourceConfidence, SourceLocation, Stamp } from '../../../core/artifact.ts'
import { NS } from '../../../engine/method.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { array, integer, object, oneOf, optional, type Shape, string } from '../../../jsonrpc/shape.ts'

/** The name of the extension. */
export const provenanceExtension = `${NS}/provenance`

/** The server's stamp as it is sent. */
export interface WireStamp {
  readonly server: string
  readonly server_version?: string
  readonly tool: string
  readonly operation_id: string
  readonly input_digest: string
  readonly omitted?: number
}

/** A source as it is sent. */
export interface WireProvenance {
  readonly source: string
  readonly location?: {
    readonly page?: number
    readonly paragraph?: number
    readonly line?: number
    readonly cell?: string
    readonly json_path?: string
    readonly url_fragment?: string
  }
  readonly retrieved_at?: string
  readonly version?: string
  readonly confidence?: SourceConfidence
  readonly transformation?: string
  readonly digest?: string
  readonly derived_from?: readonly number[]
  readonly stamp?: WireStamp
}

/** Bytes of all that one result says of its sources. */
export const provenanceLimit = 16 * 1024

const confidences = ['exact', 'derived', 'estimated', 'uncertain'] as const

const shape: Shape<unknown> = object({
  source: string,
  location: optional(
    object({
      page: optional(integer),
      paragraph: optional(integer),
      line: optional(integer),
      cell: optional(string),
      json_path: optional(string),
      url_fragment: optional(string),
    }),
  ),
  retrieved_at: optional(string),
  version: optional(string),
  confidence: optional(oneOf(...confidences)),
  transformation: optional(string),
  digest: optional(string),
  derived_from: optional(array(integer)),
  stamp: optional(
    object({
      server: string,
      server_version: optional(string),
      tool: string,
      operation_id: string,
      input_digest: string,
      omitted: optional(integer),
    }),
  ),
})

/** Why a value can be no record; undefined where it is one. */
export function faultIn(value: unknown): string | undefined {
  const fault = shape.check(value)
  if (fault !== undefined) return `${fault.path === '' ? 'a source' : fault.path} must be ${fault.expected}`
  const { source, retrieved_at: at } = value as WireProvenance
  if (source === '') return 'source is empty'
  return at === undefined || isTime(at) ? undefined : 'retrieved_at is no date-time of RFC 3339'
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
}

/** One or many, in the order given; undefined where nothing is said. */
export function recordsIn(meta: unknown): readonly unknown[] | undefined {
  const said = isRecord(meta) ? meta[provenanceExtension] : undefined
  if (said === undefined) return undefined
  return Array.isArray(said) ? said : [said]
}

/** What was read, as it came: handed on, nothing of it is lost or written anew. */
const originals = new WeakMap<Provenance, WireProvenance>()

/** A source in the names of the wire. */
export function provenanceToWire(record: Provenance): WireProvenance {
  const original = originals.get(record)
  if (original !== undefined) return original
  const { source, location, retrievedAt, version, confidence, transformation, digest, derivedFrom, stamp } = record
  return {
    source,
    ...(location === undefined ? {} : { location: toWireLocation(location) }),
    ...(retrievedAt === undefined ? {} : { retrieved_at: retrievedAt.toISOString() }),
    ...(version === undefined ? {} : { version }),
    ...(confidence === undefined ? {} : { confidence }),
    ...(transformation === undefined ? {} : { transformation }),
    ...(digest === undefined ? {} : { digest }),
    ...(derivedFrom === undefined ? {} : { derived_from: derivedFrom }),
    ...(stamp === undefined ? {} : { stamp: toWireStamp(stamp) }),
  }
}

/** Undefined where it is none. */
function provenanceFromWire(value: unknown): Provenance | undefined {
  if (faultIn(value) !== undefined) return undefined
  const wire = value as WireProvenance
  const { source, location, retrieved_at: at, version, confidence, transformation, digest, derived_from: from, stamp } = wire
  const record: Provenance = {
    source,
    ...(location === undefined ? {} : { location: fromWireLocation(location) }),
    ...(at === undefined ? {} : { retrievedAt: new Date(at) }),
    ...(version === undefined ? {} : { version }),
    ...(confidence === undefined ? {} : { confidence }),
    ...(transformation === undefined ? {} : { transformation }),
    ...(digest === undefined ? {} : { digest }),
    ...(from === undefined ? {} : { derivedFrom: from }),
    ...(stamp === undefined ? {} : { stamp: fromWireStamp(stamp) }),
  }
  originals.set(record, wire)
  return record
}

/** The same record with more members of its own: handed on it is still what came. */
export function kept<P extends Provenance>(from: Provenance, record: P): P {
  const original = originals.get(from)
  if (original !== undefined) originals.set(record, original)
  return record
}

/** What a `_meta` claims, at most so much; undefined where it says nothing. */
export function claimsIn(meta: unknown, most = 1_000): readonly Provenance[] | undefined {
  return recordsIn(meta)
    ?.slice(0, most)
    .flatMap(each => provenanceFromWire(each) ?? [])
}

function toWireLocation({ jsonPath, urlFragment, ...rest }: SourceLocation): NonNullable<WireProvenance['location']> {
  return {
    ...rest,
    ...(jsonPath === undefined ? {} : { json_path: jsonPath }),
    ...(urlFragment === undefined ? {} : { url_fragment: urlFragment }),
  }
}

function fromWireLocation(wire: NonNullable<WireProvenance['location']>): SourceLocation {
  const { page, paragraph, line, cell, json_path: jsonPath, url_fragment: urlFragment } = wire
  return {
    ...(page === undefined ? {} : { page }),
    ...(paragraph === undefined ? {} : { paragraph }),
    ...(line === undefined ? {} : { line }),
    ...(cell === undefined ? {} : { cell }),
    ...(jsonPath === undefined ? {} : { jsonPath }),
    ...(urlFragment === undefined ? {} : { urlFragment }),
  }
}

export function toWireStamp({ server, serverVersion, tool, operationId, inputDigest, omitted }: Stamp): WireStamp {
  return {
    server,
    ...(serverVersion === undefined ? {} : { server_version: serverVersion }),
    tool,
    operation_id: operationId,
    input_digest: inputDigest,
    ...(omitted === undefined ? {} : { omitted }),
  }
}

function fromWireStamp(wire: WireStamp): Stamp {
  const { server, server_version: serverVersion, tool, operation_id: operationId, input_digest: inputDigest, omitted } = wire
  return {
    server,
    ...(serverVersion === undefined ? {} : { serverVersion }),
    tool,
    operationId,
    inputDigest,
    ...(omitted === undefined ? {} : { omitted }),
  }
}

/** In the `_meta` of a result or of a block. */
export type WireSources = WireProvenance | readonly WireProvenance[]
