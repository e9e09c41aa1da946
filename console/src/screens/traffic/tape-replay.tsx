/** Sends a tape to the server of now, and shows what it answers otherwise. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { ReplayDifference, TapeRow } from '#contract'
import { useReplay } from '../../api/author.ts'
import { request } from '../../api/client.ts'
import { serverList } from '../../api/lists.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { useRole } from '../../frame/context.ts'
import { Button } from '../../parts/button.tsx'
import { pretty } from '../../parts/json.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { spellOut, Text } from '../../parts/text.tsx'

export function TapeReplayPart({ tape }: { readonly tape: TapeRow }): ReactNode {
  const client = useQueryClient()
  const operator = useRole('operator')
  const disconnected = useDisconnected()
  const servers = useQuery(serverList).data ?? []
  const { data: replay, refetch } = useReplay(tape.name)
  const [server, setServer] = useState('')
  const [ignore, setIgnore] = useState('')
  const start = useMutation({
    mutationFn: () =>
      request('POST /tapes/:name/replay', {
        path: { name: tape.name },
        body: { ...(server !== '' && { server }), ignore: ignore.split(/[\s,]+/).filter(Boolean) },
      }),
    onSuccess: begun => client.setQueryData(['tapes', tape.name, 'replay'], begun),
  })
  const running = replay?.state === 'running'
  return (
    <section aria-label="Replay" className="space-y-2">
      <h3 className="font-semibold">Replay</h3>
      {operator && (
        <form
          className="space-y-2"
          onSubmit={event => {
            event.preventDefault()
            start.mutate()
          }}
        >
          {servers.length > 1 && (
            <label className="flex items-center gap-2">
              to
              <select className="min-w-0" value={server} onChange={event => setServer(event.target.value)}>
                <option value="">choose a server</option>
                {servers.map(({ name }) => (
                  <option key={name} value={name}>
                    {spellOut(name).slice(0, 80)}
                  </option>
                ))}
              </select>
            </label>
          )}
          <label className="block">
            <span className="label">Members whose differences do not count</span>
            <input
              className="w-full font-mono"
              placeholder="result.serverInfo.version, **.elapsed"
              autoComplete="off"
              spellCheck={false}
              value={ignore}
              onChange={event => setIgnore(event.target.value)}
            />
          </label>
          <Button type="submit" disabled={disconnected || running || start.isPending}>
            Replay against the server of now
          </Button>
        </form>
      )}
      {start.error && <ProblemCard error={start.error} retry={() => void refetch()} />}
      <div role="status">{replay && <Outcome replay={replay} />}</div>
      {replay?.differences?.map(each => (
        <Difference key={`${each.conversation} ${each.line} ${each.path} ${each.what}`} difference={each} />
      ))}
    </section>
  )
}

function Outcome({
  replay: { state, sent, found, why },
}: {
  readonly replay: NonNullable<ReturnType<typeof useReplay>['data']>
}): ReactNode {
  if (state === 'running') return <p className="text-muted">{`${sent.toLocaleString('en')} frames sent…`}</p>
  if (state === 'failed')
    return <p className="text-danger">The replay failed: {why !== undefined && <Text most={600}>{why}</Text>}</p>
  if (found === 0)
    return <p className="text-good">{`✓ ${sent.toLocaleString('en')} frames sent, and the server answers as on the tape.`}</p>
  return (
    <p className="font-semibold text-warn">{`${found.toLocaleString('en')} ${found === 1 ? 'difference' : 'differences'} after ${sent.toLocaleString('en')} frames.`}</p>
  )
}

function Difference({ difference: { line, what, path, before, after } }: { readonly difference: ReplayDifference }): ReactNode {
  return (
    <div className="code space-y-1">
      <p className="text-muted">
        <Text most={300}>{`${what}${line > 0 ? `, line ${line}` : ''}`}</Text>
      </p>
      <p className="font-semibold">
        <Text most={300}>{path}</Text>
      </p>
      <p className="diff-removed">
        − <span className="sr-only">on the tape: </span>
        <Text most={2000}>{before === undefined ? 'nothing' : pretty(before)}</Text>
      </p>
      <p className="diff-added">
        + <span className="sr-only">now: </span>
        <Text most={2000}>{after === undefined ? 'nothing' : pretty(after)}</Text>
      </p>
    </div>
  )
}
