/** Which frames fit a filter line: `server:shop method:tools/* status:error ms:>500 some words`. */
import type { FrameRow } from '#contract'
import { type Filter, parseFilter } from '../../parts/filter.ts'
import type { Range } from '../../pictures/axis/axis.tsx'

/** The fields of the line. */
export const frameFields = ['server', 'connection', 'method', 'id', 'way', 'kind', 'status', 'ms', 'code', 'http', 'n'] as const

/** A filter line that was read. */
export interface FrameFilter extends Filter {
  /** Whether a row fits by its fields. */
  fits(row: FrameRow): boolean
}

const figures = new Set(['ms', 'code', 'http', 'n'])

/** Reads a line. */
export function readFrameFilter(line: string): FrameFilter {
  const filter = parseFilter(line, frameFields)
  const tests = [...filter.fields].map(([name, value]) => testOf(name as (typeof frameFields)[number], value))
  return { ...filter, fits: row => tests.every(test => test(row)) }
}

function testOf(name: (typeof frameFields)[number], value: string): (row: FrameRow) => boolean {
  if (figures.has(name)) {
    const test = figureTest(value)
    return row => test(row[name] as number | undefined)
  }
  const wanted = value.toLowerCase()
  if (!wanted.endsWith('*')) return row => String(row[name] ?? '').toLowerCase() === wanted
  const begin = wanted.slice(0, -1)
  return row =>
    String(row[name] ?? '')
      .toLowerCase()
      .startsWith(begin)
}

/** `>500`, `<5`, `500`. What is no number fits nothing. */
function figureTest(text: string): (figure: number | undefined) => boolean {
  const [, sign = '', digits] = /^([<>]?)=?(-?\d+(?:\.\d+)?)$/.exec(text) ?? []
  if (digits === undefined) return () => false
  const limit = Number(digits)
  return figure => figure !== undefined && (sign === '>' ? figure > limit : sign === '<' ? figure < limit : figure === limit)
}

/** Whether a row is in a stretch of time, or lasted into it. */
export function isWithin({ at, ms = 0, kind }: FrameRow, { from, to }: Range): boolean {
  return at <= to && at + (kind === 'request' ? ms : 0) >= from
}

/** Whether what is known of a row holds a text. */
export function holds({ about = '', method = '', server }: FrameRow, text: string): boolean {
  const wanted = text.toLowerCase()
  return [about, method, server].some(each => each.toLowerCase().includes(wanted))
}

/** A stretch of time in an address: `1763600000000..1763600001400`. */
export function readRange(text: string | undefined): Range | undefined {
  const [, from, to] = /^(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)$/.exec(text ?? '') ?? []
  return from === undefined || to === undefined ? undefined : { from: Number(from), to: Number(to) }
}

/** Whole milliseconds, outwards, so that nothing of what was chosen is lost. */
export function writeRange({ from, to }: Range): string {
  return `${Math.floor(from)}..${Math.ceil(to)}`
}
