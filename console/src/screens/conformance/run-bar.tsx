/** The run as a whole: how far it is, how it went, and its report as a file. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Conformance, ConformanceExportQuery } from '#contract'
import { conformanceKey } from '../../api/author.ts'
import { request } from '../../api/client.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'

const tones: Readonly<Record<Conformance['state'], Tone>> = {
  idle: 'plain',
  running: 'plain',
  done: 'good',
  stopped: 'warn',
  failed: 'danger',
}
const files = [
  ['junit', 'JUnit'],
  ['json', 'JSON'],
  ['badge', 'Badge'],
] as const

export function RunBar({ run, again }: { readonly run: Conformance; readonly again: () => void }): ReactNode {
  const client = useQueryClient()
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const stop = useMutation({
    mutationFn: () => request('DELETE /conformance'),
    onSettled: () => client.invalidateQueries({ queryKey: conformanceKey }),
  })
  const save = useMutation({
    mutationFn: (as: NonNullable<ConformanceExportQuery['as']>) => request('GET /conformance/export', { query: { as } }),
    onSuccess: download,
  })
  const { state, summary, planned, suite, startedAt, endedAt, why, server } = run
  const { passed, failed, skipped, error } = summary
  const done = passed + failed + skipped + error
  return (
    <div className="border-b border-line px-3 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <strong className="max-w-48 truncate">
          <Text most={80}>{server}</Text>
        </strong>
        <Badge tone={state === 'done' && failed + error > 0 ? 'danger' : tones[state]}>{state}</Badge>
        <span role="status" className="tabular-nums">
          <span className="text-good">{`✓ ${passed.toLocaleString('en')} passed`}</span>
          {' · '}
          <span
            className={failed > 0 ? 'font-semibold text-danger' : 'text-muted'}
          >{`✗ ${failed.toLocaleString('en')} failed`}</span>
          {error > 0 && <span className="text-warn">{` · ! ${error.toLocaleString('en')} not judged`}</span>}
          <span className="text-muted">{` · – ${skipped.toLocaleString('en')} skipped`}</span>
        </span>
        {state === 'running' && (
          <label className="flex items-center gap-2 text-muted tabular-nums">
            <progress className="w-32" value={done} max={Math.max(planned, done)} aria-label="Scenarios that were played" />
            {`${done.toLocaleString('en')} of ${planned.toLocaleString('en')}`}
          </label>
        )}
        <span className="hidden text-muted xl:inline">
          {endedAt !== undefined && startedAt !== undefined && `${durationText(endedAt - startedAt)} · `}
          suite {suite}
        </span>
        <span className="ml-auto flex flex-wrap gap-1">
          {state !== 'running' &&
            done > 0 &&
            files.map(([as, name]) => (
              <Button key={as} look="quiet" disabled={disconnected || save.isPending} onClick={() => save.mutate(as)}>
                {name}
              </Button>
            ))}
          {operator && state === 'running' && (
            <Button disabled={disconnected || stop.isPending} onClick={() => stop.mutate()}>
              Stop
            </Button>
          )}
          {operator && state !== 'running' && <Button onClick={again}>Run again</Button>}
        </span>
      </div>
      {why !== undefined && (
        <p className="text-danger">
          <Text most={600}>{why}</Text>
        </p>
      )}
      {save.error && <ProblemCard error={save.error} />}
      {stop.error && <ProblemCard error={stop.error} />}
    </div>
  )
}

function download({ name, type, text }: { readonly name: string; readonly type: string; readonly text: string }): void {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  URL.revokeObjectURL(address)
}
