/** Answers that still count, and what servers have spent. */
import type { PageQuery } from './problem.ts'

/** An answer that is kept: it answers the same question the next time. */
export interface Grant {
  /** Names it in the address, together with the server. */
  readonly id: string
  readonly server: string
  readonly effect: 'allow' | 'deny'
  /** What it is about: `tool`, `set`, `push`, … */
  readonly kind: string
  readonly featureSet?: string
  readonly tool?: string
  /** It is about one single request, known by this digest. */
  readonly digest?: string
  /** How far it reaches: exactly what was asked, every call of the tool, or everything in the scope. */
  readonly covers?: 'call' | 'tool' | 'scope'
  readonly expires: number
}

/** `GET /grants`: by server. */
export interface GrantQuery extends PageQuery {
  readonly server?: string
}

/** `GET /spent`. Days as `2026-01-31`. */
export interface SpentQuery extends PageQuery {
  /** Default: the oldest that is kept. */
  readonly from?: string
  /** Default: today. */
  readonly to?: string
}

/** What a feature set of a server has spent. Turns of users are `host`. */
export interface Spent {
  readonly server: string
  readonly featureSet: string
  readonly tokens: number
  /** In the currency of the model's price. */
  readonly money: number
  /** Requests to the model. */
  readonly requests: number
}
