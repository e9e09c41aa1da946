/** Answers that still count: what is not asked again until they expire. Each can be withdrawn. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Grant } from '#contract'
import { request } from '../../api/client.ts'
import { grantList } from '../../api/host-lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useConsole, useRole } from '../../frame/context.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'

export function Grants(): ReactNode {
  const { resources } = useConsole().self
  const offered = resources.includes('/grants')
  const { data = [] } = useQuery({ ...grantList, enabled: offered })
  const client = useQueryClient()
  const approver = useRole('approver')
  const disconnected = useDisconnected()
  const withdraw = useMutation({
    mutationFn: ({ server, id }: Grant) => request('DELETE /grants/:server/:id', { path: { server, id } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['grants'] }),
  })
  if (data.length === 0) return null
  return (
    <section aria-label="Answers that still count" className="mt-4">
      <h2 className="label mb-1">Answers that still count</h2>
      <ul className="card divide-y divide-line">
        {data.map(grant => (
          <li key={`${grant.server} ${grant.id}`} className="flex items-center gap-2 px-3 py-1.5">
            <div className="min-w-0 flex-1">
              <Badge tone={grant.effect === 'allow' ? 'good' : 'danger'}>{grant.effect === 'allow' ? 'yes' : 'no'}</Badge>{' '}
              <span className="break-words">
                <Text most={200}>{subjectOf(grant)}</Text>
              </span>
              <div className="text-[0.86rem] text-muted">
                {reach(grant)}, until {timeText(grant.expires)}
              </div>
            </div>
            {approver && (
              <Button
                look="quiet"
                aria-label={`Ask again about ${subjectOf(grant)}`}
                disabled={disconnected || withdraw.isPending}
                onClick={() => withdraw.mutate(grant)}
              >
                Ask again
              </Button>
            )}
          </li>
        ))}
      </ul>
      {withdraw.error && <ProblemCard error={withdraw.error} />}
    </section>
  )
}

/** An answer to one exact request knows only its digest. */
function subjectOf({ server, tool, featureSet, kind }: Grant): string {
  const name = tool ?? featureSet
  return name === undefined ? `${server}: one ${kind === 'tool' ? 'call' : kind}` : `${server}/${name}`
}

function reach({ covers, digest }: Grant): string {
  if (covers === 'tool') return 'every call of the tool'
  if (covers === 'scope') return 'everything in the scope'
  return digest === undefined ? 'the same question' : 'exactly the same request'
}
