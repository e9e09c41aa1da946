/** Draws the rows in sight on the canvas: marks of time, folds, bars. Shapes say what colours say: failed bars are notched, open ones have no end. */
import { durationText } from '../../parts/time.tsx'
import type { PlacedBar } from './lanes.ts'
import { type Sight, type TimeLine, ticksOf } from './scale.ts'

export const rowHeight = 18
export const rulerHeight = 22

export interface Scene {
  readonly line: TimeLine
  readonly sight: Sight
  readonly rows: readonly (readonly PlacedBar[])[]
  /** First rows of lanes, which are divided by a line. */
  readonly firsts: ReadonlySet<number>
  readonly width: number
  readonly height: number
  readonly scrolled: number
  readonly brush: { readonly from: number; readonly to: number } | undefined
}

/** The distance in pixels of a time from the left edge. */
export function pixelOf({ line, sight, width }: Pick<Scene, 'line' | 'sight' | 'width'>, at: number): number {
  return ((line.placeOf(at) - sight.from) / (sight.to - sight.from)) * width
}

const tickApart = 90

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const style = getComputedStyle(context.canvas)
  const colour = (name: string) => style.getPropertyValue(name)
  const { line, sight, width, height, scrolled, brush } = scene
  const x = (at: number) => pixelOf(scene, at)
  context.clearRect(0, 0, width, height)
  context.font = `11px ${style.fontFamily}`
  if (brush !== undefined) {
    context.fillStyle = colour('--accent-soft')
    context.fillRect(x(brush.from), 0, Math.max(2, x(brush.to) - x(brush.from)), height)
  }
  for (const fold of line.folds) {
    if (fold.end < sight.from || fold.start > sight.to) continue
    paintFold(context, x(fold.from), x(fold.to), height, durationText(fold.to - fold.from), colour)
  }
  for (const at of ticksOf(line, sight, ((sight.to - sight.from) / width) * tickApart)) {
    context.fillStyle = colour('--line')
    context.fillRect(Math.round(x(at)), 0, 1, height)
    context.fillStyle = colour('--muted')
    context.fillText(tickText(at, (sight.to - sight.from) / width), x(at) + 4, rulerHeight - 7)
  }
  const first = Math.max(0, Math.floor(scrolled / rowHeight))
  const last = Math.min(scene.rows.length, Math.ceil((scrolled + height) / rowHeight))
  context.save()
  context.beginPath()
  context.rect(0, rulerHeight, width, height)
  context.clip()
  for (let row = first; row < last; row++) {
    const top = rulerHeight + row * rowHeight - scrolled
    if (scene.firsts.has(row)) {
      context.fillStyle = colour('--line')
      context.fillRect(0, top, width, 1)
    }
    paintRow(context, scene.rows[row] ?? [], scene, top + 3, colour)
  }
  context.restore()
}

type Colour = (name: string) => string

function paintRow(context: CanvasRenderingContext2D, row: readonly PlacedBar[], scene: Scene, top: number, colour: Colour): void {
  let drawn = Number.NEGATIVE_INFINITY
  for (const { bar, from, to } of row) {
    const left = pixelOf(scene, from)
    const right = Math.max(left + 2, pixelOf(scene, to))
    // What would lie on the same pixels is not seen.
    if (right < 0 || left > scene.width || (right <= drawn && bar.tone !== 'bad')) continue
    drawn = right
    context.fillStyle = colour(bar.tone === 'bad' ? '--bar-bad' : bar.tone === 'quiet' ? '--line-strong' : '--bar')
    paintBar(context, bar.from === bar.to, bar.to === undefined, bar.tone === 'bad', left, right, top)
    const room = right - left
    if (room < 40) continue
    context.save()
    context.beginPath()
    context.rect(left, top, room - 4, rowHeight)
    context.clip()
    context.fillStyle = colour('--on-bar')
    context.fillText(bar.name, Math.max(left, 0) + 4, top + 10)
    context.restore()
  }
}

const thick = rowHeight - 5

function paintBar(
  context: CanvasRenderingContext2D,
  moment: boolean,
  open: boolean,
  bad: boolean,
  left: number,
  right: number,
  top: number,
): void {
  const path = new Path2D()
  const middle = top + thick / 2
  if (moment) {
    for (const [dx, dy] of [
      [-4, 0],
      [0, -5],
      [4, 0],
      [0, 5],
    ] as const)
      path.lineTo(left + dx, middle + dy)
  } else if (open) {
    path.rect(left, top, Math.max(1, right - left - 6), thick)
    for (const dx of [5, 2]) path.rect(right - dx, top, 1.5, thick)
  } else path.roundRect(left, top, right - left, thick, 2)
  context.fill(path)
  // A notch at the end of what failed.
  if (bad && right - left > 6) context.clearRect(right - 5, middle - 1.5, 5, 3)
}

function paintFold(
  context: CanvasRenderingContext2D,
  left: number,
  right: number,
  height: number,
  text: string,
  colour: Colour,
): void {
  context.fillStyle = colour('--code')
  context.fillRect(left, 0, right - left, height)
  context.strokeStyle = colour('--line-strong')
  context.lineWidth = 1
  const middle = (left + right) / 2
  for (const dx of [-2, 2]) {
    context.beginPath()
    for (let y = rulerHeight; y < height; y += 8) {
      context.lineTo(middle + dx - 2, y)
      context.lineTo(middle + dx + 2, y + 4)
    }
    context.stroke()
  }
  const wide = context.measureText(text).width
  if (right - left < wide + 6) return
  context.fillStyle = colour('--muted')
  context.fillText(text, middle - wide / 2, rulerHeight - 7)
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** A time as fine as the picture is. */
function tickText(at: number, perPixel: number): string {
  if (perPixel > 12) return clock.format(at)
  const ms = (((at % 1000) + 1000) % 1000).toFixed(perPixel < 0.02 ? 1 : 0)
  return `${clock.format(at)}.${ms.padStart(perPixel < 0.02 ? 5 : 3, '0')}`
}
