/** How an inbox is set up, and what it gives to whoever runs its events. */
import type { Clock, Duration } from '../../core/clock.ts'
import type { Why } from '../../core/suggestion.ts'
import type { PushAnswer, PushEvent } from '../../features/live/push-events/messages.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Op, Store } from '../../stores/store.ts'
import type { ChainOptions } from './inbox-context.ts'
import type { Attempt, InboxState } from './records.ts'

/** How an inbox works. */
export interface InboxOptions {
  readonly store: Store
  /** Asked about every event, when it comes and again when it is run. Without it all are taken. */
  readonly policy?: Pick<Policy, 'decide' | 'approve' | 'enter' | 'explain'> & Partial<Pick<Policy, 'admission' | 'refusal'>>
  /** Whether a server is in the config, and not switched off; one that is merely down is. Events of others wait. Default: all are. */
  readonly isConfigured?: (server: string) => boolean
  /** What keeps its order: events with the same text are done one after the other. Default: the origin, else the feature set. */
  readonly orderBy?: (server: string, event: PushEvent) => string
  /** Runs at once. Default 4. */
  readonly concurrency?: number
  /** Of one server. Default half of that. */
  readonly perServer?: number
  /** Events of one server that wait, at most. Default 10,000. */
  readonly waiting?: number
  /** Events of one server each second, and at once. Default 500 and 1,000. */
  readonly rate?: { readonly perSecond: number; readonly burst: number }
  /** How long a chain of events may get in which each comes of the turn of the one before. */
  readonly chain?: ChainOptions
  /** JSON text of one event. Default 1 MiB. */
  readonly bytes?: number
  /** Failures after which an event is given up. Default 5. */
  readonly attempts?: number
  /** Ends of the process amid a run after which an event is given up. Default 20. */
  readonly interruptions?: number
  /** Wait after the first failure, doubled with each; and the longest. Default 1 s and 5 minutes. */
  readonly backoff?: { readonly first: Duration; readonly longest: Duration }
  /** How long a run may take. Default 10 minutes. */
  readonly runTime?: Duration
  /** How long an event is known after it was done. Default 7 days. */
  readonly keep?: Duration
  /** How long another process is waited for that does not move. Default 6 s. */
  readonly lease?: Duration
  /** Why events of a set cannot run now: asked before each run. With a time they wait for it, without one they are refused. */
  readonly withheld?: (server: string, featureSet: string) => Promise<Withheld | undefined>
  /** Told what is nobody's answer: an event that waits or may not run any more, an id with two bodies, a store that failed. */
  readonly onDiagnostic?: (server: string, what: Why, note: InboxNote) => void
  readonly clock?: Clock
  readonly id?: () => string
  /** From 0 to below 1. */
  readonly random?: () => number
}

/** Why something does not run now, and after which time it may be otherwise. */
export interface Withheld extends Why {
  readonly retryAfterMs?: number
}

/** Thrown by a run that has to wait: no failure, so it is never given up for it. Without a time to wait it is refused. */
export class RunLater extends Error {
  override readonly name = 'RunLater'
  readonly why: Withheld

  constructor(said: Withheld) {
    super(said.message)
    this.why = said
  }
}

/** What became of what a diagnostic is about, and which event that is, where it is about one. */
export interface InboxNote {
  readonly outcome: 'held' | 'refused' | 'failure' | 'dropped'
  readonly eventId?: string
  readonly featureSet?: string
  readonly inferenceId?: string
}

/** One run: as a rule of one event, after coalescing of several. */
export interface InboxEntry {
  readonly server: string
  /** The first, in the order of acceptance. */
  readonly event: PushEvent
  readonly events: readonly PushEvent[]
  /** Other servers whose events began turns that these came of, or may have come of. */
  readonly through: readonly string[]
  readonly inferenceId: string
  /** From 1. */
  readonly attempt: number
  /** Those before, and this one. */
  readonly attempts: readonly Attempt[]
  /** The steps that note this attempt: written before the run, unless `open` was told that it writes them with its first ones. */
  readonly begin: readonly Op[]
  /** The steps that mark it done: written in the commit of the turn, so that there is one turn, whatever happens in between. */
  readonly done: readonly Op[]
  /** Commits the steps together with `done`. False where it is not ours any more: then nothing was written. */
  commit(ops: readonly Op[]): Promise<boolean>
}

/** How one event is taken in. */
export interface AcceptOptions {
  /** The name of the server's event, where the config subscribes to it; absent: MCP Live pushed it, for a feature set. */
  readonly subscription?: string
  /** Told of the rule that lets a new one in. */
  readonly ruled?: (rule: string) => void
}

/** How an inbox begins its work. */
export interface InboxOpenOptions {
  /** The run writes `begin` itself, before it does anything else: with whatever it has to write then, so that both share a commit. */
  readonly writesBegin?: boolean
}

/** Does what an event asks for. */
export type InboxRun = (entry: InboxEntry, signal: AbortSignal) => Promise<void>

/** What is known of an event. */
export interface InboxRecord {
  readonly server: string
  readonly eventId: string
  readonly featureSet: string
  readonly inferenceId: string
  readonly state: InboxState
  /** When it was accepted. */
  readonly at: number
  /** The beginning of its text, for lists; empty where it was not kept. */
  readonly preview: string
  readonly attempts: readonly Attempt[]
  /** Of one that was refused or given up, and of one that waits because of it. */
  readonly why?: Why
  /** While it waits, and of one that was given up. */
  readonly event?: PushEvent
  /** It waits for this moment. */
  readonly notBefore?: number
}

/** Which entries are listed. */
export interface ListOptions {
  /** Whose events. */
  readonly server: string
  /** Only those: `waiting`, `done`, `refused` or `dead`. Default all. */
  readonly state?: InboxState
  /** The id of the last one of the page before. */
  readonly after?: string
  /** Default 100, at most 1,000. */
  readonly limit?: number
}

/** The events of servers, from their arrival to the end of their run. */
export interface Inbox {
  /** Durable, deduplicated, and with its inference named before it resolves. */
  accept(server: string, event: PushEvent, options?: AcceptOptions): Promise<PushAnswer>
  /** Runs what waits and what comes, at least once each; once only where the turn is committed with `done`. */
  open(run: InboxRun, options?: InboxOpenOptions): Promise<void>
  /** A turn is at a server, by a call or a hook; what is returned says that it has left it. Events of the server may come of it. */
  visits(server: string, inferenceId: string): () => void
  /** Nothing begins any more; what runs is told to end, and waited for a while. */
  close(): Promise<void>
  list(options: ListOptions): Promise<readonly InboxRecord[]>
  get(server: string, eventId: string): Promise<InboxRecord | undefined>
  /** Those that were given up. */
  dead(server: string): Promise<readonly InboxRecord[]>
  /** Looks again at what waits because it was withheld: that may have changed. */
  reconsider(): void
  /** Tries one again that was given up. False where there is none. */
  replay(server: string, eventId: string): Promise<boolean>
}
