/** The lines of one row of a tree in lanes: what comes from above, what passes, the point itself, and where it goes on. */
import type { ReactNode } from 'react'
import type { LaneRow } from './lanes-layout.ts'

const step = 16
const middle = 0.5

export interface LaneLinesProps {
  readonly row: LaneRow
  /** How many lanes the whole picture has. */
  readonly lanes: number
  readonly height: number
  /** `fold`: several rows in one. */
  readonly point: 'head' | 'plain' | 'broken' | 'fold'
}

export function LaneLines({ row: { lane, above, through, below }, lanes, height, point }: LaneLinesProps): ReactNode {
  const x = (at: number) => (at + middle) * step
  const y = height * middle
  // Over the line between two rows, so that lanes have no gaps.
  const end = height + 1
  const dashes = point === 'fold' ? '2 4' : undefined
  return (
    <svg
      aria-hidden="true"
      width={lanes * step}
      height={height}
      className="shrink-0 overflow-visible fill-none stroke-line-strong"
      strokeWidth="1.5"
    >
      {through.map(at => (
        <path key={`through ${at}`} d={`M${x(at)} 0V${end}`} />
      ))}
      {above.map(at => (
        <path
          key={`above ${at}`}
          strokeDasharray={dashes}
          d={at === lane ? `M${x(at)} 0V${y}` : `M${x(at)} 0C${x(at)} ${y} ${x(at)} ${y} ${x(lane)} ${y}`}
        />
      ))}
      {below && <path d={`M${x(lane)} ${y}V${end}`} strokeDasharray={dashes} />}
      <Point point={point} x={x(lane)} y={y} />
    </svg>
  )
}

function Point({ point, x, y }: { readonly point: LaneLinesProps['point']; readonly x: number; readonly y: number }): ReactNode {
  if (point === 'fold') return null
  if (point === 'broken') return <path d={`M${x - 4} ${y - 4}l8 8m0 -8l-8 8`} className="stroke-danger" strokeWidth="2" />
  return (
    <circle
      cx={x}
      cy={y}
      r={point === 'head' ? 5 : 4}
      className={point === 'head' ? 'fill-accent stroke-accent' : 'fill-raised stroke-ink'}
    />
  )
}
