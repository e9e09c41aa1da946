/** Proves the chain of the audit log: each entry is sealed with the one before it, so that a change or a gap shows. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useMemo } from 'react'
import type { Job } from '#contract'
import { request } from '../../api/client.ts'
import { lastProof } from '../../api/lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { type KeyMap, useKeys } from '../../frame/keys.ts'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { timeText } from '../../parts/time.tsx'

export function Proof(): ReactNode {
  const client = useQueryClient()
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const { data: job } = useQuery(lastProof)
  const prove = useMutation({
    mutationFn: () => request('POST /audit/proof'),
    // News of a short job may come before the answer that it has begun: what is there of this job is newer.
    onSuccess: started =>
      client.setQueryData(lastProof.queryKey, shown => (started === undefined || shown?.id === started.id ? shown : started)),
  })
  const running = job?.state === 'running'
  const blocked = running || disconnected || prove.isPending
  const keys = useMemo<KeyMap>(() => (operator && !blocked ? { p: () => prove.mutate() } : {}), [operator, blocked, prove.mutate])
  useKeys(keys)
  return (
    <div className="flex max-w-full flex-wrap items-center gap-3">
      <span role="status">{job && <Outcome job={job} />}</span>
      {operator && (
        <Button disabled={blocked} onClick={() => prove.mutate()}>
          Prove the chain
        </Button>
      )}
      {prove.error && <ProblemCard error={prove.error} />}
    </div>
  )
}

function Outcome({ job: { state, done, total, outcome, why, endedAt } }: { readonly job: Job }): ReactNode {
  if (state === 'running') {
    return (
      <label className="flex items-center gap-2 text-muted">
        {`Checked ${done.toLocaleString('en')}${total === undefined ? '' : ` of ${total.toLocaleString('en')}`}`}
        <progress className="w-24" value={total === undefined ? undefined : done} max={total} />
      </label>
    )
  }
  if (outcome === undefined) return <span className="text-danger">The proof failed: {why}</span>
  if (!outcome.ok) {
    return (
      <strong className="text-danger">
        Broken after entry {outcome.after}: {outcome.why}
      </strong>
    )
  }
  return (
    <span className="flex items-center gap-2 text-good">
      {`✓ ${outcome.lines.toLocaleString('en')} entries are unbroken${endedAt === undefined ? '' : `, ${timeText(endedAt)}`}`}
      <Button
        look="quiet"
        title={outcome.head}
        aria-label={`Copy the head ${outcome.head}`}
        onClick={() => void navigator.clipboard.writeText(outcome.head)}
      >
        head {outcome.head.slice(0, 8)} ⧉
      </Button>
    </span>
  )
}
