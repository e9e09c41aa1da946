/** What the server offers: tools, resources or prompts, grouped by the beginnings of their names, and the calls that were saved. */
import { type ReactNode, useMemo, useState } from 'react'
import type { Offer, ServerRow } from '#contract'
import { type OfferList, useOffers } from '../../api/author.ts'
import { useConsole } from '../../frame/context.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { QueryState } from '../../parts/query-state.tsx'
import { Rows } from '../../parts/rows.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Text } from '../../parts/text.tsx'
import { keyOfOffer, type OfferLine, offerLines, prefixOf } from './offer-groups.ts'
import { forgetCall, type SavedCall, useSavedCalls } from './saved-calls.ts'

export interface OfferPartProps {
  readonly server: ServerRow
  readonly kind: Offer['kind']
  readonly item: string | undefined
  readonly choose: (offer: Pick<Offer, 'kind' | 'name'>) => void
  readonly load: (call: SavedCall) => void
}

const tabs = ['tools', 'resources', 'prompts', 'saved'] as const

const tabOf: Readonly<Record<Offer['kind'], OfferList>> = {
  tool: 'tools',
  resource: 'resources',
  template: 'resources',
  prompt: 'prompts',
}

export function OfferPart({ server, kind, item, choose, load }: OfferPartProps): ReactNode {
  const { self } = useConsole()
  const [tab, setTab] = useState<(typeof tabs)[number]>(tabOf[kind])
  const saved = useSavedCalls().filter(call => call.target === self.name && call.server === server.name)
  const counts = { tools: server.tools, resources: server.resources, prompts: server.prompts, saved: saved.length }
  return (
    <>
      <div className="p-2">
        <Tabs label="What the server offers" names={tabs} chosen={tab} choose={setTab} counts={counts} />
      </div>
      {tab === 'saved' ? (
        <Saved calls={saved} load={load} />
      ) : (
        <Offers key={tab} server={server} list={tab} kind={kind} item={item} choose={choose} />
      )}
    </>
  )
}

const keyOf = ({ key }: OfferLine) => key

function Offers({ server, list, kind, item, choose }: Omit<OfferPartProps, 'load'> & { readonly list: OfferList }): ReactNode {
  const query = useOffers(server.name, list, undefined)
  const { data } = query
  const [filter, setFilter] = useState('')
  const [turned, setTurned] = useState<ReadonlySet<string>>(() => new Set(item === undefined ? [] : [prefixOf(item)]))
  const lines = useMemo(() => offerLines(data ?? [], filter, turned), [data, filter, turned])
  const [at, setAt] = useState<string>()
  const chosen = item === undefined ? undefined : keyOfOffer({ kind, name: item })
  const turn = (prefix: string) => {
    const next = new Set(turned)
    if (!next.delete(prefix)) next.add(prefix)
    setTurned(next)
  }
  const open = (line: OfferLine) => (line.kind === 'group' ? turn(line.prefix) : choose(line.offer))
  // A press chooses or unfolds at once; the arrows only move, and Enter chooses.
  const select = (line: OfferLine, by: 'key' | 'press') => {
    setAt(line.key)
    if (by === 'press') open(line)
  }
  return (
    <>
      <div className="px-2 pb-2">
        <input
          type="search"
          data-filter=""
          aria-label={`Filter ${list}`}
          placeholder="filter"
          autoComplete="off"
          spellCheck={false}
          className="w-full"
          value={filter}
          onChange={event => setFilter(event.target.value)}
        />
      </div>
      <QueryState query={query} rows={5} />
      {data !== undefined && lines.length === 0 && (
        <p className="p-4 text-muted">{data.length === 0 ? `The server offers no ${list}.` : 'Nothing has these words.'}</p>
      )}
      {lines.length > 0 && (
        <Rows
          label={list}
          items={lines}
          keyOf={keyOf}
          selected={at ?? chosen}
          select={select}
          open={open}
          height={32}
          draw={line => <Line line={line} chosen={line.key === chosen} />}
        />
      )}
    </>
  )
}

function Line({ line, chosen }: { readonly line: OfferLine; readonly chosen: boolean }): ReactNode {
  if (line.kind === 'group') {
    return (
      <span className="flex items-baseline gap-2 px-3 py-1.5 text-muted">
        <span aria-hidden="true">{line.open ? '▾' : '▸'}</span>
        <span className="truncate">
          <Text most={60}>{line.prefix}</Text>
        </span>
        <span className="ml-auto tabular-nums">{line.count.toLocaleString('en')}</span>
        <span className="sr-only">{line.open ? 'unfolded' : 'folded'}</span>
      </span>
    )
  }
  const { name, title, kind, readOnly, destructive } = line.offer
  return (
    <span className={`flex items-baseline gap-2 py-1.5 pr-3 ${line.inGroup ? 'pl-7' : 'pl-3'}`} title={title}>
      <span className={`truncate ${chosen ? 'font-semibold text-accent-strong' : ''}`}>
        <Text most={120}>{name}</Text>
      </span>
      <span className="ml-auto shrink-0">
        {kind === 'template' && <Badge>template</Badge>}
        {kind === 'tool' && destructive === true && readOnly !== true && <Badge tone="warn">destructive</Badge>}
        {kind === 'tool' && readOnly === true && <Badge>reads</Badge>}
      </span>
    </span>
  )
}

function Saved({ calls, load }: { readonly calls: readonly SavedCall[]; readonly load: (call: SavedCall) => void }): ReactNode {
  if (calls.length === 0)
    return <p className="p-4 text-muted">Nothing is saved. Save a call beside Run: it is kept in this browser.</p>
  return (
    <ul className="min-h-0 flex-1 divide-y divide-line overflow-auto">
      {calls.map(call => (
        <li key={`${call.kind} ${call.item} ${call.label}`} className="flex items-center">
          <button type="button" className="min-w-0 flex-1 px-3 py-1.5 text-left hover:bg-hover" onClick={() => load(call)}>
            <span className="block truncate">
              <Text most={80}>{call.item}</Text>
            </span>
            <span className="block truncate text-muted">
              <Text most={120}>{call.label}</Text>
            </span>
          </button>
          <Button look="quiet" aria-label={`Forget ${call.label}`} onClick={() => forgetCall(call)}>
            ✕
          </Button>
        </li>
      ))}
    </ul>
  )
}
