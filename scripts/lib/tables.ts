/** Markdown as the formatter of this repository leaves it: anchors of headings, and tables with columns of one width each. */

/** The anchor that GitHub gives a heading. */
export function anchorOf(title: string): string {
  return title
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** A table; the first row is its head. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const safe = rows.map(row => row.map(cell => cell.replaceAll('|', '\\|')))
  const [head = [], ...body] = safe
  const widths = head.map((_, at) => Math.max(3, ...safe.map(row => [...(row[at] ?? '')].length)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - [...cell].length)).join(' | ')} |`
  return [line(head), line(widths.map(width => '-'.repeat(width))), ...body.map(line)].join('\n')
}
