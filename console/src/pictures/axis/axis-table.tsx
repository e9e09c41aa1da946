/** The bars of the axis as a table: for readers of screens, and for copying. */
import type { ReactNode } from 'react'
import { Text } from '../../parts/text.tsx'
import { durationText, Time } from '../../parts/time.tsx'
import type { PlacedBar } from './lanes.ts'

/** The newest; the list below has all of them. */
const mostShown = 200

export interface AxisTableProps {
  readonly label: string
  readonly placed: readonly PlacedBar[]
  readonly select: (id: string) => void
}

export function AxisTable({ label, placed, select }: AxisTableProps): ReactNode {
  return (
    <section
      aria-label={`${label} as a table`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable for the arrow keys
      tabIndex={0}
      className="max-h-56 overflow-auto px-3 pb-2 focus-visible:outline-offset-[-2px]"
    >
      <table className="w-full text-left tabular-nums">
        <thead className="text-muted">
          <tr>
            {['server', 'what', 'from', 'how long', 'outcome'].map(name => (
              <th key={name} scope="col" className="pr-3 font-normal">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {placed.slice(-mostShown).map(({ bar, from, to }) => (
            <tr key={bar.id}>
              <td className="pr-3">
                <Text most={40}>{bar.lane}</Text>
              </td>
              <td className="pr-3">
                <button type="button" className="min-h-6 text-left underline" onClick={() => select(bar.id)}>
                  <Text most={80}>{bar.name}</Text>
                </button>
              </td>
              <td className="pr-3">
                <Time at={from} />
              </td>
              <td className="pr-3">{bar.to === undefined ? 'not ended' : durationText(to - from)}</td>
              <td>{bar.tone === 'bad' ? 'failed' : bar.to === undefined ? 'open' : 'done'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {placed.length > mostShown && (
        <p className="text-muted">{`The last ${mostShown} of ${placed.length.toLocaleString('en')}.`}</p>
      )}
    </section>
  )
}
