/** The steps of one piece of work under each other, each as long as it took; only rows in sight are drawn. The same rows as a table. */
import { type CSSProperties, type ReactNode, useMemo } from 'react'
import { Rows } from '../parts/rows.tsx'
import { Text } from '../parts/text.tsx'
import { durationText } from '../parts/time.tsx'
import { Picture, PictureTable } from './picture.tsx'
import { criticalPath, type Scale, scaleOf, ticksOf, tickText } from './waterfall-scale.ts'

/** A row. */
export interface WaterfallStep {
  readonly id: string
  /** What kind of step it is, in a word. */
  readonly kind: string
  readonly name: string
  readonly from: number
  /** Absent while it runs. */
  readonly to?: number | undefined
  readonly look: StepLook
  /** The step that it is a part of. */
  readonly parent?: string | undefined
  /** How it ended, in words. */
  readonly note: string
  /** A point within it that matters, such as the first word. */
  readonly mark?: { readonly at: number; readonly title: string } | undefined
}

/** `waits`: nothing worked, somebody was asked. */
export type StepLook = 'done' | 'failed' | 'waits' | 'hook'

export interface WaterfallProps {
  readonly title: string
  readonly steps: readonly WaterfallStep[]
  /** The clock, while steps run. */
  readonly now: number
  readonly selected: string | undefined
  readonly select: (id: string) => void
}

const rowHeight = 34
/** With the words above the bar, where there is no room beside it. */
const narrowHeight = 46
const mostRows = 14
const ticks = 5

const looks: Readonly<Record<StepLook, string>> = {
  done: 'bg-bar',
  failed: 'bg-bar-bad',
  waits: 'waits',
  hook: 'bg-line-strong',
}

export function Waterfall({ title, steps, now, selected, select }: WaterfallProps): ReactNode {
  const running = steps.some(({ to }) => to === undefined)
  // Steps that have ended do not move with the clock.
  const edge = running ? now : 0
  const placed = useMemo(() => {
    const ended = steps.map(step => ({ ...step, to: step.to ?? Math.max(step.from, edge), waits: step.look === 'waits' }))
    return ended.map(step => ({ ...step, pauses: ended.filter(({ waits, parent }) => waits && parent === step.id) }))
  }, [steps, edge])
  const scale = useMemo(() => scaleOf(placed), [placed])
  const path = useMemo(() => criticalPath(placed), [placed])
  const narrow = matchMedia('(max-width: 639px)').matches
  const height = narrow ? narrowHeight : rowHeight
  if (steps.length === 0) return null
  return (
    <Picture title={title} table={() => <StepTable steps={steps} path={path} />}>
      <Axis scale={scale} narrow={narrow} />
      <div className="flex flex-col" style={{ height: Math.min(mostRows, steps.length) * height }}>
        <Rows
          label={title}
          items={steps}
          keyOf={({ id }) => id}
          height={height}
          selected={selected}
          select={({ id }) => select(id)}
          draw={step => {
            const row = { step, edge, scale, critical: path.has(step.id) }
            return narrow ? <NarrowRow {...row} /> : <Row {...row} />
          }}
        />
      </div>
      <p className="mt-1 text-[0.86rem] text-muted">
        <span aria-hidden="true" className="mr-1.5 inline-block h-2 w-4 border-b-3 border-ink align-middle" />
        underlined: what the end waited for
      </p>
    </Picture>
  )
}

/** Kind and name at the left; the rest is the axis. */
const columns = 'grid grid-cols-[4.2rem_minmax(4.5rem,9rem)_minmax(0,1fr)] items-center gap-x-2 px-1.5'

function Axis({ scale, narrow }: { readonly scale: Scale; readonly narrow: boolean }): ReactNode {
  const start = scale.segments[0]?.from ?? 0
  return (
    <div aria-hidden="true" className={`${narrow ? 'px-1.5' : columns} border-b border-line pb-0.5 text-[0.79rem] text-muted`}>
      {!narrow && <span className="col-span-2" />}
      <span className="relative block h-4 tabular-nums">
        {labelled(scale).map(at => (
          <span
            key={at}
            className={`absolute whitespace-nowrap ${scale.position(at) > 0.9 ? '-translate-x-full' : ''}`}
            style={{ left: percent(scale.position(at)) }}
          >
            {tickText(at - start)}
          </span>
        ))}
        {foldsOf(scale).map(({ left, width, from, to }) => (
          <span
            key={from}
            className="absolute overflow-hidden text-center whitespace-nowrap"
            style={{ left: percent(left), width: percent(width) }}
          >
            … {durationText(to - from)}
          </span>
        ))}
      </span>
    </div>
  )
}

/** About as wide as the words at a tick. */
const labelShare = 0.13

/** Ticks whose words do not run into a fold. */
function labelled(scale: Scale): readonly number[] {
  return ticksOf(scale, ticks).filter(at => {
    const left = scale.position(at)
    return left === 0 || !foldsOf(scale).some(fold => fold.left > left && fold.left < left + labelShare)
  })
}

function foldsOf({ segments }: Scale) {
  return segments.filter(({ folded }) => folded)
}

interface RowProps {
  readonly step: WaterfallStep
  readonly edge: number
  readonly scale: Scale
  readonly critical: boolean
}

function Row({ step, edge, scale, critical }: RowProps): ReactNode {
  const { kind, name, from, to = edge, note } = step
  const left = scale.position(from)
  const right = Math.max(left, scale.position(to))
  return (
    <div className={columns} style={{ height: rowHeight - 1 }}>
      <span className="truncate text-muted">{kind}</span>
      <span className="truncate" title={name}>
        <Text most={120}>{name}</Text>
      </span>
      <span className="relative h-full">
        <BarOf step={step} edge={edge} scale={scale} critical={critical} />
        <span
          className="pointer-events-none absolute inset-y-0 flex items-center px-2 text-[0.86rem] whitespace-nowrap"
          style={placeOfNote(left, right)}
        >
          <span className="truncate rounded bg-raised/90 px-1">
            <Note note={note} critical={critical} />
          </span>
        </span>
      </span>
    </div>
  )
}

/** Less room than this share of the width holds no words. */
const leastRoom = 0.25

/** Beside the bar where there is more room, or at its end inside it. */
function placeOfNote(left: number, right: number): CSSProperties {
  if (Math.max(left, 1 - right) < leastRoom) return { left: percent(left), right: percent(1 - right), justifyContent: 'end' }
  if (left > 1 - right) return { left: 0, right: percent(1 - left), justifyContent: 'end' }
  return { left: percent(right), right: 0 }
}

function NarrowRow({ step, edge, scale, critical }: RowProps): ReactNode {
  const { kind, name, note } = step
  return (
    <div className="flex flex-col px-1.5 py-1" style={{ height: narrowHeight - 1 }}>
      <span className="flex items-baseline gap-2">
        <span className="text-muted">{kind}</span>
        <span className="min-w-0 flex-1 truncate">
          <Text most={120}>{name}</Text>
        </span>
        <span className="max-w-[55%] truncate text-[0.86rem]">
          <Note note={note} critical={critical} />
        </span>
      </span>
      <span className="relative -my-1 flex-1">
        <BarOf step={step} edge={edge} scale={scale} critical={critical} />
      </span>
    </div>
  )
}

function Note({ note, critical }: { readonly note: string; readonly critical: boolean }): ReactNode {
  return (
    <>
      <Text most={120}>{note}</Text>
      {critical && <span className="sr-only">, the end waited for it</span>}
    </>
  )
}

function BarOf({ step: { from, to, look, mark }, edge, scale, critical }: RowProps): ReactNode {
  const left = scale.position(from)
  const right = Math.max(left, scale.position(to ?? edge))
  return (
    <>
      {foldsOf(scale).map(segment => (
        <span
          key={segment.from}
          aria-hidden="true"
          className="absolute inset-y-0 border-x border-dashed border-line bg-hover"
          style={{ left: percent(segment.left), width: percent(segment.width) }}
        />
      ))}
      <span
        aria-hidden="true"
        className={`absolute inset-y-2 min-w-[3px] rounded-xs ${looks[look]} ${critical ? 'shadow-[0_3px_0_0_var(--ink)]' : ''}`}
        style={{ left: percent(left), width: percent(right - left) }}
      />
      {mark && (
        <span
          title={mark.title}
          className="absolute inset-y-1.5 w-0.5 bg-ink"
          style={{ left: percent(scale.position(mark.at)) }}
        />
      )}
    </>
  )
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`
}

function StepTable({ steps, path }: { readonly steps: readonly WaterfallStep[]; readonly path: ReadonlySet<string> }): ReactNode {
  const start = Math.min(...steps.map(({ from }) => from))
  return (
    <>
      <PictureTable
        label="Steps"
        columns={['Step', 'Begins', 'Takes', 'Outcome']}
        rows={steps.map(({ id, kind, name, from, to, note }) => [
          id,
          <span key="name">
            {kind} <Text most={120}>{name}</Text>
          </span>,
          durationText(from - start),
          `${to === undefined ? 'runs' : durationText(to - from)}${path.has(id) ? ' *' : ''}`,
          <Text key="note" most={200}>
            {note}
          </Text>,
        ])}
      />
      <p className="pt-1 text-muted">* the end waited for it</p>
    </>
  )
}
