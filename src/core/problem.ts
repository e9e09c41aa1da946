/**
 * A refusal with a fix: what went wrong, whether trying again can help, who can act and how.
 * How it looks on a wire is decided at the edge; nothing here knows one.
 */

export type Category = 'transient' | 'permanent' | 'auth_required' | 'invalid_input' | 'rate_limited'

/** Who can remove the cause: the model or program that called, the person behind it, or whoever runs the server. */
export type Actor = 'caller' | 'user' | 'operator'

/** Codes the runtime itself uses, each with the category it has unless said otherwise. Authors may use any other. */
const categories = {
  INVALID_INPUT: 'invalid_input',
  PAYLOAD_TOO_LARGE: 'invalid_input',
  CHECKSUM_MISMATCH: 'invalid_input',
  IDEMPOTENCY_CONFLICT: 'invalid_input',
  STATE_INVALID: 'invalid_input',
  STATE_EXPIRED: 'invalid_input',
  AUTHENTICATION_REQUIRED: 'auth_required',
  CONFIRMATION_REQUIRED: 'auth_required',
  SCOPE_INSUFFICIENT: 'auth_required',
  RATE_LIMIT_EXCEEDED: 'rate_limited',
  QUOTA_EXHAUSTED: 'rate_limited',
  SERVER_UNAVAILABLE: 'transient',
  OPERATION_TIMEOUT: 'transient',
  IDEMPOTENCY_IN_PROGRESS: 'transient',
  STATE_CONFLICT: 'transient',
  SERVER_ERROR: 'permanent',
  PERMISSION_DENIED: 'permanent',
  RESOURCE_NOT_FOUND: 'permanent',
  TRANSACTION_CONFLICT: 'permanent',
  CONFIRMATION_DECLINED: 'permanent',
  BUDGET_EXCEEDED: 'permanent',
  OUTCOME_UNKNOWN: 'permanent',
  CHECKPOINT_NOT_FOUND: 'permanent',
  FEATURE_DISABLED: 'permanent',
  UNSUPPORTED: 'permanent',
} as const satisfies Record<string, Category>

const defaults: ReadonlyMap<string, Category> = new Map(Object.entries(categories))

/** The category a code has unless said otherwise; undefined for codes that are not the runtime's own. */
export function categoryOf(code: string): Category | undefined {
  return defaults.get(code)
}

export type ProblemCode = keyof typeof categories | (string & {})

export interface ProblemMore {
  /** Default: the category of the code, else `permanent`. */
  readonly category?: Category | undefined
  /** Milliseconds after which trying again may help. */
  readonly retryAfter?: number | undefined
  /** What to do about it, in a sentence. */
  readonly suggestion?: string | undefined
  /** Who can act on the suggestion. */
  readonly actor?: Actor | undefined
  readonly details?: Readonly<Record<string, unknown>> | undefined
  /** Where to read more. */
  readonly documentation?: string | undefined
  /** Finds this failure again in logs and traces. */
  readonly correlationId?: string | undefined
  readonly cause?: unknown
}

export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly category: Category
  readonly retryAfter: number | undefined
  readonly suggestion: string | undefined
  readonly actor: Actor | undefined
  readonly details: Readonly<Record<string, unknown>> | undefined
  readonly documentation: string | undefined
  readonly correlationId: string | undefined

  constructor(code: ProblemCode, message: string, more: ProblemMore = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.code = code
    this.category = more.category ?? categoryOf(code) ?? 'permanent'
    this.retryAfter = more.retryAfter
    this.suggestion = more.suggestion
    this.actor = more.actor
    this.details = more.details
    this.documentation = more.documentation
    this.correlationId = more.correlationId
  }

  /** Whether the same request may succeed later, unchanged. */
  get retryable(): boolean {
    return this.category === 'transient' || this.category === 'rate_limited'
  }
}

/**
 * @example
 * throw problem('INVALID_INPUT', 'The title is too short', { suggestion: 'Use at least 3 characters' })
 */
export function problem(code: ProblemCode, message: string, more?: ProblemMore): Problem {
  return new Problem(code, message, more)
}

/** All there is to say of a problem to readers of plain text. */
export function problemText({ message, suggestion }: Pick<Problem, 'message' | 'suggestion'>): string {
  return suggestion === undefined ? message : `${message}. ${suggestion}`
}
