/** What a server offers, called by hand: a form of the arguments, one or several revisions, and what came back beside each other. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useCallback, useState } from 'react'
import type { Offer, ServerRow } from '#contract'
import { serverList } from '../../api/lists.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { QueryState } from '../../parts/query-state.tsx'
import { spellOut, Text } from '../../parts/text.tsx'
import { CallPart } from './call-part.tsx'
import { OfferPart } from './offer-list.tsx'
import type { SavedCall } from './saved-calls.ts'

/** What the address says. */
export interface PlaygroundPlace {
  readonly server?: string | undefined
  readonly kind?: string | undefined
  readonly item?: string | undefined
  readonly rev?: string | undefined
  readonly call?: string | undefined
}

export interface PlaygroundProps {
  readonly place: PlaygroundPlace
  readonly change: (place: PlaygroundPlace) => void
}

const kinds: readonly Offer['kind'][] = ['tool', 'resource', 'template', 'prompt']

export function Playground({ place, change }: PlaygroundProps): ReactNode {
  const query = useQuery(serverList)
  const servers = query.data
  const server = servers?.find(({ name }) => name === place.server) ?? servers?.[0]
  const kind = kinds.find(each => each === place.kind) ?? 'tool'
  const [saved, setSaved] = useState<SavedCall>()
  const choose = useCallback(
    (offer: Pick<Offer, 'kind' | 'name'>) => {
      setSaved(undefined)
      change({ server: server?.name, kind: offer.kind, item: offer.name, rev: place.rev })
    },
    [change, server, place.rev],
  )
  const load = (call: SavedCall) => {
    setSaved(call)
    change({ server: call.server, kind: call.kind, item: call.item, rev: call.revisions.join(',') })
  }
  if (servers === undefined) return <QueryState query={query} />
  if (server === undefined) return <p className="p-6 text-center text-muted">This process has no server.</p>
  const { item } = place
  return (
    <div className="flex h-full min-h-0 flex-col">
      <ServerBar servers={servers} server={server} choose={name => change({ server: name })} />
      <div className="flex min-h-0 flex-1 flex-col md:flex-row">
        <div
          className={`flex min-h-0 flex-col border-line max-md:flex-1 md:w-[24rem] md:shrink-0 md:border-r ${item === undefined ? '' : 'max-md:hidden'}`}
        >
          <OfferPart server={server} kind={kind} item={item} choose={choose} load={load} />
        </div>
        <div className={`min-h-0 min-w-0 flex-1 overflow-auto ${item === undefined ? 'max-md:hidden' : ''}`}>
          {item === undefined ? (
            <p className="p-6 text-center text-muted">Choose a tool, a resource or a prompt.</p>
          ) : (
            <>
              <div className="px-4 pt-3 md:hidden">
                <Button onClick={() => change({ server: server.name, kind })}>All {kind}s</Button>
              </div>
              <CallPart
                key={`${server.name} ${kind} ${item} ${saved?.label ?? ''}`}
                server={server}
                kind={kind}
                item={item}
                saved={saved}
                place={place}
                change={change}
              />
            </>
          )}
        </div>
      </div>
    </div>
  )
}

interface ServerBarProps {
  readonly servers: readonly ServerRow[]
  readonly server: ServerRow
  readonly choose: (name: string) => void
}

function ServerBar({ servers, server, choose }: ServerBarProps): ReactNode {
  const { name, status, revision, carrier, why } = server
  return (
    <div className="border-b border-line px-4 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {servers.length > 1 ? (
          <select aria-label="Server" className="max-w-60" value={name} onChange={event => choose(event.target.value)}>
            {servers.map(each => (
              <option key={each.name} value={each.name}>
                {spellOut(each.name).slice(0, 80)}
              </option>
            ))}
          </select>
        ) : (
          <strong className="max-w-60 truncate">
            <Text most={80}>{name}</Text>
          </strong>
        )}
        <Badge tone={status === 'up' ? 'good' : status === 'connecting' ? 'plain' : 'danger'}>{status}</Badge>
        <span className="text-muted">
          <Text most={120}>{[revision, carrier].filter(Boolean).join(' · ')}</Text>
        </span>
      </div>
      {why !== undefined && status !== 'up' && (
        <p className="mt-1 text-danger">
          <Text most={400}>{why.message}</Text> <Text most={400}>{why.fix}</Text>
        </p>
      )}
    </div>
  )
}
