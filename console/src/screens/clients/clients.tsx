/** Who calls: since when, how often, what was refused, and what each may spend. The busiest come first. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import type { Client } from '#contract'
import { clientList } from '../../api/lists.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Rows } from '../../parts/rows.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { Budgets } from '../overview/budgets.tsx'

const keyOf = ({ name }: Client) => name

export interface ClientsProps {
  readonly client: string | undefined
  readonly select: (name: string | undefined) => void
}

export function Clients({ client, select }: ClientsProps): ReactNode {
  const { data, error, isPending, refetch } = useQuery(clientList)
  const items = useMemo(() => [...(data ?? [])].sort((a, b) => b.calls + b.refused - a.calls - a.refused), [data])
  const selected = items.find(({ name }) => name === client)
  return (
    <div className="flex h-full min-h-0 flex-col lg:flex-row">
      <div className={`flex min-h-0 min-w-0 flex-1 flex-col ${selected ? 'max-lg:hidden' : ''}`}>
        {error && (
          <div className="p-3">
            <ProblemCard error={error} retry={() => void refetch()} />
          </div>
        )}
        {isPending && (
          <div className="p-3">
            <Waiting />
          </div>
        )}
        {data?.length === 0 && (
          <p className="p-6 text-center text-muted">
            Nobody has called yet. A client connects to the address that the gateway printed at its start.
          </p>
        )}
        {items.length > 0 && (
          <Rows
            label="Clients"
            items={items}
            keyOf={keyOf}
            selected={client}
            select={({ name }) => select(name)}
            height={52}
            draw={each => <Row client={each} />}
          />
        )}
      </div>
      {selected && <Details client={selected} close={() => select(undefined)} />}
    </div>
  )
}

function Row({ client: { name, configured, calls, failures, refused, last, budgets } }: { readonly client: Client }): ReactNode {
  const spent = budgets.some(({ used, most }) => used >= most)
  return (
    <div className="px-3 py-2">
      <div className="flex items-baseline gap-2">
        <strong className="truncate">
          <Text most={80}>{name}</Text>
        </strong>
        {!configured && <Badge>not in the configuration</Badge>}
        {spent && <Badge tone="danger">budget used up</Badge>}
        <span className="ml-auto whitespace-nowrap text-muted">
          {last === undefined ? 'has not called' : `last ${timeText(last)}`}
        </span>
      </div>
      <div className="text-muted tabular-nums">
        {calls.toLocaleString('en')} calls, {failures.toLocaleString('en')} failed, {refused.toLocaleString('en')} refused
      </div>
    </div>
  )
}

function Details({ client, close }: { readonly client: Client; readonly close: () => void }): ReactNode {
  const { name, servers, subjects, refusals, budgets, first } = client
  return (
    <aside
      aria-label={`Client ${name}`}
      className="min-h-0 space-y-4 overflow-auto border-line bg-raised p-4 lg:w-96 lg:border-l"
    >
      <div className="flex items-center justify-between gap-2">
        <h2 className="truncate font-semibold">
          <Text most={80}>{name}</Text>
        </h2>
        <Button look="quiet" onClick={close}>
          Close
        </Button>
      </div>
      {first !== undefined && <p className="text-muted">First call at {timeText(first)}.</p>}
      <Names title="Sees servers" names={servers} none="None." />
      <Names title="Subjects" names={subjects} none="Its calls carried no subject." />
      <section>
        <h3 className="label mb-1">Refused</h3>
        {refusals.length === 0 ? (
          <p className="text-muted">Nothing.</p>
        ) : (
          <ul className="space-y-0.5">
            {refusals.map(({ why, times }) => (
              <li key={why} className="flex justify-between gap-3">
                <Text most={120}>{why}</Text>
                <span className="tabular-nums">{times.toLocaleString('en')}</span>
              </li>
            ))}
          </ul>
        )}
      </section>
      <section>
        <h3 className="label mb-1">Budgets</h3>
        <Budgets budgets={budgets} />
      </section>
      <Link to="/audit" search={{ q: `client:${name}` }} className="underline">
        Its audit entries
      </Link>
    </aside>
  )
}

function Names({
  title,
  names,
  none,
}: {
  readonly title: string
  readonly names: readonly string[]
  readonly none: string
}): ReactNode {
  return (
    <section>
      <h3 className="label mb-1">{title}</h3>
      {names.length === 0 ? (
        <p className="text-muted">{none}</p>
      ) : (
        <ul className="flex flex-wrap gap-1.5">
          {names.map(each => (
            <li key={each} className="max-w-full truncate rounded bg-hover px-1.5">
              <Text most={80}>{each}</Text>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
