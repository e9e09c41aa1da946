/** Where a point in time lies in a waterfall. Long stretches in which nothing worked are folded, so that bursts keep their shape. */

/** A step of the work, with its beginning and end. */
export interface Step {
  readonly id: string
  readonly from: number
  readonly to: number
  /** It waited for somebody, so it is no work that keeps its length. */
  readonly waits?: boolean
  /** Stretches within it in which it waited for somebody. */
  readonly pauses?: readonly Stretch[]
}

interface Stretch {
  readonly from: number
  readonly to: number
}

/** A part of the axis. Positions are shares of its width, from 0 to 1. */
export interface Segment {
  readonly from: number
  readonly to: number
  readonly left: number
  readonly width: number
  readonly folded: boolean
}

export interface Scale {
  readonly segments: readonly Segment[]
  readonly position: (at: number) => number
}

/** Idle time is folded once it is this many times as long as all the work. */
const idleShare = 5
/** The width of a fold. */
const foldWidth = 0.14

/** The scale of these steps, from the first beginning to the last end. */
export function scaleOf(steps: readonly Step[]): Scale {
  const from = Math.min(...steps.map(step => step.from))
  const to = Math.max(from + 1, ...steps.map(step => step.to))
  const busy = union(steps.flatMap(workOf))
  const work = busy.reduce((sum, each) => sum + each.to - each.from, 0)
  const idle = between(busy, from, to).filter(gap => work > 0 && gap.to - gap.from > work * idleShare)
  const folds = idle.length * foldWidth > 0.5 ? [] : idle
  const open = Math.max(1, to - from - folds.reduce((sum, gap) => sum + gap.to - gap.from, 0))
  const share = (1 - folds.length * foldWidth) / open
  const segments: Segment[] = []
  let left = 0
  const add = (begin: number, end: number, folded: boolean) => {
    if (end <= begin) return
    const width = folded ? foldWidth : (end - begin) * share
    segments.push({ from: begin, to: end, left, width, folded })
    left += width
  }
  let at = from
  for (const gap of folds) {
    add(at, gap.from, false)
    add(gap.from, gap.to, true)
    at = gap.to
  }
  add(at, to, false)
  return { segments, position: time => positionIn(segments, time) }
}

function positionIn(segments: readonly Segment[], time: number): number {
  const segment = segments.find(each => time <= each.to) ?? segments.at(-1)
  if (segment === undefined) return 0
  const share = Math.min(1, Math.max(0, (time - segment.from) / (segment.to - segment.from)))
  return segment.left + share * segment.width
}

/** A step without the stretches in which it waited. */
function workOf({ from, to, waits, pauses = [] }: Step): readonly Stretch[] {
  if (waits) return []
  return between(union(pauses), from, to).filter(each => each.to >= each.from)
}

/** Stretches in which at least one step worked, in order. */
function union(steps: readonly Stretch[]): readonly Stretch[] {
  const merged: { from: number; to: number }[] = []
  for (const { from, to } of steps.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else merged.push({ from, to })
  }
  return merged
}

/** What is left of a stretch without others, which are in order and apart. */
function between(busy: readonly Stretch[], from: number, to: number): readonly Stretch[] {
  const edges = [from, ...busy.flatMap(each => [each.from, each.to]), to]
  return edges.flatMap((edge, index) => (index % 2 === 0 ? [{ from: edge, to: edges[index + 1] ?? to }] : []))
}

/** Times with a line and a label: about `most`, at round distances from the beginning, never in a fold. */
export function ticksOf({ segments }: Scale, most: number): readonly number[] {
  const start = segments[0]?.from ?? 0
  const open = segments.filter(({ folded }) => !folded)
  const length = open.reduce((sum, each) => sum + each.to - each.from, 0)
  const step = roundUp(length / most)
  return open.flatMap(({ from, to }) => {
    const first = Math.ceil((from - start) / step)
    const count = Math.floor((to - start) / step) - first + 1
    return Array.from({ length: Math.max(0, count) }, (_, index) => start + (first + index) * step)
  })
}

const [second, minute, hour] = [1000, 60_000, 3_600_000]
/** From half a minute on people count in minutes. */
const longSteps = [1, 2, 5, 10, 30, 60, 120, 300, 720, 1440].map(minutes => minutes * minute)

/** The next of 1, 2, 5, 10, 20, …; of longer ones the next of a clock. */
function roundUp(length: number): number {
  if (length > minute / 2) return longSteps.find(each => each >= length) ?? Math.ceil(length / (24 * hour)) * 24 * hour
  const power = 10 ** Math.floor(Math.log10(Math.max(0.1, length)))
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= length) ?? 10 * power
}

/** The label of a tick, exact where `durationText` rounds: `0`, `50 ms`, `1.5 s`, `2:30`, `1:00:00`. */
export function tickText(ms: number): string {
  if (ms === 0) return '0'
  if (ms < second) return `${Number(ms.toPrecision(3))} ms`
  if (ms < minute) return `${Number((ms / second).toPrecision(3))} s`
  const part = (value: number) => String(Math.floor(value) % 60).padStart(2, '0')
  if (ms < hour) return `${Math.floor(ms / minute)}:${part(ms / second)}`
  return `${Math.floor(ms / hour)}:${part(ms / minute)}:${part(ms / second)}`
}

/**
 * The steps that decided when the work ended: from the last end back, each time the step that ended last before the one that followed
 * began. Making any other step faster would not have changed the end.
 */
export function criticalPath(steps: readonly Step[]): ReadonlySet<string> {
  const byEnd = steps.toSorted((a, b) => b.to - a.to)
  const path = new Set<string>()
  for (let next = byEnd[0]; next !== undefined; ) {
    const { id, from }: Step = next
    path.add(id)
    next = byEnd.find(each => each.to <= from + tolerance && !path.has(each.id))
  }
  return path
}

/** Clocks of milliseconds let a step begin a little before the one that it follows has ended. */
const tolerance = 1
