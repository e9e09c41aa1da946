/**
 * The contract between the web console and the process: plain types, no logic. The page imports them with `import type`, and the process
 * holds its route table against `ConsoleApi`.
 *
 * **Addresses.** Everything lies below `/api/1`, on the origin of the page. `ConsoleApi` lists each route as `METHOD /path` with its query,
 * body and answer; `:name` stands for one path segment (percent-encoded). `self.resources` names the paths that this kind of process
 * serves; any other path is answered with 404 `NOT_FOUND`.
 *
 * **Session.** The link carries a one-time token in the fragment: `http://127.0.0.1:7425/#k=TOKEN`. The page sends it as
 * `POST /api/1/session { token }`, removes the fragment with `history.replaceState`, and from then on is known by an HttpOnly cookie. Any
 * request without a session is answered with 401 `SESSION_REQUIRED`. `DELETE /api/1/session` ends it.
 *
 * **Requests.** Each request that is not a GET carries `content-type: application/json`, `x-vivarium: 1` and a JSON body (`{}` where nothing
 * is to be said), also `DELETE`. The browser adds `Origin`, which must be that of the page.
 *
 * **Roles.** `viewer` reads, `operator` acts on the process, `approver` answers approvals. None includes another. A request that the
 * session has no role for is answered with 403 `ROLE_REQUIRED`; `details.role` names the missing role. Exact arguments and definitions
 * (`Approval.payload`, `before`, `after`, `changes`, `AuditEntry.more.arguments`) are left out for sessions that only view, and
 * `Approval.text` is replaced by a neutral one, unless `self.payloads` is `viewer`.
 *
 * **Errors.** Each failure has a JSON body of type `ConsoleProblem`. `code` decides what to do, `message` and `fix` are for people.
 *
 * **Lists.** `List<T>`: `items`, and `next` where more follow. Ask for the rest with `?after=NEXT`; `limit` is 1 to 1,000, by default 100.
 * Filters are further query parameters. The order is the natural one of the resource: config order, oldest approval first, newest audit
 * entry and log line first.
 *
 * **ETag.** Each GET answer with JSON carries a strong `ETag`. Repeat it in `If-None-Match` for 304.
 *
 * **Times** are milliseconds since the epoch, durations milliseconds.
 *
 * **Stream.** `GET /api/1/events?topics=server,audit` (`text/event-stream`). See `ConsoleEvents`.
 */
export type { ConsoleApi, ConsoleRoute } from './api.ts'
export type {
  Answered,
  Approval,
  ApprovalAnswer,
  ApprovalDetail,
  ApprovalForm,
  ApprovalKind,
  ApprovalPage,
  ApprovalRisk,
  ApprovalSampling,
  ApprovalScope,
  LikeApprovals,
  WiderApproval,
} from './approvals.ts'
export type { AuditEntry, AuditQuery } from './audit.ts'
export type {
  Conversation,
  HostFacts,
  NewTurn,
  OfferedPrompt,
  PromptSection,
  TurnAnswerChange,
  TurnCall,
  TurnCallRow,
  TurnCallStatus,
  TurnCost,
  TurnDetail,
  TurnHook,
  TurnInference,
  TurnOrigin,
  TurnPart,
  TurnPrompt,
  TurnQuery,
  TurnQuestion,
  TurnRow,
  TurnStatus,
} from './conversations.ts'
export type { ConsoleEvent, ConsoleEventName, ConsoleEvents } from './events.ts'
export type { ExplainEdge, ExplainKind, ExplainNode, ExplainNote, Explanation } from './explain.ts'
export type { Grant, GrantQuery, Spent, SpentQuery } from './grants.ts'
export type { HostApi, HostEvents } from './host-api.ts'
export type { InboxAttempt, InboxEvent, InboxEventDetail, InboxList, InboxQuery, InboxState } from './inbox.ts'
export type { AuditProof, Job, JobKind, JobState } from './jobs.ts'
export type { Fault, LogLevel, LogLine, LogQuery } from './log.ts'
export type { ConsoleProblem, ConsoleProblemCode, List, PageQuery } from './problem.ts'
export type { ServerDetail, ServerItem, ServerRow, ServerStatus, StderrLine, Why } from './servers.ts'
export type { ConsoleKind, Role, Screen, Self, Session } from './session.ts'
export type {
  PatchStep,
  StateAtQuery,
  StateContent,
  StateDifference,
  StateDiffQuery,
  StateNode,
  StateRollback,
  StateRolledBack,
  StateSetRow,
} from './state.ts'
export type { Budget, Client, Refusals, TrafficBy, TrafficQuery, TrafficRow, TrafficWindow } from './traffic.ts'
export type { TurnSpan, TurnSpanKind, TurnSpanStatus } from './turn-spans.ts'
export type { UndoOrder, UndoPlan, UndoReport, UndoStep } from './undo.ts'
