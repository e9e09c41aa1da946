/** Failures of the API: a status and the problem that is sent as the body. */
import { Problem } from '../core/problem.ts'
import { clip } from '../jsonrpc/limits.ts'
import { StoreError } from '../stores/store.ts'
import type { ConsoleProblem, ConsoleProblemCode } from './contract/problem.ts'

const statuses: Readonly<Record<ConsoleProblemCode, number>> = {
  SESSION_REQUIRED: 401,
  TOKEN_REFUSED: 401,
  ROLE_REQUIRED: 403,
  FOUR_EYES: 403,
  ORIGIN_REFUSED: 403,
  NOT_FOUND: 404,
  METHOD_REFUSED: 405,
  ALREADY_ANSWERED: 409,
  DIGEST_MISMATCH: 409,
  REFUSE_ONLY: 409,
  JOB_RUNNING: 409,
  TURN_ENDED: 409,
  NOT_DEAD: 409,
  REFUSED: 409,
  INVALID_INPUT: 400,
  PAYLOAD_TOO_LARGE: 413,
  MEDIA_TYPE_REFUSED: 415,
  TOO_MANY: 429,
  UNAVAILABLE: 503,
  INTERNAL: 500,
}

/** A refused or failed request of the console. */
export class ConsoleFailure extends Error {
  override readonly name = 'ConsoleFailure'
  readonly problem: ConsoleProblem

  constructor(
    code: ConsoleProblemCode,
    message: string,
    fix: string,
    details?: Readonly<Record<string, unknown>>,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.problem = { code, message, fix, ...(details !== undefined && { details }) }
  }

  /** The HTTP status. */
  get status(): number {
    return statuses[this.problem.code]
  }

  /** Anything that was thrown. What nobody foresaw is told without its words, which may hold what is not for the page. */
  static from(error: unknown): ConsoleFailure {
    if (error instanceof ConsoleFailure) return error
    if (error instanceof StoreError)
      return new ConsoleFailure(
        'UNAVAILABLE',
        'The store of the process does not answer.',
        'Check the store, then try again.',
        undefined,
        { cause: error },
      )
    if (error instanceof Problem)
      return new ConsoleFailure(
        error.code === 'PAYLOAD_TOO_LARGE' ? 'REFUSE_ONLY' : 'UNAVAILABLE',
        clip(error.message, 500),
        clip(error.suggestion ?? 'Try again.', 500),
        undefined,
        { cause: error },
      )
    return new ConsoleFailure('INTERNAL', 'The console failed to answer.', 'See the log of the process.', undefined, {
      cause: error,
    })
  }
}
