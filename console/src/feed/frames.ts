/**
 * The frames that passed, outside of React: news are appended, and what was missed is read from the list. The newest are kept; what is older
 * the process may still have, and a tape has for good.
 */
import { useSyncExternalStore } from 'react'
import type { ConsoleProblem, FrameRow } from '#contract'
import { asProblem, request } from '../api/client.ts'

/** What is known of the frames. A new object at each change. */
export interface FrameState {
  /** Oldest first, without gaps but where frames were dropped. */
  readonly rows: readonly FrameRow[]
  readonly loaded: boolean
  readonly problem: ConsoleProblem | undefined
}

const mostRows = 20_000
const pageSize = 1000

let state: FrameState = { rows: [], loaded: false, problem: undefined }
let reading: Promise<void> | undefined
const watchers = new Set<() => void>()

function become(next: Partial<FrameState>): void {
  state = { ...state, ...next }
  for (const changed of watchers) changed()
}

/** Appends rows of the stream. Where some were skipped, they are read. */
export function takeFrames(rows: readonly FrameRow[], skipped: number): void {
  // Nobody has asked for frames yet.
  if (!state.loaded && reading === undefined) return
  become({ rows: joined(state.rows, rows) })
  if (skipped > 0) void readFrames()
}

/** Reads what is missing: back to the first frame that is known, or all. */
export function readFrames(): Promise<void> {
  reading ??= read().finally(() => (reading = undefined))
  return reading
}

/** Forgets everything: the process was started again. */
export function forgetFrames(): void {
  if (state.loaded) become({ rows: [], loaded: false })
}

async function read(): Promise<void> {
  const known = state.rows.at(-1)?.n ?? 0
  const found: FrameRow[] = []
  try {
    for (let after: string | undefined; found.length < mostRows; ) {
      const page = await request('GET /frames', { query: { limit: pageSize, ...(after !== undefined && { after }) } })
      found.push(...page.items)
      after = page.next
      if (after === undefined || (found.at(-1)?.n ?? 0) <= known) break
    }
    become({ rows: joined(state.rows, found.reverse()), loaded: true, problem: undefined })
  } catch (error) {
    become({ problem: asProblem(error) })
  }
}

/**
 * Known and new rows in one order. A row that is there twice is taken as it came last, and a request learns how it was answered: the stream
 * tells a frame when it passes, and nobody knew that then.
 */
export function joined(known: readonly FrameRow[], more: readonly FrameRow[]): readonly FrameRow[] {
  const first = more[0]
  if (first === undefined) return known
  const overlap = placeOf(known, first.n)
  const rows = overlap === known.length ? known.concat(more) : merged(known, overlap, more)
  const answered = new Map<number, FrameRow>()
  for (const row of more) if (row.of !== undefined && (row.kind === 'result' || row.kind === 'error')) answered.set(row.of, row)
  if (answered.size === 0) return rows.slice(-mostRows)
  const linked = rows.slice()
  for (const [request, { n, ms, status, code }] of answered) {
    const at = placeOf(linked, request)
    const row = linked[at]
    if (row?.n !== request) continue
    linked[at] = {
      ...row,
      answer: n,
      ...(ms !== undefined && { ms }),
      ...(status && { status }),
      ...(code !== undefined && { code }),
    }
  }
  return linked.slice(-mostRows)
}

function merged(known: readonly FrameRow[], overlap: number, more: readonly FrameRow[]): readonly FrameRow[] {
  const later = new Map(known.slice(overlap).map(row => [row.n, row]))
  for (const row of more) later.set(row.n, row)
  return known.slice(0, overlap).concat([...later.values()].sort((a, b) => a.n - b.n))
}

/** The place of the first row with this number or a higher one. */
export function placeOf(rows: readonly FrameRow[], n: number): number {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle]?.n ?? 0) < n) low = middle + 1
    else high = middle
  }
  return low
}

/** The frames; the component is drawn again when there are more. */
export function useFrames(): FrameState {
  return useSyncExternalStore(subscribe, () => state)
}

function subscribe(changed: () => void): () => void {
  watchers.add(changed)
  return () => watchers.delete(changed)
}
