/** What the console needs from a process, whatever its kind. The routes exist as far as the source has their part. */

import type { Awaitable } from '../../jsonrpc/message.ts'
import type { AuditEntry, AuditQuery } from '../contract/audit.ts'
import type { AuditProof } from '../contract/jobs.ts'
import type { Fault, LogLine, LogQuery } from '../contract/log.ts'
import type { List } from '../contract/problem.ts'
import type { ServerDetail, ServerRow } from '../contract/servers.ts'
import type { ConsoleKind, Screen } from '../contract/session.ts'
import type { Budget, Client, TrafficQuery, TrafficWindow } from '../contract/traffic.ts'
import type { Feed } from '../feed.ts'
import type { AgentSource } from '../host/agent.ts'

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
  /** Newest first. */
  audit(query: AuditQuery, page: PageWish): Promise<List<AuditEntry>>
  prove(progress: (done: number, total: number) => void, signal: AbortSignal): Promise<AuditProof>
  /** Writes into the audit log what somebody did at the console. */
  note(action: ConsoleAction): void
  budgets(): Promise<readonly Budget[]>
  /** Who calls; undefined where nobody does. */
  readonly clients: (() => Promise<readonly Client[]>) | undefined
  /** What was observed since the start; undefined where nobody observed it. */
  readonly observed:
    | {
        log(query: LogQuery, before: number, limit: number): readonly LogLine[]
        faults(): readonly Fault[]
        traffic(query: TrafficQuery): readonly TrafficWindow[]
      }
    | undefined
  /** What only a host has. */
  readonly agent?: AgentSource
  /** Publishes news until the signal is aborted. Called when somebody begins to look. */
  publish(feed: Feed, signal: AbortSignal): void
}
