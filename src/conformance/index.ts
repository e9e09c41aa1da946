/** `vivarium/conformance`: judges servers, clients and hosts. */
import '../core/required-node.ts'

export type { AuthTrial, TokenFlaw } from './auth/issuer.ts'
export { type Issuer, type IssuerOptions, startIssuer, type TrialOptions } from './auth/issuer.ts'
export type { ClientScenario } from './clients/define.ts'
export type { ClientCommand, ClientFunction, ClientUnderTest, Told } from './clients/drive.ts'
export type { JudgeClientOptions } from './clients/judge.ts'
export { clientScenarios, hostScenarios, judgeClient, judgeHost } from './clients/judge.ts'
export type { StepReport } from './clients/log.ts'
export type { Answers as ClientAnswers, LiveWishes, Play, SignInWay, Step as ClientStep } from './clients/play.ts'
export type { ClientTarget } from './clients/server.ts'
export { type JudgeOptions, judge } from './judge.ts'
export { scenarios } from './registry.ts'
export {
  type Badge,
  badgeOf,
  type CellFault,
  conforms,
  exitCodeOf,
  faultOf,
  guardedIn,
  type Report,
  type ReportedFrame,
  type Result,
  readReport,
  type Status,
  type Summary,
  suiteOf,
  suiteVersion,
} from './report.ts'
export {
  type Advertised,
  allRevisions,
  type Bench,
  type Carrier,
  type Cell,
  cellsOf,
  Failed,
  type Frame,
  type Json,
  type OpenOptions,
  type RevisionId,
  type Role,
  type Scenario,
  Skipped,
  type Subject,
} from './scenario.ts'
export { junitOf, type TableOptions, tableOf } from './table.ts'
export type { FrameOrigin, JudgeTarget, Places } from './wire/connector.ts'
export type {
  Answer,
  AnswerError,
  Begun,
  ChildControl,
  ChildFace,
  HttpControl,
  HttpFace,
  Match,
  RawPeer,
  RequestOptions,
  Sent,
} from './wire/raw-peer.ts'
