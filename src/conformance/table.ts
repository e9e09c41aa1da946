/** The report for people: one line per revision and carrier, then every failure with its statement and its frames. */
import { clip } from '../jsonrpc/limits.ts'
import { type Report, type Result, summaryOf } from './report.ts'

export interface TableOptions {
  /** Also what was skipped, and why. Default false. */
  readonly skipped?: boolean
  /** Characters of a frame. Default 200. */
  readonly width?: number
}

export function tableOf(report: Report, options: TableOptions = {}): string {
  const { results, summary } = report
  const lines = [`${clip(report.server_name)} ${clip(report.server_version)}`, '', ...cells(results, options)]
  for (const group of alike(results.filter(({ status }) => status === 'failed' || status === 'error')))
    lines.push('', ...explained(group, options))
  for (const group of alike(results.filter(({ status, message }) => status === 'passed' && message !== '')))
    lines.push('', ...remarked(group))
  if (options.skipped === true) lines.push('', ...reasons(results))
  const { passed, failed, skipped, error } = summary
  lines.push('', `${passed} passed, ${failed} failed, ${skipped} skipped, ${error} errors of the kit`)
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

function explained(group: readonly Result[], { width = 200 }: TableOptions): string[] {
  const [result] = group
  if (result === undefined) return []
  const arrows = { out: '→', in: '←' }
  return [
    `${result.status === 'failed' ? 'FAILED' : 'ERROR '}  ${result.test_id}`,
    `        ${cellsIn(group)}`,
    `        ${result.title}`,
    `        ${clip(result.message, 300)}`,
    `        Statement: ${result.proves.join(', ')}`,
    ...result.frames.map(
      ({ way, text, status }) => `        ${arrows[way]} ${status === undefined ? '' : `[${status}] `}${clip(text, width)}`,
    ),
  ]
}

function remarked(group: readonly Result[]): string[] {
  const [result] = group
  if (result === undefined) return []
  return [`remark  ${result.test_id}`, `        ${cellsIn(group)}`, `        ${clip(result.message, 200)}`]
}

/** Many are skipped for one reason: it is said once. */
function reasons(results: readonly Result[]): string[] {
  const skipped = results.filter(({ status }) => status === 'skipped')
  const groups = Map.groupBy(skipped, ({ message }) => message)
  return [...groups].map(([why, group]) => `skipped ${String(group.length).padStart(4)}  ${clip(why, 160)}`)
}
