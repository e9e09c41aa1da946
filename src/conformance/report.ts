/** The report of a run, in the shape of proposal 12's schema: its members, and beside them what ours knows more. */
import { clip } from '../jsonrpc/limits.ts'
import { isRecord } from '../jsonrpc/message.ts'
import type { Verdict } from './bench.ts'
import type { Advertised, Carrier, Frame, RevisionId, Role, Scenario } from './scenario.ts'

/** What stands for the set of scenarios; changes when a verdict may change. */
export const suiteVersion = '1.0.0'

/** How a scenario ended; `error` is a fault of the kit. */
export type Status = 'passed' | 'failed' | 'skipped' | 'error'

/** A frame as the report shows it. */
export interface ReportedFrame {
  readonly way: 'out' | 'in'
  readonly at: number
  /** Clipped. */
  readonly text: string
  readonly status?: number
}

/** The verdict on one scenario in one cell. */
export interface Result {
  readonly test_id: string
  readonly status: Status
  /** Why it failed or was skipped; remarks of one that passed. */
  readonly message: string
  readonly duration_ms: number
  readonly title: string
  readonly revision: RevisionId
  readonly carrier: Carrier
  readonly proves: readonly string[]
  readonly frames: readonly ReportedFrame[]
  /** Only where a whole cell could not be judged: why. */
  readonly fault?: CellFault
}

/** Nobody there; somebody there who wants credentials; somebody who does not speak this revision. */
export type CellFault = 'unreachable' | 'guarded' | 'unspoken'

/** How many results there are of each status. */
export interface Summary {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  readonly error: number
}

/** A whole run. */
export interface Report {
  readonly server_name: string
  readonly server_version: string
  readonly suite_version: string
  readonly tested_at: string
  readonly role: Role
  readonly results: readonly Result[]
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

/** What is known of a peer is all in these two. */
type Judged = Pick<Report, 'summary' | 'results'>

/** Whether the peer conforms: nothing failed, no fault of the kit, something was really run, and no door stayed shut. */
export function conforms(report: Judged): boolean {
  const { failed, error, passed } = report.summary
  return failed === 0 && error === 0 && passed > 0 && guardedIn(report) === undefined
}

/** The first cell of which only the guard at the door was judged, for want of credentials; undefined: there is none. */
export function guardedIn({ results }: Pick<Report, 'results'>): Result | undefined {
  return results.find(({ fault }) => fault === 'guarded')
}

/** Why nothing could be judged but the guard at the door (`auth/…`); undefined: something could. */
export function faultOf({ results }: Pick<Report, 'results'>): Result | undefined {
  const inside = results.filter(({ test_id }) => !test_id.startsWith('auth/'))
  return inside.every(({ fault }) => fault !== undefined) ? inside.find(({ fault }) => fault !== 'unspoken') : undefined
}

/** Exit code of a run: 0, 1, or 3 where nothing failed, and credentials would show more. */
export function exitCodeOf(report: Judged): 0 | 1 | 3 {
  const { failed, error } = report.summary
  if (failed === 0 && error === 0 && guardedIn(report) !== undefined) return 3
  return conforms(report) ? 0 : 1
}

/** The scenarios as a suite document of proposal 12's schema. */
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

/** Reads a report that was written before: what a badge or a comparison is made of. Throws TypeError. */
export function readReport(text: string): Report {
  const value: unknown = JSON.parse(text)
  const isReport = isRecord(value) && typeof value['server_name'] === 'string' && Array.isArray(value['results'])
  if (!isReport || !isRecord(value['summary']))
    throw new TypeError('This is no conformance report: results and summary are missing')
  return value as unknown as Report
}

// ── A badge for a README, in the JSON that badge services read from a URL.

/** What the badge service at shields.io calls an endpoint. */
export interface Badge {
  readonly schemaVersion: 1
  readonly label: string
  readonly message: string
  readonly color: string
  readonly isError: boolean
}

/** Green where the peer conforms, grey where only its guard was seen. */
export function badgeOf(report: Pick<Report, 'summary' | 'results'>): Badge {
  const { passed, failed, error } = report.summary
  const ran = passed + failed + error
  const isGood = conforms(report)
  const isShut = failed + error === 0 && guardedIn(report) !== undefined
  const color = isGood ? 'brightgreen' : isShut ? 'lightgrey' : passed / Math.max(1, ran) >= 0.9 ? 'yellow' : 'red'
  return {
    schemaVersion: 1,
    label: 'MCP conformance',
    message: isShut ? 'credentials needed' : ran === 0 ? 'nothing judged' : `${passed}/${ran}`,
    color,
    isError: !isGood,
  }
}
