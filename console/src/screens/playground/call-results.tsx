/** What came back: one column for each revision, and what differs between them. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import type { Call, CallRun } from '#contract'
import { useCall } from '../../api/author.ts'
import { request } from '../../api/client.ts'
import { approvalList } from '../../api/lists.ts'
import { useResource, useRole } from '../../frame/context.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Waiting } from '../../parts/card.tsx'
import { diffLines } from '../../parts/diff.ts'
import { DiffView } from '../../parts/diff-view.tsx'
import { Json, pretty } from '../../parts/json.tsx'
import { LongText } from '../../parts/long-text.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'
import { ResultContent } from './result-content.tsx'

const views = ['result', 'raw', 'difference'] as const

export function CallResults({ id }: { readonly id: string }): ReactNode {
  const { data: call, error, isPending, refetch } = useCall(id)
  const [view, setView] = useState<(typeof views)[number]>('result')
  const box = useRef<HTMLElement>(null)
  // Below a long form the answer would come unseen.
  // A block: newer browsers return a promise, which is no cleanup.
  useEffect(() => {
    box.current?.scrollIntoView({ block: 'nearest' })
  }, [id, isPending])
  if (error) return <ProblemCard error={error} retry={() => void refetch()} />
  if (isPending) return <Waiting />
  const several = call.runs.length > 1
  return (
    <section ref={box} aria-label="Results" className="scroll-mb-4 space-y-2">
      <div className="flex flex-wrap items-center gap-3">
        <h3 className="font-semibold">{several ? 'Results' : 'Result'}</h3>
        <Tabs label="How results are shown" names={several ? views : views.slice(0, 2)} chosen={view} choose={setView} />
        <Running call={call} />
      </div>
      {several && view !== 'difference' && <Summary call={call} show={() => setView('difference')} />}
      <div
        className="grid gap-3"
        style={{ gridTemplateColumns: `repeat(auto-fit, minmax(min(100%, ${several ? '20rem' : '24rem'}), 1fr))` }}
      >
        {view === 'difference' && several
          ? call.runs.slice(1).map(run => <Difference key={run.revision} first={call.runs[0] as CallRun} run={run} />)
          : call.runs.map(run => <Run key={run.revision} call={call} run={run} raw={view === 'raw'} />)}
      </div>
    </section>
  )
}

/** A call that runs can be cancelled, and may wait for a person. */
function Running({ call }: { readonly call: Call }): ReactNode {
  const operator = useRole('operator')
  const asked = useQuery({ ...approvalList, enabled: useResource('/approvals') }).data?.length ?? 0
  const cancel = useMutation({ mutationFn: () => request('DELETE /calls/:id', { path: { id: call.id } }) })
  if (call.state !== 'running') return null
  return (
    <>
      {operator && (
        <Button disabled={cancel.isPending} onClick={() => cancel.mutate()}>
          Cancel
        </Button>
      )}
      {asked > 0 && (
        <span role="status">
          The server asks for something:{' '}
          <Link to="/approvals" className="underline">
            answer it
          </Link>
        </span>
      )}
    </>
  )
}

interface Compared {
  readonly revision: string
  readonly removed: number
  readonly added: number
}

/** How each later run differs from the first, in lines of indented JSON. */
function compare(runs: readonly CallRun[]): readonly Compared[] {
  const [first, ...others] = runs
  if (first === undefined || first.state !== 'done') return []
  return others
    .filter(({ state }) => state === 'done')
    .map(run => {
      const lines = diffLines(textOf(first), textOf(run))
      const count = (sign: string) => lines.filter(each => each.sign === sign).length
      return { revision: run.revision, removed: count('-'), added: count('+') }
    })
}

function textOf({ result, beginning, isError }: CallRun): string {
  return beginning ?? pretty(result ?? { isError })
}

function Summary({ call, show }: { readonly call: Call; readonly show: () => void }): ReactNode {
  const compared = useMemo(() => compare(call.runs), [call.runs])
  const first = call.runs[0]?.revision
  return (
    <ul>
      {compared.map(({ revision, removed, added }) => (
        <li key={revision}>
          {removed + added === 0 ? (
            <span className="text-good">{`✓ ${revision} answers the same as ${first}.`}</span>
          ) : (
            <button type="button" className="min-h-6 text-left text-warn underline" onClick={show}>
              {`${revision} answers otherwise than ${first}: ${removed} ${removed === 1 ? 'line' : 'lines'} less, ${added} more.`}
            </button>
          )}
        </li>
      ))}
    </ul>
  )
}

const tones: Readonly<Record<CallRun['state'], Tone>> = {
  opening: 'plain',
  running: 'plain',
  done: 'good',
  failed: 'danger',
  cancelled: 'warn',
}

function RunHead({ run }: { readonly run: CallRun }): ReactNode {
  const { revision, state, ms, openMs, isError, cost, frames } = run
  return (
    <h4 className="flex flex-wrap items-baseline gap-2">
      <strong className="tabular-nums">{revision}</strong>
      <Badge tone={isError ? 'danger' : tones[state]}>{isError ? 'tool error' : state}</Badge>
      <span className="font-normal text-muted">
        <Text most={200}>
          {[ms === undefined ? '' : durationText(ms), openMs === undefined ? '' : `opened in ${durationText(openMs)}`, cost ?? '']
            .filter(Boolean)
            .join(' · ')}
        </Text>
      </span>
      {frames !== undefined && (
        <Link to="/traffic" search={{ sel: String(frames.last) }} className="ml-auto font-normal underline">
          frames
        </Link>
      )}
    </h4>
  )
}

function Run({ call, run, raw }: { readonly call: Call; readonly run: CallRun; readonly raw: boolean }): ReactNode {
  const { state, problem, result, progress, beginning } = run
  return (
    <div className="card min-w-0 space-y-2 p-3">
      <RunHead run={run} />
      {(state === 'opening' || state === 'running') && (
        <div role="status" className="text-muted">
          {progress === undefined ? (
            state === 'opening' ? (
              'Opening a connection…'
            ) : (
              'Waiting for the answer…'
            )
          ) : (
            <label className="flex items-center gap-2">
              <progress value={progress.total === undefined ? undefined : progress.progress} max={progress.total} />
              <Text most={200}>
                {progress.message ?? `${progress.progress}${progress.total === undefined ? '' : ` of ${progress.total}`}`}
              </Text>
            </label>
          )}
        </div>
      )}
      {problem !== undefined && (
        <div className="rounded-lg border border-danger-line bg-danger-soft p-3">
          <p className="font-semibold break-words">
            <Text most={2000}>{problem.message}</Text>
          </p>
          {problem.fix !== undefined && (
            <p>
              <Text most={600}>{problem.fix}</Text>
            </p>
          )}
          <code>
            <Text most={80}>{problem.code}</Text>
          </code>
          {problem.data !== undefined && <Json value={problem.data} label="Data of the error" />}
        </div>
      )}
      {result !== undefined &&
        (raw ? (
          <Json value={result} label={`Result at ${run.revision}`} />
        ) : (
          <ResultContent result={result} label={`Result at ${run.revision}`} />
        ))}
      {beginning !== undefined && <LongResult call={call} run={run} beginning={beginning} />}
      {state === 'done' && result === undefined && beginning === undefined && (
        <p className="text-muted">This session may not see results.</p>
      )}
    </div>
  )
}

/** A long result is fetched whole only when somebody wants it. */
function LongResult({
  call,
  run,
  beginning,
}: {
  readonly call: Call
  readonly run: CallRun
  readonly beginning: string
}): ReactNode {
  const whole = useMutation({
    mutationFn: () => request('GET /calls/:id/results/:revision', { path: { id: call.id, revision: run.revision } }),
  })
  return (
    <>
      <LongText text={whole.data?.text ?? beginning} label={`Result at ${run.revision}`} />
      {whole.data === undefined && (
        <p className="flex flex-wrap items-center gap-3 text-muted">
          {`The first ${beginning.length.toLocaleString('en')} of ${(run.length ?? 0).toLocaleString('en')} characters.`}
          <Button disabled={whole.isPending} onClick={() => whole.mutate()}>
            Fetch the rest
          </Button>
        </p>
      )}
      {whole.error && <ProblemCard error={whole.error} />}
    </>
  )
}

function Difference({ first, run }: { readonly first: CallRun; readonly run: CallRun }): ReactNode {
  const both = first.state === 'done' && run.state === 'done'
  return (
    <div className="card min-w-0 space-y-2 p-3">
      <h4 className="font-semibold tabular-nums">
        {first.revision} → {run.revision}
      </h4>
      {!both ? (
        <p className="text-muted">
          There is nothing to compare: {first.state === 'done' ? run.revision : first.revision} has no result.
        </p>
      ) : (
        <DiffView before={first.result} after={run.result} label={`Difference between ${first.revision} and ${run.revision}`} />
      )}
    </div>
  )
}
