/** At which revisions of the protocol a call is made: one, or several beside each other. */
import type { ReactNode } from 'react'
import type { RevisionRow } from '#contract'

/** As many as the process runs at once. */
const mostChosen = 7

export interface RevisionsProps {
  readonly rows: readonly RevisionRow[]
  readonly chosen: readonly string[]
  readonly change: (chosen: readonly string[]) => void
}

export function Revisions({ rows, chosen, change }: RevisionsProps): ReactNode {
  if (rows.length === 0) return null
  const turn = (revision: string) => {
    const next = rows
      .map(row => row.revision)
      .filter(each => (each === revision ? !chosen.includes(each) : chosen.includes(each)))
    if (next.length > 0 && next.length <= mostChosen) change(next)
  }
  return (
    <fieldset aria-label="Revisions" className="flex flex-wrap items-center gap-x-4 gap-y-1">
      <span className="font-semibold">Revisions</span>
      {rows.map(({ revision, state, why, preferred }) => (
        <label
          key={revision}
          title={why ?? (state === 'unknown' ? 'It was not tried yet' : undefined)}
          className={`flex min-h-7 items-center gap-1.5 ${state === 'unspoken' ? 'text-muted' : ''}`}
        >
          <input type="checkbox" checked={chosen.includes(revision)} onChange={() => turn(revision)} />
          <span className="tabular-nums">{revision}</span>
          {preferred && <span className="text-[0.79rem] text-muted">agreed</span>}
          {state === 'unspoken' && <span className="text-[0.79rem]">not spoken</span>}
        </label>
      ))}
    </fieldset>
  )
}
