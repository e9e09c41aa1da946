/** Revisions and carriers as a table: how many scenarios passed in each cell. A press lists the results of one. */
import type { ReactNode } from 'react'
import type { ConformanceCell } from '#contract'
import { Text } from '../../parts/text.tsx'

/** How a cell is called in an address. */
export function cellName({ revision, carrier }: { readonly revision: string; readonly carrier: string }): string {
  return `${revision}/${carrier}`
}

export interface MatrixProps {
  readonly cells: readonly ConformanceCell[]
  readonly chosen: string | undefined
  readonly choose: (name: string) => void
}

const faultWords = { unreachable: 'not reached', guarded: 'needs sign-in', unspoken: 'not spoken' } as const

export function Matrix({ cells, chosen, choose }: MatrixProps): ReactNode {
  const revisions = [...new Set(cells.map(({ revision }) => revision))]
  const carriers = [...new Set(cells.map(({ carrier }) => carrier))]
  return (
    <table className="border-separate border-spacing-1 text-left">
      <caption className="sr-only">Results by revision and carrier</caption>
      <thead>
        <tr>
          <th scope="col" className="label pr-3">
            revision
          </th>
          {carriers.map(carrier => (
            <th key={carrier} scope="col" className="label px-1">
              {carrier}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {revisions.map(revision => (
          <tr key={revision}>
            <th scope="row" className="pr-3 font-medium whitespace-nowrap tabular-nums">
              {revision}
            </th>
            {carriers.map(carrier => {
              const cell = cells.find(each => each.revision === revision && each.carrier === carrier)
              return (
                <td key={carrier} className="p-0">
                  {cell && <Cell cell={cell} chosen={cellName(cell) === chosen} choose={choose} />}
                </td>
              )
            })}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Cell({
  cell,
  chosen,
  choose,
}: {
  readonly cell: ConformanceCell
  readonly chosen: boolean
  readonly choose: (name: string) => void
}): ReactNode {
  const { passed, failed, skipped, error, fault, why, revision, carrier } = cell
  const bad = failed + error
  const begun = passed + bad + skipped > 0
  const look =
    fault !== undefined || !begun ? 'bg-hover text-muted' : bad > 0 ? 'bg-danger-soft text-danger' : 'bg-good-soft text-good'
  const words =
    fault !== undefined ? faultWords[fault] : !begun ? 'waits' : bad > 0 ? `✗ ${bad} of ${bad + passed}` : `✓ ${passed}`
  return (
    <button
      type="button"
      aria-pressed={chosen}
      aria-label={`${revision} over ${carrier}: ${fault !== undefined ? faultWords[fault] : `${passed} passed, ${bad} failed, ${skipped} skipped`}`}
      title={why}
      className={`min-h-8 w-full min-w-28 rounded-md px-2.5 text-left whitespace-nowrap tabular-nums ${look} ${chosen ? 'outline-2 outline-accent' : ''}`}
      onClick={() => choose(cellName(cell))}
    >
      {words}
      {skipped > 0 && fault === undefined && <span className="ml-2">{`${skipped} –`}</span>}
      {why !== undefined && (
        <span className="block max-w-60 truncate text-[0.79rem] max-md:hidden">
          <Text most={120}>{why}</Text>
        </span>
      )}
    </button>
  )
}
