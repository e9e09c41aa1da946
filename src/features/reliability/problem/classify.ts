/** What a failed call means: as a peer tells it, else from the number, the status or the way in which it failed. */
import { Problem, type ProblemCode, type ProblemMore, problem, problemOf } from '../../../core/problem.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { fromWire, problemErrors, problemExtension, statusCodes } from './messages.ts'

/** What a failed call means: whether trying again can help, and who can do something about it. */
export function classify(error: unknown, now: () => number = Date.now): Problem {
  if (error instanceof Problem) return error
  if (error instanceof ConnectionError) return ofConnection(error, now)
  if (!(error instanceof McpError)) return problemOf(error)
  return told(error) ?? (error.status === undefined ? undefined : ofStatus(error.status, error)) ?? ofNumber(error)
}

/** As data of its own error, or beside the data of another. */
function told({ code, data }: McpError): Problem | undefined {
  if (!isRecord(data)) return undefined
  return fromWire(data[problemExtension]) ?? (code === problemErrors.problem.default ? fromWire(data) : undefined)
}

const numbers: ReadonlyMap<number, ProblemCode> = new Map<number, ProblemCode>([
  [-32700, 'INVALID_INPUT'],
  [-32600, 'INVALID_INPUT'],
  [-32602, 'INVALID_INPUT'],
  [-32601, 'UNSUPPORTED'],
  [-32021, 'UNSUPPORTED'],
  [-32022, 'UNSUPPORTED'],
  [-32002, 'RESOURCE_NOT_FOUND'],
  [-32603, 'SERVER_ERROR'],
])

const kinds: ReadonlyMap<string, ProblemCode> = new Map<string, ProblemCode>([
  ['timeout', 'OPERATION_TIMEOUT'],
  ['invalid-params', 'INVALID_INPUT'],
  ['method-not-found', 'UNSUPPORTED'],
])

function ofNumber(error: McpError): Problem {
  const wait = isRecord(error.data) ? error.data['retryAfterMs'] : undefined
  if (typeof wait === 'number' && wait >= 0) return tooMany(error, wait)
  const code = error.code === undefined ? kinds.get(error.kind) : numbers.get(error.code)
  return of(code ?? 'SERVER_ERROR', error)
}

function tooMany(error: Error, retryAfter: number): Problem {
  return of('RATE_LIMIT_EXCEEDED', error, { retryAfter })
}

function ofConnection(error: ConnectionError, now: () => number): Problem {
  const { status, headers } = error
  if (status !== undefined && (status < 200 || status >= 300)) {
    const known = ofStatus(status, error, waitOf(headers?.['retry-after'], now))
    if (known !== undefined) return known
  }
  // What was never reached, or went away, may be there again.
  const passing = error.kind === 'lost' || error.kind === 'refused'
  return of(passing ? 'SERVER_UNAVAILABLE' : 'SERVER_ERROR', error)
}

function ofStatus(status: number, error: McpError | ConnectionError, wait?: number): Problem | undefined {
  const challenge = error instanceof ConnectionError ? error.headers?.['www-authenticate'] : undefined
  // A token that is too short can be made longer: that is another way out than having no right at all.
  const short = status === 403 && challenge?.includes('insufficient_scope') === true
  const code = short ? 'SCOPE_INSUFFICIENT' : statusCodes.get(status)
  const said = error instanceof McpError && isRecord(error.data) ? error.data['retryAfterMs'] : undefined
  const retryAfter = wait ?? (typeof said === 'number' && said >= 0 ? said : undefined)
  return code === undefined ? undefined : of(code, error, { retryAfter })
}

/** `Retry-After` in seconds; a date is compared with the clock of this machine. */
function waitOf(header: string | undefined, now: () => number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now())
}

function of(code: ProblemCode, error: Error, more: ProblemMore = {}): Problem {
  return problem(code, clip(error.message, 1000), { ...more, cause: error })
}
