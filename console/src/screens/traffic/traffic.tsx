/** Every frame between this process and its servers: as a list and on an axis of time with one selection, and one frame beside them. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useCallback, useDeferredValue, useEffect, useMemo, useState } from 'react'
import type { FrameRow } from '#contract'
import { useFoundFrames } from '../../api/author.ts'
import { tapeList } from '../../api/lists.ts'
import { readFrames, useFrames } from '../../feed/frames.ts'
import { useConsole, useResource } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { FilterLine } from '../../parts/filter-line.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Rows } from '../../parts/rows.tsx'
import { useNow } from '../../parts/time.tsx'
import { Axis } from '../../pictures/axis/axis.tsx'
import { frameBars } from './bars.ts'
import { type FrameFilter, frameFields, holds, isWithin, readFrameFilter, readRange, writeRange } from './filter.ts'
import { FrameDetails } from './frame-details.tsx'
import { FrameHead, FrameLine } from './frame-row.tsx'
import { Tapes } from './tapes.tsx'

/** What the address says. */
export interface TrafficPlace {
  readonly q?: string | undefined
  readonly sel?: string | undefined
  readonly t?: string | undefined
  readonly tape?: string | undefined
}

export interface TrafficProps {
  readonly place: TrafficPlace
  readonly change: (place: TrafficPlace) => void
}

/** The list of tapes, none of them chosen. Names of tapes have no star. */
const tapesOnly = '*'

const keyOf = ({ n }: FrameRow) => String(n)

export function Traffic({ place, change }: TrafficProps): ReactNode {
  const { q = '', sel, t, tape } = place
  const filter = useMemo(() => readFrameFilter(q), [q])
  const range = useMemo(() => readRange(t), [t])
  const { all, problem, loaded, waiting, held, hold } = useHeldFrames()
  const { data: found } = useFoundFrames(filter.text)
  const inFilter = useMemo(() => all.filter(row => isShown(row, filter, found)), [all, filter, found])
  const items = useMemo(() => (range ? inFilter.filter(row => isWithin(row, range)) : inFilter), [inFilter, range])
  const hasTapes = useResource('/tapes')
  const [axis, setAxis] = useState(true)
  const [again, setAgain] = useState(false)
  const set = useCallback((next: TrafficPlace) => change({ ...place, ...next }), [change, place])
  const select = useCallback((row: FrameRow) => set({ sel: keyOf(row), tape: undefined }), [set])
  const keys = useMemo<KeyMap>(
    () => ({
      ' ': hold,
      t: () => setAxis(shown => !shown),
      ...(sel !== undefined && { '.': () => setAgain(true), Escape: () => set({ sel: undefined }) }),
    }),
    [hold, sel, set],
  )
  useKeys(keys)
  const aside = sel !== undefined || tape !== undefined
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-start gap-2 border-b border-line p-3">
        <FilterLine
          value={q}
          change={line => set({ q: line })}
          names={frameFields}
          unknown={filter.unknown}
          placeholder="method:tools/* ms:>20"
        />
        <span role="status" className="min-h-8 content-center whitespace-nowrap text-muted tabular-nums">
          {`${items.length.toLocaleString('en')} of ${all.length.toLocaleString('en')}`}
        </span>
        <Button aria-pressed={held} onClick={hold}>
          {!held ? 'Hold' : waiting > 0 ? `Go on, ${waiting.toLocaleString('en')} new` : 'Go on'}
        </Button>
        <Button aria-pressed={axis} onClick={() => setAxis(!axis)}>
          Axis
        </Button>
        {hasTapes && (
          <TapesButton
            open={tape !== undefined}
            toggle={() => set({ tape: tape === undefined ? tapesOnly : undefined, sel: undefined })}
          />
        )}
      </div>
      {axis && items.length > 0 && (
        <FrameAxis
          rows={inFilter}
          selected={sel}
          select={n => set({ sel: n, tape: undefined })}
          range={range}
          changeRange={next => set({ t: next && writeRange(next) })}
        />
      )}
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <div className={`@container flex min-h-0 min-w-0 flex-1 flex-col ${aside ? 'max-lg:hidden' : ''}`}>
          {problem && (
            <div className="p-3">
              <ProblemCard error={problem} retry={() => void readFrames()} />
            </div>
          )}
          {!loaded && !problem && (
            <div className="p-3">
              <Waiting rows={6} />
            </div>
          )}
          {loaded && items.length === 0 && <Nothing any={all.length > 0} clear={() => set({ q: undefined, t: undefined })} />}
          {items.length > 0 && (
            <>
              <FrameHead />
              <Rows
                label="Frames"
                items={items}
                keyOf={keyOf}
                selected={sel}
                select={select}
                height={29}
                fixed
                follow={!held}
                draw={row => <FrameLine row={row} />}
              />
            </>
          )}
        </div>
        {sel !== undefined && tape === undefined && (
          <FrameDetails
            key={sel}
            n={sel}
            again={again}
            setAgain={setAgain}
            go={n => set({ sel: String(n) })}
            close={() => set({ sel: undefined })}
          />
        )}
        {tape !== undefined && (
          <Tapes
            name={tape === tapesOnly ? undefined : tape}
            choose={name => set({ tape: name ?? tapesOnly })}
            close={() => set({ tape: undefined })}
          />
        )}
      </div>
    </div>
  )
}

function TapesButton({ open, toggle }: { readonly open: boolean; readonly toggle: () => void }): ReactNode {
  const recording = useQuery(tapeList).data?.some(tape => tape.recording) === true
  return (
    <Button aria-pressed={open} onClick={toggle}>
      {recording && (
        <span className="text-danger">
          ●<span className="sr-only"> recording</span>
        </span>
      )}
      Tapes
    </Button>
  )
}

function isShown(row: FrameRow, filter: FrameFilter, found: ReadonlySet<number> | undefined): boolean {
  return filter.fits(row) && (filter.text === '' || holds(row, filter.text) || found?.has(row.n) === true)
}

/** All frames, or those that were there when the list was held. */
function useHeldFrames() {
  const { rows, loaded, problem } = useFrames()
  const [kept, setKept] = useState<readonly FrameRow[]>()
  useEffect(() => void readFrames(), [])
  const hold = useCallback(() => setKept(before => (before === undefined ? rows : undefined)), [rows])
  const last = kept?.at(-1)?.n ?? 0
  const waiting = kept === undefined ? 0 : (rows.at(-1)?.n ?? 0) - last
  return { all: kept ?? rows, loaded, problem, waiting, held: kept !== undefined, hold }
}

interface FrameAxisProps {
  readonly rows: readonly FrameRow[]
  readonly selected: string | undefined
  readonly select: (n: string) => void
  readonly range: ReturnType<typeof readRange>
  readonly changeRange: (range: ReturnType<typeof readRange>) => void
}

/** The picture may be a moment behind the list: keys and the list come first. */
function FrameAxis({ rows, selected, ...rest }: FrameAxisProps): ReactNode {
  const bars = frameBars(useDeferredValue(rows))
  const open = bars.some(({ to }) => to === undefined)
  const clock = useNow(open ? 500 : 60_000)
  const last = rows.at(-1)?.at ?? 0
  const shown = useMemo(() => rows.find(({ n }) => String(n) === selected), [rows, selected])
  const isAnswer = shown?.kind === 'result' || shown?.kind === 'error'
  const selectedBar = isAnswer && shown?.of !== undefined ? String(shown.of) : selected
  return <Axis label="Time" bars={bars} now={open ? Math.max(clock, last) : last} selected={selectedBar} {...rest} />
}

function Nothing({ any, clear }: { readonly any: boolean; readonly clear: () => void }): ReactNode {
  const { self } = useConsole()
  if (any) {
    return (
      <div className="p-6 text-center text-muted">
        <p>No frame fits this filter.</p>
        <Button className="mt-3" onClick={clear}>
          Show all frames
        </Button>
      </div>
    )
  }
  return (
    <div className="p-6 text-center text-muted">
      <p>
        Nothing passed yet. Call something in the playground
        {self.target === undefined ? '.' : ', or put this process between a client and the server:'}
      </p>
      {self.target !== undefined && (
        <code className="code mt-3 inline-block">{`vivarium record ${self.target.again} --web`}</code>
      )}
    </div>
  )
}
