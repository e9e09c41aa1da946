/** Classifies failures of calls as problems: by what the server says, else by error code, HTTP status or kind of failure. */
import { lacksScope } from '../../../core/credentials.ts'
import { Problem, type ProblemCode, type ProblemMore, problem, problemOf } from '../../../core/problem.ts'
import { ConnectionError } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { fromWire, problemErrors, problemExtension, statusCodes } from './messages.ts'

/** The problem behind an error: whether a retry can help, and who can act. */
export function classify(error: unknown, now: () => number = Date.now): Problem {
  if (error instanceof Problem) return error
  if (error instanceof ConnectionError) return ofConnection(error, now)
  if (!(error instanceof McpError)) return problemOf(error)
  return told(error) ?? (error.status === undefined ? undefined : ofStatus(error.status, error)) ?? ofNumber(error)
}

/** The problem that the server sent, in either of two places. */
function told({ code, data }: McpError): Problem | undefined {
  if (!isRecord(data)) return undefined
  return fromWire(data[problemExtension]) ?? (code === problemErrors.problem.default ? fromWire(data) : undefined)
}

// JSON-RPC and MCP error codes.
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

// Kinds of errors that have no code.
const kinds: ReadonlyMap<string, ProblemCode> = new Map<string, ProblemCode>([
  ['timeout', 'OPERATION_TIMEOUT'],
  ['invalid-params', 'INVALID_INPUT'],
  ['method-not-found', 'UNSUPPORTED'],
])

// By the error code, unless the server names a wait.
function ofNumber(error: McpError): Problem {
  const retryAfter = waitIn(error)
  if (retryAfter !== undefined) return of('RATE_LIMIT_EXCEEDED', error, { retryAfter })
  const code = error.code === undefined ? kinds.get(error.kind) : numbers.get(error.code)
  return of(code ?? 'SERVER_ERROR', error)
}

/** The wait that the server names in the data of its error. */
function waitIn({ data }: McpError): number | undefined {
  const said = isRecord(data) ? data['retryAfterMs'] : undefined
  return typeof said === 'number' && said >= 0 ? said : undefined
}

// By the HTTP status, else by how the connection failed.
function ofConnection(error: ConnectionError, now: () => number): Problem {
  const { status, headers } = error
  if (status !== undefined && (status < 200 || status >= 300)) {
    const known = ofStatus(status, error, waitOf(headers?.['retry-after'], now))
    if (known !== undefined) return known
  }
  // An unreachable server may come back.
  const passing = error.kind === 'lost' || error.kind === 'refused'
  return of(passing ? 'SERVER_UNAVAILABLE' : 'SERVER_ERROR', error)
}

// By the HTTP status.
function ofStatus(status: number, error: McpError | ConnectionError, wait?: number): Problem | undefined {
  const challenge = error instanceof ConnectionError ? error.headers?.['www-authenticate'] : undefined
  // A token with too few scopes can be upgraded; that differs from having no permission.
  const code = lacksScope(status, challenge) ? 'SCOPE_INSUFFICIENT' : statusCodes.get(status)
  const retryAfter = wait ?? (error instanceof McpError ? waitIn(error) : undefined)
  return code === undefined ? undefined : of(code, error, { retryAfter })
}

/** `Retry-After` in seconds, or a date compared with the local clock. */
function waitOf(header: string | undefined, now: () => number): number | undefined {
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now())
}

function of(code: ProblemCode, error: Error, more: ProblemMore = {}): Problem {
  return problem(code, clip(error.message, 1000), { ...more, cause: error })
}
