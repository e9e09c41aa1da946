/** Sends the very frame again, or as it was edited. Only its id is renewed; nothing is added, dropped or put right. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useMemo, useState } from 'react'
import type { FrameDetail } from '#contract'
import { request } from '../../api/client.ts'
import { connectionList } from '../../api/lists.ts'
import { useFrames } from '../../feed/frames.ts'
import { useDisconnected } from '../../frame/connection-banner.tsx'
import { Button } from '../../parts/button.tsx'
import { JsonEditor } from '../../parts/json-text/json-editor.tsx'
import { readJson } from '../../parts/json-text/read.ts'
import { ProblemCard } from '../../parts/problem.tsx'
import { spellOut } from '../../parts/text.tsx'

export interface FrameAgainProps {
  readonly detail: FrameDetail
  readonly go: (n: number) => void
  readonly close: () => void
}

/** Indented where that changes nothing; a frame that is no JSON, or that indenting would change, stays as it passed. */
function editable(text: string): string {
  const reading = readJson(text)
  return 'value' in reading ? JSON.stringify(reading.value, undefined, 2) : text
}

export function FrameAgain({ detail: { row, text: passed = '' }, go, close }: FrameAgainProps): ReactNode {
  const client = useQueryClient()
  const disconnected = useDisconnected()
  const first = useMemo(() => editable(passed), [passed])
  const [text, setText] = useState(first)
  const [connection, setConnection] = useState('')
  const connections = (useQuery(connectionList).data ?? []).filter(({ open, server }) => open && server === row.server)
  const send = useMutation({
    mutationFn: () =>
      request('POST /frames/:n/again', {
        path: { n: String(row.n) },
        // Unchanged, it goes as it passed, with its own spaces.
        body: { ...(text !== first && { text }), ...(connection !== '' && { connection }) },
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['connections'] }),
  })
  const fault = 'fault' in readJson(text)
  return (
    <div className="space-y-2">
      <JsonEditor label={`Frame ${row.n}, edited`} text={text} rows={10} focused change={setText} />
      <div className="flex flex-wrap items-center gap-2">
        <label className="flex min-w-0 items-center gap-2">
          on
          <select className="min-w-0 max-w-56" value={connection} onChange={event => setConnection(event.target.value)}>
            <option value="">its own connection</option>
            {connections.map(({ name }) => (
              <option key={name} value={name}>
                {spellOut(name).slice(0, 120)}
              </option>
            ))}
          </select>
        </label>
        <Button look="primary" disabled={disconnected || send.isPending} onClick={() => send.mutate()}>
          Send
        </Button>
        <Button look="quiet" onClick={close}>
          Cancel
        </Button>
      </div>
      <p className="text-muted">
        {fault ? 'It is no JSON, and is sent as it stands: that is how a server shows what it does with such a frame. ' : ''}
        The id is renewed, nothing else.
      </p>
      {send.error && <ProblemCard error={send.error} />}
      {send.data && <Sent n={send.data.n} go={go} />}
    </div>
  )
}

/** The frame that was sent, and its answer as soon as it is there. */
function Sent({ n, go }: { readonly n: number; readonly go: (n: number) => void }): ReactNode {
  const { rows } = useFrames()
  const answer = useMemo(() => rows.find(row => row.of === n && (row.kind === 'result' || row.kind === 'error')), [rows, n])
  return (
    <p role="status" className="flex flex-wrap gap-x-3 text-good">
      <button type="button" className="min-h-6 underline" onClick={() => go(n)}>
        Sent as frame {n}
      </button>
      {answer !== undefined && (
        <button type="button" className="min-h-6 underline" onClick={() => go(answer.n)}>
          Answered by frame {answer.n}
        </button>
      )}
    </p>
  )
}
