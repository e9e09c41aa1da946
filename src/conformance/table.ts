/** The report for people: one line per revision and carrier, then every failure with its clause, its frames and how to see it alone. */
import { clip } from '../jsonrpc/limits.ts'
import { type Report, type Result, summaryOf } from './report.ts'
import type { RevisionId } from './scenario.ts'

/** Options of `tableOf`. */
export interface TableOptions {
  /** Whether to list what was skipped, and why. Default false. */
  readonly skipped?: boolean
  /** The most characters of a frame. Default 200. */
  readonly width?: number
  /** Returns the command that repeats a run with these options. Default: only the options are shown. */
  readonly again?: (options: string) => string
}

/** Formats a report as text for people. */
export function tableOf(report: Report, options: TableOptions = {}): string {
  const { results, summary } = report
  const lines = [`${clip(report.server_name)} ${clip(report.server_version)}`, '', ...cells(results, options)]
  const wrong = results.filter(({ status }) => status === 'failed' || status === 'error')
  // Many scenarios can run into one mistake: it is explained once.
  for (const same of Map.groupBy(alike(wrong), ([first]) => `${first?.status} ${first?.message}`).values())
    lines.push('', ...explained(same, options))
  for (const group of alike(results.filter(({ status, message }) => status === 'passed' && message !== '')))
    lines.push('', ...remarked(group))
  if (options.skipped === true) lines.push('', ...reasons(results))
  const { passed, failed, skipped, error } = summary
  lines.push('', ...shut(results), `${passed} passed, ${failed} failed, ${skipped} skipped, ${error} errors`)
  if (skipped > 0 && options.skipped !== true) lines.push('Run with --skipped to see what was skipped, and why')
  return `${lines.join('\n')}\n`
}

/** A cell in which nothing was tried is shown only to who asks for what was skipped. */
function cells(results: readonly Result[], { skipped: all = false }: TableOptions): string[] {
  const groups = Map.groupBy(results, ({ revision, carrier }) => `${revision.padEnd(14)}${carrier.padEnd(11)}`)
  const rows = [...groups].flatMap(([name, group]) => {
    const { passed, failed, skipped, error } = summaryOf(group)
    if (!all && passed + failed + error === 0) return []
    return `${name}${column(passed)}${column(failed)}${column(skipped)}${column(error)}`
  })
  return [`${'revision'.padEnd(14)}${'carrier'.padEnd(11)}  passed  failed skipped  errors`, ...rows]
}

function column(count: number): string {
  return String(count).padStart(8)
}

/** What is the same in several cells is said once. */
function alike(results: readonly Result[]): readonly (readonly Result[])[] {
  return [...Map.groupBy(results, ({ test_id, message }) => `${test_id} ${message}`).values()]
}

function cellsIn(group: readonly Result[]): string {
  const byCarrier = Map.groupBy(group, ({ carrier }) => carrier)
  const parts = [...byCarrier].map(([carrier, some]) => `${carrier}: ${some.map(({ revision }) => revision).join(', ')}`)
  return parts.join('; ')
}

/** The first scenario in full, the others by their names. */
function explained([group = [], ...others]: readonly (readonly Result[])[], options: TableOptions): string[] {
  // The newest cell that is wrong: its clause is the one to read, and it is the one to try again.
  const result = group.at(-1)
  if (result === undefined) return []
  const also = [...new Set(others.flat().map(({ test_id }) => test_id))]
  const { width = 200 } = options
  const arrows = { out: '→', in: '←' }
  return [
    `${result.status === 'failed' ? 'FAILED' : 'ERROR '}  ${result.test_id}`,
    ...(result.status === 'failed' ? [`        Rule:  ${result.title}`, `        Why:   ${clip(result.message, 300)}`] : []),
    ...(result.status === 'error' ? [`        Rule:  ${result.title}`, `        Error: ${clip(result.message, 300)}`] : []),
    `        At:    ${cellsIn(group)}`,
    ...clauses(result),
    ...result.frames.map(
      ({ way, text, status }) => `        ${arrows[way]} ${status === undefined ? '' : `[${status}] `}${clip(text, width)}`,
    ),
    ...(also.length === 0 ? [] : [`        Also:  ${also.join(', ')}`]),
    ...again(result, options),
  ]
}

function clauses({ proves, revision }: Result): string[] {
  return proves.map((statement, at) => {
    const address = addressOf(statement, revision)
    return `        ${at === 0 ? 'Spec:' : '     '}  ${statement}${address === undefined ? '' : `  ${address}`}`
  })
}

/** How to see it alone. A cell that could not be judged has no scenario to name. */
function again({ test_id, revision, carrier, fault }: Result, { again: command = options => options }: TableOptions): string[] {
  const only = fault === undefined ? `--only '^${test_id.replaceAll('.', '\\.')}$' ` : ''
  return [`        Again: ${command(`${only}--revision ${revision}${carrier === 'memory' ? '' : ` --carrier ${carrier}`}`)}`]
}

function remarked(group: readonly Result[]): string[] {
  const [result] = group
  if (result === undefined) return []
  return [`remark  ${result.test_id}`, `        ${cellsIn(group)}`, `        ${clip(result.message, 200)}`]
}

/** Doors that stayed shut, with the key to them. */
function shut(results: readonly Result[]): string[] {
  const guarded = results.filter(({ fault }) => fault === 'guarded')
  const [first] = guarded
  if (first === undefined) return []
  return [
    'LOCKED  Only requests without credentials were tested',
    `        At:    ${cellsIn(guarded)}`,
    `        Why:   ${clip(first.message, 300)}`,
    '',
  ]
}

/** Many are skipped for one reason: it is said once. */
function reasons(results: readonly Result[]): string[] {
  const skipped = results.filter(({ status }) => status === 'skipped')
  const groups = Map.groupBy(skipped, ({ message }) => message)
  return [...groups].map(([why, group]) => `skipped ${String(group.length).padStart(4)}  ${clip(why, 160)}`)
}

// ── The report as JUnit XML, for programs that show test results: one suite per revision and carrier.

/** Formats a report as JUnit XML. */
export function junitOf(report: Report): string {
  const groups = Map.groupBy(report.results, ({ revision, carrier }) => `${revision} over ${carrier}`)
  const suites = [...groups].map(([name, results]) => suite(`${report.server_name} ${name}`, results))
  const { passed, failed, skipped, error } = report.summary
  const tests = passed + failed + skipped + error
  const counts = `tests="${tests}" failures="${failed}" errors="${error}" skipped="${skipped}"`
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="${text(report.server_name)}" ${counts}>\n${suites.join('')}</testsuites>\n`
}

function suite(name: string, results: readonly Result[]): string {
  const count = (status: Result['status']): number => results.filter(result => result.status === status).length
  const counts = `tests="${results.length}" failures="${count('failed')}" errors="${count('error')}" skipped="${count('skipped')}"`
  return `  <testsuite name="${text(name)}" ${counts}>\n${results.map(testcase).join('')}  </testsuite>\n`
}

function testcase(result: Result): string {
  const { test_id, title, revision, carrier, duration_ms } = result
  const place = `classname="${text(`${revision}.${carrier}.${test_id}`)}" name="${text(title)}" time="${duration_ms / 1000}"`
  const inside = outcome(result)
  return inside === '' ? `    <testcase ${place}/>\n` : `    <testcase ${place}>\n${inside}    </testcase>\n`
}

function outcome({ status, message, proves, frames, revision }: Result): string {
  if (status === 'passed') return ''
  if (status === 'skipped') return `      <skipped message="${text(message)}"/>\n`
  const lines = frames.map(frame => `${frame.way === 'out' ? '→' : '←'} ${frame.text}`)
  const kind = status === 'failed' ? 'failure' : 'error'
  const addresses = proves.flatMap(statement => addressOf(statement, revision) ?? [])
  const said = [`Statements: ${proves.join(', ')}`, ...addresses, ...lines].map(text).join('\n')
  return `      <${kind} message="${text(message)}">${said}</${kind}>\n`
}

/** XML has no way to write most control characters, so that they are left out. */
function text(value: string): string {
  return value
    .replace(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      '',
    )
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

// ── Where a statement stands, for those who want to read it: an address for each kind of clause that has a public one.

const rpc: Readonly<Record<string, string>> = {
  '4': 'request_object',
  '4.1': 'notification',
  '5': 'response_object',
  '5.1': 'error_object',
  '6': 'batch',
}

/** Undefined where there is none. A clause that names no revision is meant of the one it was broken at. */
export function addressOf(statement: string, revision: RevisionId): string | undefined {
  const [, named, page] = /^MCP (?:(\d{4}-\d\d-\d\d) )?(\S+)$/.exec(statement) ?? []
  if (page !== undefined) return `https://modelcontextprotocol.io/specification/${named ?? published(revision)}/${page}`
  const [, rfc, section] = /^RFC (\d+)(?: §([\d.]+))?$/.exec(statement) ?? []
  if (rfc !== undefined) return `https://www.rfc-editor.org/rfc/rfc${rfc}${section === undefined ? '' : `#section-${section}`}`
  const [, part] = /^JSON-RPC ([\d.]+)$/.exec(statement) ?? []
  return part === undefined ? undefined : `https://www.jsonrpc.org/specification${rpc[part] === undefined ? '' : `#${rpc[part]}`}`
}

/** What is no release is read at the release that it became, or came of. */
function published(revision: RevisionId): string {
  if (revision === 'draft-2026-v1') return '2026-07-28'
  return revision === 's3' ? '2025-06-18' : revision
}
