/** Bars over time or over buckets, with the same rows as a table for readers of screens and for copying. */
import type { ReactNode } from 'react'
import { Picture } from './picture.tsx'

export interface Bar {
  readonly key: string
  /** What stands for it in the table and in its title. */
  readonly label: string
  readonly value: number
  /** The part of the value that failed. */
  readonly bad?: number
}

export interface BarsProps {
  readonly title: string
  readonly bars: readonly Bar[]
  /** Words at both ends of the axis. */
  readonly ends: readonly [from: string, to: string]
  readonly unit: string
  readonly height?: number
}

export function Bars({ title, bars, ends, unit, height = 72 }: BarsProps): ReactNode {
  const most = Math.max(1, ...bars.map(({ value }) => value))
  const width = 100 / Math.max(1, bars.length)
  return (
    <Picture title={title} table={() => <BarTable bars={bars} unit={unit} />}>
      <svg
        role="img"
        aria-label={`${title}: at most ${most.toLocaleString('en')} ${unit}`}
        width="100%"
        height={height}
        viewBox="0 0 100 100"
        preserveAspectRatio="none"
      >
        <line x1="0" x2="100" y1="100" y2="100" className="stroke-line" vectorEffect="non-scaling-stroke" />
        {bars.map(({ key, label, value, bad = 0 }, index) => (
          <g key={key}>
            <title>{`${label}: ${value} ${unit}${bad > 0 ? `, ${bad} failed` : ''}`}</title>
            <rect
              x={index * width + width * 0.1}
              width={width * 0.8}
              y={100 - (value / most) * 96}
              height={(value / most) * 96}
              className="fill-bar"
            />
            <rect
              x={index * width + width * 0.1}
              width={width * 0.8}
              y={100 - (bad / most) * 96}
              height={(bad / most) * 96}
              className="fill-bar-bad"
            />
          </g>
        ))}
      </svg>
      <div className="flex justify-between text-[0.79rem] text-muted">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
    </Picture>
  )
}

function BarTable({ bars, unit }: Pick<BarsProps, 'bars' | 'unit'>): ReactNode {
  const shown = bars.filter(({ value }) => value > 0)
  return (
    <div className="max-h-40 overflow-auto">
      <table className="w-full text-left tabular-nums">
        <tbody>
          {shown.map(({ key, label, value, bad }) => (
            <tr key={key}>
              <th scope="row" className="font-normal text-muted">
                {label}
              </th>
              <td>
                {value.toLocaleString('en')} {unit}
                {(bad ?? 0) > 0 && `, ${bad} failed`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p className="text-muted">No calls.</p>}
    </div>
  )
}
