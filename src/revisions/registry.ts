/** All wires, by id and by what they call themselves; and which of them one message is of. */

import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import { rev20241105 } from './2024-11-05.ts'
import { rev20250326 } from './2025-03-26.ts'
import { rev20250618 } from './2025-06-18.ts'
import { rev20251125 } from './2025-11-25.ts'
import { rev20260728 } from './2026-07-28.ts'
import { revS3 } from './dialect-s3.ts'
import { revDraft2026v1 } from './draft-2026-v1.ts'
import { capabilitiesKey, envelopeFault, headerFault, metaOf, versionKey } from './envelope.ts'
import type { Revision, RevisionId } from './revision.ts'

/** In order of `ordinal`. */
export const revisions: readonly Revision[] = [
  rev20241105,
  rev20250326,
  rev20250618,
  rev20251125,
  rev20260728,
  revDraft2026v1,
  revS3,
]

const byId = new Map<string, Revision>(revisions.map(revision => [revision.id, revision]))

/** Throws where there is no such revision. */
export function revisionById(id: RevisionId): Revision {
  const revision = byId.get(id)
  if (revision === undefined) {
    throw new TypeError(`Revision "${id}" does not exist. Known revisions: ${[...byId.keys()].join(', ')}`)
  }
  return revision
}

/** The five official ones; the draft and the dialect speak only when listed. */
export const officialRevisions: readonly RevisionId[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']

/** The wires that one peer speaks, looked up by what a message may say. */
export class SupportedRevisions {
  readonly all: readonly Revision[]
  /** Session wires, newest first, without the dialect. */
  readonly sessions: readonly Revision[]
  /** Request wires, newest first. */
  readonly requests: readonly Revision[]
  readonly dialect: Revision | undefined
  readonly #byWire: ReadonlyMap<string, Revision>

  constructor(ids: readonly RevisionId[] = officialRevisions) {
    if (ids.length === 0) throw new TypeError('revisions is an empty list; name at least one revision, or omit the option')
    this.all = ids.map(revisionById)
    const official = this.all.filter(revision => !revision.dialect)
    this.sessions = newestFirst(official.filter(revision => revision.era === 'session'))
    this.requests = newestFirst(official.filter(revision => revision.era === 'request'))
    this.dialect = this.all.find(revision => revision.dialect)
    this.#byWire = new Map(official.map(revision => [revision.wire, revision]))
  }

  /** 2024-10-07 is what early peers called the wire that became 2024-11-05. */
  byWire(version: string): Revision | undefined {
    return this.#byWire.get(version === '2024-10-07' ? '2024-11-05' : version)
  }

  get wires(): string[] {
    return [...this.sessions, ...this.requests].map(revision => revision.wire)
  }
}

/** The draft came before the release it led to, whatever its name sorts like. */
function newestFirst(list: Revision[]): Revision[] {
  const age = (revision: Revision): number => (revision.id === 'draft-2026-v1' ? 3.5 : revision.ordinal)
  return list.sort((a, b) => age(b) - age(a))
}

// Which revision is this message? Asked for every message, so that both eras interleave on one pipe or endpoint.
// First match wins; nothing quietly overrides a contradicting signal.

const dialectMethods = new Set(['tools/invoke', 'initialized', 'cancel', 'progress', 'shutdown', 'exit'])

/** The revision of a request or notification, or a refusal thrown. `pinned` is what its session remembers. */
export function revisionOfMessage(
  method: string,
  params: Params | undefined,
  caller: Caller,
  spoken: SupportedRevisions,
  pinned: Revision | undefined,
): Revision {
  const header = versionHeader(caller)
  if (spoken.requests.length > 0) {
    const meta = metaOf(params)
    if (meta?.[versionKey] !== undefined) return claimed(meta, header, caller, spoken)
    if (header !== undefined && spoken.byWire(header)?.era === 'request') {
      throw new McpError(
        'invalid-envelope',
        `params._meta["${versionKey}"] is missing; at this revision every request names its protocol version there`,
      )
    }
  }
  if (method === 'initialize') return opened(params, spoken)
  checkVersionHeader(header, spoken, pinned)
  if (pinned !== undefined) return pinned
  if (dialectMethods.has(method)) {
    if (spoken.dialect !== undefined) return spoken.dialect
    throw new McpError('method-not-found', `Method "${clip(method)}" does not exist at this revision`)
  }
  return unopened(method, header, caller, spoken)
}

function claimed(meta: Params, header: string | undefined, caller: Caller, spoken: SupportedRevisions): Revision {
  const claim = meta[versionKey]
  if (typeof claim !== 'string') throw envelopeFault(versionKey, 'a string')
  if (!isRecord(meta[capabilitiesKey])) throw envelopeFault(capabilitiesKey, 'an object ({} declares no capabilities)')
  if (caller.carrier === 'http' && header !== claim) {
    const said = header === undefined ? 'is missing' : `says "${clip(header)}"`
    throw headerFault(`The header MCP-Protocol-Version ${said}, but _meta in the body says "${clip(claim)}"; both must be equal`)
  }
  const revision = spoken.byWire(claim)
  if (revision?.era === 'request') return revision
  throw unsupported(claim, spoken)
}

/** The refusal of a version that is not spoken here. */
export function unsupported(requested: string, spoken: SupportedRevisions): McpError {
  const supported = spoken.requests.map(revision => revision.wire)
  return new McpError(
    'version-unsupported',
    `Protocol version "${clip(requested)}" is not supported; use one of ${supported.join(', ')}`,
    {
      data: { supported, requested: clip(requested) },
    },
  )
}

function opened(params: Params | undefined, spoken: SupportedRevisions): Revision {
  const version = params?.['protocolVersion']
  if (typeof version === 'string') {
    const revision = spoken.byWire(version)
    if (revision?.era === 'session') return revision
    // A counter-offer, not an error: the client decides whether it can speak our newest.
    const newest = spoken.sessions[0]
    if (newest === undefined) throw unsupported(version, spoken)
    return newest
  }
  const dialect = typeof params?.['mcpVersion'] === 'string' || isRecord(params?.['clientCapabilities'])
  if (dialect && spoken.dialect !== undefined) return spoken.dialect
  throw new McpError('invalid-params', 'params.protocolVersion must be a string such as "2025-11-25"')
}

/** What the request's header says of its version, where its carrier has headers. */
export function versionHeader(caller: Caller): string | undefined {
  return caller.carrier === 'http' ? caller.header?.('mcp-protocol-version')?.trim() : undefined
}

/** On session wires the header may be absent, but not name what nobody speaks. The dialect has no such header. */
export function checkVersionHeader(header: string | undefined, spoken: SupportedRevisions, pinned: Revision | undefined): void {
  if (header === undefined || pinned?.dialect || spoken.byWire(header) !== undefined) return
  const known = spoken.wires.join(', ')
  throw new McpError(
    'version-unsupported',
    `Protocol version "${clip(header)}" in the header MCP-Protocol-Version is not supported; use one of ${known}`,
  )
}

/** No handshake has been seen: over HTTP a server may serve session wires without a session. */
function unopened(method: string, header: string | undefined, caller: Caller, spoken: SupportedRevisions): Revision {
  // What a client only tells carries no envelope on the stateless wires: a cancel must find its call all the same.
  const newest = spoken.requests[0]
  if (newest !== undefined && caller.carrier !== 'http' && method.startsWith('notifications/')) return newest
  const named = header === undefined ? undefined : spoken.byWire(header)
  // Whoever knows no official session wire has no reason to doubt: only the dialect's clients come without a word of their version.
  const revision = named ?? spoken.byWire('2025-03-26') ?? spoken.sessions[0] ?? spoken.dialect
  if (revision === undefined) throw new McpError('invalid-envelope', `params._meta["${versionKey}"] is missing`)
  if (caller.carrier === 'http' || method === 'ping') return revision
  throw new McpError('not-initialized', `Send initialize before "${clip(method)}", or name the version in params._meta`)
}

// Small version steps, inherited along the line of revisions: newest model inside, older wires at the edge. A feature writes
// one step where a wire differs from its base; the rest follows.

/** A value as it travels. */
export type Wire = Readonly<Record<string, unknown>>
export type VersionStep = (value: Wire) => Wire
/** What differs between a wire and its base, by the id of the wire. */
export type Steps = Readonly<Partial<Record<RevisionId, VersionStep>>>

/** The revision and those it is built on, newest first. */
export function lineage(revision: Revision): Revision[] {
  const line: Revision[] = []
  for (
    let at: Revision | undefined = revision;
    at !== undefined;
    at = at.base === undefined ? undefined : revisionById(at.base)
  ) {
    line.unshift(at)
  }
  return line
}

/** From the canonical model down to this wire; undefined when nothing differs. */
export function stepsDown(steps: Steps | undefined, revision: Revision): VersionStep | undefined {
  return chain(lineage(revision).map(each => steps?.[each.id]))
}

/** From this wire up to the canonical model. */
export function stepsUp(steps: Steps | undefined, revision: Revision): VersionStep | undefined {
  return chain(
    lineage(revision)
      .map(each => steps?.[each.id])
      .reverse(),
  )
}

/** The value that holds for this revision: its own, else its base's. */
export function inherited<T>(table: Readonly<Partial<Record<RevisionId, T>>> | undefined, revision: Revision): T | undefined {
  if (table === undefined) return undefined
  return lineage(revision)
    .map(each => table[each.id])
    .findLast(value => value !== undefined)
}

function chain(list: (VersionStep | undefined)[]): VersionStep | undefined {
  const present = list.filter(step => step !== undefined)
  if (present.length <= 1) return present[0]
  return value => present.reduce((current, step) => step(current), value)
}
