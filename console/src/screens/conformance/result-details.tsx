/** One scenario in one cell: what it proves, why it failed, the frames that show it, and how to repeat it alone. */
import type { ReactNode } from 'react'
import type { ConformanceStatus, FrameExcerpt } from '#contract'
import { useConformanceResult } from '../../api/author.ts'
import { Aside } from '../../parts/aside.tsx'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { pretty } from '../../parts/json.tsx'
import { readJson } from '../../parts/json-text/read.ts'
import { QueryState } from '../../parts/query-state.tsx'
import { ScrollRegion } from '../../parts/scroll-region.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'

export const statusTones: Readonly<Record<ConformanceStatus, Tone>> = {
  passed: 'good',
  failed: 'danger',
  skipped: 'plain',
  error: 'warn',
}
export const statusSigns: Readonly<Record<ConformanceStatus, string>> = { passed: '✓', failed: '✗', skipped: '–', error: '!' }

export interface ResultDetailsProps {
  readonly n: number
  readonly startedAt: number | undefined
  readonly close: () => void
}

export function ResultDetails({ n, startedAt, close }: ResultDetailsProps): ReactNode {
  const query = useConformanceResult(n, startedAt)
  const { data } = query
  return (
    <Aside label={`Result ${n}`} title={data?.result.title ?? `Result ${n}`} close={close}>
      <QueryState query={query} />
      {data && (
        <>
          <p className="flex flex-wrap items-baseline gap-2">
            <Badge tone={statusTones[data.result.status]}>{`${statusSigns[data.result.status]} ${data.result.status}`}</Badge>
            <code>{data.result.id}</code>
            <span className="text-muted tabular-nums">{`${data.result.revision} · ${data.result.carrier} · ${durationText(data.result.ms)}`}</span>
          </p>
          {data.result.message !== '' && (
            <p className={`break-words whitespace-pre-wrap ${data.result.status === 'failed' ? 'text-danger' : ''}`}>
              <Text most={4000}>{data.result.message}</Text>
            </p>
          )}
          {data.proves.length > 0 && (
            <section>
              <h3 className="label mb-1">Statement</h3>
              <ul className="space-y-1">
                {data.proves.map(({ id, text }) => (
                  <li key={id} className="border-l-2 border-line-strong pl-3">
                    <code className="text-muted">{id}</code> {text !== undefined && <Text most={2000}>{text}</Text>}
                  </li>
                ))}
              </ul>
            </section>
          )}
          {data.frames !== undefined && data.frames.length > 0 && (
            <section>
              <h3 className="label mb-1">Frames</h3>
              <ol className="space-y-2">
                {data.frames.map((frame, index) => (
                  <Frame key={`${frame.way} ${frame.at} ${index + 1}`} frame={frame} place={index + 1} />
                ))}
              </ol>
            </section>
          )}
          <section>
            <h3 className="label mb-1">Alone, without a page</h3>
            <code className="code block">
              <Text most={600}>{data.command}</Text>
            </code>
          </section>
        </>
      )}
    </Aside>
  )
}

function Frame({ frame: { way, at, text, status }, place }: { readonly frame: FrameExcerpt; readonly place: number }): ReactNode {
  const reading = readJson(text)
  return (
    <li>
      <p className="text-muted tabular-nums">
        <span aria-hidden="true">{way === 'out' ? '→' : '←'}</span>{' '}
        {`${way === 'out' ? 'sent' : 'received'} at ${durationText(at)}${status === undefined ? '' : `, HTTP ${status}`}`}
      </p>
      <ScrollRegion label={`Frame ${place}`} className="max-h-64">
        <Text>{'value' in reading ? pretty(reading.value) : text}</Text>
      </ScrollRegion>
    </li>
  )
}
