/** The audit log, newest first, with one entry beside it and the proof that nothing was changed or left out. */
import { type ReactNode, useMemo } from 'react'
import type { AuditEntry, AuditQuery } from '#contract'
import { useAudit } from '../../api/lists.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { type Filter, parseFilter, parseTime, withField } from '../../parts/filter.ts'
import { FilterLine } from '../../parts/filter-line.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Rows } from '../../parts/rows.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText, timeText } from '../../parts/time.tsx'
import { EntryDetails } from './entry-details.tsx'
import { Proof } from './proof.tsx'

const fields = [
  ...(['server', 'tool', 'client', 'subject', 'event', 'outcome', 'rule', 'code', 'by', 'correlation'] as const),
  ...(['since', 'until'] as const),
]

export interface AuditProps {
  readonly filter: string
  readonly entry: string | undefined
  readonly change: (next: { readonly filter: string; readonly entry: string | undefined }) => void
}

export function Audit({ filter, entry, change }: AuditProps): ReactNode {
  const parsed = useMemo(() => parseFilter(filter, fields), [filter])
  const query = useMemo(() => queryOf(parsed), [parsed])
  const audit = useAudit(query)
  const items = useMemo(() => audit.data?.pages.flatMap(page => page.items) ?? [], [audit.data])
  const selected = items.find(each => keyOf(each) === entry)
  const narrow = (name: string, value: string) => change({ filter: withField(filter, name, value), entry: undefined })
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-start gap-3 border-b border-line p-3">
        <FilterLine
          value={filter}
          change={value => change({ filter: value, entry: undefined })}
          names={fields}
          unknown={parsed.unknown}
          placeholder="server:shop outcome:refused since:1h"
        />
        <Proof />
      </div>
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <div className={`flex min-h-0 min-w-0 flex-1 flex-col ${selected ? 'max-lg:hidden' : ''}`}>
          {audit.error && (
            <div className="p-3">
              <ProblemCard error={audit.error} retry={() => void audit.refetch()} />
            </div>
          )}
          {audit.isPending && (
            <div className="p-3">
              <Waiting rows={6} />
            </div>
          )}
          {audit.isSuccess && items.length === 0 && (
            <Nothing filter={filter} change={value => change({ filter: value, entry: undefined })} />
          )}
          {items.length > 0 && (
            <Rows
              label="Audit entries"
              items={items}
              keyOf={keyOf}
              selected={entry}
              select={each => change({ filter, entry: keyOf(each) })}
              more={audit.hasNextPage && !audit.isFetchingNextPage ? () => void audit.fetchNextPage() : undefined}
              draw={each => <Row entry={each} />}
            />
          )}
        </div>
        {selected && <EntryDetails entry={selected} narrow={narrow} close={() => change({ filter, entry: undefined })} />}
      </div>
    </div>
  )
}

function queryOf({ fields: given, text }: Filter): AuditQuery {
  const now = Date.now()
  const times = { since: parseTime(given.get('since'), now), until: parseTime(given.get('until'), now) }
  return Object.fromEntries(
    Object.entries({ ...Object.fromEntries(given), ...times, text: text || undefined }).filter(
      ([, value]) => value !== undefined,
    ),
  )
}

function keyOf({ position, at, event, target }: AuditEntry): string {
  return position === undefined ? `${at} ${event} ${target}` : String(position)
}

const outcomes: Readonly<Record<string, Tone>> = {
  success: 'good',
  approved: 'good',
  failure: 'danger',
  refused: 'danger',
  held: 'warn',
}

function Row({ entry: { at, event, target, outcome, more = {} } }: { readonly entry: AuditEntry }): ReactNode {
  const who = [more['client'], more['subject'], more['by']].filter(Boolean).join(' · ')
  return (
    <div className="grid grid-cols-[5.5rem_1fr_auto] items-baseline gap-x-3 px-3 py-1.5 md:grid-cols-[7rem_minmax(8rem,1.4fr)_minmax(6rem,1fr)_6rem_4rem]">
      <span className="text-muted tabular-nums">{timeText(at)}</span>
      <span className="min-w-0 truncate">
        {target !== '' && <Text most={120}>{target}</Text>} <span className="text-muted">{event.replaceAll('_', ' ')}</span>
      </span>
      <span className="hidden min-w-0 truncate text-muted md:block">
        <Text most={80}>{who}</Text>
      </span>
      <span>{outcome && <Badge tone={outcomes[outcome] ?? 'plain'}>{outcome}</Badge>}</span>
      <span className="hidden text-right text-muted tabular-nums md:block">
        {more['ms'] !== undefined && durationText(Number(more['ms']))}
      </span>
    </div>
  )
}

/** Nothing fits: the nearest wider filter is one press away. */
function Nothing({ filter, change }: { readonly filter: string; readonly change: (value: string) => void }): ReactNode {
  if (filter === '') return <p className="p-6 text-center text-muted">The audit log is empty. Each call is an entry.</p>
  const wider = filter.trim().split(/\s+/).slice(0, -1).join(' ')
  return (
    <div className="p-6 text-center text-muted">
      <p>No entry fits this filter.</p>
      <Button className="mt-3" onClick={() => change(wider)}>
        {wider === '' ? 'Show all entries' : `Search for ${wider}`}
      </Button>
    </div>
  )
}
