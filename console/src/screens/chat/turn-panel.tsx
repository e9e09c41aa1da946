/** How one turn came to its answer: its steps in time, one of them opened, the parts of its prompt, and what hooks changed. */
import { Link, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useMemo } from 'react'
import type { TurnDetail, TurnSpan } from '#contract'
import { useTurn } from '../../api/host-lists.ts'
import { Button } from '../../parts/button.tsx'
import { Card, Waiting } from '../../parts/card.tsx'
import { DiffView } from '../../parts/diff-view.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText, timeText, useNow } from '../../parts/time.tsx'
import { type StepLook, Waterfall, type WaterfallStep } from '../../pictures/waterfall.tsx'
import { PromptParts } from './prompt-parts.tsx'
import { StepDetails } from './step-details.tsx'
import { costText, isOpen, originText, TurnBadge } from './turn-words.tsx'

export interface TurnPanelProps {
  readonly conversation: string
  readonly seq: number
  readonly span: string | undefined
  readonly undo: (() => void) | undefined
}

export function TurnPanel({ conversation, seq, span, undo }: TurnPanelProps): ReactNode {
  const { data: turn, error, refetch } = useTurn(conversation, seq)
  if (error) {
    return (
      <div className="p-4">
        <ProblemCard error={error} retry={() => void refetch()} />
      </div>
    )
  }
  if (turn === undefined) {
    return (
      <div className="p-4">
        <Waiting rows={6} />
      </div>
    )
  }
  const { inferenceId, status, prompt, changes, hooks } = turn
  const failed = hooks.filter(({ why }) => why !== undefined)
  return (
    <div className="space-y-4 p-4">
      <header className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <div className="min-w-0 flex-1 basis-72">
          <h2 className="flex items-center gap-2 text-[1.14rem] font-semibold">
            Turn {seq} <TurnBadge status={status} />
          </h2>
          <p className="text-muted">
            <Text most={300}>{originText(turn)}</Text> · <Took turn={turn} /> · {costText(turn.cost)}
          </p>
        </div>
        <Link
          to="/explain/$id"
          params={{ id: inferenceId }}
          className="inline-flex min-h-8 items-center rounded-md border border-line bg-raised px-3 font-medium hover:bg-hover"
        >
          Why
        </Link>
        {undo && <Button onClick={undo}>{status === 'undone' ? 'Undo what stayed…' : 'Undo…'}</Button>}
        <Link
          to="/chat/$conversation"
          params={{ conversation }}
          className="inline-flex min-h-8 items-center px-2 underline lg:hidden"
        >
          Back
        </Link>
      </header>
      <Steps turn={turn} span={span} />
      {failed.length > 0 && (
        <Card title="Hooks without effect">
          <ul className="space-y-2">
            {failed.map((hook, index) => (
              <li key={index}>
                <strong>
                  <Text most={100}>{hook.server}</Text>
                </strong>{' '}
                {hook.hook} the answer: <Text most={500}>{hook.why?.message ?? ''}</Text>
                <span className="block text-muted">
                  <Text most={500}>{hook.why?.fix ?? ''}</Text>
                </span>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {changes.map((change, index) => (
        <Card key={index} title={`The answer was changed by ${change.server}`} scope={change.featureSet}>
          {change.before === undefined || change.after === undefined ? (
            <p className="text-muted">The text is not shown to your role.</p>
          ) : (
            <DiffView before={change.before} after={change.after} label={`Answer before and after ${change.server}`} />
          )}
        </Card>
      ))}
      {prompt && <PromptParts prompt={prompt} />}
    </div>
  )
}

function Took({ turn }: { readonly turn: TurnDetail }): ReactNode {
  const { at, ended } = turn
  const now = useNow()
  if (isOpen(turn)) return durationText(Math.max(0, now - at))
  return ended === undefined ? timeText(at) : durationText(ended - at)
}

/** How often the edge of a running turn moves. */
const edgeMs = 250

function Steps({ turn, span }: { readonly turn: TurnDetail; readonly span: string | undefined }): ReactNode {
  const now = useNow(isOpen(turn) ? edgeMs : 60_000)
  const navigate = useNavigate()
  const steps = useMemo(() => turn.spans.filter(({ kind }) => kind !== 'turn').map(stepOf), [turn.spans])
  const { conversation, seq } = turn
  const select = (id: string) =>
    void navigate({
      to: '/chat/$conversation/$seq',
      params: { conversation, seq: String(seq) },
      search: id === span ? {} : { span: id },
      replace: true,
    })
  const opened = turn.spans.find(({ id }) => id === span)
  return (
    <section aria-label="Steps" className="card p-4">
      {steps.length === 0 ? (
        <p className="text-muted">{isOpen(turn) ? 'No step has begun yet.' : 'The times of its steps were not kept.'}</p>
      ) : (
        <Waterfall title={`Steps of turn ${seq}`} steps={steps} now={now} selected={span} select={select} />
      )}
      {opened && <StepDetails turn={turn} span={opened} close={() => select(opened.id)} />}
    </section>
  )
}

const kinds: Readonly<Record<TurnSpan['kind'], string>> = {
  turn: 'turn',
  waiting: 'waits',
  hook: 'hook',
  inference: 'model',
  call: 'call',
  question: 'asks',
}

function stepOf({ id, parent, kind, name, lane, from, to, status, first, note }: TurnSpan): WaterfallStep {
  return {
    id,
    parent,
    kind: kinds[kind],
    name: kind === 'call' && lane !== 'host' && !name.startsWith(lane) ? `${lane}.${name}` : name,
    from,
    to,
    look: lookOf(kind, status),
    note: noteOf(status, to === undefined ? undefined : to - from, note),
    ...(first !== undefined && { mark: { at: first, title: `First word after ${durationText(first - from)}` } }),
  }
}

function lookOf(kind: TurnSpan['kind'], status: TurnSpan['status']): StepLook {
  if (status === 'failed' || status === 'refused' || status === 'unknown') return 'failed'
  if (kind === 'question' || kind === 'waiting') return 'waits'
  return kind === 'hook' ? 'hook' : 'done'
}

const signs: Readonly<Record<TurnSpan['status'], string>> = {
  open: 'runs',
  ok: '✓',
  failed: '✕ failed',
  refused: '⊘ refused',
  unknown: '? outcome unknown',
}

function noteOf(status: TurnSpan['status'], ms: number | undefined, note: string | undefined): string {
  return [signs[status], ms === undefined ? undefined : durationText(ms), note].filter(Boolean).join(' · ').replace('✓ · ', '✓ ')
}
