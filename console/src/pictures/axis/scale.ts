/** The line of time with idle stretches folded: waits between bursts of work take a fixed small piece, with their length written on it. */

/** Something that took time, or happened at a moment. */
export interface Extent {
  readonly from: number
  readonly to: number
}

/** An idle stretch that was folded. `start` and `end` are places on the line. */
export interface Fold extends Extent {
  readonly start: number
  readonly end: number
}

/** Places on the line are milliseconds in which something happened, counted from the beginning. */
export interface TimeLine {
  readonly length: number
  readonly folds: readonly Fold[]
  /** The place of a time. */
  placeOf(at: number): number
  /** The time at a place. */
  timeAt(place: number): number
}

/** A wait is folded when it is this many times longer than the mean burst. */
const idleTimes = 5
/** Shorter waits are never folded. */
const leastIdle = 50
/** A moment has a length too, or a line of moments would have none. */
const momentMs = 1

/** The line on which all extents lie. */
export function foldIdle(extents: readonly Extent[]): TimeLine {
  const bursts = burstsOf(extents)
  const first = bursts[0]?.from ?? 0
  const work = bursts.reduce((sum, { from, to }) => sum + Math.max(momentMs, to - from), 0)
  const mean = work / Math.max(1, bursts.length)
  const folds: Fold[] = []
  let folded = 0
  for (const [index, { from }] of bursts.entries()) {
    const before = bursts[index - 1]?.to ?? from
    if (from - before <= Math.max(leastIdle, mean * idleTimes)) continue
    const start = before - first - folded
    folds.push({ from: before, to: from, start, end: start + mean })
    folded += from - before - mean
  }
  const last = bursts.at(-1)?.to ?? first
  return {
    length: Math.max(momentMs, last - first - folded),
    folds,
    placeOf(at) {
      const fold = lastBefore(folds, at, ({ from }) => from)
      if (fold === undefined) return at - first
      if (at >= fold.to) return fold.end + at - fold.to
      return fold.start + ((at - fold.from) / (fold.to - fold.from)) * (fold.end - fold.start)
    },
    timeAt(place) {
      const fold = lastBefore(folds, place, ({ start }) => start)
      if (fold === undefined) return first + place
      if (place >= fold.end) return fold.to + place - fold.end
      return fold.from + ((place - fold.start) / (fold.end - fold.start)) * (fold.to - fold.from)
    },
  }
}

/** Stretches in which something happens all the while. */
function burstsOf(extents: readonly Extent[]): readonly Extent[] {
  const bursts: { from: number; to: number }[] = []
  for (const { from, to } of [...extents].sort((a, b) => a.from - b.from)) {
    const last = bursts.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else bursts.push({ from, to: Math.max(from, to) })
  }
  return bursts
}

/** The last fold that begins at or before a value. */
function lastBefore(folds: readonly Fold[], value: number, begin: (fold: Fold) => number): Fold | undefined {
  let [low, high] = [0, folds.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (begin(folds[middle] as Fold) <= value) low = middle + 1
    else high = middle
  }
  return folds[low - 1]
}

/** What of the line is in sight: from one place to another. */
export interface Sight {
  readonly from: number
  readonly to: number
}

/** The shortest stretch that can fill the picture. */
const shortestSight = 0.1

/** The sight zoomed about a place, within the line. A `factor` below 1 comes closer. */
export function zoomed({ from, to }: Sight, factor: number, about: number, length: number): Sight {
  const span = Math.min(length, Math.max(shortestSight, (to - from) * factor))
  const start = about - ((about - from) / (to - from)) * span
  return within({ from: start, to: start + span }, length)
}

/** The sight moved by a part of its width. */
export function moved({ from, to }: Sight, part: number, length: number): Sight {
  const by = (to - from) * part
  return within({ from: from + by, to: to + by }, length)
}

function within({ from, to }: Sight, length: number): Sight {
  const start = Math.max(0, Math.min(from, length - (to - from)))
  return { from: start, to: Math.min(length, start + (to - from)) }
}

/** Times for marks in sight, at least `least` places apart, at round steps of the clock. Folds have none. */
export function ticksOf(line: TimeLine, { from, to }: Sight, least: number): readonly number[] {
  const power = 10 ** Math.floor(Math.log10(least))
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= least) ?? least
  const ticks: number[] = []
  let last = Number.NEGATIVE_INFINITY
  let at = Math.ceil(line.timeAt(from) / step) * step
  for (let place = line.placeOf(at); place <= to; place = line.placeOf(at)) {
    const fold = line.folds.find(each => at > each.from && at < each.to)
    if (fold !== undefined) {
      at = Math.ceil(fold.to / step) * step
      continue
    }
    if (place - last >= least * 0.9) {
      ticks.push(at)
      last = place
    }
    at += step
  }
  return ticks
}
