/**
 * What happened when, and what at the same time: a bar for each call, a lane for each server, waits folded. Drawn on one canvas, so that
 * thousands of bars cost as little as ten; the selected bar, the names of lanes and the buttons are elements.
 */
import { type KeyboardEvent, type PointerEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { usePreferences } from '../../frame/preferences.ts'
import { Button } from '../../parts/button.tsx'
import { spellOut, Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'
import { AxisTable } from './axis-table.tsx'
import { type Bar, layOut, nearest, type PlacedBar, workOf } from './lanes.ts'
import { paint, pixelOf, rowHeight, rulerHeight, type Scene } from './paint.ts'
import { foldIdle, moved, type Sight, zoomed } from './scale.ts'

/** A stretch of time that was chosen. */
export interface Range {
  readonly from: number
  readonly to: number
}

export interface AxisProps {
  readonly label: string
  readonly bars: readonly Bar[]
  /** Where bars reach that have not ended. */
  readonly now: number
  readonly selected: string | undefined
  readonly select: (id: string) => void
  readonly range: Range | undefined
  readonly changeRange: (range: Range | undefined) => void
}

/** Taller pictures scroll. */
const mostHeight = 220
const laneWidth = 104

export function Axis({ label, bars, now, selected, select, range, changeRange }: AxisProps): ReactNode {
  const [table, setTable] = useState(false)
  const [sight, setSight] = useState<Sight>()
  const [brush, setBrush] = useState<Range>()
  const [scrolled, setScrolled] = useState(0)
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const width = useWidth(box) - laneWidth
  const layout = useMemo(() => layOut(bars, now), [bars, now])
  const placed = useMemo(() => layout.rows.flat().sort((a, b) => a.from - b.from), [layout])
  const line = useMemo(() => foldIdle(workOf(layout.rows)), [layout])
  const height = Math.min(mostHeight, rulerHeight + layout.rows.length * rowHeight + 4)
  const scene = useMemo<Scene>(
    () => ({
      line,
      sight: sight ?? { from: -line.length * 0.01, to: line.length * 1.01 },
      rows: layout.rows,
      firsts: new Set(layout.lanes.map(({ first }) => first)),
      width,
      height,
      scrolled,
      brush: brush ?? range,
    }),
    [line, sight, layout, width, height, scrolled, brush, range],
  )
  usePainted(canvas, scene)
  const at = placed.findIndex(({ bar }) => bar.id === selected)
  const zoom = (factor: number, about = (scene.sight.from + scene.sight.to) / 2) =>
    setSight(zoomed(scene.sight, factor, about, line.length))
  const timeUnder = (event: { clientX: number }) => {
    const left = canvas.current?.getBoundingClientRect().left ?? 0
    return line.timeAt(scene.sight.from + ((event.clientX - left) / width) * (scene.sight.to - scene.sight.from))
  }
  useWheel(canvas, event => {
    if (!(event.ctrlKey || event.altKey)) return false
    zoom(event.deltaY > 0 ? 1.25 : 0.8, line.placeOf(timeUnder(event)))
    return true
  })
  const begun = useRef<number>(undefined)
  const press = (event: PointerEvent) => {
    begun.current = event.clientX
    event.currentTarget.setPointerCapture(event.pointerId)
  }
  const drag = (event: PointerEvent) => {
    if (begun.current === undefined || Math.abs(event.clientX - begun.current) < 4) return
    const ends = [timeUnder({ clientX: begun.current }), timeUnder(event)].sort((a, b) => a - b) as [number, number]
    setBrush({ from: ends[0], to: ends[1] })
  }
  const release = (event: PointerEvent) => {
    begun.current = undefined
    if (brush !== undefined) {
      changeRange(brush)
      return setBrush(undefined)
    }
    const top = canvas.current?.getBoundingClientRect().top ?? 0
    const row = Math.floor((event.clientY - top - rulerHeight + scrolled) / rowHeight)
    const time = timeUnder(event)
    const reach = Math.abs(time - timeUnder({ clientX: event.clientX + 8 }))
    const hit = nearest(layout.rows[row], time, reach)
    if (hit !== undefined) select(hit.bar.id)
  }
  const show = (to: PlacedBar | undefined) => {
    if (to === undefined) return
    select(to.bar.id)
    if (sight === undefined) return
    const place = line.placeOf(to.from)
    if (place < sight.from || place > sight.to)
      setSight(zoomed(moved(sight, (place - sight.from) / (sight.to - sight.from) - 0.5, line.length), 1, place, line.length))
  }
  const acts: Readonly<Record<string, () => void>> = {
    ArrowRight: () => show(placed[Math.min(placed.length - 1, at + 1)]),
    ArrowLeft: () => show(placed[Math.max(0, at - 1)]),
    '+': () => zoom(0.5, at >= 0 ? line.placeOf(placed[at]?.from ?? 0) : undefined),
    '-': () => zoom(2),
    '0': () => setSight(undefined),
    PageUp: () => setSight(moved(scene.sight, -0.5, line.length)),
    PageDown: () => setSight(moved(scene.sight, 0.5, line.length)),
  }
  const hear = (event: KeyboardEvent) => {
    const act = acts[event.key]
    if (act === undefined) return
    event.preventDefault()
    act()
  }
  return (
    <section aria-label={label} className="border-b border-line bg-raised">
      <div className="flex flex-wrap items-center gap-1 px-3 pt-1.5">
        <span className="label mr-auto">
          {range === undefined ? label : `${durationText(range.to - range.from)} of time are chosen`}
        </span>
        {range === undefined ? (
          sight !== undefined && (
            <Button
              look="quiet"
              onClick={() =>
                changeRange({
                  from: line.timeAt(Math.max(0, scene.sight.from)),
                  to: line.timeAt(Math.min(line.length, scene.sight.to)),
                })
              }
            >
              List only this time
            </Button>
          )
        ) : (
          <Button look="quiet" onClick={() => changeRange(undefined)}>
            List all times
          </Button>
        )}
        <Button look="quiet" aria-label="Closer" onClick={() => zoom(0.5)}>
          +
        </Button>
        <Button look="quiet" aria-label="Further away" onClick={() => zoom(2)}>
          −
        </Button>
        <Button look="quiet" disabled={sight === undefined} onClick={() => setSight(undefined)}>
          All
        </Button>
        <Button look="quiet" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? 'As picture' : 'As table'}
        </Button>
      </div>
      {table ? (
        <AxisTable label={label} placed={placed} select={select} />
      ) : (
        <div
          ref={box}
          role="application"
          aria-label={`${label}: ${bars.length} bars. Arrows choose a bar, plus and minus zoom, 0 shows all.`}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the picture is moved and zoomed by keys
          tabIndex={0}
          onKeyDown={hear}
          onScroll={event => setScrolled(event.currentTarget.scrollTop)}
          className="relative overflow-x-hidden overflow-y-auto focus-visible:outline-offset-[-2px]"
          style={{ height }}
        >
          <div className="relative" style={{ height: rulerHeight + layout.rows.length * rowHeight }}>
            <canvas
              ref={canvas}
              className="sticky top-0 touch-none font-sans"
              style={{ marginLeft: laneWidth, width, height }}
              onPointerDown={press}
              onPointerMove={drag}
              onPointerUp={release}
            />
            {layout.lanes.map(({ name, first }) => (
              <span
                key={name}
                className="pointer-events-none absolute left-0 truncate px-3 text-[0.86rem] text-muted"
                style={{ top: rulerHeight + first * rowHeight, width: laneWidth }}
              >
                <Text most={40}>{name}</Text>
              </span>
            ))}
            {at >= 0 && <Selected placed={placed[at] as PlacedBar} scene={scene} />}
          </div>
        </div>
      )}
    </section>
  )
}

/** The selected bar as an element, so that its outline and its name are there whatever its size. */
function Selected({ placed: { bar, from, to, row }, scene }: { readonly placed: PlacedBar; readonly scene: Scene }): ReactNode {
  const left = pixelOf(scene, from)
  const right = Math.max(left + 4, pixelOf(scene, to))
  if (right < 0 || left > scene.width) return null
  const words = `${spellOut(bar.name).slice(0, 120)}, ${bar.to === undefined ? 'not ended' : durationText(to - from)}`
  const before = left > scene.width / 2
  return (
    <>
      <span
        className="pointer-events-none absolute rounded outline-2 outline-ink"
        style={{
          left: laneWidth + Math.max(0, left),
          width: Math.min(scene.width, right) - Math.max(0, left),
          top: rulerHeight + row * rowHeight + 2,
          height: rowHeight - 3,
        }}
      />
      <span
        className="pointer-events-none absolute z-10 max-w-72 truncate rounded border border-line bg-raised px-1.5 text-[0.86rem] shadow"
        style={{
          ...(before ? { right: scene.width - left + 6 } : { left: laneWidth + right + 6 }),
          top: rulerHeight + row * rowHeight,
        }}
      >
        {words}
      </span>
    </>
  )
}

function usePainted(canvas: { readonly current: HTMLCanvasElement | null }, scene: Scene): void {
  const { theme } = usePreferences()
  const [dark, setDark] = useState(false)
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const changed = () => setDark(scheme.matches)
    scheme.addEventListener('change', changed)
    return () => scheme.removeEventListener('change', changed)
  }, [])
  // The colours are read from the page: the theme is among what it is drawn again for.
  useEffect(() => {
    const element = canvas.current
    const context = element?.getContext('2d')
    if (!element || !context) return
    const asked = requestAnimationFrame(() => {
      const dense = devicePixelRatio
      element.width = Math.max(1, Math.round(scene.width * dense))
      element.height = Math.max(1, Math.round(scene.height * dense))
      context.setTransform(dense, 0, 0, dense, 0, 0)
      paint(context, scene)
    })
    return () => cancelAnimationFrame(asked)
  }, [canvas, scene, theme, dark])
}

function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600)
  useEffect(() => {
    if (!box.current) return
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width))
    observer.observe(box.current)
    return () => observer.disconnect()
  }, [box])
  return Math.max(laneWidth + 100, width)
}

/** React hears the wheel passively, and the page would scroll. */
function useWheel(canvas: { readonly current: HTMLElement | null }, hear: (event: WheelEvent) => boolean): void {
  const latest = useRef(hear)
  latest.current = hear
  useEffect(() => {
    const element = canvas.current
    const listen = (event: WheelEvent) => {
      if (latest.current(event)) event.preventDefault()
    }
    element?.addEventListener('wheel', listen, { passive: false })
    return () => element?.removeEventListener('wheel', listen)
  }, [canvas])
}
