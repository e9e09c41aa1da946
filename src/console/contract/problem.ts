/** Failures and lists: the two shapes that all resources share. */

/** What went wrong, for programs. */
export type ConsoleProblemCode =
  /** 401: no session, or one that has expired. */
  | 'SESSION_REQUIRED'
  /** 401: the token of the link is wrong, expired or was used before. */
  | 'TOKEN_REFUSED'
  /** 403: the session lacks the role in `details.role`. */
  | 'ROLE_REQUIRED'
  /** 403: with `fourEyes` nobody approves a call of his own. */
  | 'FOUR_EYES'
  /** 403: wrong `Host`, `Origin`, `Sec-Fetch-Site` or missing `x-vivarium`. */
  | 'ORIGIN_REFUSED'
  /** 404: the path, or what it names, does not exist. */
  | 'NOT_FOUND'
  /** 405: the path exists, and does not take this method. */
  | 'METHOD_REFUSED'
  /** 409: somebody answered first; `details` is of type `Answered`. */
  | 'ALREADY_ANSWERED'
  /** 409: the digest is not that of the approval as it is now. Read it again. */
  | 'DIGEST_MISMATCH'
  /** 409: it cannot be shown whole, so it can only be refused. */
  | 'REFUSE_ONLY'
  /** 409: a job of this kind is running; `details.job` is its id. */
  | 'JOB_RUNNING'
  /** 409: the turn has ended, or was interrupted. */
  | 'TURN_ENDED'
  /** 409: the event is not dead, so there is nothing to replay. */
  | 'NOT_DEAD'
  /** 409: the host refused it; `details.code` says why. */
  | 'REFUSED'
  /** 400: a query parameter or a member of the body is wrong; `details.member` names it. */
  | 'INVALID_INPUT'
  /** 413: the body is larger than 1 MiB. */
  | 'PAYLOAD_TOO_LARGE'
  /** 415: the body is not `application/json`. */
  | 'MEDIA_TYPE_REFUSED'
  /** 429: too many sessions, streams, writes or wrong tokens; `details.retryAfter` in milliseconds. */
  | 'TOO_MANY'
  /** 503: the store does not answer, or the process ends. */
  | 'UNAVAILABLE'
  /** 500: a mistake of the console itself. */
  | 'INTERNAL'

/** A failure: what happened, and what to do. The same members as the error line of the command. */
export interface ConsoleProblem {
  /** What went wrong, for programs. */
  readonly code: ConsoleProblemCode
  /** What happened, in a sentence. */
  readonly message: string
  /** What to do about it. */
  readonly fix: string
  /** More facts, by code. */
  readonly details?: Readonly<Record<string, unknown>>
}

/** A part of a list. */
export interface List<T> {
  /** This part of the list. */
  readonly items: readonly T[]
  /** Give it as `after` to get the items that follow. Absent at the end. */
  readonly next?: string
}

/** The query parameters that every list takes. */
export interface PageQuery {
  /** The member `next` of the part before. */
  readonly after?: string
  /** 1 to 1,000. Default 100. */
  readonly limit?: number
}
