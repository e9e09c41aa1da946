/** `vivarium/conformance`: judges servers, clients and hosts. */
import '../core/required-node.ts'

export { type Issuer, type IssuerOptions, startIssuer, type TrialOptions } from './auth/issuer.ts'
export type { AuthTrial, TokenFlaw } from './auth/trial.ts'
export { type Badge, badgeOf } from './badge.ts'
export type { ClientScenario } from './clients/define.ts'
export type { ClientCommand, ClientFunction, ClientUnderTest, Told } from './clients/drive.ts'
export { clientScenarios, judgeClient } from './clients/index.ts'
export type { JudgeClientOptions } from './clients/judge.ts'
export type { Reported as StepReport } from './clients/observation.ts'
export type { Answers as ClientAnswers, LiveWishes, Play, SignInWay, Step as ClientStep } from './clients/play.ts'
export type { ClientTarget } from './clients/server.ts'
export { hostScenarios, judgeHost } from './hosts/index.ts'
export { type JudgeOptions, judge } from './judge.ts'
export { junitOf } from './junit.ts'
export { allRevisions, type Cell, cellsOf } from './plan.ts'
export { scenarios } from './registry.ts'
export {
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
  type Bench,
  type Carrier,
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
export { type TableOptions, tableOf } from './table.ts'
export type { FrameOrigin } from './wire/connector.ts'
export type { JudgeTarget, Places } from './wire/places.ts'
export type { Answer, AnswerError, Begun, ChildFace, HttpFace, Match, RawPeer, RequestOptions, Sent } from './wire/raw-peer.ts'
