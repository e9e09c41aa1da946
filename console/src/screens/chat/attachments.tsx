/** Resources of servers that go with a message. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useId, useState } from 'react'
import { serverList, useServer } from '../../api/lists.ts'
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
/** More would not be read. */
const mostOffered = 500

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

/** Opens the choice, where a server is there to be asked. */
export function AttachButton({ attached, change }: AttachmentsProps): ReactNode {
  const servers = useQuery(serverList).data ?? []
  const [choosing, setChoosing] = useState(false)
  const up = servers.filter(({ status }) => status === 'up').map(({ name }) => name)
  if (up.length === 0) return null
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
          servers={up}
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
  const [server, setServer] = useState(servers[0] ?? '')
  const [uri, setUri] = useState('')
  const known = useId()
  const resources = useServer(server).data?.items.filter(({ kind }) => kind === 'resource') ?? []
  const address = uri.trim()
  return (
    <Dialog label="Attach a resource" close={close}>
      <form
        className="space-y-3 p-5"
        onSubmit={event => {
          event.preventDefault()
          if (address !== '') choose({ server, uri: address })
        }}
      >
        <h2 className="text-[1.14rem] font-semibold">Attach a resource</h2>
        <label className="block">
          <span className="label mb-1 block">Server</span>
          <select className="w-full" value={server} onChange={event => setServer(event.target.value)}>
            {servers.map(name => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label className="block">
          <span className="label mb-1 block">Address of the resource</span>
          <input
            className="w-full font-mono"
            list={known}
            placeholder="notes://today"
            autoComplete="off"
            spellCheck={false}
            value={uri}
            onChange={event => setUri(event.target.value)}
          />
        </label>
        <datalist id={known}>
          {resources.slice(0, mostOffered).map(({ own }) => (
            <option key={own} value={own} />
          ))}
        </datalist>
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Close</Button>
          <Button type="submit" look="primary" disabled={address === ''}>
            Attach
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
