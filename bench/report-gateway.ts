/** The tables of the gateway and of its console, with what is wanted of them. */
import { type ConsoleRow, figures, type GatewayRow } from './results.ts'
import { missing, type Table } from './table.ts'

export function gatewayTable(rows: readonly GatewayRow[]): Table {
  const lines = rows.map(({ what, cells: { gateway } }) => {
    const found = figures(gateway)
    if (found === undefined) return [what, missing(gateway) ?? '–', '', '']
    if ('ratio' in found) {
      const { micros, direct, ratio } = found
      const shown = `${micros.toFixed(1)} µs, ${direct.toFixed(1)} directly: ${ratio.toFixed(2)} times`
      return [what, shown, '≤ 2.5 times', met(ratio <= 2.5)]
    }
    if ('rssMb' in found) return [what, `${found.rssMb.toFixed(0)} MiB`, '≤ 150 MiB', met(found.rssMb <= 150)]
    const { otherFailed, told, backMs } = found
    const shown = `${otherFailed} calls of the other failed, ${told} of its own told so, back after ${backMs.toFixed(0)} ms`
    return [what, shown, '0 failed, ≤ 5 s', met(otherFailed === 0 && backMs <= 5_000)]
  })
  return lines.length === 0 ? [] : [['', 'measured', 'wanted', 'met'], ...lines]
}

export function consoleTable(rows: readonly ConsoleRow[]): Table {
  const lines = rows.map(({ what, unit, most, cells: { console: cell } }) => {
    const found = figures(cell)
    if (found === undefined) return [what, missing(cell) ?? '–', '', '']
    const digits = most < 10 ? 2 : 0
    return [what, `${found.value.toFixed(digits)} ${unit}`, `≤ ${most} ${unit}`, met(found.value <= most)]
  })
  return lines.length === 0 ? [] : [['', 'measured', 'wanted', 'met'], ...lines]
}

function met(yes: boolean): string {
  return yes ? 'yes' : 'no'
}
