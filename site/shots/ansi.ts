/** What a terminal shows of what a program wrote: colours, carriage returns and erased lines, as lines of HTML. */
import { html, type Markup } from '../html.ts'

interface Cell {
  readonly char: string
  readonly style: string
}

const STYLES: Readonly<Record<number, string>> = {
  ...{ 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline' },
  ...{ 31: 'red', 32: 'green', 33: 'yellow', 34: 'blue', 35: 'magenta', 36: 'cyan', 90: 'dim' },
}
/** What ends a style. */
const ENDS: Readonly<Record<number, readonly string[]>> = {
  ...{ 22: ['bold', 'dim'], 23: ['italic'], 24: ['underline'], 39: ['red', 'green', 'yellow', 'blue', 'magenta', 'cyan'] },
}

/** One line of HTML for each line on the screen. Other control sequences are left out. */
export function screenOf(written: string): readonly Markup[] {
  const lines: Cell[][] = [[]]
  const styles = new Set<string>()
  let column = 0
  for (const [piece, parameters, command] of written.matchAll(/\x1b\[([\d;?]*)([A-Za-z])|[^\x1b]|\x1b/gu)) {
    const line = lines.at(-1) ?? []
    if (command === 'm') restyle(styles, (parameters || '0').split(';').map(Number))
    else if (command === 'K') line.length = column
    else if (piece === '\n') {
      lines.push([])
      column = 0
    } else if (piece === '\r') column = 0
    else if (command === undefined && piece >= ' ') line[column++] = { char: piece, style: [...styles].sort().join(' ') }
  }
  return lines.map(drawLine)
}

function restyle(styles: Set<string>, codes: readonly number[]): void {
  for (const code of codes) {
    if (code === 0) styles.clear()
    for (const style of ENDS[code] ?? []) styles.delete(style)
    if (STYLES[code] !== undefined) styles.add(STYLES[code])
  }
}

/** Neighbours of one style share an element. */
function drawLine(cells: readonly Cell[]): Markup {
  const runs: { style: string; text: string }[] = []
  for (const { char, style } of [...cells].map(cell => cell ?? { char: ' ', style: '' })) {
    const last = runs.at(-1)
    if (last?.style === style) last.text += char
    else runs.push({ style, text: char })
  }
  return html`${runs.map(({ style, text }) => (style === '' ? text : html`<span class="${style}">${text}</span>`))}`
}
