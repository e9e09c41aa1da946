/** What a provider's failure means: whether waiting helps, how long, and who can do something. */
import { Problem, type ProblemCode, problem } from '../../core/problem.ts'
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'

interface Meaning {
  readonly code: ProblemCode
  readonly fix: string
}

const statuses: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [400, { code: 'INVALID_INPUT', fix: 'Look at what the provider says of the request' }],
  [401, { code: 'AUTHENTICATION_REQUIRED', fix: 'Give a valid API key' }],
  [403, { code: 'PERMISSION_DENIED', fix: 'Use a key that may use this model' }],
  [404, { code: 'RESOURCE_NOT_FOUND', fix: 'Choose a model that the provider has' }],
  [413, { code: 'PAYLOAD_TOO_LARGE', fix: 'Send less at once' }],
  [429, { code: 'RATE_LIMIT_EXCEEDED', fix: 'Wait, or raise the limit at the provider' }],
])

/** Errors of the SDK carry the status and the headers; what does not came from the network. */
export function providerProblem(error: unknown, { vendor, id }: Pick<ModelInfo, 'vendor' | 'id'>): Problem {
  if (error instanceof Problem) return error
  const status = isErrorWith(error) ? error.statusCode : undefined
  const known = status === undefined ? undefined : statuses.get(status)
  const said = clip(error instanceof Error ? error.message : String(error), 200)
  const wait = isErrorWith(error) && isRecord(error.responseHeaders) ? waitIn(error.responseHeaders) : undefined
  const busy = status === undefined || status >= 500
  return problem(
    known?.code ?? (busy ? 'SERVER_UNAVAILABLE' : 'SERVER_ERROR'),
    `${vendor} (${id}) answered ${status ?? 'nothing'}: ${said}`,
    {
      suggestion: known?.fix ?? (busy ? 'Try again in a moment, or choose another model' : 'Look at what the provider says'),
      actor: known?.code === 'AUTHENTICATION_REQUIRED' || known?.code === 'PERMISSION_DENIED' ? 'operator' : undefined,
      retryAfter: wait,
      details: { ...(status !== undefined && { status }) },
      cause: error,
    },
  )
}

function isErrorWith(error: unknown): error is Error & { statusCode?: number; responseHeaders?: unknown } {
  return error instanceof Error && (!('statusCode' in error) || typeof error.statusCode === 'number')
}

/** Milliseconds where a provider gives them, else seconds or a date. */
function waitIn(headers: Readonly<Record<string, unknown>>): number | undefined {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (exact >= 0) return exact
  const header = headers['retry-after']
  if (typeof header !== 'string') return undefined
  if (/^\d{1,9}(\.\d{1,3})?$/.test(header.trim())) return Number(header) * 1000
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}
