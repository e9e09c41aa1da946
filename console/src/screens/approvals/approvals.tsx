/** What waits for a yes or no. New ones come at the end, so that nothing moves under the pointer; nothing is answered in bulk. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo } from 'react'
import type { Approval } from '#contract'
import { approvalList } from '../../api/lists.ts'
import { useConsole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Waiting } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText, useNow } from '../../parts/time.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { Grants } from './grants.tsx'
import { RiskBadge } from './risk-badge.tsx'

export function Approvals({ id }: { readonly id?: string }): ReactNode {
  const { self } = useConsole()
  const { data = [], isPending, error, refetch } = useQuery(approvalList)
  const navigate = useNavigate()
  const open = (next: string) => void navigate({ to: '/approvals/$id', params: { id: next }, replace: true })
  const at = data.findIndex(each => each.id === id)
  const first = data[0]?.id
  const wide = matchMedia('(min-width: 1024px)').matches
  useEffect(() => {
    if (id === undefined && first !== undefined && wide)
      void navigate({ to: '/approvals/$id', params: { id: first }, replace: true })
  }, [id, first, wide, navigate])
  const keys = useMemo<KeyMap>(() => {
    const step = (by: number) => () => {
      const next = data[Math.min(data.length - 1, Math.max(0, at + by))]
      if (next !== undefined) void navigate({ to: '/approvals/$id', params: { id: next.id }, replace: true })
    }
    return { j: step(1), k: step(-1), Escape: () => void navigate({ to: '/approvals' }) }
  }, [data, at, navigate])
  useKeys(keys)
  return (
    <div className="mx-auto flex h-full max-w-[90rem] flex-col gap-4 p-4 lg:flex-row">
      <section
        aria-label="Waiting approvals"
        className={`min-h-0 shrink-0 overflow-auto lg:w-80 ${id === undefined ? '' : 'hidden lg:block'}`}
      >
        {error && <ProblemCard error={error} retry={() => void refetch()} />}
        {isPending && <Waiting />}
        {data.length === 0 && !isPending && !error && (
          <p className="card px-4 py-6 text-center text-muted">
            No approval is requested.
            <br />
            {self.kind === 'gateway'
              ? 'A call that a rule asks about appears here, with its exact arguments.'
              : 'Whatever a server asks its user for appears here: forms, pages, inferences.'}
          </p>
        )}
        <ul className="space-y-2">
          {data.map(approval => (
            <li key={approval.id}>
              <button
                type="button"
                aria-current={approval.id === id}
                onClick={() => open(approval.id)}
                className={`card w-full px-3 py-2.5 text-left ${approval.id === id ? 'border-accent bg-accent-soft' : 'hover:bg-hover'}`}
              >
                <Summary approval={approval} />
              </button>
            </li>
          ))}
        </ul>
        <Grants />
      </section>
      <section aria-label="Approval" className="min-h-0 min-w-0 flex-1 overflow-auto">
        {id !== undefined && <ApprovalCard key={id} id={id} close={() => void navigate({ to: '/approvals' })} />}
        {!self.session.roles.includes('approver') && (
          <p className="mt-3 text-muted">You can read approvals. Answering them needs the role approver.</p>
        )}
      </section>
    </div>
  )
}

function Summary({ approval }: { readonly approval: Approval }): ReactNode {
  const now = useNow()
  const { tool, server, kind, client, text, since, until, risk } = approval
  const left = until === undefined ? undefined : Math.max(0, until - now)
  return (
    <>
      <span className="flex items-baseline justify-between gap-2">
        <strong className="truncate">
          <Text most={80}>{tool ?? server}</Text>
        </strong>
        <span className="whitespace-nowrap text-[0.86rem] text-muted tabular-nums">
          {left === undefined ? durationText(now - since) : `${durationText(left)} left`}
        </span>
      </span>
      <span className="block truncate text-muted">
        <Text most={160}>{text}</Text>
      </span>
      <span className="mt-1 flex flex-wrap items-center gap-1.5 text-[0.86rem] text-muted">
        <RiskBadge kind={kind} risk={risk} />
        <Text most={60}>{[server, client].filter(Boolean).join(' · ')}</Text>
      </span>
    </>
  )
}
