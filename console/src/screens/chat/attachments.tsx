/** Resources of servers that go with a message: chosen from what the servers offer. */
import { useQueries, useQuery } from '@tanstack/react-query'
import { type ReactNode, useMemo, useState } from 'react'
import { request } from '../../api/client.ts'
import { serverList } from '../../api/lists.ts'
import { Dialog } from '../../frame/dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { Text } from '../../parts/text.tsx'

export interface Attachment {
  readonly server: string
  readonly uri: string
}

export interface AttachmentsProps {
  readonly attached: readonly Attachment[]
  readonly change: (attached: readonly Attachment[]) => void
}

/** As many as a message takes. */
const most = 16
/** More would not be read: type some letters of it. */
const mostShown = 100

export function Attachments({ attached, change }: AttachmentsProps): ReactNode {
  const servers = useQuery(serverList).data ?? []
  const [choosing, setChoosing] = useState(false)
  if (servers.every(({ resources }) => resources === 0)) return null
  return (
    <div className="mb-2 flex flex-wrap items-center gap-2">
      <Button look="quiet" disabled={attached.length >= most} onClick={() => setChoosing(true)}>
        Attach a resource
      </Button>
      {attached.map(each => (
        <span key={`${each.server} ${each.uri}`} className="flex max-w-full items-center gap-1 rounded border border-line pl-2">
          <span className="truncate">
            <Text most={80}>{each.uri}</Text>
          </span>
          <button
            type="button"
            aria-label={`Remove ${each.uri}`}
            className="min-h-6 min-w-6"
            onClick={() => change(attached.filter(other => other !== each))}
          >
            ×
          </button>
        </span>
      ))}
      {choosing && (
        <Chooser
          servers={servers.filter(({ resources }) => resources > 0).map(({ name }) => name)}
          close={() => setChoosing(false)}
          choose={chosen => {
            setChoosing(false)
            if (!attached.some(({ server, uri }) => server === chosen.server && uri === chosen.uri)) change([...attached, chosen])
          }}
        />
      )}
    </div>
  )
}

interface ChooserProps {
  readonly servers: readonly string[]
  readonly choose: (attachment: Attachment) => void
  readonly close: () => void
}

function Chooser({ servers, choose, close }: ChooserProps): ReactNode {
  const [text, setText] = useState('')
  const details = useQueries({
    queries: servers.map(name => ({
      queryKey: ['servers', name],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) => request('GET /servers/:name', { path: { name }, signal }),
    })),
  })
  const offered = details.flatMap(({ data }) =>
    (data?.items ?? []).filter(({ kind }) => kind === 'resource').map(({ own }) => ({ server: data?.name ?? '', uri: own })),
  )
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/)
    return offered
      .filter(({ server, uri }) => words.every(word => `${server} ${uri}`.toLowerCase().includes(word)))
      .slice(0, mostShown)
  }, [offered, text])
  return (
    <Dialog label="Attach a resource" close={close}>
      <div className="space-y-3 p-4">
        <input
          type="search"
          aria-label="Find a resource"
          placeholder="Server or address"
          className="w-full"
          value={text}
          onChange={event => setText(event.target.value)}
        />
        <ul className="max-h-72 space-y-1 overflow-auto">
          {found.map(each => (
            <li key={`${each.server} ${each.uri}`}>
              <Button look="quiet" className="w-full !justify-start text-left break-all" onClick={() => choose(each)}>
                <span className="text-muted">{each.server}</span> <Text most={200}>{each.uri}</Text>
              </Button>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p className="text-muted">No resource has that name.</p>}
        <div className="text-right">
          <Button onClick={close}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}
