/** Takes a turn back: first what would happen and what would stay, then, once somebody has read it, what happened. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { UndoPlan, UndoReport, UndoStep } from '#contract'
import { ProblemError, request } from '../../api/client.ts'
import { useUndoPlan } from '../../api/host-lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { Dialog } from '../../frame/dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { Json } from '../../parts/json.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'

export interface UndoDialogProps {
  readonly conversation: string
  readonly seq: number
  readonly close: () => void
}

export function UndoDialog({ conversation, seq, close }: UndoDialogProps): ReactNode {
  const plan = useUndoPlan(conversation, seq)
  const client = useQueryClient()
  const disconnected = useDisconnected()
  const undo = useMutation({
    mutationFn: (digest: string) =>
      request('POST /conversations/:conversation/turns/:seq/undo', {
        path: { conversation, seq: String(seq) },
        body: { digest },
      }),
    onSettled: () => {
      for (const name of ['turns', 'turn', 'conversations', 'state']) void client.invalidateQueries({ queryKey: [name] })
    },
  })
  const other = undo.error instanceof ProblemError && undo.error.problem.code === 'DIGEST_MISMATCH'
  return (
    <Dialog label={`Undo turn ${seq}`} close={close}>
      <div className="flex max-h-[76vh] flex-col">
        <div className="min-h-0 flex-1 space-y-3 overflow-auto p-5">
          <h2 className="text-[1.14rem] font-semibold">Undo turn {seq}</h2>
          {undo.data ? (
            <Report report={undo.data} />
          ) : (
            <>
              {plan.isPending && <Waiting rows={4} />}
              {plan.error && <ProblemCard error={plan.error} retry={() => void plan.refetch()} />}
              {plan.data && <Plan plan={plan.data} />}
            </>
          )}
          {undo.error && !other && <ProblemCard error={undo.error} />}
          {other && (
            <p role="alert" className="rounded-lg bg-warn-soft p-3 text-warn">
              Something has changed since the plan was made. Read the new plan before you undo.
            </p>
          )}
        </div>
        <div className="flex justify-end gap-2 border-t border-line p-4">
          <Button onClick={close}>{undo.data ? 'Close' : 'Keep the turn'}</Button>
          {other && (
            <Button
              onClick={() => {
                undo.reset()
                void plan.refetch()
              }}
            >
              Read the new plan
            </Button>
          )}
          {plan.data && !undo.data && !other && (
            <Button
              look="danger"
              disabled={disconnected || undo.isPending || plan.isFetching}
              onClick={() => undo.mutate(plan.data.digest)}
            >
              {undo.isPending ? 'Undoing…' : plan.data.again ? 'Try again what stayed' : `Undo ${turnsText(plan.data.turns)}`}
            </Button>
          )}
        </div>
      </div>
    </Dialog>
  )
}

/** `turn 4`, `turns 5 and 4`, `8 turns`. */
function turnsText(turns: readonly number[]): string {
  if (turns.length === 1) return `turn ${turns[0]}`
  return turns.length > 3 ? `${turns.length} turns` : `turns ${turns.join(', ').replace(/, (\d+)$/, ' and $1')}`
}

function Plan({ plan: { turns, steps, complete, running } }: { readonly plan: UndoPlan }): ReactNode {
  const doing = steps.filter(({ outcome }) => outcome !== 'nothing')
  return (
    <>
      <p>
        {turns.length > 1
          ? `The ${turnsText(turns)} are taken out of the conversation, because later turns build on earlier ones.`
          : turns.length === 1
            ? 'The turn is taken out of the conversation.'
            : 'The turn is out of the conversation already.'}
        {running.length > 0 &&
          ` ${capital(turnsText(running))} still ${running.length > 1 ? 'run' : 'runs'} and will be stopped.`}
      </p>
      <Stays steps={steps} title="What stays" />
      {complete && <p className="text-good">Nothing is known to stay. A server may still refuse.</p>}
      {doing.length === 0 ? (
        <p className="text-muted">It changed nothing at any server.</p>
      ) : (
        <StepList steps={doing} title="In this order, the last effect first" />
      )}
    </>
  )
}

function Report({ report: { complete, steps } }: { readonly report: UndoReport }): ReactNode {
  return (
    <>
      <p role="status" className={`rounded-lg p-3 ${complete ? 'bg-good-soft text-good' : 'bg-warn-soft text-warn'}`}>
        {complete ? 'Undone. Nothing of it is known to stay.' : 'Undone, but not all of it: some effects stay.'}
      </p>
      <Stays steps={steps} title="What stays" />
      {steps.length > 0 && <StepList steps={steps} title="What was done" />}
    </>
  )
}

function Stays({ steps, title }: { readonly steps: readonly UndoStep[]; readonly title: string }): ReactNode {
  const left = steps.filter(({ outcome }) => outcome === 'stays')
  if (left.length === 0) return null
  return (
    <section aria-label={title} className="rounded-lg border border-warn-line bg-warn-soft p-3">
      <h3 className="font-semibold text-warn">{title}</h3>
      <ul className="mt-1 space-y-1.5">
        {left.map((step, index) => (
          <li key={index}>
            <strong>
              <Text most={150}>{nameOf(step)}</Text>
            </strong>
            {step.why && (
              <>
                : <Text most={600}>{step.why.message}</Text>
                <span className="block text-muted">
                  <Text most={600}>{step.why.fix}</Text>
                </span>
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

const signs: Readonly<Record<UndoStep['outcome'], readonly [sign: string, className: string]>> = {
  planned: ['↶', 'text-accent-strong'],
  undone: ['✓', 'text-good'],
  nothing: ['–', 'text-muted'],
  stays: ['⚠', 'text-warn'],
}

function StepList({ steps, title }: { readonly steps: readonly UndoStep[]; readonly title: string }): ReactNode {
  return (
    <section aria-label={title}>
      <h3 className="label mb-1">{title}</h3>
      <ol className="space-y-1">
        {steps.map((step, index) => {
          const [sign, className] = signs[step.outcome]
          return (
            <li key={index} className="flex gap-2.5">
              <span aria-hidden="true" className={`w-4 shrink-0 text-center ${className}`}>
                {sign}
              </span>
              <div className="min-w-0 flex-1 break-words">
                <strong className="font-medium">
                  <Text most={150}>{nameOf(step)}</Text>
                </strong>{' '}
                <span className="text-muted">
                  <Text most={300}>{wayOf(step)}</Text>
                </span>
                {step.asks !== undefined && (
                  <p className="text-warn">
                    The rule <Text most={100}>{step.asks}</Text> asks before it.
                  </p>
                )}
                {step.compensation?.arguments !== undefined && (
                  <details>
                    <summary className="text-muted">Arguments of {step.compensation.tool}</summary>
                    <Json value={step.compensation.arguments} label={`Arguments of ${step.compensation.tool}`} />
                  </details>
                )}
              </div>
            </li>
          )
        })}
      </ol>
    </section>
  )
}

function nameOf({ server, tool, featureSet }: UndoStep): string {
  return [server, tool ?? (featureSet === undefined ? undefined : `state of ${featureSet}`)].filter(Boolean).join('/')
}

/** What happens with it, or happened. */
function wayOf({ outcome, by, to, compensation, declined }: UndoStep): string {
  if (outcome === 'stays') return 'stays'
  if (outcome === 'nothing') return declined === undefined ? 'has nothing to undo' : `was declined: ${declined}`
  const is = outcome === 'planned' ? 'is' : 'was'
  if (by === 'compensation') return `${is} undone by a call of ${compensation?.tool ?? 'the tool that its server named'}`
  if (by === 'transaction') return 'was rolled back by its server already'
  return `${is} rolled back to ${to === null ? 'before its first checkpoint' : (to ?? 'the checkpoint before')}`
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
