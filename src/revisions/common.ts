/** What most wires share: numbers and HTTP manners. */
import type { CommonKind, HttpPolicy, Revision } from './revision.ts'

const numbers: Record<CommonKind, number> = {
  parse: -32700,
  'invalid-request': -32600,
  'method-not-found': -32601,
  'invalid-params': -32602,
  internal: -32603,
  'invalid-envelope': -32602,
  'header-mismatch': -32600,
  'capability-missing': -32602,
  'version-unsupported': -32602,
  'not-initialized': -32600,
  'method-not-allowed': -32600,
  'session-missing': -32600,
  'session-unknown': -32600,
  'insufficient-scope': -32600,
  forbidden: -32600,
  busy: -32000,
  'rate-limited': -32000,
}

/** Failures that HTTP itself announces, on every wire. */
const statuses: Partial<Record<CommonKind, number>> = {
  parse: 400,
  'invalid-request': 400,
  'version-unsupported': 400,
  'not-initialized': 400,
  'method-not-allowed': 405,
  'session-missing': 400,
  'session-unknown': 404,
  'insufficient-scope': 403,
  busy: 503,
  'rate-limited': 429,
}

const sessionHttp: HttpPolicy = {
  session: true,
  sessionRequired: true,
  authorizesItself: false,
  announcesPkce: false,
  resume: true,
  prime: false,
  disconnectCancels: false,
  status: statuses,
  headers: () => ({}),
}

type SessionRevision = Pick<Revision, 'id' | 'wire' | 'base' | 'ordinal'> &
  Partial<Omit<Revision, 'era' | 'errors' | 'http'>> & {
    errors?: Partial<Record<CommonKind, number>>
    http?: Partial<HttpPolicy>
  }

/** A wire with a handshake that a session remembers. */
export function sessionRevision(parts: SessionRevision): Revision {
  return {
    era: 'session',
    dialect: false,
    batch: false,
    unknownId: 'null',
    asks: 'push',
    wrongArguments: 'result',
    pages: true,
    detailedCapabilities: true,
    extensionsIn: 'experimental',
    logLevelBy: 'session',
    answersCancelled: false,
    cancels: () => 'notify',
    ...parts,
    errors: { ...numbers, ...parts.errors },
    http: { ...sessionHttp, ...parts.http },
  }
}

export const requestNumbers: Record<CommonKind, number> = {
  ...numbers,
  'header-mismatch': -32020,
  'capability-missing': -32021,
  'version-unsupported': -32022,
  busy: -32603,
  'rate-limited': -32603,
}

export const requestStatuses: Partial<Record<CommonKind, number>> = {
  ...statuses,
  'method-not-found': 404,
  'invalid-envelope': 400,
  'header-mismatch': 400,
  'capability-missing': 400,
}
