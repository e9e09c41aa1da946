/**
 * The event stream, `GET /events?topics=a,b` (by default all topics). Server-sent events: `event` is the name, `data` the payload as JSON,
 * `id` is `START.N` (`hello` and `lost` have none). The stream begins with `hello`. `EventSource` resumes by `Last-Event-ID` from a ring of
 * 10,000 events or 8 MiB; where the id is older, or of another start, `lost` follows `hello`: read the lists again. A reader that is too
 * slow gets `lost` as well, and the events in between never. A stream without news is kept open by comments. It ends with its session.
 */
import type { Answered, Approval } from './approvals.ts'
import type { AuditEntry } from './audit.ts'
import type { HostEvents } from './host-api.ts'
import type { Job } from './jobs.ts'
import type { Fault, LogLine } from './log.ts'
import type { ServerRow } from './servers.ts'
import type { Self } from './session.ts'
import type { Budget, TrafficRow } from './traffic.ts'

/** Payloads by event name. `hello` and `lost` come whatever the topics. */
export interface ConsoleEvents extends HostEvents {
  /** `oldest`: the id of the oldest event that can be resumed from. */
  readonly hello: { readonly self: Self; readonly oldest?: string }
  /** Events before `before` were not sent. Without `before`: all that were missed. */
  readonly lost: { readonly before?: string }
  /** A server changed: its whole row. `gone`: it was removed from the config. */
  readonly server: ServerRow & { readonly gone?: true }
  /** A mistake in the file, at the last reload. */
  readonly fault: Fault
  /** A new entry of the queue. The payload is absent for sessions that may not see it. */
  readonly approval: Approval
  /** An entry left the queue. */
  readonly answered: Answered
  /** A new audit entry of this process. */
  readonly audit: AuditEntry
  readonly log: LogLine
  /** Calls of the last second, by server, tool and client. Not sent where there were none. */
  readonly traffic: { readonly at: number; readonly rows: readonly TrafficRow[] }
  /** A budget changed; at most once a second each. */
  readonly spent: Budget
  readonly job: Job
}

export type ConsoleEventName = keyof ConsoleEvents

/** One event: its name and payload. */
export type ConsoleEvent = {
  readonly [Name in ConsoleEventName]: { readonly event: Name; readonly data: ConsoleEvents[Name] }
}[ConsoleEventName]
