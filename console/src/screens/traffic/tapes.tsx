/** Recordings of traffic: begin and end one, and what to do with those that lie in the folder. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { TapeRow } from '#contract'
import { useTape } from '../../api/author.ts'
import { request } from '../../api/client.ts'
import { tapeList } from '../../api/lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useConsole, useRole } from '../../frame/context.ts'
import { Aside } from '../../parts/aside.tsx'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { QueryState } from '../../parts/query-state.tsx'
import { Text } from '../../parts/text.tsx'
import { Time } from '../../parts/time.tsx'
import { sizeText } from './frame-row.tsx'
import { TapeReplayPart } from './tape-replay.tsx'
import { TapeService } from './tape-service.tsx'

export interface TapesProps {
  readonly name: string | undefined
  readonly choose: (name: string | undefined) => void
  readonly close: () => void
}

export function Tapes({ name, choose, close }: TapesProps): ReactNode {
  const query = useQuery(tapeList)
  const { data } = query
  const { self } = useConsole()
  const operator = useRole('operator')
  const chosen = data?.find(tape => tape.name === name)
  return (
    <Aside
      label="Tapes"
      title={chosen === undefined ? 'Tapes' : <Text most={80}>{chosen.name}</Text>}
      actions={
        chosen !== undefined && (
          <Button look="quiet" onClick={() => choose(undefined)}>
            All tapes
          </Button>
        )
      }
      close={close}
    >
      <QueryState query={query} />
      {data && chosen === undefined && (
        <>
          {operator && <Recorder tapes={data} />}
          {data.length === 0 ? (
            <p className="text-muted">
              No tape lies in{' '}
              <code>
                <Text most={300}>{self.target?.folder ?? 'the folder of this process'}</Text>
              </code>{' '}
              yet. A tape keeps every frame, can be replayed against a changed server, and stands in for the server.
            </p>
          ) : (
            <ul className="divide-y divide-line border-y border-line">
              {data.map(tape => (
                <li key={tape.name}>
                  <button type="button" className="w-full px-1 py-2 text-left hover:bg-hover" onClick={() => choose(tape.name)}>
                    <TapeLine tape={tape} named />
                  </button>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
      {chosen !== undefined && <TapeDetails key={chosen.name} tape={chosen} />}
    </Aside>
  )
}

function TapeLine({
  named = false,
  tape: { name, bytes, began, recording, frames, connections, why, serving },
}: {
  readonly named?: boolean
  readonly tape: TapeRow
}): ReactNode {
  return (
    <>
      <span className="flex items-baseline gap-2">
        {named && (
          <strong className="truncate">
            <Text most={80}>{name}</Text>
          </strong>
        )}
        {recording && <Badge tone="danger">● recording</Badge>}
        {serving && <Badge tone="good">served</Badge>}
        {why !== undefined && <Badge tone="warn">cannot be read</Badge>}
      </span>
      <span className="text-muted">
        <Time at={began} />
        {` · ${frames.toLocaleString('en')} frames, ${connections} ${connections === 1 ? 'connection' : 'connections'} · ${sizeText(bytes)}`}
      </span>
    </>
  )
}

/** What a file may be called. */
const nameRule = '[A-Za-z0-9._\\-]{1,64}'

function Recorder({ tapes }: { readonly tapes: readonly TapeRow[] }): ReactNode {
  const client = useQueryClient()
  const disconnected = useDisconnected()
  const [name, setName] = useState('')
  const [past, setPast] = useState(true)
  const done = () => client.invalidateQueries({ queryKey: tapeList.queryKey })
  const running = tapes.find(({ recording }) => recording)
  const begin = useMutation({
    mutationFn: (stop: boolean) => request('POST /tapes', { body: { ...(name !== '' && { name }), past: past || stop, stop } }),
    onSettled: done,
  })
  const end = useMutation({
    mutationFn: (tape: string) => request('POST /tapes/:name/stop', { path: { name: tape } }),
    onSettled: done,
  })
  const busy = disconnected || begin.isPending || end.isPending
  if (running !== undefined) {
    return (
      <div className="space-y-2">
        <p role="status">
          <Badge tone="danger">● recording</Badge> <Text most={80}>{running.name}</Text>,{' '}
          {`${running.frames.toLocaleString('en')} frames so far.`}
        </p>
        <Button look="primary" disabled={busy} onClick={() => end.mutate(running.name)}>
          End the recording
        </Button>
        {end.error && <ProblemCard error={end.error} />}
      </div>
    )
  }
  return (
    <form
      className="space-y-2"
      onSubmit={event => {
        event.preventDefault()
        begin.mutate(false)
      }}
    >
      <label className="flex items-center gap-2">
        <span className="shrink-0">Name</span>
        <input
          className="min-w-0 flex-1"
          placeholder="a free one"
          pattern={nameRule}
          title="Letters, digits, dot, underscore and hyphen, at most 64"
          autoComplete="off"
          value={name}
          onChange={event => setName(event.target.value)}
        />
      </label>
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={past} onChange={event => setPast(event.target.checked)} />
        with what has passed already
      </label>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="primary" disabled={busy}>
          Record
        </Button>
        <Button disabled={busy} onClick={() => begin.mutate(true)}>
          Save only what has passed
        </Button>
      </div>
      {begin.error && <ProblemCard error={begin.error} />}
    </form>
  )
}

function TapeDetails({ tape }: { readonly tape: TapeRow }): ReactNode {
  const { data } = useTape(tape.name)
  const usable = tape.why === undefined && !tape.recording
  return (
    <>
      <TapeLine tape={tape} />
      {tape.why !== undefined && (
        <p className="text-danger">
          <Text most={600}>{tape.why}</Text>
        </p>
      )}
      {data && (
        <div>
          <p className="label">File</p>
          <p className="break-all">
            <code>
              <Text most={600}>{data.file}</Text>
            </code>
          </p>
          <p className="label mt-2">Without a page</p>
          <code className="code block">
            <Text most={600}>{data.command}</Text>
          </code>
        </div>
      )}
      {usable && <TapeReplayPart tape={tape} />}
      {usable && <TapeService tape={tape} />}
    </>
  )
}
