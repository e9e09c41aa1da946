/** What went wrong at one end, in words and numbers for the other. */
import { type Problem, problem } from '../../core/problem.ts'
import { quoted } from '../../core/why.ts'
import type { Exchange } from '../../engine/exchange.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { McpError } from '../../jsonrpc/error.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

/** A peer's refusal under its own number, where no wire calls it otherwise. */
const named: ReadonlyMap<number, string> = new Map([
  [-32002, 'resource-not-found'],
  [-32042, 'url-elicitation-required'],
  [-32021, 'capability-missing'],
  [-32003, 'capability-missing'],
])

/** A refusal of one peer as a refusal to the other: the same number, unless the wires have different ones for it. */
export function passedOn(error: unknown): unknown {
  if (!(error instanceof McpError) || error.kind !== 'remote') return error
  const { code, data, message } = error
  const kind = kindOf(code, data)
  return new McpError(kind, clip(message, 1000), {
    cause: error,
    ...(code !== undefined && { code }),
    ...(data !== undefined && { data }),
  })
}

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
export function failureAt(upstream: string, error: unknown, harmless: boolean, { peer, cancelled }: Exchange): unknown {
  // Nobody waits for it any more, and nothing went wrong.
  if (cancelled && !(error instanceof McpError)) return new McpError('cancelled', 'The call was cancelled', { cause: error })
  if (!(error instanceof ConnectionError)) {
    const passed = passedOn(error)
    const unable = passed instanceof McpError && passed.kind === 'capability-missing' && peer.revision.era === 'session'
    // Session wires have no number for a client that cannot be asked.
    return unable ? problem('UNSUPPORTED', clip(passed.message, 1000), { cause: passed, details: { upstream } }) : passed
  }
  const said = clip(error.message, 200)
  const more = { cause: error, details: { upstream } }
  // What stands between may say 502 or 504 of a call that is under way.
  const refused = error.kind === 'status' && error.status !== undefined && (error.status < 500 || error.status === 503)
  if (harmless || refused || unreached.has(error.kind))
    return problem('SERVER_UNAVAILABLE', `The server ${quoted(upstream)} cannot be reached: ${said}`, {
      ...more,
      suggestion: 'Try again soon; it is connected again by itself',
    })
  return problem('OUTCOME_UNKNOWN', `The server ${quoted(upstream)} was lost during the call: ${said}`, {
    ...more,
    suggestion: 'Look whether it was done before you call again',
  })
}

/** The upstream is down. */
export function absent(upstream: string, why: { readonly message: string; readonly fix: string } | undefined): Problem {
  return problem('SERVER_UNAVAILABLE', why?.message ?? `The server ${quoted(upstream)} is not there`, {
    suggestion: why?.fix ?? 'Try again soon; it is tried again by itself',
    details: { upstream },
  })
}
