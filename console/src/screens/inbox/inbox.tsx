/** Events that servers pushed: what waits, what was done, what was refused and why, and what was given up. */
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import type { InboxEvent, InboxQuery, InboxState } from '#contract'
import { useInbox } from '../../api/host-lists.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Waiting } from '../../parts/card.tsx'
import { elementId } from '../../parts/element-id.ts'
import { type Filter, parseFilter, withField } from '../../parts/filter.ts'
import { FilterLine } from '../../parts/filter-line.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Rows } from '../../parts/rows.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { EventDetails } from './event-details.tsx'

const fields = ['state', 'server']
const states: readonly InboxState[] = ['waiting', 'done', 'refused', 'dead']
export const stateTones: Readonly<Record<InboxState, Tone>> = { waiting: 'plain', done: 'good', refused: 'warn', dead: 'danger' }

export interface InboxProps {
  readonly filter: string
  /** `SERVER EVENT` of the one that is opened. */
  readonly event: string | undefined
}

export function Inbox({ filter, event }: InboxProps): ReactNode {
  const navigate = useNavigate()
  const change = (next: { readonly filter: string; readonly event?: string }) =>
    void navigate({ to: '/inbox', search: { q: next.filter, event: next.event }, replace: true })
  const parsed = useMemo(() => parseFilter(filter, fields), [filter])
  const query = useMemo(() => queryOf(parsed), [parsed])
  const inbox = useInbox(query)
  const items = useMemo(() => {
    const all = inbox.data?.pages.flatMap(page => page.items) ?? []
    const words = parsed.text.toLowerCase()
    return words === '' ? all : all.filter(each => wordsOf(each).includes(words))
  }, [inbox.data, parsed.text])
  const first = inbox.data?.pages[0]
  const [server, id] = splitKey(event)
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-start gap-3 border-b border-line p-3">
        <FilterLine
          value={filter}
          change={value => change({ filter: value })}
          names={fields}
          unknown={parsed.unknown}
          placeholder="state:dead server:calendar"
        />
        {first && (
          <ul aria-label="Events by state" className="flex flex-wrap gap-1.5">
            {states.map(state => {
              const chosen = query.state === state
              return (
                <li key={state}>
                  <button
                    type="button"
                    aria-pressed={chosen}
                    onClick={() => change({ filter: withField(filter, 'state', chosen ? undefined : state) })}
                    className={`min-h-8 rounded-md border px-2.5 tabular-nums ${chosen ? 'border-accent bg-accent-soft' : 'border-line hover:bg-hover'}`}
                  >
                    {first.counts[state].toLocaleString('en')} {state}
                  </button>
                </li>
              )
            })}
          </ul>
        )}
      </div>
      <div className="flex min-h-0 flex-1 flex-col lg:flex-row">
        <div className={`flex min-h-0 min-w-0 flex-1 flex-col ${id === undefined ? '' : 'max-lg:hidden'}`}>
          {inbox.error && (
            <div className="p-3">
              <ProblemCard error={inbox.error} retry={() => void inbox.refetch()} />
            </div>
          )}
          {inbox.isPending && (
            <div className="p-3">
              <Waiting rows={6} />
            </div>
          )}
          {first?.cut && (
            <p className="px-3 pt-2 text-muted">Of a server with more than 10,000 events only so many are counted and listed.</p>
          )}
          {inbox.isSuccess && items.length === 0 && <Nothing filtered={filter !== ''} />}
          {items.length > 0 && (
            <Rows
              label="Events"
              items={items}
              keyOf={each => elementId(keyOf(each))}
              height={56}
              selected={event === undefined ? undefined : elementId(event)}
              select={each => change({ filter, event: keyOf(each) })}
              more={inbox.hasNextPage && !inbox.isFetchingNextPage ? () => void inbox.fetchNextPage() : undefined}
              draw={each => <Row event={each} />}
            />
          )}
        </div>
        {server !== undefined && id !== undefined && (
          <EventDetails key={event} server={server} id={id} close={() => change({ filter })} />
        )}
      </div>
    </div>
  )
}

function queryOf({ fields: given }: Filter): InboxQuery {
  const state = states.find(each => each === given.get('state'))
  const server = given.get('server')
  return { ...(state && { state }), ...(server && { server }) }
}

function wordsOf({ server, featureSet, eventId, preview = '', why }: InboxEvent): string {
  return `${server} ${featureSet} ${eventId} ${preview} ${why?.message ?? ''}`.toLowerCase()
}

/** Names of servers hold no spaces. */
function keyOf({ server, eventId }: InboxEvent): string {
  return `${server} ${eventId}`
}

function splitKey(key: string | undefined): readonly [server?: string, id?: string] {
  const at = key?.indexOf(' ') ?? -1
  return key === undefined || at < 0 ? [] : [key.slice(0, at), key.slice(at + 1)]
}

function Row({ event: { server, featureSet, state, at, preview, attempts, why } }: { readonly event: InboxEvent }): ReactNode {
  const running = attempts.at(-1)?.outcome === 'running'
  const failed = attempts.filter(({ outcome }) => outcome === 'failed' || outcome === 'interrupted').length
  return (
    <div className="px-3 py-1.5">
      <div className="flex items-baseline gap-3">
        <span className="shrink-0 text-muted tabular-nums">{timeText(at)}</span>
        <span className="min-w-0 flex-1 truncate">
          <Text most={160}>{preview || `${server}/${featureSet}`}</Text>
        </span>
        <Badge tone={stateTones[state]}>{running ? 'running' : state}</Badge>
      </div>
      <div className="truncate text-[0.93rem] text-muted">
        <Text most={160}>{`${server}/${featureSet}`}</Text>
        {failed > 0 && ` · ${failed} failed ${failed === 1 ? 'attempt' : 'attempts'}`}
        {why && (
          <>
            {' · '}
            <Text most={200}>{why.message}</Text>
          </>
        )}
      </div>
    </div>
  )
}

function Nothing({ filtered }: { readonly filtered: boolean }): ReactNode {
  if (filtered) return <p className="p-6 text-center text-muted">No event fits this filter.</p>
  return (
    <p className="p-6 text-center text-muted">
      No event has arrived.
      <br />
      Servers push events through feature sets that use pushEvents, and through the events that the config names. Each becomes a
      turn.
    </p>
  )
}
