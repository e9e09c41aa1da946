/** Events that servers pushed to a host. */
import type { List, PageQuery } from './problem.ts'
import type { Why } from './servers.ts'

/** `waiting`: not done. `refused`: a rule or the user refused it. `dead`: given up after too many attempts. */
export type InboxState = 'waiting' | 'done' | 'refused' | 'dead'

/** One try to run an event. */
export interface InboxAttempt {
  /** From 1. */
  readonly n: number
  readonly at: number
  /** `held`: it could not run yet. */
  readonly outcome: 'running' | 'done' | 'failed' | 'interrupted' | 'held'
  /** Why it failed. */
  readonly error?: string
}

/** An event: also the payload of the event `inbox`. */
export interface InboxEvent {
  readonly server: string
  readonly eventId: string
  readonly featureSet: string
  /** The id of the turn that it begins: see `/explain/:id`. */
  readonly inferenceId: string
  readonly state: InboxState
  /** When it was accepted. */
  readonly at: number
  /** The beginning of its text. Left out for sessions that may not see payloads. */
  readonly preview?: string
  readonly attempts: readonly InboxAttempt[]
  /** Why it waits, was refused, or was given up. */
  readonly why?: Why
  /** Not before this time. */
  readonly notBefore?: number
}

/** `GET /inbox/:server/:event`. */
export interface InboxEventDetail extends InboxEvent {
  /** The turn that it began, where there is one. */
  readonly turn?: { readonly conversation: string; readonly seq: number }
  /** The content of the event as JSON, while it waits or is dead. Left out for sessions that may not see payloads. */
  readonly event?: unknown
}

/** `GET /inbox`: newest first. */
export interface InboxQuery extends PageQuery {
  readonly server?: string
  readonly state?: InboxState
}

/** A part of the inbox. */
export interface InboxList extends List<InboxEvent> {
  /** How many events there are, by state, of the servers that were asked for. */
  readonly counts: Readonly<Record<InboxState, number>>
  /** There are more than 10,000 events of a server; only so many are counted and sorted. */
  readonly cut?: true
}
