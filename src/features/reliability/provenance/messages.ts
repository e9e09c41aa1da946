/**
 * Provenance on the wire: one record or a list in the `_meta` of a result or block. In a result's list the last record is the stamp of
 * the answering server; all others are claims.
 */
import type { Provenance, SourceConfidence, SourceLocation, Stamp } from '../../../core/artifact.ts'
import { NS } from '../../../engine/method.ts'
import { given, isRecord } from '../../../jsonrpc/message.ts'
import { array, integer, object, oneOf, optional, type Shape, string } from '../../../jsonrpc/shape.ts'

/** The extension name. */
export const provenanceExtension = `${NS}/provenance`

/** A stamp on the wire. */
interface WireStamp {
  readonly server: string
  readonly server_version?: string
  readonly tool: string
  readonly operation_id: string
  readonly input_digest: string
  readonly omitted?: number
}

/** A source on the wire. */
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
  /** Indexes of records that it is derived from. */
  readonly derived_from?: readonly number[]
  readonly stamp?: WireStamp
}

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

/** Why a value is not a record; undefined if it is one. */
export function faultIn(value: unknown): string | undefined {
  const fault = shape.check(value)
  if (fault !== undefined) return `${fault.path === '' ? 'a source' : fault.path} must be ${fault.expected}`
  const { source, retrieved_at: at } = value as WireProvenance
  if (source === '') return 'source is empty'
  return at === undefined || isTime(at) ? undefined : 'retrieved_at is not an RFC 3339 date-time'
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))
}

/** The records in `_meta`; undefined if there are none. */
export function recordsIn(meta: unknown): readonly unknown[] | undefined {
  const said = isRecord(meta) ? meta[provenanceExtension] : undefined
  if (said === undefined) return undefined
  return Array.isArray(said) ? said : [said]
}

/** Original wire records, so that they can be passed on unchanged. */
const originals = new WeakMap<Provenance, WireProvenance>()

/** Writes a source. */
export function provenanceToWire(record: Provenance): WireProvenance {
  const original = originals.get(record)
  if (original !== undefined) return original
  const { source, location, retrievedAt, version, confidence, transformation, digest, derivedFrom, stamp } = record
  return {
    source,
    ...given({
      location: location && toWireLocation(location),
      retrieved_at: retrievedAt?.toISOString(),
      version,
      confidence,
      transformation,
      digest,
      derived_from: derivedFrom,
      stamp: stamp && toWireStamp(stamp),
    }),
  }
}

/** Reads a source; undefined if it is not one. */
function provenanceFromWire(value: unknown): Provenance | undefined {
  if (faultIn(value) !== undefined) return undefined
  const wire = value as WireProvenance
  const {
    source,
    location,
    retrieved_at: at,
    version,
    confidence,
    transformation,
    digest,
    derived_from: derivedFrom,
    stamp,
  } = wire
  const record: Provenance = {
    source,
    ...given({
      location: location && fromWireLocation(location),
      retrievedAt: at === undefined ? undefined : new Date(at),
      version,
      confidence,
      transformation,
      digest,
      derivedFrom,
      stamp: stamp && fromWireStamp(stamp),
    }),
  }
  originals.set(record, wire)
  return record
}

/** Links a derived object to its original record. */
export function withOriginalRecord<P extends Provenance>(from: Provenance, record: P): P {
  const original = originals.get(from)
  if (original !== undefined) originals.set(record, original)
  return record
}

/** The claims in `_meta`, limited in number. */
export function claimsIn(meta: unknown, most = 1_000): readonly Provenance[] | undefined {
  return recordsIn(meta)
    ?.slice(0, most)
    .flatMap(each => provenanceFromWire(each) ?? [])
}

// camelCase to snake_case.
function toWireLocation({ jsonPath, urlFragment, ...rest }: SourceLocation): NonNullable<WireProvenance['location']> {
  return { ...rest, ...given({ json_path: jsonPath, url_fragment: urlFragment }) }
}

// snake_case to camelCase; what the format does not have is left out.
function fromWireLocation(wire: NonNullable<WireProvenance['location']>): SourceLocation {
  const { page, paragraph, line, cell, json_path: jsonPath, url_fragment: urlFragment } = wire
  return given({ page, paragraph, line, cell, jsonPath, urlFragment })
}

// Writes a stamp.
function toWireStamp({ server, serverVersion, tool, operationId, inputDigest, omitted }: Stamp): WireStamp {
  const named = { server, ...given({ server_version: serverVersion }), tool }
  return { ...named, operation_id: operationId, input_digest: inputDigest, ...given({ omitted }) }
}

// Reads a stamp.
function fromWireStamp(wire: WireStamp): Stamp {
  const { server, server_version: serverVersion, tool, operation_id: operationId, input_digest: inputDigest, omitted } = wire
  return { server, ...given({ serverVersion }), tool, operationId, inputDigest, ...given({ omitted }) }
}

/** The value in `_meta`. */
export type WireSources = WireProvenance | readonly WireProvenance[]
