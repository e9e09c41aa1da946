/** `vivarium/console`: the web console of a gateway or a host, and the queue of approvals that page, terminal and program share. */
import '../core/required-node.ts'

export {
  type Answerer,
  type ApprovalListener,
  type ApprovalQueue,
  type ApprovalRequest,
  createApprovalQueue,
  type GivenAnswer,
  type PosedApproval,
} from './approvals.ts'
export { AnsweredElsewhere, type HostAnswers, type LocalAnswers } from './beside.ts'
export type {
  Answered,
  Approval,
  ApprovalAnswer,
  ApprovalDetail,
  ApprovalKind,
  ApprovalRisk,
  ApprovalScope,
  AuditEntry,
  AuditProof,
  AuditQuery,
  Budget,
  Client,
  ConsoleKind,
  ConsoleProblem,
  ConsoleProblemCode,
  Fault,
  Job,
  JobKind,
  JobState,
  LikeApprovals,
  List,
  LogLevel,
  LogLine,
  LogQuery,
  PageQuery,
  Refusals,
  Role,
  Screen,
  Self,
  ServerDetail,
  ServerItem,
  ServerRow,
  ServerStatus,
  Session,
  StderrLine,
  TrafficBy,
  TrafficQuery,
  TrafficRow,
  TrafficWindow,
  Why,
  WiderApproval,
} from './contract/index.ts'
export { type HostObserver, type ObservedHostOptions, observeHost } from './host/observer.ts'
export { type GatewayObserver, type ObservedOptions, observeGateway } from './observer.ts'
export { type ChatOptions, type ConsoleOptions, type LinkOptions, type RunningConsole, serveConsole } from './serve.ts'
