/** The log of the process and standard error of its servers, newest first; above it the mistakes of the configuration. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useMemo, useState } from 'react'
import type { LogLevel, LogLine, LogQuery } from '#contract'
import { faultList, useLog } from '../../api/lists.ts'
import { useResource } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { type Filter, parseFilter } from '../../parts/filter.ts'
import { FilterLine } from '../../parts/filter-line.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Rows } from '../../parts/rows.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'

const keyOf = ({ n }: LogLine) => String(n)

const fields = ['level', 'server', 'event']
const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
const tones: Readonly<Record<LogLevel, Tone>> = { debug: 'plain', info: 'plain', warn: 'warn', error: 'danger' }

export interface LogsProps {
  readonly filter: string
  readonly change: (filter: string) => void
}

export function Logs({ filter, change }: LogsProps): ReactNode {
  const parsed = useMemo(() => parseFilter(filter, fields), [filter])
  const query = useMemo(() => queryOf(parsed), [parsed])
  const log = useLog(query)
  const items = useMemo(() => log.data?.pages.flatMap(page => page.items) ?? [], [log.data])
  const { shown, held, toggle } = useHold(items)
  const [open, setOpen] = useState<string>()
  const keys = useMemo<KeyMap>(() => ({ ' ': toggle }), [toggle])
  useKeys(keys)
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Faults />
      <div className="flex flex-wrap items-start gap-3 border-b border-line p-3">
        <FilterLine value={filter} change={change} names={fields} unknown={parsed.unknown} placeholder="level:warn server:shop" />
        <Button aria-pressed={held !== undefined} onClick={toggle}>
          {held === undefined ? 'Hold' : held > 0 ? `Go on, ${held} new` : 'Go on'}
        </Button>
      </div>
      {log.error && (
        <div className="p-3">
          <ProblemCard error={log.error} retry={() => void log.refetch()} />
        </div>
      )}
      {log.isPending && (
        <div className="p-3">
          <Waiting rows={6} />
        </div>
      )}
      {log.isSuccess && items.length === 0 && (
        <p className="p-6 text-center text-muted">{filter === '' ? 'Silent since the start.' : 'No line fits this filter.'}</p>
      )}
      {items.length > 0 && (
        <Rows
          label="Log lines"
          items={shown}
          keyOf={keyOf}
          selected={open}
          select={({ n }) => setOpen(open === String(n) ? undefined : String(n))}
          more={log.hasNextPage && !log.isFetchingNextPage ? () => void log.fetchNextPage() : undefined}
          draw={line => <Line line={line} open={open === String(line.n)} />}
        />
      )}
    </div>
  )
}

/** Keeps what is shown while it is read; what came meanwhile is counted. */
function useHold(items: readonly LogLine[]) {
  const [kept, setKept] = useState<readonly LogLine[]>()
  const first = kept?.[0]?.n ?? 0
  const held = kept && items.filter(({ n }) => n > first).length
  const toggle = useMemo(() => () => setKept(before => (before === undefined ? items : undefined)), [items])
  return { shown: kept ?? items, held, toggle }
}

function queryOf({ fields: given, text }: Filter): LogQuery {
  const level = levels.find(each => each === given.get('level'))
  const [server, event] = [given.get('server'), given.get('event')]
  return { ...(level && { level }), ...(server && { server }), ...(event && { event }), ...(text && { text }) }
}

/** Longer lines are shown whole when they are opened. */
const lineLength = 400

function Line({ line: { at, level, server, event, text }, open }: { readonly line: LogLine; readonly open: boolean }): ReactNode {
  return (
    <div className="flex flex-wrap items-baseline gap-x-3 px-3 py-1 font-mono text-[0.93rem] md:flex-nowrap">
      <span className="shrink-0 text-muted tabular-nums">{timeText(at)}</span>
      <span className="w-12 shrink-0">
        <Badge tone={tones[level]}>{level}</Badge>
      </span>
      <span className="w-24 shrink-0 truncate text-muted max-md:w-auto" title={server}>
        {server && <Text most={60}>{server}</Text>}
      </span>
      <span className={open ? 'min-w-0 break-words whitespace-pre-wrap' : 'min-w-0 truncate'}>
        <span className="text-muted">{event} </span>
        <Text most={open ? 65_536 : lineLength}>{text}</Text>
      </span>
    </div>
  )
}

function Faults(): ReactNode {
  const { data = [] } = useQuery({ ...faultList, enabled: useResource('/faults') })
  if (data.length === 0) return null
  return (
    <section
      aria-label="Mistakes in the configuration"
      className="max-h-60 overflow-auto border-b border-danger-line bg-danger-soft p-3"
    >
      <h2 className="mb-1 font-semibold">Mistakes in the configuration, at its last reading</h2>
      <ul className="space-y-1.5">
        {data.map(({ file, line, rule, message, fix }) => (
          <li key={`${file} ${line} ${rule} ${message}`}>
            <code className="text-muted">
              {file}:{line} {rule}
            </code>{' '}
            <Text>{message}</Text> <Text>{fix}</Text>
          </li>
        ))}
      </ul>
    </section>
  )
}
