/** Every route of the API with its types. The route table of the process is held against this by the compiler. */
import type { Answered, Approval, ApprovalAnswer, ApprovalDetail } from './approvals.ts'
import type { AuditEntry, AuditQuery } from './audit.ts'
import type {
  Call,
  CallQuery,
  CallResult,
  CallWish,
  CompleteWish,
  Completions,
  Offer,
  OfferDetail,
  OfferItemQuery,
  OfferQuery,
  RevisionRow,
} from './calls.ts'
import type {
  Conformance,
  ConformanceDetail,
  ConformanceExport,
  ConformanceExportQuery,
  ConformanceQuery,
  ConformanceResult,
  ConformanceWish,
} from './conformance.ts'
import type { ConnectionRow, FrameAgain, FrameDetail, FrameQuery, FrameRow, FrameSent } from './frames.ts'
import type { HostApi } from './host-api.ts'
import type { Job } from './jobs.ts'
import type { Fault, LogLine, LogQuery } from './log.ts'
import type { List, PageQuery } from './problem.ts'
import type { ServerDetail, ServerRow } from './servers.ts'
import type { Self, Session } from './session.ts'
import type { TapeDetail, TapeReplay, TapeReplayWish, TapeRow, TapeServeWish, TapeWish } from './tapes.ts'
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

  /** Viewer. Newest first. */
  'GET /frames': { query: FrameQuery & PageQuery; answer: List<FrameRow> }
  /** Viewer. 404 also for a frame that is no longer kept. */
  'GET /frames/:n': { answer: FrameDetail }
  /** Operator. Sends the very frame, or an edited one, with a new id: 202. */
  'POST /frames/:n/again': { body: FrameAgain; answer: FrameSent }
  /** Viewer. Open ones first, then newest first; of those that have ended the last 100. */
  'GET /connections': { query: PageQuery; answer: List<ConnectionRow> }

  /** Viewer. In the order of the server. 503 with the server's reason where it cannot be asked. */
  'GET /servers/:name/tools': { query: OfferQuery & PageQuery; answer: List<Offer> }
  /** Viewer. Resources, then templates. */
  'GET /servers/:name/resources': { query: OfferQuery & PageQuery; answer: List<Offer> }
  /** Viewer. */
  'GET /servers/:name/prompts': { query: OfferQuery & PageQuery; answer: List<Offer> }
  /** Viewer. One tool, resource, template or prompt, whole. */
  'GET /servers/:name/offer': { query: OfferItemQuery; answer: OfferDetail }
  /** Viewer. The newest revision first. */
  'GET /servers/:name/revisions': { answer: List<RevisionRow> }
  /** Operator. Values for an argument. */
  'POST /complete': { body: CompleteWish; answer: Completions }
  /** Viewer. Newest first, without arguments and results. */
  'GET /calls': { query: CallQuery & PageQuery; answer: List<Call> }
  /** Operator. Starts a call: 202. */
  'POST /calls': { body: CallWish; answer: Call }
  /** Viewer. */
  'GET /calls/:id': { answer: Call }
  /** Viewer who may see payloads, operator, approver. A long result. */
  'GET /calls/:id/results/:revision': { answer: CallResult }
  /** Operator. Cancels the call where it still runs: 204. */
  'DELETE /calls/:id': { answer: undefined }

  /** Viewer. By name. */
  'GET /tapes': { query: PageQuery; answer: List<TapeRow> }
  /** Operator. Starts a recording: 202; 409 `JOB_RUNNING` while one runs. */
  'POST /tapes': { body: TapeWish; answer: TapeRow }
  /** Viewer. */
  'GET /tapes/:name': { answer: TapeDetail }
  /** Operator. Ends the recording of this tape. */
  'POST /tapes/:name/stop': { answer: TapeRow }
  /** Viewer. The last replay; 204 where there was none. */
  'GET /tapes/:name/replay': { answer: TapeReplay | undefined }
  /** Operator. Sends the tape to the server of now: 202; 409 `JOB_RUNNING` while one runs. */
  'POST /tapes/:name/replay': { body: TapeReplayWish; answer: TapeReplay }
  /** Operator. Serves the tape as a mock server: 202. */
  'POST /tapes/:name/serve': { body: TapeServeWish; answer: TapeRow }
  /** Operator. Ends that. */
  'DELETE /tapes/:name/serve': { answer: undefined }

  /** Viewer. */
  'GET /conformance': { answer: Conformance }
  /** Viewer. In the order in which they came. */
  'GET /conformance/results': { query: ConformanceQuery & PageQuery; answer: List<ConformanceResult> }
  /** Viewer. */
  'GET /conformance/results/:n': { answer: ConformanceDetail }
  /** Viewer who may see payloads, operator, approver. 404 before the first run has ended. */
  'GET /conformance/export': { query: ConformanceExportQuery; answer: ConformanceExport }
  /** Operator. Starts a run: 202; 409 `JOB_RUNNING` while one runs. */
  'POST /conformance': { body: ConformanceWish; answer: Conformance }
  /** Operator. Stops the run: 204. What is known by then stays. */
  'DELETE /conformance': { answer: undefined }
}
