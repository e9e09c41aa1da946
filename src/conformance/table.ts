/** The report for people: one line per revision and carrier, then every failure with its clause, its frames and how to see it alone. */
import { clip } from '../jsonrpc/limits.ts'
import { addressOf } from './clauses.ts'
import { type Report, type Result, summaryOf } from './report.ts'

export interface TableOptions {
  /** Also what was skipped, and why. Default false. */
  readonly skipped?: boolean
  /** Characters of a frame. Default 200. */
  readonly width?: number
  /** The command that judges again with these options; absent: the options alone are said. */
  readonly again?: (options: string) => string
}

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
  lines.push('', ...shut(results), `${passed} passed, ${failed} failed, ${skipped} skipped, ${error} errors of the kit`)
  if (skipped > 0 && options.skipped !== true) lines.push('What was skipped, and why: --skipped')
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
  return [`${'revision'.padEnd(14)}${'carrier'.padEnd(11)}  passed  failed skipped   error`, ...rows]
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
    ...(result.status === 'failed' ? [`        Must:  ${result.title}`, `        But:   ${clip(result.message, 300)}`] : []),
    ...(result.status === 'error' ? [`        Tried: ${result.title}`, `        Kit:   ${clip(result.message, 300)}`] : []),
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
    return `        ${at === 0 ? 'Says:' : '     '}  ${statement}${address === undefined ? '' : `  ${address}`}`
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
    'SHUT    Only what a stranger sees was judged',
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
