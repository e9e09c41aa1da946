/** Every route of the API with its types. The route table of the process is held against this by the compiler. */
import type { Answered, Approval, ApprovalAnswer, ApprovalDetail } from './approvals.ts'
import type { AuditEntry, AuditQuery } from './audit.ts'
import type { HostApi } from './host-api.ts'
import type { Job } from './jobs.ts'
import type { Fault, LogLine, LogQuery } from './log.ts'
import type { List, PageQuery } from './problem.ts'
import type { ServerDetail, ServerRow } from './servers.ts'
import type { Self, Session } from './session.ts'
import type { Budget, Client, TrafficQuery, TrafficWindow } from './traffic.ts'

/** What a route takes and gives. */
export interface ConsoleRoute {
  readonly query?: object
  readonly body?: object
  /** `undefined`: 204 without a body. */
  readonly answer: object | undefined
}

/** The routes below `/api/1`, as `METHOD /path`. Beside them there is `GET /events`, the stream. */
export interface ConsoleApi extends HostApi {
  /** Any role. */
  'GET /self': { answer: Self }
  /** Any role. */
  'GET /session': { answer: Session }
  /** No session needed: exchanges the token of the link for the cookie. */
  'POST /session': { body: { readonly token: string }; answer: Session }
  /** Any role. Ends the session and its streams. */
  'DELETE /session': { answer: undefined }

  /** Viewer. In config order. */
  'GET /servers': { query: PageQuery; answer: List<ServerRow> }
  /** Viewer. */
  'GET /servers/:name': { answer: ServerDetail }
  /** Operator. Reconnects a server that is down, without waiting: 204. */
  'POST /servers/:name/retry': { answer: undefined }

  /** Viewer. Oldest first. */
  'GET /approvals': { query: PageQuery; answer: List<Approval> }
  /** Viewer. Also for recent answers. */
  'GET /approvals/:id': { answer: ApprovalDetail }
  /** Approver. 409 where it was answered before, or the digest is another. */
  'POST /approvals/:id': { body: ApprovalAnswer; answer: Answered }

  /** Viewer. Newest first. */
  'GET /audit': { query: AuditQuery & PageQuery; answer: List<AuditEntry> }
  /** Viewer. The last proof of this process; 204 where none was asked for. */
  'GET /audit/proof': { answer: Job | undefined }
  /** Operator. Starts a proof, 202; 409 `JOB_RUNNING` while one runs. */
  'POST /audit/proof': { answer: Job }

  /** Viewer. Newest first. */
  'GET /log': { query: LogQuery & PageQuery; answer: List<LogLine> }
  /** Viewer. */
  'GET /faults': { query: PageQuery; answer: List<Fault> }

  /** Viewer. Oldest window first; windows without calls are left out. */
  'GET /traffic': { query: TrafficQuery; answer: List<TrafficWindow> }
  /** Viewer. */
  'GET /budgets': { query: PageQuery; answer: List<Budget> }
  /** Viewer. Those of the config first, in its order. */
  'GET /clients': { query: PageQuery; answer: List<Client> }
}
