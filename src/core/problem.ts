import { isRecord } from '../jsonrpc/message.ts'
import { StoreError } from '../stores/store.ts'

/**
 * A refusal with a fix: what went wrong, whether trying again can help, who can act and how.
 * How it looks on a wire is decided at the edge; nothing here knows one.
 */

/** The five kinds of problems. The kind decides whether the same request may be repeated. */
export type Category = 'transient' | 'permanent' | 'auth_required' | 'invalid_input' | 'rate_limited'

/** Who can remove the cause: the model or program that called, the person behind it, or the operator of the server. */
type Actor = 'caller' | 'user' | 'operator'

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
function categoryOf(code: string): Category | undefined {
  return defaults.get(code)
}

/** A code of the runtime, or one of your own. */
export type ProblemCode = keyof typeof categories | (string & {})

/** What a problem can state in addition to its code and message. */
export interface ProblemMore {
  /** The kind of problem. Default: that of the code, else `permanent`. */
  readonly category?: Category | undefined
  /** Milliseconds after which a retry may succeed. Default: unknown. */
  readonly retryAfter?: number | undefined
  /** What to do about it, in a sentence. Default: none. */
  readonly suggestion?: string | undefined
  /** Who can act on the suggestion. Default: unknown. */
  readonly actor?: Actor | undefined
  /** Further facts for programs. They are sent completely or not at all. */
  readonly details?: Readonly<Record<string, unknown>> | undefined
  /** The URL of a page about it. */
  readonly documentation?: string | undefined
  /** The id under which logs and traces know this failure. */
  readonly correlationId?: string | undefined
  /** The error behind it, for the log only. It is never sent. */
  readonly cause?: unknown
}

/** An error that states what happened and what to do. Throw it from a handler, and the caller receives code, message and suggestion. */
export class Problem extends Error {
  /** Always `Problem`. */
  override readonly name = 'Problem'
  /** What happened, in capitals and underscores, for example `INVALID_INPUT`. */
  readonly code: ProblemCode
  /** The kind of problem, which decides whether a retry can help. */
  readonly category: Category
  /** Milliseconds after which a retry may succeed. Undefined if unknown. */
  readonly retryAfter: number | undefined
  /** What to do about it, in a sentence. */
  readonly suggestion: string | undefined
  /** Who can act on the suggestion. */
  readonly actor: Actor | undefined
  /** Further facts, for programs. */
  readonly details: Readonly<Record<string, unknown>> | undefined
  /** The URL of a page about it. */
  readonly documentation: string | undefined
  /** The id under which logs and traces know this failure. */
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

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.category === 'transient' || this.category === 'rate_limited'
  }
}

/**
 * Creates a `Problem`: a refusal that tells the caller what happened and what to do. The category follows from the code, and a code of
 * your own is `permanent` unless you say otherwise.
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

/**
 * What may be told of a problem, and what is believed of one that was told: the limits of its parts, one spelling for codes
 * that others name differently, and the category as what decides where a code says nothing.
 */
export const problemLimits = {
  /** JSON text of the details. */
  detailsBytes: 8 * 1024,
  codeLength: 64,
  /** Of each text that a peer wrote. */
  textLength: 4_096,
  /** The longest wait that every timer can hold. */
  retryAfterSeconds: 2_147_483,
} as const

/** The parts of a problem as they may be told to anybody. */
export interface ProblemFacts {
  /** In capitals and underscores. */
  readonly code: string
  readonly message: string
  readonly category: Category
  /** Whole seconds, 0 or more; only where trying again can help. */
  readonly retryAfterSeconds?: number
  /** The person behind the caller can do something about it. */
  readonly userActionable: boolean
  /** What to do about it, in a sentence. */
  readonly suggestion?: string
  readonly details?: Readonly<Record<string, unknown>>
  /** An https address. */
  readonly documentation?: string
  /** Finds the failure again in the server's log. */
  readonly correlationId?: string
}

/** The same parts as a peer told them. */
type ToldProblem = { readonly [part in keyof ProblemFacts]?: unknown }

/** What may be told of a problem to anybody: bounded, and without its cause. */
export function problemFactsOf(told: Problem): ProblemFacts {
  const { message, category, retryAfter, suggestion, details, documentation, correlationId } = told
  const seconds = told.retryable ? secondsOf(retryAfter === undefined ? undefined : retryAfter / 1000) : undefined
  const safe = details === undefined ? undefined : boundedDetails(details)
  const address = httpsAddress(documentation)
  return {
    code: upperSnake(told.code) ?? generic[category],
    message,
    category,
    userActionable: told.actor === 'user',
    ...(seconds !== undefined && { retryAfterSeconds: seconds }),
    ...(suggestion !== undefined && { suggestion }),
    ...(safe !== undefined && { details: safe }),
    ...(address !== undefined && { documentation: address }),
    ...(correlationId !== undefined && { correlationId }),
  }
}

/** What a peer told, as a problem of ours. Undefined where it is none: it says neither a code nor a category that can be read. */
export function problemFrom(told: ToldProblem): Problem | undefined {
  const named = typeof told.code === 'string' ? upperSnake(told.code) : undefined
  const said = isCategory(told.category) ? told.category : undefined
  if (named === undefined && said === undefined) return undefined
  const code = named === undefined ? undefined : (synonyms.get(named) ?? named)
  const category = said ?? categoryOf(code ?? '') ?? 'permanent'
  const seconds = secondsOf(told.retryAfterSeconds)
  return problem(code ?? generic[category], textOf(told.message) ?? 'The other side refused the request without a reason', {
    category,
    retryAfter: seconds === undefined ? undefined : seconds * 1000,
    suggestion: textOf(told.suggestion),
    actor: told.userActionable === true ? 'user' : undefined,
    details: isRecord(told.details) ? boundedDetails(told.details) : undefined,
    documentation: httpsAddress(told.documentation),
    correlationId: textOf(told.correlationId),
  })
}

/**
 * Whatever was thrown, as a problem. What nobody wrote for the caller's eyes (messages, paths, stacks of libraries) stays in
 * the cause, which is for the log.
 */
export function problemOf(thrown: unknown, correlationId?: string): Problem {
  if (thrown instanceof Problem) return thrown
  const more = { cause: thrown, correlationId }
  if (thrown instanceof StoreError && thrown.kind !== 'input')
    return problem('SERVER_UNAVAILABLE', 'The store of the server is unavailable', { ...more, retryAfter: 1000 })
  if (thrown instanceof Error && thrown.name === 'TimeoutError')
    return problem('OPERATION_TIMEOUT', 'The operation exceeded its time limit', more)
  return problem('SERVER_ERROR', 'The operation failed; the log of the server has the cause', { ...more, actor: 'operator' })
}

/** A refusal that its caller can be told of: a problem, or a store that takes nothing now. Undefined for anything else. */
export function refusalIn(thrown: unknown): Problem | undefined {
  if (thrown instanceof Problem) return thrown
  return thrown instanceof StoreError && thrown.kind !== 'input' ? problemOf(thrown) : undefined
}

/** A code in capitals and underscores, however it was written; undefined where that cannot be done. */
export function upperSnake(code: string): string | undefined {
  if (code.length > problemLimits.codeLength) return undefined
  if (pattern.test(code)) return code
  const upper = code
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[\s.-]/g, '_')
    .toUpperCase()
  return pattern.test(upper) && upper.length <= problemLimits.codeLength ? upper : undefined
}

const pattern = /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/

/** Stands in for a code that cannot be told or read. */
const generic: Readonly<Record<Category, string>> = {
  transient: 'SERVER_UNAVAILABLE',
  permanent: 'SERVER_ERROR',
  auth_required: 'AUTHENTICATION_REQUIRED',
  invalid_input: 'INVALID_INPUT',
  rate_limited: 'RATE_LIMIT_EXCEEDED',
}

/** What others call our codes. */
const synonyms: ReadonlyMap<string, string> = new Map([
  ['INVALID_PARAMETERS', 'INVALID_INPUT'],
  ['INVALID_PARAMS', 'INVALID_INPUT'],
  ['INVALID_ARGUMENT', 'INVALID_INPUT'],
  ['VALIDATION_ERROR', 'INVALID_INPUT'],
  ['TIMEOUT', 'OPERATION_TIMEOUT'],
  ['DEADLINE_EXCEEDED', 'OPERATION_TIMEOUT'],
  ['UPSTREAM_ERROR', 'SERVER_UNAVAILABLE'],
  ['SERVICE_UNAVAILABLE', 'SERVER_UNAVAILABLE'],
  ['UNAVAILABLE', 'SERVER_UNAVAILABLE'],
  ['INTERNAL_ERROR', 'SERVER_ERROR'],
  ['TOKEN_EXPIRED', 'AUTHENTICATION_REQUIRED'],
  ['UNAUTHENTICATED', 'AUTHENTICATION_REQUIRED'],
  ['UNAUTHORIZED', 'AUTHENTICATION_REQUIRED'],
  ['FORBIDDEN', 'PERMISSION_DENIED'],
  ['INSUFFICIENT_SCOPE', 'SCOPE_INSUFFICIENT'],
  ['NOT_FOUND', 'RESOURCE_NOT_FOUND'],
  ['RATE_LIMITED', 'RATE_LIMIT_EXCEEDED'],
  ['TOO_MANY_REQUESTS', 'RATE_LIMIT_EXCEEDED'],
  ['QUOTA_EXCEEDED', 'QUOTA_EXHAUSTED'],
])

function isCategory(value: unknown): value is Category {
  return typeof value === 'string' && Object.hasOwn(generic, value)
}

function secondsOf(seconds: unknown): number | undefined {
  if (typeof seconds !== 'number' || !(seconds >= 0)) return undefined
  return Math.min(Math.ceil(seconds), problemLimits.retryAfterSeconds)
}

function textOf(text: unknown): string | undefined {
  return typeof text === 'string' && text !== '' ? text.slice(0, problemLimits.textLength).toWellFormed() : undefined
}

/** Half of some details may mean the opposite of the whole, so they are told whole or not at all. */
function boundedDetails(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    const text = JSON.stringify(details)
    if (new TextEncoder().encode(text).length <= problemLimits.detailsBytes) return details
  } catch {
    // What JSON cannot hold cannot be told either; that there was something can.
  }
  return { truncated: true }
}

function httpsAddress(address: unknown): string | undefined {
  if (typeof address !== 'string' || address.length > problemLimits.textLength) return undefined
  return URL.parse(address)?.protocol === 'https:' ? address : undefined
}
