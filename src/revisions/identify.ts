/**
 * Which revision is this message? Asked for every message, so that both eras interleave on one pipe or endpoint.
 * First match wins; nothing quietly overrides a contradicting signal.
 */
import type { Caller } from '../jsonrpc/connection.ts'
import { McpError } from '../jsonrpc/error.ts'
import { clip } from '../jsonrpc/limits.ts'
import { isRecord, type Params } from '../jsonrpc/message.ts'
import { metaOf } from './common.ts'
import { capabilitiesKey, envelopeFault, headerFault, versionKey } from './envelope.ts'
import type { Spoken } from './registry.ts'
import type { Revision } from './revision.ts'

const dialectMethods = new Set(['tools/invoke', 'initialized', 'cancel', 'progress', 'shutdown', 'exit'])

/** The revision of a request or notification, or a refusal thrown. `pinned` is what its session remembers. */
export function identify(
  method: string,
  params: Params | undefined,
  caller: Caller,
  spoken: Spoken,
  pinned: Revision | undefined,
): Revision {
  const header = versionHeader(caller)
  if (spoken.requests.length > 0) {
    const meta = metaOf(params)
    if (meta?.[versionKey] !== undefined) return claimed(meta, header, caller, spoken)
    if (header !== undefined && spoken.byWire(header)?.era === 'request') {
      throw new McpError(
        'invalid-envelope',
        `params._meta["${versionKey}"] is missing; on this wire every request names its version there`,
      )
    }
  }
  if (method === 'initialize') return opened(params, spoken)
  checkVersionHeader(header, spoken, pinned)
  if (pinned !== undefined) return pinned
  if (dialectMethods.has(method)) {
    if (spoken.dialect !== undefined) return spoken.dialect
    throw new McpError('method-not-found', `There is no method "${clip(method)}" on this wire`)
  }
  return unopened(method, header, caller, spoken)
}

function claimed(meta: Params, header: string | undefined, caller: Caller, spoken: Spoken): Revision {
  const claim = meta[versionKey]
  if (typeof claim !== 'string') throw envelopeFault(versionKey, 'a string')
  if (!isRecord(meta[capabilitiesKey])) throw envelopeFault(capabilitiesKey, 'an object; {} declares none')
  if (caller.carrier === 'http' && header !== claim) {
    const said = header === undefined ? 'is missing' : `says "${clip(header)}"`
    throw headerFault(`The header MCP-Protocol-Version ${said}, the body's _meta says "${clip(claim)}"; they must be equal`)
  }
  const revision = spoken.byWire(claim)
  if (revision?.era === 'request') return revision
  throw unsupported(claim, spoken)
}

export function unsupported(requested: string, spoken: Spoken): McpError {
  const supported = spoken.requests.map(revision => revision.wire)
  return new McpError(
    'version-unsupported',
    `Version "${clip(requested)}" is not spoken here; use one of ${supported.join(', ')}`,
    {
      data: { supported, requested: clip(requested) },
    },
  )
}

function opened(params: Params | undefined, spoken: Spoken): Revision {
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
export function checkVersionHeader(header: string | undefined, spoken: Spoken, pinned: Revision | undefined): void {
  if (header === undefined || pinned?.id === 's3' || spoken.byWire(header) !== undefined) return
  const known = spoken.wires.join(', ')
  throw new McpError('version-unsupported', `The header MCP-Protocol-Version says "${clip(header)}"; spoken here are ${known}`)
}

/** No handshake has been seen: over HTTP a server may serve session wires without a session. */
function unopened(method: string, header: string | undefined, caller: Caller, spoken: Spoken): Revision {
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
