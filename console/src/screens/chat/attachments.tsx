/** Resources of servers that go with a message: chosen from what the servers offer. */
import { useQueries, useQuery } from '@tanstack/react-query'
import { type ReactNode, useMemo, useState } from 'react'
import { request } from '../../api/client.ts'
import { serverList } from '../../api/lists.ts'
import { Dialog } from '../../frame/dialog.tsx'
import { Icon } from '../../frame/icon.tsx'
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

/** What was chosen, each with a way to take it out. */
export function AttachmentChips({ attached, change }: AttachmentsProps): ReactNode {
  if (attached.length === 0) return null
  return (
    <ul aria-label="Attached" className="mb-2 flex flex-wrap gap-2">
      {attached.map(each => (
        <li key={`${each.server} ${each.uri}`} className="flex max-w-full items-center gap-1 rounded border border-line pl-2">
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
        </li>
      ))}
    </ul>
  )
}

/** Opens the choice, where a server has something to choose. */
export function AttachButton({ attached, change }: AttachmentsProps): ReactNode {
  const servers = useQuery(serverList).data ?? []
  const [choosing, setChoosing] = useState(false)
  const offering = servers.filter(({ resources }) => resources > 0)
  if (offering.length === 0) return null
  return (
    <>
      <Button
        aria-label="Attach a resource"
        title="Attach a resource"
        className="min-h-10 min-w-10 !px-2"
        disabled={attached.length >= most}
        onClick={() => setChoosing(true)}
      >
        <Icon path="M13 7.5l-5.2 5.2a3.2 3.2 0 01-4.5-4.5l5.6-5.6a2.1 2.1 0 013 3L6.4 11a1 1 0 01-1.5-1.5l4.8-4.8" />
      </Button>
      {choosing && (
        <Chooser
          servers={offering.map(({ name }) => name)}
          close={() => setChoosing(false)}
          choose={chosen => {
            setChoosing(false)
            if (!attached.some(({ server, uri }) => server === chosen.server && uri === chosen.uri)) change([...attached, chosen])
          }}
        />
      )}
    </>
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
