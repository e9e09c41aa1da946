/** One approval: what exactly would happen, why it is asked, and the answer. Also for a while after it was answered, with who did it. */
import type { ReactNode } from 'react'
import type { Answered, Approval, LikeApprovals } from '#contract'
import { ProblemError } from '../../api/client.ts'
import { useApproval } from '../../api/lists.ts'
import { useRole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { timeText } from '../../parts/time.tsx'
import { AnswerForm } from './answer-form.tsx'
import { QuestionPayload } from './question-payload.tsx'
import { RiskBadge } from './risk-badge.tsx'

export function ApprovalCard({ id, close }: { readonly id: string; readonly close: () => void }): ReactNode {
  const { data, error, isPending, refetch } = useApproval(id)
  const approver = useRole('approver')
  const gone = error instanceof ProblemError && error.status === 404
  return (
    <article className="card p-4" aria-label={data ? `${data.approval.tool ?? data.approval.server}` : 'Approval'}>
      <Button look="quiet" className="mb-2 lg:hidden" onClick={close}>
        ← All approvals
      </Button>
      {isPending && <Waiting rows={5} />}
      {gone && (
        <p className="text-muted">
          This approval is over: it was answered or expired some time ago. The audit log has the answer.
        </p>
      )}
      {error && !gone && <ProblemCard error={error} retry={() => void refetch()} />}
      {data && (
        <>
          <Question approval={data.approval} like={data.like} />
          {data.answered ? <AnsweredNote answered={data.answered} /> : approver && <AnswerForm approval={data.approval} />}
        </>
      )}
    </article>
  )
}

function Question({ approval, like }: { readonly approval: Approval; readonly like: LikeApprovals | undefined }): ReactNode {
  const { kind, risk, server, tool, text, rule, client, subject, since, digest, refuseOnly, changes = [] } = approval
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Server', server],
    ['Tool', tool],
    ['Called by', [client, subject].filter(Boolean).join(', ') || undefined],
    ['Asked by rule', rule],
    ['Since', timeText(since)],
    ['Digest', digest.slice(0, 16)],
    ['Asked before', like && like.yes + like.no > 0 ? `${like.yes} yes, ${like.no} no since ${timeText(like.since)}` : undefined],
  ]
  return (
    <>
      <div className="flex flex-wrap items-center gap-1.5">
        <RiskBadge kind={kind} risk={risk} />
      </div>
      <h2 className="mt-1.5 text-[1.21rem] font-semibold break-words">
        <Text>{text}</Text>
      </h2>
      <dl className="mt-3 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
        {facts
          .filter(([, value]) => value !== undefined)
          .map(([name, value = '']) => (
            <div key={name} className="contents">
              <dt className="text-muted">{name}</dt>
              <dd className="break-words">
                <Text most={500}>{value}</Text>
              </dd>
            </div>
          ))}
      </dl>
      {refuseOnly && (
        <p className="mt-3 rounded-lg border border-warn-line bg-warn-soft p-3 text-warn">
          It can only be refused: <Text>{refuseOnly}</Text>
        </p>
      )}
      {changes.length > 0 && (
        <ul aria-label="Changes" className="mt-3 list-disc space-y-0.5 pl-5">
          {changes.map(change => (
            <li key={change} className="break-words">
              <Text most={1000}>{change}</Text>
            </li>
          ))}
        </ul>
      )}
      <QuestionPayload approval={approval} />
    </>
  )
}

function AnsweredNote({ answered: { yes, by, at, reason } }: { readonly answered: Answered }): ReactNode {
  const what = yes === undefined ? 'It ended without an answer' : yes ? 'Approved' : 'Refused'
  return (
    <p role="status" className={`mt-4 rounded-lg p-3 ${yes ? 'bg-good-soft text-good' : 'bg-hover'}`}>
      <strong>{what}</strong>
      {by !== undefined && ` by ${by}`} at {timeText(at)}
      {reason !== undefined && (
        <>
          : <Text most={500}>{reason}</Text>
        </>
      )}
      .
    </p>
  )
}
