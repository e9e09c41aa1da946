/** What stands in place of data that is not there yet, or could not be read. */
import type { ReactNode } from 'react'
import { Waiting } from './card.tsx'
import { ProblemCard } from './problem.tsx'

export interface QueryStateProps {
  readonly query: { readonly isPending: boolean; readonly error: unknown; refetch(): unknown }
  readonly rows?: number
}

export function QueryState({ query: { isPending, error, refetch }, rows = 4 }: QueryStateProps): ReactNode {
  if (!error && !isPending) return null
  return <div className="p-3">{error ? <ProblemCard error={error} retry={() => void refetch()} /> : <Waiting rows={rows} />}</div>
}
