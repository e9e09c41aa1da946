/** The report of a run, in the shape of proposal 12's schema: its members, and beside them what ours knows more. */
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Verdict } from './bench.ts'
import type { Advertised, Carrier, Frame, RevisionId, Role, Scenario } from './scenario.ts'

/** The version of the set of scenarios. It changes when a verdict may change. */
export const suiteVersion = '1.0.0'

/** How a scenario ended. `error`: a fault of the kit. */
export type Status = 'passed' | 'failed' | 'skipped' | 'error'

/** A frame, as the report shows it. */
export interface ReportedFrame {
  /** Whether the kit sent it (`out`) or received it (`in`). */
  readonly way: 'out' | 'in'
  /** Milliseconds since the connection was opened. */
  readonly at: number
  /** The frame as text, cut off if it is long. */
  readonly text: string
  /** The HTTP status that carried it, if there was one. */
  readonly status?: number
}

/** The verdict on one scenario in one cell. */
export interface Result {
  /** The id of the scenario, for example `base/tools/list-pages`. */
  readonly test_id: string
  /** How the scenario ended. */
  readonly status: Status
  /** Why the scenario failed or was skipped, or remarks about one that passed. */
  readonly message: string
  /** How long it took, in milliseconds. */
  readonly duration_ms: number
  /** The behaviour that was judged, as a sentence. */
  readonly title: string
  /** The revision of the cell. */
  readonly revision: RevisionId
  /** The carrier of the cell. */
  readonly carrier: Carrier
  /** The ids of the statements that it proves. */
  readonly proves: readonly string[]
  /** Frames that show why it failed. Empty if it passed. */
  readonly frames: readonly ReportedFrame[]
  /** Why a whole cell could not be judged. */
  readonly fault?: CellFault
}

/** `unreachable`: nobody answers. `guarded`: credentials are required. `unspoken`: the revision is not spoken. */
export type CellFault = 'unreachable' | 'guarded' | 'unspoken'

/** The number of results by status. */
export interface Summary {
  /** How many passed. */
  readonly passed: number
  /** How many failed. */
  readonly failed: number
  /** How many were skipped. */
  readonly skipped: number
  /** How many could not be judged because of a fault of the kit. */
  readonly error: number
}

/** The report of a run. */
export interface Report {
  /** The name that the judged peer states, or `unknown`. Also set for clients and hosts. */
  readonly server_name: string
  /** The version that the judged peer states, or `unknown`. */
  readonly server_version: string
  /** The version of the set of scenarios. */
  readonly suite_version: string
  /** When the run began, ISO 8601. */
  readonly tested_at: string
  /** The role that was judged. */
  readonly role: Role
  /** The verdicts, by revision, carrier and scenario. */
  readonly results: readonly Result[]
  /** The number of results by status. */
  readonly summary: Summary
}

const frameLength = 600

/** Writes a verdict down. */
export function resultOf(
  scenario: Pick<Scenario, 'id' | 'title' | 'proves'>,
  cell: { readonly revision: RevisionId; readonly carrier: Carrier },
  verdict: Verdict,
  duration: number,
): Result {
  return {
    test_id: scenario.id,
    status: verdict.status,
    message: verdict.message,
    duration_ms: Math.round(duration),
    title: scenario.title,
    revision: cell.revision,
    carrier: cell.carrier,
    proves: scenario.proves,
    frames: verdict.frames.map(reported),
  }
}

function reported({ way, at, text, status }: Frame): ReportedFrame {
  return { way, at, text: clip(text, frameLength), ...(status === undefined ? {} : { status }) }
}

/** What becomes of the results of a run. `met`: who was judged, where anybody was met. */
export function reportOf(
  role: Role,
  results: readonly Result[],
  began: Date,
  met?: Pick<Advertised, 'name' | 'version'>,
): Report {
  const [server_name, server_version] = [met?.name ?? 'unknown', met?.version ?? 'unknown']
  const told = { server_name, server_version, suite_version: suiteVersion, tested_at: began.toISOString(), role }
  return { ...told, results, summary: summaryOf(results) }
}

/** Counts results by their status. */
export function summaryOf(results: readonly Result[]): Summary {
  const count = (status: Status): number => results.filter(result => result.status === status).length
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped'), error: count('error') }
}

/** The part of a report that a verdict needs. */
type JudgedReport = Pick<Report, 'summary' | 'results'>

/** Whether the peer conforms: something was judged, nothing failed, and no cell was closed to the kit. */
export function conforms(report: JudgedReport): boolean {
  const { failed, error, passed } = report.summary
  return failed === 0 && error === 0 && passed > 0 && guardedIn(report) === undefined
}

/** The first cell that was only judged from outside, because credentials are missing. Undefined if there is none. */
export function guardedIn({ results }: Pick<Report, 'results'>): Result | undefined {
  return results.find(({ fault }) => fault === 'guarded')
}

/** Why nothing could be judged except authorization. Undefined if something could. */
export function faultOf({ results }: Pick<Report, 'results'>): Result | undefined {
  const inside = results.filter(({ test_id }) => !test_id.startsWith('auth/'))
  return inside.every(({ fault }) => fault !== undefined) ? inside.find(({ fault }) => fault !== 'unspoken') : undefined
}

/** The exit code of a run: 0, 1, or 3 if nothing failed and credentials would show more. */
export function exitCodeOf(report: JudgedReport): 0 | 1 | 3 {
  const { failed, error } = report.summary
  if (failed === 0 && error === 0 && guardedIn(report) !== undefined) return 3
  return conforms(report) ? 0 : 1
}

/** The scenarios as a suite document (proposal 12). */
export function suiteOf(scenarios: readonly Scenario[]): Record<string, unknown> {
  return {
    metadata: { suite_version: suiteVersion, mcp_spec_version: '2026-07-28', total_tests: scenarios.length },
    tests: scenarios.map(({ id, title, proves }) => ({ test_id: id, proposal_ref: proposalOf(proves), description: title })),
  }
}

/** `E5-3` belongs to proposal 5; the base protocol and MCP Live have names of their own. */
function proposalOf(proves: readonly string[]): string {
  for (const statement of proves) {
    const extension = /^E(\d+)/.exec(statement)?.[1]
    if (extension !== undefined) return `proposal-${extension}`
    if (statement.startsWith('L')) return 'mcp-live'
  }
  return 'mcp'
}

/** Reads a report that was saved as JSON. Throws a TypeError if it is not one. */
export function readReport(text: string): Report {
  const value: unknown = JSON.parse(text)
  const isReport = isRecord(value) && typeof value['server_name'] === 'string' && Array.isArray(value['results'])
  if (!isReport || !isRecord(value['summary']))
    throw new TypeError('This is not a conformance report: results and summary are missing')
  return value as unknown as Report
}

// ── A badge for a README, in the JSON that badge services read from a URL.

/** A badge, in the format of shields.io endpoints. */
export interface Badge {
  /** The version of the badge format. */
  readonly schemaVersion: 1
  /** The text on the left of the badge. */
  readonly label: string
  /** The text on the right of the badge: passed and judged scenarios. */
  readonly message: string
  /** The colour of the right side. */
  readonly color: string
  /** Whether the badge shows a failure. */
  readonly isError: boolean
}

/** A badge for a report: green if the peer conforms, grey if only its authorization was seen. */
export function badgeOf(report: Pick<Report, 'summary' | 'results'>): Badge {
  const { passed, failed, error } = report.summary
  const ran = passed + failed + error
  const isGood = conforms(report)
  const isShut = failed + error === 0 && guardedIn(report) !== undefined
  const color = isGood ? 'brightgreen' : isShut ? 'lightgrey' : passed / Math.max(1, ran) >= 0.9 ? 'yellow' : 'red'
  return {
    schemaVersion: 1,
    label: 'MCP conformance',
    message: isShut ? 'credentials needed' : ran === 0 ? 'nothing tested' : `${passed}/${ran}`,
    color,
    isError: !isGood,
  }
}
