/** Conformance: the server judged by scenarios, at each revision and over each carrier. */
import type { FrameExcerpt } from './frames.ts'

/** How a scenario ended. `error`: the kit could not judge it. */
export type ConformanceStatus = 'passed' | 'failed' | 'skipped' | 'error'

/** The number of results by status. */
export interface ConformanceSummary {
  /** How many passed. */
  readonly passed: number
  /** How many failed. */
  readonly failed: number
  /** How many were skipped. */
  readonly skipped: number
  /** How many could not be judged. */
  readonly error: number
}

/** One revision over one carrier. */
export interface ConformanceCell extends ConformanceSummary {
  /** The revision. */
  readonly revision: string
  /** The carrier. */
  readonly carrier: string
  /** Why the whole cell could not be judged: nobody answers, credentials are required, or the revision is not spoken. */
  readonly fault?: 'unreachable' | 'guarded' | 'unspoken'
  /** The fault in a sentence. */
  readonly why?: string
}

/** `POST /conformance`. */
export interface ConformanceWish {
  /** Default: all of `Conformance.revisions`. */
  readonly revisions?: readonly string[]
  /** Default: all of `Conformance.carriers`. */
  readonly carriers?: readonly string[]
  /** Only scenarios whose id, title or statements hold one of these texts, which are separated by commas. */
  readonly only?: string
  /** Also call tools that may write. Default false. */
  readonly allowWrites?: boolean
}

/** `GET /conformance`, and the event `conformance`: the run of now, or the last one. Results are read by `GET /conformance/results`. */
export interface Conformance {
  /** `idle`: none was asked for yet. */
  readonly state: 'idle' | 'running' | 'done' | 'stopped' | 'failed'
  /** The server that is judged. */
  readonly server: string
  /** The command that repeats the run without a page. */
  readonly command: string
  /** Revisions that can be chosen, oldest first. */
  readonly revisions: readonly string[]
  /** Carriers over which the target can be reached. */
  readonly carriers: readonly string[]
  /** What was asked for. */
  readonly wish?: ConformanceWish
  /** Who asked for it. */
  readonly by?: string
  /** When the run began. */
  readonly startedAt?: number
  /** When it ended. */
  readonly endedAt?: number
  /** Why it failed as a whole. */
  readonly why?: string
  /** The version of the set of scenarios. */
  readonly suite: string
  /** By revision and carrier, in the order of the run; cells without a result yet are there with zeros. */
  readonly cells: readonly ConformanceCell[]
  /** All cells together. */
  readonly summary: ConformanceSummary
  /** Scenarios that are planned for all cells, of which some are skipped later: for a bar of progress. */
  readonly planned: number
}

/** The result of a scenario in one cell. The event `result` brings it at once. */
export interface ConformanceResult {
  /** Its number in the run, from 1 on. */
  readonly n: number
  /** The scenario: `base/tools/list-pages`. */
  readonly id: string
  /** The behaviour, as a sentence. */
  readonly title: string
  /** The revision. */
  readonly revision: string
  /** The carrier. */
  readonly carrier: string
  /** How it ended. */
  readonly status: ConformanceStatus
  /** Why it failed or was skipped, or remarks. It may repeat words of the server. */
  readonly message: string
  /** How long it took. */
  readonly ms: number
}

/** `GET /conformance/results`: in the order in which they came. */
export interface ConformanceQuery {
  /** Results of this revision. */
  readonly revision?: string
  /** Results of this carrier. */
  readonly carrier?: string
  /** Results with this status. */
  readonly status?: ConformanceStatus
  /** Text in id, title or message. */
  readonly text?: string
}

/** `GET /conformance/results/:n`. */
export interface ConformanceDetail {
  /** As it is listed. */
  readonly result: ConformanceResult
  /** What it proves. */
  readonly proves: readonly Statement[]
  /** Frames that show why it failed. Absent for sessions that may not see payloads. */
  readonly frames?: readonly FrameExcerpt[]
  /** The command that repeats this scenario alone. */
  readonly command: string
}

/** A statement of a specification that a scenario proves. */
export interface Statement {
  /** Its id, or the clause. */
  readonly id: string
  /** Its words, where the kit has them. */
  readonly text?: string
}

/** `GET /conformance/export`: the report as a file. */
export interface ConformanceExport {
  /** A name for the file. */
  readonly name: string
  /** Its media type. */
  readonly type: string
  /** Its content. */
  readonly text: string
}

/** `GET /conformance/export`. */
export interface ConformanceExportQuery {
  /** The whole report as of `vivarium test --format json`, JUnit XML, or the badge. Default `json`. */
  readonly as?: 'json' | 'junit' | 'badge'
}
