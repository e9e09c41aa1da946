/** Cells, lined up for reading. */
import type { Cell } from './results.ts'

export type Table = string[][]

export function missing(cell: Cell<object> | undefined): string | undefined {
  if (cell === undefined) return '–'
  return 'failed' in cell ? 'failed' : undefined
}

export const times = (ratio: number): string => (Number.isNaN(ratio) ? '–' : ratio.toFixed(2))

export function render(table: Table): string {
  const widths = (table[0] ?? []).map((_, column) => Math.max(...table.map(row => row[column]?.length ?? 0)))
  const line = (row: string[]): string =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')
  return table.map(row => `  ${line(row)}`.trimEnd()).join('\n')
}
