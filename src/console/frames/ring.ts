/** The last frames, up to a number and a size; older ones are forgotten. What is in here holds no secrets any more. */
import type { FrameDetail, FrameQuery, FrameRow, HttpHead } from '../contract/frames.ts'

const mostFrames = 10_000
const mostChars = 32 * 1024 * 1024
/** What is stored of one frame. */
const mostOfFrame = 262_144

/** A frame as it is stored. */
export interface StoredFrame {
  row: FrameRow
  readonly text?: string
  /** How many characters it had, where only its beginning is stored. */
  readonly cut?: number
  /** How many values were taken out. */
  readonly taken: number
  /** What HTTP said beside it. Of an answer it is known only after the frame. */
  head?: HttpHead
  /** The call of the playground that it belongs to. */
  readonly call?: string
}

/** A frame before it has a number. */
export interface NewFrame extends Omit<StoredFrame, 'row' | 'cut'> {
  readonly row: Omit<FrameRow, 'n'>
}

/** Keeps frames, and finds them again. */
export class FrameRing {
  #frames: StoredFrame[] = []
  #chars = 0
  #count = 0
  readonly #most: number
  readonly #followers = new Set<(frame: StoredFrame, whole: string | undefined) => void>()

  constructor(most = mostFrames) {
    this.#most = most
  }

  /** Adds a frame; what is too long is cut after its followers have seen it. */
  add({ row, text, ...more }: NewFrame): StoredFrame {
    const stored =
      text === undefined ? {} : text.length > mostOfFrame ? { text: text.slice(0, mostOfFrame), cut: text.length } : { text }
    const frame: StoredFrame = { ...more, ...stored, row: { n: ++this.#count, ...row } }
    this.#frames.push(frame)
    this.#chars += sizeOf(frame)
    // In bulk, because shifting one by one costs as much as the ring is long.
    if (this.#frames.length > this.#most * 1.1 || this.#chars > mostChars) this.#trim()
    for (const follower of this.#followers) follower(frame, text)
    return frame
  }

  /** One frame; undefined where it is no longer there. */
  get(n: number): StoredFrame | undefined {
    const first = this.#frames[0]?.row.n ?? 1
    return this.#frames[n - first]
  }

  /** All that are there, oldest first. */
  all(): readonly StoredFrame[] {
    return this.#frames
  }

  /** Frames that match, newest first, before a number. `whole`: also bodies are searched. */
  find(query: FrameQuery, whole: boolean, before: number, limit: number): readonly FrameRow[] {
    const matches = matcherOf(query, whole)
    const found: FrameRow[] = []
    for (let i = this.#frames.length - 1; i >= 0 && found.length < limit; i--) {
      const frame = this.#frames[i] as StoredFrame
      if (frame.row.n < before && matches(frame)) found.push(whole ? frame.row : reducedRow(frame.row))
    }
    return found
  }

  /** Calls back with each new frame, and its text before it is cut; returns the way to stop. */
  follow(follower: (frame: StoredFrame, whole: string | undefined) => void): () => void {
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  #trim(): void {
    let from = Math.max(0, this.#frames.length - this.#most)
    let chars = this.#frames.slice(from).reduce((sum, frame) => sum + sizeOf(frame), 0)
    while (chars > mostChars * 0.9) chars -= sizeOf(this.#frames[from++] as StoredFrame)
    this.#frames = this.#frames.slice(from)
    this.#chars = chars
  }
}

/** The row for those who may not see payloads. */
export function reducedRow({ about: _, ...row }: FrameRow): FrameRow {
  return row
}

/** The frame as the API gives it. */
export function detailOf({ row, text, cut, taken, head }: StoredFrame, whole: boolean): FrameDetail {
  if (!whole) return { row: reducedRow(row), ...(head !== undefined && { head }) }
  return {
    row,
    ...(text !== undefined && { text }),
    ...(cut !== undefined && { cut }),
    ...(taken > 0 && { redacted: taken }),
    ...(head !== undefined && { head }),
  }
}

function sizeOf({ text = '', row }: StoredFrame): number {
  return text.length + (row.about?.length ?? 0) + 200
}

function matcherOf(query: FrameQuery, whole: boolean): (frame: StoredFrame) => boolean {
  const { server, connection, method, id, way, kind, status, ms, since, until, call } = query
  const wanted = query.text?.toLowerCase()
  const begins = method?.endsWith('*') === true ? method.slice(0, -1) : undefined
  return ({ row, text, call: own }) => {
    if (server !== undefined && row.server !== server) return false
    if (connection !== undefined && row.connection !== connection) return false
    if (begins !== undefined ? row.method?.startsWith(begins) !== true : method !== undefined && row.method !== method)
      return false
    if (id !== undefined && String(row.id) !== id) return false
    if (way !== undefined && row.way !== way) return false
    if (kind !== undefined && row.kind !== kind) return false
    if (status !== undefined && row.status !== status) return false
    if (ms !== undefined && (row.ms ?? -1) < ms) return false
    if (since !== undefined && row.at < since) return false
    if (until !== undefined && row.at >= until) return false
    if (call !== undefined && own !== call) return false
    if (wanted === undefined) return true
    const words = `${row.method ?? ''} ${row.kind} ${row.server} ${row.connection}`.toLowerCase()
    return words.includes(wanted) || (whole && `${row.about ?? ''} ${text ?? ''}`.toLowerCase().includes(wanted))
  }
}
