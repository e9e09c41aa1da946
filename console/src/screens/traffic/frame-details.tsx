/** One frame: indented, as it passed, or what HTTP said beside it; its request or answer; and the way to send it again. */
import { type ReactNode, useState } from 'react'
import type { FrameDetail } from '#contract'
import { useFrame } from '../../api/author.ts'
import { useResource, useRole } from '../../frame/context.ts'
import { Aside } from '../../parts/aside.tsx'
import { Button } from '../../parts/button.tsx'
import { Json } from '../../parts/json.tsx'
import { readJson } from '../../parts/json-text/read.ts'
import { LongText } from '../../parts/long-text.tsx'
import { QueryState } from '../../parts/query-state.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { Text } from '../../parts/text.tsx'
import { durationText } from '../../parts/time.tsx'
import { FrameAgain } from './frame-again.tsx'
import { fineTime, StatusBadge, sizeText } from './frame-row.tsx'

export interface FrameDetailsProps {
  readonly n: string
  /** Whether the frame is being edited, to be sent again. */
  readonly again: boolean
  readonly setAgain: (again: boolean) => void
  readonly go: (n: number) => void
  readonly close: () => void
}

const views = ['pretty', 'raw', 'headers'] as const

export function FrameDetails({ n, again, setAgain, go, close }: FrameDetailsProps): ReactNode {
  const query = useFrame(n)
  const { data } = query
  const known = useResource('/frames/:n/again')
  const operator = useRole('operator') && known
  const editing = again && operator && data?.notAgain === undefined
  return (
    <Aside
      label={`Frame ${n}`}
      close={close}
      title={
        <>
          Frame {n} {data && <StatusBadge row={data.row} />}
        </>
      }
      actions={
        operator &&
        data &&
        data.notAgain === undefined &&
        !again && (
          <Button onClick={() => setAgain(true)} title="Key .">
            Edit and send again
          </Button>
        )
      }
    >
      <QueryState query={query} />
      {data && <Facts detail={data} go={go} />}
      {data && (editing ? <FrameAgain detail={data} go={go} close={() => setAgain(false)} /> : <Body detail={data} />)}
    </Aside>
  )
}

function Facts({
  detail: { row, revision, notAgain, redacted },
  go,
}: {
  readonly detail: FrameDetail
  readonly go: (n: number) => void
}): ReactNode {
  const { at, server, connection, way, kind, method, id, of, answer, ms, bytes, http, again } = row
  const words = [
    `${fineTime(at)}, ${way === 'out' ? 'to' : 'from'} ${server}`,
    sizeText(bytes),
    ms === undefined ? '' : durationText(ms),
    http === undefined ? '' : `HTTP ${http}`,
    revision ?? '',
  ]
  return (
    <div>
      <p className="font-mono break-words">
        <strong>{method === undefined ? kind : <Text most={200}>{method}</Text>}</strong>
        <span className="text-muted">
          {` ${kind}`}
          {id !== undefined && <Text most={80}>{` id ${JSON.stringify(id)}`}</Text>}
        </span>
      </p>
      <p className="text-muted">
        <Text most={400}>{words.filter(Boolean).join(' · ')}</Text>
      </p>
      <p className="truncate text-muted" title={connection}>
        <Text most={120}>{connection}</Text>
      </p>
      <div className="flex flex-wrap gap-x-3">
        {of !== undefined && <Go to={of} go={go} words={kind === 'notification' ? 'belongs to' : 'answers'} />}
        {answer !== undefined && <Go to={answer} go={go} words="answered by" />}
        {again !== undefined && <Go to={again} go={go} words="repeats" />}
      </div>
      {redacted !== undefined && redacted > 0 && (
        <p className="mt-1 text-warn">
          {redacted === 1 ? 'One value was' : `${redacted} values were`} taken out as secret and cannot be shown or sent.
        </p>
      )}
      {notAgain !== undefined && (
        <p className="mt-1 text-muted">
          <Text>{notAgain}</Text>
        </p>
      )}
    </div>
  )
}

function Go({ to, go, words }: { readonly to: number; readonly go: (n: number) => void; readonly words: string }): ReactNode {
  return (
    <button type="button" className="min-h-6 underline" onClick={() => go(to)}>
      {words} frame {to}
    </button>
  )
}

function Body({ detail: { text, cut, head } }: { readonly detail: FrameDetail }): ReactNode {
  const [chosen, choose] = useState<(typeof views)[number]>('pretty')
  const reading = text === undefined || cut !== undefined ? undefined : readJson(text)
  const view = chosen === 'headers' && head === undefined ? 'pretty' : chosen
  return (
    <div className="space-y-2">
      <Tabs label="How the frame is shown" names={head === undefined ? views.slice(0, 2) : views} chosen={view} choose={choose} />
      {view === 'headers' && head !== undefined ? (
        <Head head={head} />
      ) : text === undefined ? (
        <p className="text-muted">This row has no text that this session may see.</p>
      ) : view === 'pretty' && reading !== undefined && 'value' in reading ? (
        <Json label="Frame" value={reading.value} />
      ) : (
        <LongText label="Frame as it passed" text={text} />
      )}
      {cut !== undefined && (
        <p className="text-warn">{`Only the beginning was kept: it had ${cut.toLocaleString('en')} characters.`}</p>
      )}
    </div>
  )
}

function Head({ head: { method, path, status, headers = {} } }: { readonly head: NonNullable<FrameDetail['head']> }): ReactNode {
  const first = status === undefined ? `${method ?? ''} ${path ?? ''}` : `HTTP ${status}`
  return (
    <div className="code">
      <p className="font-semibold">
        <Text>{first.trim()}</Text>
      </p>
      <dl>
        {Object.entries(headers).map(([name, value]) => (
          <div key={name}>
            <dt className="inline text-muted">
              <Text>{`${name}: `}</Text>
            </dt>
            <dd className="inline">
              <Text most={2000}>{value}</Text>
            </dd>
          </div>
        ))}
      </dl>
    </div>
  )
}
