/**
 * Errors that cross the gateway: an upstream's error as the client's revision expresses it, and connection failures as problems. Details
 * of a failure stay in the gateway's log; a reference connects the client's message to the log entry.
 */

import { randomBytes } from 'node:crypto'
import { type Problem, problem } from '../../core/problem.ts'
import { quoted, type Why } from '../../core/suggestion.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CredentialsNeeded } from '../upstreams/auth.ts'

/** Error kinds by the code that a peer sent, for errors that have different codes in different revisions. */
const named: ReadonlyMap<number, string> = new Map([
  [-32002, 'resource-not-found'],
  [-32042, 'url-elicitation-required'],
  [-32021, 'capability-missing'],
  [-32003, 'capability-missing'],
])

/** Whether a call failed because the upstream answered with an error, as opposed to a lost connection. */
export function isServerAnswer(error: unknown): boolean {
  return error instanceof McpError && error.kind === 'remote'
}

/** Converts the error of one peer into an error for the other: the same code, unless the revisions differ in it. */
export function translatedError(error: unknown): unknown {
  if (!(error instanceof McpError) || !isServerAnswer(error)) return error
  const { code, data, message } = error
  const kind = kindOf(code, data)
  return new McpError(kind, clip(message, 1000), {
    cause: error,
    ...(code !== undefined && { code }),
    ...(data !== undefined && { data }),
  })
}

/** The kind of error that selects the right code in the other revision. */
function kindOf(code: number | undefined, data: unknown): string {
  const kind = code === undefined ? undefined : named.get(code)
  if (kind === 'capability-missing' && !(isRecord(data) && 'requiredCapabilities' in data)) return 'peer'
  // 2026-07-28 uses -32602 for a missing resource and names the resource in `data.uri`.
  if (code === -32602 && isRecord(data) && typeof data['uri'] === 'string') return 'resource-not-found'
  return kind ?? (code === -32602 ? 'invalid-params' : 'peer')
}

/** Connection failures after which it is certain that the call was not executed. */
const unreached: ReadonlySet<ConnectionError['kind']> = new Set(['refused', 'session', 'unauthorized'])

/** The error that the client gets for a failed upstream call. `harmless`: repeating the call has no further effect. */
export function failureAt(upstream: string, error: unknown, harmless: boolean, { peer, cancelled, engine }: Exchange): unknown {
  // The client cancelled, so the failure is expected.
  if (cancelled && !(error instanceof McpError)) return new McpError('cancelled', 'The call was cancelled', { cause: error })
  if (!(error instanceof ConnectionError)) {
    const passed = translatedError(error)
    const unable = passed instanceof McpError && passed.kind === 'capability-missing' && peer.revision.era === 'session'
    // Session revisions have no code for a missing client capability.
    return unable ? problem('UNSUPPORTED', clip(passed.message, 1000), { cause: passed, details: { upstream } }) : passed
  }
  if (error.cause instanceof CredentialsNeeded) return unwanted(upstream, error.cause)
  const reference = newReference()
  engine.trace('upstream-failed', { server: upstream, reference, error })
  return lostAt(upstream, error, harmless, reference)
}

const retryLater = 'Retry in a few seconds. The gateway reconnects automatically'

/** The problem for a lost or refused connection. The log has the details under the reference. */
function lostAt(upstream: string, error: ConnectionError, harmless: boolean, reference: string): Problem {
  const { kind, status } = error
  const more = { cause: error, details: { upstream, reference } }
  const said = (what: string): string => `The server ${quoted(upstream)} ${what} (reference ${reference})`
  if (kind === 'too-large')
    return problem('PAYLOAD_TOO_LARGE', said('sent a response that is larger than the gateway accepts (limits.frameBytes)'), {
      ...more,
      category: 'permanent',
      suggestion: 'The call was executed. Request less at a time, or ask the operator of the gateway to raise limits.frameBytes',
    })
  // A proxy between may answer 502 or 504 while the call is still executed, so these do not count as refused.
  const refused = kind === 'status' && status !== undefined && (status < 500 || status === 503)
  if (harmless || refused || unreached.has(kind))
    return problem('SERVER_UNAVAILABLE', said('is not reachable'), {
      ...more,
      suggestion: retryLater,
    })
  return problem('OUTCOME_UNKNOWN', said('disconnected during the call'), {
    ...more,
    suggestion: 'The call may have been executed: check before you repeat it',
  })
}

/** The upstream rejected the gateway's credentials, or they lack a scope. */
function unwanted(upstream: string, { why }: CredentialsNeeded): Problem {
  if (why.code !== 'SCOPE_MISSING') return upstreamAbsent(upstream, why)
  const message = `The server ${quoted(upstream)} does not permit the gateway to do this (reference ${referenceOf(why)})`
  return problem('PERMISSION_DENIED', message, {
    suggestion: why.fix,
    actor: 'operator',
    details: { upstream, reference: referenceOf(why) },
  })
}

/**
 * Messages for clients about an upstream that is down, by the code of the reason. They leave out what the upstream said, its address and
 * paths of the gateway's files; the log has these under the reference.
 */
const neutral: ReadonlyMap<string, readonly [what: string, fix: string]> = new Map([
  ['SERVER_DOWN', ['is not available', retryLater]],
  ['SERVER_REFUSED', ['cannot be used', 'The operator of the gateway must correct its entry in the config']],
  [
    'CREDENTIALS_REFUSED',
    ['cannot be used, because authentication failed', 'The operator of the gateway must correct auth in its entry'],
  ],
  ['SIGN_IN_NEEDED', ['needs a sign-in', 'The operator of the gateway must sign in there (--sign-in)']],
  [
    'LAUNCH_CHANGED',
    [
      'has a start command or address that differs from the approved one',
      'The operator of the gateway must approve it (--approve)',
    ],
  ],
])
const unknown = ['cannot be used now', 'The operator of the gateway can find the reason in its log, by the reference'] as const

/** The problem for a call to an upstream that is down. */
export function upstreamAbsent(upstream: string, why: Why | undefined): Problem {
  if (why === undefined)
    return problem('SERVER_UNAVAILABLE', `The server ${quoted(upstream)} is not available`, {
      suggestion: retryLater,
      details: { upstream },
    })
  const [what, fix] = neutral.get(why.code) ?? unknown
  const reference = referenceOf(why)
  return problem('SERVER_UNAVAILABLE', `The server ${quoted(upstream)} ${what} (reference ${reference})`, {
    suggestion: fix,
    ...(why.code !== 'SERVER_DOWN' && { actor: 'operator' }),
    details: { upstream, reference },
  })
}

// References: short ids that let a client and the operator talk about the same failure. The details of a failure are only in the log and
// in `upstreams()`, because clients are not trusted with them.

const known = new WeakMap<Why, string>()

/** Eight hexadecimal digits. */
function newReference(): string {
  return randomBytes(4).toString('hex')
}

/** The reference of a failure, the same at each call. `as`: an earlier failure whose reference is continued. */
export function referenceOf(why: Why, as?: Why): string {
  let reference = known.get(why)
  if (reference === undefined) {
    reference = as === undefined ? newReference() : referenceOf(as)
    known.set(why, reference)
  }
  return reference
}
