/** The types of the inbox: its options, its entries and what it tells of events. */
import type { Clock, Duration } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { PushEvent } from '../../features/live/push-events/messages.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { ChainOptions } from './inbox-context.ts'
import type { Attempt, InboxState, SeenEvent } from './records.ts'

/** Options of an inbox. */
export interface InboxOptions {
  readonly store: Store
  /** Asked about every event, on arrival and again before it runs. Without it all are accepted. */
  readonly policy?: Pick<Policy, 'decide' | 'approve' | 'enter' | 'explain'> & Partial<Pick<Policy, 'admission' | 'refusal'>>
  /** Whether a server is configured and enabled, even if it is down. Events of others wait. Default: all are. */
  readonly isConfigured?: (server: string) => boolean
  /** Events with the same key run one after the other. Default: by channel, origin or feature set. */
  readonly orderBy?: (server: string, event: PushEvent) => string
  /** Concurrent runs. Default 4. */
  readonly concurrency?: number
  /** Concurrent runs per server. Default: half of `concurrency`. */
  readonly perServer?: number
  /** Waiting events per server. Default 10,000. */
  readonly waiting?: number
  /** Events per server: each second, and at once. Default 500 and 1,000. */
  readonly rate?: {
    /** Events per second and server. Default 500. */
    readonly perSecond: number
    /** Events per server at once. Default 1,000. */
    readonly burst: number
  }
  /** Limits for chains of events in which each is caused by the turn of the previous one. */
  readonly chain?: ChainOptions
  /** The largest event as JSON, in bytes. Default 1 MiB. */
  readonly bytes?: number
  /** Failures after which an event is dead. Default 5. */
  readonly attempts?: number
  /** Process ends during a run after which an event is dead. Default 20. */
  readonly interruptions?: number
  /** The delay after the first failure, doubled each time, and the longest. Default 1 s and 5 minutes. */
  readonly backoff?: {
    /** The delay after the first failure. Default 1 s. */
    readonly first: Duration
    /** The longest delay. Default 5 minutes. */
    readonly longest: Duration
  }
  /** The longest run. Default 10 minutes. */
  readonly runTime?: Duration
  /** How long a finished event is remembered. Default 7 days. */
  readonly keep?: Duration
  /** How long a silent process counts as alive. Default 6 s. */
  readonly lease?: Duration
  /** Why events of a feature set cannot run now; asked before each run. With a time they wait, without one they are refused. */
  readonly withheld?: (server: string, featureSet: string) => Promise<WithheldReason | undefined>
  /** Called for events that wait or may no longer run, ids with two bodies, and failures of the store. */
  readonly onDiagnostic?: (server: string, what: Why, note: InboxNote) => void
  /** Called when an event was accepted, tried, held, ended or replayed by this process. */
  readonly onChange?: ((server: string, eventId: string) => void) | undefined
  readonly clock?: Clock
  /** Generates ids. Default: random. */
  readonly id?: () => string
  /** From 0 to below 1. */
  readonly random?: () => number
}

/** Why an event does not run now, and when it may. */
export interface WithheldReason extends Why {
  /** Absent: waiting does not help. */
  readonly retryAfterMs?: number
}

/** Thrown by a run that has to wait. It is not counted as a failure. Without a time to wait the event is refused. */
export class RunLater extends Error {
  override readonly name = 'RunLater'
  readonly why: WithheldReason

  constructor(said: WithheldReason) {
    super(said.message)
    this.why = said
  }
}

/** The result and the event of a diagnostic. */
export interface InboxNote {
  readonly outcome: 'held' | 'refused' | 'failure' | 'dropped'
  readonly eventId?: string
  readonly featureSet?: string
  readonly inferenceId?: string
}

/** One run: usually of one event, after coalescing of several. */
export interface InboxEntry {
  /** The server that sent the event. */
  readonly server: string
  /** The first event, in the order of acceptance. */
  readonly event: PushEvent
  /** All events of the run. */
  readonly events: readonly PushEvent[]
  /** Other servers whose events caused these, or may have. */
  readonly through: readonly string[]
  /** The id of the inference that the run starts. */
  readonly inferenceId: string
  /** Counted from 1. */
  readonly attempt: number
  /** Earlier attempts and this one. */
  readonly attempts: readonly Attempt[]
  /** Operations that record this attempt: written before the run, unless the run writes them itself (`writesBegin`). */
  readonly begin: readonly Op[]
  /** Operations that mark the events as done. Write them in the commit of the turn, so that exactly one turn results. */
  readonly done: readonly Op[]
  /** Commits the operations together with `done`. False where the events are no longer ours: then nothing was written. */
  commit(ops: readonly Op[]): Promise<boolean>
}

/** How an event is accepted. */
export interface AcceptOptions {
  /** The event name that the config subscribes to; absent for an event that MCP Live pushed. */
  readonly subscription?: string
  /** Called with the rule that admits a new event. */
  readonly ruled?: (rule: string) => void
}

/** Processes an entry. */
export type InboxRun = (entry: InboxEntry, signal: AbortSignal) => Promise<void>

/** What is known of an event. */
export interface InboxRecord extends Pick<SeenEvent, 'eventId' | 'featureSet' | 'inferenceId' | 'state' | 'at'> {
  /** The server that sent the event. */
  readonly server: string
  /** The start of its text, for lists; empty where it was not kept. */
  readonly preview: string
  /** All attempts, oldest first. */
  readonly attempts: readonly Attempt[]
  /** Why it was refused, is dead, or waits. */
  readonly why?: Why
  /** The event itself, while it waits or is dead. */
  readonly event?: PushEvent
  /** When it may run, in milliseconds since the epoch. */
  readonly notBefore?: number
}

/** The newest events of a server. */
export interface NewestEvents {
  /** Newest first. */
  readonly items: readonly InboxRecord[]
  /** How many there are, by state. */
  readonly counts: Readonly<Record<InboxState, number>>
  /** There are more than were looked at. */
  readonly cut: boolean
}

/** Which of the newest events are listed. */
export interface NewestOptions {
  /** The servers of the events. */
  readonly servers: readonly string[]
  /** Only events in this state. Default: all. */
  readonly state?: InboxState
  /** How many of the newest are left out. Default 0. */
  readonly skip?: number
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

/** Which events are listed. */
export interface ListOptions {
  /** The server of the events. */
  readonly server: string
  /** Only events in this state. Default: all. */
  readonly state?: InboxState
  /** The id of the last event of the previous page. */
  readonly after?: string
  /** Default 100, at most 1,000. */
  readonly limit?: number
}
