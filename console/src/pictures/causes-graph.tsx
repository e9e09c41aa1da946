/** A graph of causes: what came of what, from left to right. Arrow keys follow the lines; the same nodes as a table. */
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef } from 'react'
import { Text } from '../parts/text.tsx'
import { type CauseEdge, type Place, placeCauses } from './causes-layout.ts'
import { Picture, PictureTable } from './picture.tsx'

export interface CauseNode {
  readonly id: string
  /** What it is, in a word. */
  readonly kind: string
  readonly label: string
  /** How it ended, in words. */
  readonly outcome: string
  readonly bad: boolean
}

export interface CauseLine extends CauseEdge {
  /** The second happened inside the first, rather than because of it. */
  readonly inside: boolean
}

export interface CausesGraphProps {
  readonly title: string
  readonly nodes: readonly CauseNode[]
  readonly lines: readonly CauseLine[]
  readonly selected: string | undefined
  readonly select: (id: string) => void
}

const box = { width: 196, height: 58 }
const gap = { x: 52, y: 16 }
const edge = 8

interface Corner {
  readonly x: number
  readonly y: number
}

export function CausesGraph(props: CausesGraphProps): ReactNode {
  return (
    <Picture title={props.title} table={() => <NodeTable {...props} />}>
      <Graph {...props} />
    </Picture>
  )
}

function Graph({ title, nodes, lines, selected, select }: CausesGraphProps): ReactNode {
  const frame = useRef<HTMLDivElement>(null)
  const pressed = useRef(false)
  const places = useMemo(
    () =>
      placeCauses(
        nodes.map(({ id }) => id),
        lines,
      ),
    [nodes, lines],
  )
  const corners = useMemo(() => cornersOf(places), [places])
  const width = Math.max(...[...corners.values()].map(({ x }) => x + box.width), 0) + edge
  const height = Math.max(...[...corners.values()].map(({ y }) => y + box.height), 0) + edge
  const current = selected !== undefined && places.has(selected) ? selected : nodes[0]?.id
  useEffect(() => {
    if (!pressed.current || current === undefined) return
    pressed.current = false
    frame.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus()
  }, [current])
  const press = (event: KeyboardEvent) => {
    const target = current === undefined ? undefined : neighbour(event.key, current, places, lines)
    if (target === undefined) return
    event.preventDefault()
    pressed.current = true
    select(target)
  }
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a group of buttons, no form */}
      <div
        ref={frame}
        role="group"
        aria-label={title}
        className="max-h-[28rem] overflow-auto rounded-lg border border-line bg-ground"
        onKeyDown={press}
      >
        <div className="relative" style={{ width, height }}>
          <svg
            aria-hidden="true"
            width={width}
            height={height}
            className="absolute inset-0 fill-none stroke-line-strong"
            strokeWidth="1.5"
          >
            {lines.map(({ from, to, inside }) => {
              const [a, b] = [corners.get(from), corners.get(to)]
              if (a === undefined || b === undefined) return null
              return <Line key={`${from} ${to}`} from={a} to={b} inside={inside} lit={from === current || to === current} />
            })}
          </svg>
          {nodes.map(node => {
            const { x = 0, y = 0 } = corners.get(node.id) ?? {}
            return (
              <button
                key={node.id}
                type="button"
                tabIndex={node.id === current ? 0 : -1}
                aria-pressed={node.id === selected}
                onClick={() => select(node.id)}
                className={`absolute overflow-hidden rounded-lg border px-2.5 py-1 text-left ${node.id === selected ? 'border-accent bg-accent-soft' : 'bg-raised hover:bg-hover'} ${node.bad ? 'border-danger' : node.id === selected ? '' : 'border-line'}`}
                style={{ left: x, top: y, width: box.width, height: box.height }}
              >
                <span className="block truncate text-[0.79rem] text-muted">
                  {node.kind} · {node.outcome}
                </span>
                <span className="line-clamp-2 text-[0.93rem] leading-tight break-words">
                  <Text most={120}>{node.label}</Text>
                </span>
              </button>
            )
          })}
        </div>
      </div>
      <p className="mt-1 text-[0.86rem] text-muted">
        Solid line: came of it. Dashed line: happened inside it. ← → follow the lines.
      </p>
    </>
  )
}

/** Columns are centred, so that a chain runs straight. */
function cornersOf(places: ReadonlyMap<string, Place>): ReadonlyMap<string, Corner> {
  const heights = new Map<number, number>()
  for (const { column, row } of places.values()) heights.set(column, Math.max(heights.get(column) ?? 0, row + 1))
  const most = Math.max(0, ...heights.values())
  return new Map(
    [...places].map(([id, { column, row }]) => {
      const down = row + (most - (heights.get(column) ?? 0)) / 2
      return [id, { x: edge + column * (box.width + gap.x), y: edge + down * (box.height + gap.y) }]
    }),
  )
}

interface LineProps {
  readonly from: Corner
  readonly to: Corner
  readonly inside: boolean
  readonly lit: boolean
}

function Line({ from, to, inside, lit }: LineProps): ReactNode {
  const [x1, y1] = [from.x + box.width, from.y + box.height / 2]
  const [x2, y2] = [to.x, to.y + box.height / 2]
  const bend = Math.max(gap.x / 2, (x2 - x1) / 2)
  const className = lit ? 'stroke-accent' : ''
  return (
    <>
      <path
        d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
        strokeDasharray={inside ? '4 4' : undefined}
        className={className}
      />
      {!inside && <path d={`M${x2 - 7} ${y2 - 4}L${x2} ${y2}L${x2 - 7} ${y2 + 4}`} className={className} />}
    </>
  )
}

/** Left to the nearest cause, right to what came of it, up and down within the column. */
function neighbour(key: string, id: string, places: ReadonlyMap<string, Place>, lines: readonly CauseLine[]): string | undefined {
  const here = places.get(id)
  if (here === undefined) return undefined
  const near = (ids: readonly string[]) =>
    ids
      .map(each => ({ each, away: Math.abs((places.get(each)?.row ?? 0) - here.row) }))
      .sort((a, b) => a.away - b.away)
      .map(({ each }) => each)[0]
  if (key === 'ArrowLeft') return near(lines.filter(({ to }) => to === id).map(({ from }) => from))
  if (key === 'ArrowRight') return near(lines.filter(({ from }) => from === id).map(({ to }) => to))
  const step = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0
  if (step === 0) return undefined
  return [...places].find(([, { column, row }]) => column === here.column && row === here.row + step)?.[0]
}

type NodeTableProps = Pick<CausesGraphProps, 'nodes' | 'lines' | 'select'>

function NodeTable({ nodes, lines, select }: NodeTableProps): ReactNode {
  const labels = new Map(nodes.map(({ id, label }) => [id, label]))
  const causesOf = (id: string) => lines.filter(({ to }) => to === id).map(({ from }) => labels.get(from) ?? '')
  return (
    <PictureTable
      label="Causes"
      columns={['What', 'Outcome', 'Came of, or inside of']}
      rows={nodes.map(({ id, kind, label, outcome }) => [
        id,
        <button key="name" type="button" className="text-left underline" onClick={() => select(id)}>
          {kind} <Text most={120}>{label}</Text>
        </button>,
        outcome,
        <Text key="causes" most={300}>
          {causesOf(id).join(', ')}
        </Text>,
      ])}
    />
  )
}
