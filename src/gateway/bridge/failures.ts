/** What went wrong at one end, in words and numbers for the other. */

import { randomBytes } from 'node:crypto'
import { type Problem, problem } from '../../core/problem.ts'
import { quoted, type Why } from '../../core/suggestion.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { CredentialsNeeded } from '../upstreams/auth.ts'

/** A peer's refusal under its own number, where no wire calls it otherwise. */
const named: ReadonlyMap<number, string> = new Map([
  [-32002, 'resource-not-found'],
  [-32042, 'url-elicitation-required'],
  [-32021, 'capability-missing'],
  [-32003, 'capability-missing'],
])

/** Whether a call failed by what its server said. */
export function isServerAnswer(error: unknown): boolean {
  return error instanceof McpError && error.kind === 'remote'
}

/** A refusal of one peer as a refusal to the other: the same number, unless the wires have different ones for it. */
export function passedOn(error: unknown): unknown {
  if (!(error instanceof McpError) || !isServerAnswer(error)) return error
  const { code, data, message } = error
  const kind = kindOf(code, data)
  return new McpError(kind, clip(message, 1000), {
    cause: error,
    ...(code !== undefined && { code }),
    ...(data !== undefined && { data }),
  })
}

/** The kind of error under which the other wire knows this number. */
function kindOf(code: number | undefined, data: unknown): string {
  const kind = code === undefined ? undefined : named.get(code)
  if (kind === 'capability-missing' && !(isRecord(data) && 'requiredCapabilities' in data)) return 'peer'
  // 2026-07-28 has no number for a resource that is not there, but says which it is.
  if (code === -32602 && isRecord(data) && typeof data['uri'] === 'string') return 'resource-not-found'
  return kind ?? (code === -32602 ? 'invalid-params' : 'peer')
}

/** Kinds of failure after which it is certain that nothing was done. */
const unreached: ReadonlySet<ConnectionError['kind']> = new Set(['refused', 'session', 'unauthorized'])

/** Why a call of an upstream failed. `harmless`: made again it does no more than made once. */
export function failureAt(upstream: string, error: unknown, harmless: boolean, { peer, cancelled, engine }: Exchange): unknown {
  // Nobody waits for it any more, and nothing went wrong.
  if (cancelled && !(error instanceof McpError)) return new McpError('cancelled', 'The call was cancelled', { cause: error })
  if (!(error instanceof ConnectionError)) {
    const passed = passedOn(error)
    const unable = passed instanceof McpError && passed.kind === 'capability-missing' && peer.revision.era === 'session'
    // Session wires have no number for a client that cannot be asked.
    return unable ? problem('UNSUPPORTED', clip(passed.message, 1000), { cause: passed, details: { upstream } }) : passed
  }
  if (error.cause instanceof CredentialsNeeded) return unwanted(upstream, error.cause)
  const reference = newReference()
  engine.trace('upstream-failed', { server: upstream, reference, error })
  return lostAt(upstream, error, harmless, reference)
}

/** What a caller is told of a failure below the protocol. The rest is in the log of the gateway, under the reference. */
function lostAt(upstream: string, error: ConnectionError, harmless: boolean, reference: string): Problem {
  const { kind, status } = error
  const more = { cause: error, details: { upstream, reference } }
  const said = (what: string): string => `The server ${quoted(upstream)} ${what} (reference ${reference})`
  if (kind === 'too-large')
    return problem('PAYLOAD_TOO_LARGE', said('answered with more than the gateway takes, limits.frameBytes'), {
      ...more,
      category: 'permanent',
      suggestion: 'It was done. Ask for less at a time, or have limits.frameBytes raised in the file of the gateway',
    })
  // What stands between may say 502 or 504 of a call that is under way.
  const refused = kind === 'status' && status !== undefined && (status < 500 || status === 503)
  if (harmless || refused || unreached.has(kind))
    return problem('SERVER_UNAVAILABLE', said('cannot be reached'), {
      ...more,
      suggestion: 'Try again soon; it is connected again by itself',
    })
  return problem('OUTCOME_UNKNOWN', said('was lost during the call'), {
    ...more,
    suggestion: 'Look whether it was done before you call again',
  })
}

/** The upstream will not have the gateway, or not for this. */
function unwanted(upstream: string, { why }: CredentialsNeeded): Problem {
  if (why.code !== 'SCOPE_MISSING') return upstreamAbsent(upstream, why)
  const message = `The server ${quoted(upstream)} does not let the gateway do this (reference ${referenceOf(why)})`
  return problem('PERMISSION_DENIED', message, {
    suggestion: why.fix,
    actor: 'operator',
    details: { upstream, reference: referenceOf(why) },
  })
}

/**
 * What callers are told of one that is down, by the code of why: without what it said itself, where it is, and where the files of the
 * gateway lie. The log of the gateway has all of that, under the reference.
 */
const neutral: ReadonlyMap<string, readonly [what: string, fix: string]> = new Map([
  ['SERVER_DOWN', ['is not there', 'Try again soon; it is tried again by itself']],
  ['SERVER_REFUSED', ['cannot be used', 'Whoever runs the gateway has to correct its entry']],
  ['CREDENTIALS_REFUSED', ['cannot be shown who the gateway is', 'Whoever runs the gateway has to correct auth in its entry']],
  ['SIGN_IN_NEEDED', ['needs a sign-in', 'Whoever runs the gateway has to sign in there (--sign-in)']],
  [
    'LAUNCH_CHANGED',
    ['is started in another way than the one that was approved', 'Whoever runs the gateway has to approve it (--approve)'],
  ],
])
const unknown = ['cannot be used now', 'Whoever runs the gateway finds the reason in its log'] as const

/** The upstream is down. */
export function upstreamAbsent(upstream: string, why: Why | undefined): Problem {
  if (why === undefined)
    return problem('SERVER_UNAVAILABLE', `The server ${quoted(upstream)} is not there`, {
      suggestion: 'Try again soon; it is tried again by itself',
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

// Words by which a caller and whoever runs the gateway speak of the same failure. What a server said when it died, or what stood in the
// body of an HTTP error, is for the log and for `upstreams()`: callers are strangers to it.

const known = new WeakMap<Why, string>()

function newReference(): string {
  return randomBytes(4).toString('hex')
}

/** The same for the same failure, however often it is spoken of, and for one that goes on `as` another. */
export function referenceOf(why: Why, as?: Why): string {
  let reference = known.get(why)
  if (reference === undefined) {
    reference = as === undefined ? newReference() : referenceOf(as)
    known.set(why, reference)
  }
  return reference
}
