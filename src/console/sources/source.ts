/** What the console needs from a process, whatever its kind. The routes exist as far as the source has their part. */

import type { Awaitable } from '../../jsonrpc/message.ts'
import type { AuditEntry, AuditQuery } from '../contract/audit.ts'
import type { AuditProof } from '../contract/jobs.ts'
import type { Fault, LogLine, LogQuery } from '../contract/log.ts'
import type { List } from '../contract/problem.ts'
import type { ServerDetail, ServerRow } from '../contract/servers.ts'
import type { ConsoleKind, ConsoleTarget, Screen } from '../contract/session.ts'
import type { Budget, Client, TrafficQuery, TrafficWindow } from '../contract/traffic.ts'
import type { Feed } from '../feed.ts'
import type { ShownFrames } from '../frames/routes.ts'
import type { AgentSource } from '../host/agent.ts'
import type { Playground } from '../playground/playground.ts'

/** Something that somebody did at the console, for the audit log of the process. */
export interface ConsoleAction {
  /** The route, e.g. `POST /servers/:name/retry`. */
  readonly route: string
  readonly by: string
  readonly outcome: 'success' | 'failure' | 'refused'
  readonly server?: string
  /** The code of the problem. */
  readonly code?: string
  /** The id of the approval. */
  readonly approval?: string
  /** What else it was about: the number of a frame, the id of a call, the name of a tape. */
  readonly item?: string
}

/** One place in a list, and how much to give from there. */
export interface PageWish {
  readonly after: string | undefined
  readonly limit: number
}

/** A process as the console sees it. */
export interface ConsoleSource {
  readonly kind: ConsoleKind
  readonly name: string
  readonly screens: readonly Screen[]
  servers(): Awaitable<readonly ServerRow[]>
  server(name: string): Awaitable<ServerDetail | undefined>
  retry(name: string): void
  /** Writes down what somebody did at the console: into the audit log, or where there is none into the log. */
  note(action: ConsoleAction): void
  /** What a playground was started on. */
  readonly target?: ConsoleTarget
  /** The audit log; its entries are given newest first. */
  readonly audit?: {
    find(query: AuditQuery, page: PageWish): Promise<List<AuditEntry>>
    prove(progress: (done: number, total: number) => void, signal: AbortSignal): Promise<AuditProof>
  }
  /** What may be spent, and, where there are clients, what they did. */
  readonly figures?: {
    budgets(): Promise<readonly Budget[]>
    clients?(): Promise<readonly Client[]>
  }
  /** What was observed since the start; undefined where nobody observed it. */
  readonly observed:
    | {
        log(query: LogQuery, before: number, limit: number): readonly LogLine[]
        faults?(): readonly Fault[]
        traffic?(query: TrafficQuery): readonly TrafficWindow[]
      }
    | undefined
  /** The frames that passed. */
  readonly traffic?: ShownFrames
  /** Calls, and what is offered to them. */
  readonly playground?: Playground
  /** What only a host has. */
  readonly agent?: AgentSource
  /** Publishes news until the signal is aborted. Called when somebody begins to look. */
  publish(feed: Feed, signal: AbortSignal): void
}
