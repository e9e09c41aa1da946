/** The server judged by scenarios: a matrix of revisions and carriers, results as they come, and each failure with what it broke and how. */
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import type { ConformanceResult, Conformance as ConformanceRun } from '#contract'
import { useConformance, useConformanceResults } from '../../api/author.ts'
import { useRole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { parseFilter } from '../../parts/filter.ts'
import { FilterLine } from '../../parts/filter-line.tsx'
import { QueryState } from '../../parts/query-state.tsx'
import { Rows } from '../../parts/rows.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'
import { cellName, Matrix } from './matrix.tsx'
import { ResultDetails, statusSigns, statusTones } from './result-details.tsx'
import { RunBar } from './run-bar.tsx'
import { StartForm } from './start-form.tsx'

/** What the address says. */
export interface ConformancePlace {
  readonly cell?: string | undefined
  readonly q?: string | undefined
  readonly id?: string | undefined
}

export interface ConformanceProps {
  readonly place: ConformancePlace
  readonly change: (place: ConformancePlace) => void
}

const fields = ['status', 'revision', 'carrier', 'id'] as const

export function Conformance({ place, change }: ConformanceProps): ReactNode {
  const query = useConformance()
  const run = query.data
  const results = useConformanceResults().data ?? noResults
  const operator = useRole('operator')
  const [asking, setAsking] = useState(false)
  const { cell, q = '', id } = place
  const filter = useMemo(() => parseFilter(q, fields), [q])
  const items = useMemo(() => results.filter(result => fits(result, cell, filter)), [results, cell, filter])
  const set = useCallback((next: ConformancePlace) => change({ ...place, ...next }), [change, place])
  const failures = useMemo(() => items.filter(({ status }) => status === 'failed' || status === 'error'), [items])
  const keys = useMemo<KeyMap>(
    () => ({
      f: () => {
        const next = failures.find(({ n }) => n > Number(id ?? 0)) ?? failures[0]
        if (next !== undefined) set({ id: String(next.n) })
      },
      ...(id !== undefined && { Escape: () => set({ id: undefined }) }),
    }),
    [failures, id, set],
  )
  useKeys(keys)
  if (run === undefined) return <QueryState query={query} />
  if (operator && (asking || run.state === 'idle')) {
    return (
      <StartForm run={run} begun={() => setAsking(false)} {...(run.state !== 'idle' && { cancel: () => setAsking(false) })} />
    )
  }
  return (
    <div className="flex h-full min-h-0 flex-col">
      <RunBar run={run} again={() => setAsking(true)} />
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <div className={`flex min-h-0 min-w-0 flex-1 flex-col ${id === undefined ? '' : 'max-lg:hidden'}`}>
          <div className="max-h-[38vh] shrink-0 overflow-auto border-b border-line p-3">
            <Matrix
              cells={run.cells}
              chosen={cell}
              choose={name => set({ cell: name === cell ? undefined : name, id: undefined })}
            />
          </div>
          <div className="flex flex-wrap items-start gap-2 border-b border-line p-2">
            <FilterLine
              value={q}
              change={line => set({ q: line })}
              names={fields}
              unknown={filter.unknown}
              placeholder="status:failed tools"
            />
            <span role="status" className="min-h-8 content-center whitespace-nowrap text-muted tabular-nums">
              {`${items.length.toLocaleString('en')} of ${results.length.toLocaleString('en')}`}
            </span>
            <Button disabled={failures.length === 0} title="Key f" onClick={() => keys['f']?.(new KeyboardEvent('keydown'))}>
              Next failure
            </Button>
          </div>
          {items.length === 0 ? (
            <p className="p-6 text-center text-muted">{nothing(run, results.length > 0)}</p>
          ) : (
            <Rows
              label="Results"
              items={items}
              keyOf={keyOf}
              selected={id}
              select={({ n }) => set({ id: String(n) })}
              draw={result => <Line result={result} one={cell !== undefined} />}
            />
          )}
        </div>
        {id !== undefined && <ResultDetails n={Number(id)} startedAt={run.startedAt} close={() => set({ id: undefined })} />}
      </div>
    </div>
  )
}

const noResults: readonly ConformanceResult[] = []
const keyOf = ({ n }: ConformanceResult) => String(n)

function fits(
  result: ConformanceResult,
  cell: string | undefined,
  { fields: given, text }: ReturnType<typeof parseFilter>,
): boolean {
  if (cell !== undefined && cellName(result) !== cell) return false
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all = `${result.id} ${result.title} ${result.message}`.toLowerCase()
  if (!words.every(word => all.includes(word))) return false
  return [...given].every(([name, value]) =>
    name === 'id' ? result.id.includes(value) : result[name as 'status' | 'revision' | 'carrier'] === value,
  )
}

function nothing({ state }: ConformanceRun, any: boolean): string {
  if (any) return 'No result fits.'
  return state === 'running' ? 'The first results are on the way.' : 'There is no result.'
}

function Line({
  result: { id, title, revision, carrier, status, message, ms },
  one,
}: {
  readonly result: ConformanceResult
  readonly one: boolean
}): ReactNode {
  return (
    <div className="flex items-baseline gap-3 px-3 py-1.5">
      <span className="w-20 shrink-0">
        <Badge tone={statusTones[status]}>{`${statusSigns[status]} ${status}`}</Badge>
      </span>
      <span className="min-w-0 flex-1 truncate">
        {title} <span className="text-muted">{id}</span>
        {status !== 'passed' && message !== '' && (
          <span className={status === 'skipped' ? 'text-muted' : 'text-danger'}>
            {' '}
            <Text most={200}>{message}</Text>
          </span>
        )}
      </span>
      {!one && (
        <span className="hidden shrink-0 text-muted tabular-nums md:inline">
          {revision} {carrier}
        </span>
      )}
      <span className="hidden w-16 shrink-0 text-right text-muted tabular-nums md:inline">{durationText(ms)}</span>
    </div>
  )
}
