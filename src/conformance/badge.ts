/** A badge for a README, in the JSON that badge services read from a URL. */
import { conforms, guardedIn, type Report } from './report.ts'

export interface Badge {
  readonly schemaVersion: 1
  readonly label: string
  readonly message: string
  readonly color: string
  readonly isError: boolean
}

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
